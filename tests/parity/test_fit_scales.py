"""--scale-search and --smooth-quant, against NumPy and by answers."""
import numpy as np
import onnx
import pytest

from fit_models import constants
from qdq_models import Maker, feeds_of
from test_fit import save_feeds, tools
from test_qdq import quantize  # noqa: F401
from test_qdq_better import answers, sqnr


def tailed():
    """Weights with a few far values, as trained ones have; matrices and a convolution."""
    m = Maker(40)
    tail = lambda *s: (m.rng.standard_normal(s) * np.where(m.rng.random(s) < 0.02, 4, 1) / np.sqrt(s[1])).astype("f")  # noqa: E731
    x = m.input("x", [1, 8, 10, 10])
    y = m.node("Relu", [m.node("Conv", [x, m.weight("w0", values=tail(32, 8, 3, 3)), m.weight("b0", 32, scale=0.1)])])
    y = m.node("Flatten", [m.node("GlobalAveragePool", [y])])
    y = m.node("Gemm", [y, m.weight("w1", values=tail(24, 32)), m.weight("b1", 24, scale=0.1)], transB=1)
    return m.build(m.node("Sigmoid", [m.node("MatMul", [y, m.weight("w2", values=tail(24, 16))])]))


def error(model, got, name, per_channel_axis=None):
    w, have = constants(model)[name].astype("d"), constants(got)
    q, s, z = (have[f"{name}{k}"] for k in ("_quantized", "_scale", "_zero_point"))
    shape = [-1 if i == per_channel_axis else 1 for i in range(w.ndim)] if s.ndim else []
    s, z = (v.astype("d").reshape(shape) for v in (s, z))
    e = (w - (q.astype("d") - z) * s) ** 2
    return e.sum() if per_channel_axis is None else e.sum(tuple(i for i in range(w.ndim) if i != per_channel_axis))


def best_of_grid(w):
    """Squared error of symmetric int4 with the best share of the whole range."""
    sums = []
    for share in np.arange(100, 29, -1) / 100:
        s = np.float32(2 * np.abs(w).max() * share / 15)
        q = np.clip(np.rint(w / s), -8, 7)
        sums.append(((w - q * s.astype("d")) ** 2).sum())
    return sums[0], min(sums)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("weight", ["int4", "uint4", "uint8", "int16"])
def test_no_constant_gets_worse(quantize, weight, channels):
    model = tailed()
    args = ["--weight-type", weight, "--activation-type", "uint16", *(["--per-channel"] if channels else [])]
    plain, got = quantize(model, None, *args)[0], quantize(model, None, *args, "--scale-search")[0]
    for name, axis in ("w0", 0), ("w1", 0), ("w2", 1):
        before, after = (error(model, v, name, axis if channels else None) for v in (plain, got))
        assert (after <= before * (1 + 1e-6)).all(), name
        if weight.endswith("4"):
            assert after.sum() < before.sum() * 0.95, name
        if weight == "int4":
            w = np.moveaxis(constants(model)[name], axis, 0)
            rows = [best_of_grid(r) for r in w] if channels else [best_of_grid(w)]
            assert np.allclose(before, [r[0] for r in rows], rtol=1e-3)
            assert (after <= np.array([r[1] for r in rows]) * 1.05).all(), name  # every fifth share, then around the best
    if weight == "int4":
        feeds = feeds_of(model, 8, unit=True)
        assert sqnr(model, got, feeds) > sqnr(model, plain, feeds) + (0 if channels else 1)


def test_search_takes_mse_for_activations(quantize):
    model = tailed()
    assert quantize(model, None, "--scale-search")[1]["method"] == "mse"
    assert quantize(model, None, "--scale-search", "--method", "minmax")[1]["method"] == "minmax"


def block(kind):
    """A normalisation with channels that are far too large, read by three matrices."""
    m = Maker(41)
    gain = np.where(np.arange(32) % 11 == 3, 60, 1).astype("f")
    x = m.input("x", [2, 6, 32])
    if kind == "parts":
        d = m.node("Sub", [x, m.node("ReduceMean", [x, m.weight("ax", values=np.array([-1]))])])
        v = m.node("ReduceMean", [m.node("Mul", [d, d]), "ax"])
        n = m.node("Div", [d, m.node("Sqrt", [m.node("Add", [v, m.weight("eps", values=np.float32(1e-5))])])])
        y = m.node("Add", [m.node("Mul", [n, m.weight("gain", values=gain)]), m.weight("shift", 32, scale=0.5)])
    else:
        y = m.node("LayerNormalization", [x, m.weight("gain", values=gain), m.weight("shift", 32, scale=0.5)], axis=-1)
    small = 1 / np.sqrt(32) / np.where(gain > 1, 20, 1)[:, None]
    for i in range(3):
        m.weight(f"w{i}", values=(m.rng.standard_normal((32, 16)) * small).astype("f"))
    a, b, c = (m.node("MatMul", [y, f"w{i}"]) for i in range(3))
    z = m.node("Add", [m.node("Add", [a, b]), c])
    if kind == "residual":
        z = m.node("Add", [z, m.node("MatMul", [m.node("Tanh", [y]), m.weight("w9", 32, 16, scale=0.1)])])
    return m.build(m.node("Sigmoid", [z]))


@pytest.mark.parametrize("alpha", [0.5, 0.8])
@pytest.mark.parametrize("kind", ["norm", "parts", "residual"])
def test_smoothed_weights(quantize, tmp_path, kind, alpha):
    model = block(kind)
    feeds = feeds_of(model, 6, unit=True)
    save_feeds(tmp_path / "x.npz", feeds)
    args = ["--calibration-data", tmp_path / "x.npz", "--weight-type", "int16", "--activation-type", "uint16", "--symmetric"]
    got, report = quantize(model, None, *args, "--smooth-quant", str(alpha))
    assert tools(report) == {"smooth_quant": 3}
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    name = next(n.input[0] for n in model.graph.node if n.op_type == "MatMul")
    probe.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    peak = np.abs(np.concatenate([a[0].reshape(-1, 32) for a in answers(probe, feeds)])).max(0)
    w = constants(model)
    s = peak ** alpha / np.abs(np.concatenate([w[f"w{i}"] for i in range(3)], 1)).max(1) ** (1 - alpha)
    have = constants(got)
    for i in range(3):
        real = have[f"w{i}_quantized"].astype("d") * have[f"w{i}_scale"]
        assert np.abs(real - w[f"w{i}"] * s[:, None]).max() <= 0.51 * have[f"w{i}_scale"] + 1e-5 * np.abs(real).max()
    assert sqnr(model, got, feeds) > 55  # the function is the same
    extra = sum(n.op_type == "LayerNormalization" for n in got.graph.node) - sum(n.op_type == "LayerNormalization" for n in model.graph.node)
    assert extra == (1 if kind == "residual" else 0)


@pytest.mark.parametrize("kind", ["norm", "parts"])
def test_smoothing_saves_outliers(quantize, tmp_path, kind):
    model = block(kind)
    feeds = feeds_of(model, 8, unit=True)
    save_feeds(tmp_path / "x.npz", feeds)
    args = ["-p", "w8a8", "--calibration-data", tmp_path / "x.npz"]
    plain, got = quantize(model, None, *args)[0], quantize(model, None, *args, "--smooth-quant", "0.5")[0]
    assert sqnr(model, got, feeds) > sqnr(model, plain, feeds) + 3
