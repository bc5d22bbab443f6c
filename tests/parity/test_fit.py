"""Tools for accuracy: each changes the float model by rounding only, does what its paper says (computed here a second time, in
NumPy), and makes the answers of integers better where plain quantisation is bad."""
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import fit_models
from conftest import model as real_model
from conftest import WINML, need_qnn
from fit_models import MODELS, Chain, constants, equalised
from qdq_models import Maker, feeds_of
from test_qdq import quantize  # noqa: F401
from test_qdq_better import answers, notes, sqnr


def tools(report):
    return report.get("accuracy_tools", {})


def rewritten(quantize, model, *args):
    """The float model as a tool leaves it: only its last operator gets integers, so weights stay readable."""
    got, report = quantize(model, None, "--op-type", "Sigmoid", *args)
    return got, report


def before_last(model, feeds):
    """What the last operator of the float model reads, here and there."""
    last = model.graph.node[-1].input[0]
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(helper.make_tensor_value_info(last, TensorProto.FLOAT, None))
    return np.concatenate([a[0].ravel() for a in answers(probe, feeds)])


def raw_of(got, model):
    """The value that the float model's last operator reads, in the model with a quantised end."""
    probe = onnx.ModelProto()
    probe.CopyFrom(got)
    del probe.graph.output[:]
    probe.graph.output.append(helper.make_tensor_value_info(model.graph.node[-1].input[0], TensorProto.FLOAT, None))
    return probe


@pytest.mark.parametrize("name", MODELS)
def test_equalised_weights(quantize, name):
    m, model = MODELS[name]()
    got, report = rewritten(quantize, model, "--equalize")
    assert tools(report) == {"equalize": len(m.pairs)}
    want, have = equalised(constants(model), m.layers, m.pairs), constants(got)
    assert set(constants(model)) <= set(have)
    for key, value in constants(model).items():
        assert np.allclose(have[key], want[key], rtol=2e-3, atol=0), key
    feeds = feeds_of(model, 4, unit=True)
    a = before_last(model, feeds)
    b = np.concatenate([v[0].ravel() for v in answers(raw_of(got, model), feeds)])
    assert np.abs(a - b).max() <= 3e-6 * np.abs(a).max()
    for pair in m.pairs:  # what the paper promises: both sides of a pair are equal, channel by channel
        (n1, *k1), (n2, *k2) = m.layers[pair], m.layers[pair + 1]
        r1, r2 = np.abs(fit_models.dense(have[n1], *k1)).max((1, 2)), np.abs(fit_models.dense(have[n2], *k2)).max((0, 2))
        assert np.allclose(r1, r2, rtol=1e-3)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("precision", ["w8a8", "w8a16"])
def test_equalising_saves_channels_of_many_sizes(quantize, name, precision):
    _, model = MODELS[name]()
    feeds = feeds_of(model, 8, unit=True)
    plain, report = quantize(model, None, "-p", precision)
    assert not tools(report)
    got, report = quantize(model, None, "-p", precision, "--equalize")
    before, after = sqnr(model, plain, feeds), sqnr(model, got, feeds)
    assert after > before + 6, (before, after)
    good = MODELS[name](bad=False)[1]
    assert after > sqnr(good, quantize(good, None, "-p", precision)[0], feeds) - 6
    ort.InferenceSession(got.SerializeToString(), providers=["CPUExecutionProvider"])


def near_miss(kind):
    """Two convolutions that look like a pair."""
    m = Chain(20)
    y = m.layer("Conv", m.input("x", [1, 3, 8, 8]), 6, 3)
    outputs = []
    if kind == "relu6":
        y = m.node("Clip", [y, m.weight("zero", values=np.float32(0)), m.weight("six", values=np.float32(6))])
    elif kind == "sigmoid":
        y = m.node("Sigmoid", [y])
    elif kind == "softmax":
        y = m.node("Softmax", [y], axis=1)
    elif kind == "add_all":  # one number for all channels
        y = m.node("Add", [y, m.weight("one", values=np.float32(1))])
    elif kind == "add_rows":
        y = m.node("Add", [y, m.weight("rows", 1, 1, 8, 1)])
    elif kind == "divided":
        y = m.node("Div", [m.weight("one", values=np.float32(1)), m.node("Exp", [y])])
    elif kind == "transposed":
        y = m.node("Transpose", [y], perm=[0, 2, 1, 3])
        y = m.node("Transpose", [y], perm=[0, 2, 1, 3])
    elif kind == "two_readers":
        outputs.append(m.node("Tanh", [y]))
    elif kind == "output":
        outputs.append(y)
    elif kind == "twice":
        y = m.node("Mul", [y, y])
    z = m.layer("Conv", y, 4, 6, bias=kind != "shared")
    if kind == "shared":
        z = m.node("Conv", [m.node("Softmax", [m.node("Conv", [z, m.weight("back", 6, 4, 1, 1)])], axis=1), "w1"])
    outputs.append(z)
    return m.build(*outputs)


@pytest.mark.parametrize("kind", ["relu6", "sigmoid", "softmax", "add_all", "add_rows", "divided", "transposed", "two_readers", "output", "twice",
                                  "shared"])
def test_what_is_no_pair(quantize, kind):
    model = near_miss(kind)
    got, report = quantize(model, None, "--equalize")
    assert tools(report)["equalize"] == 0
    assert any("equalize" in w for w in report["warnings"])
    assert got.SerializeToString() == quantize(model, None)[0].SerializeToString()


def test_dead_channels(quantize):
    """Channels without weights on one side say nothing of a scale."""
    m = Chain(21)
    y = m.node("Relu", [m.layer("Conv", m.input("x", [1, 3, 8, 8]), 6, 3)])
    y = m.layer("Conv", y, 4, 6)
    model = m.build(m.node("Sigmoid", [y]))
    for t in model.graph.initializer:
        a = numpy_helper.to_array(t).copy()
        if t.name == "w0":
            a[1] = 0
        if t.name == "w1":
            a[:, 2] = 0
        t.CopyFrom(numpy_helper.from_array(a, t.name))
    got, _ = rewritten(quantize, model, "--equalize")
    want, have = equalised(constants(model), m.layers, {0: ["b0"]}), constants(got)
    for key in want:
        assert np.isfinite(have[key]).all() and np.allclose(have[key], want[key], rtol=2e-3), key


def test_a_bias_that_others_read_stays(quantize):
    m = Chain(22)
    x = m.input("x", [1, 3, 8, 8])
    y = m.node("Relu", [m.layer("Conv", x, 6, 3)])
    y = m.layer("Conv", y, 6, 6, bias=False)
    y = m.node("Add", [y, m.node("Conv", [x, m.weight("side", 6, 3, 1, 1), "b0"])])
    model = m.build(m.node("Sigmoid", [y]))
    got, report = rewritten(quantize, model, "--equalize")
    assert tools(report)["equalize"] == 1
    assert np.array_equal(constants(got)["b0"], constants(model)["b0"])
    feeds = feeds_of(model, 2, unit=True)
    a = before_last(model, feeds)
    b = np.concatenate([v[0].ravel() for v in answers(raw_of(got, model), feeds)])
    assert np.abs(a - b).max() <= 3e-6 * np.abs(a).max()


def lines_of_text(n, seed=3):
    """Pictures with the look of lines of text, some upside down."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        a, ink, x = np.full((48, 192), rng.uniform(0.6, 1)), rng.uniform(0, 0.4), 4
        while x < 180:
            w, h = rng.integers(6, 18), rng.integers(14, 34)
            y = rng.integers(4, 46 - h)
            for _ in range(rng.integers(2, 5)):
                at = rng.integers(0, h), rng.integers(0, w)
                if rng.random() < 0.5:
                    a[y + at[0]:y + at[0] + 3, x:x + w] = ink
                else:
                    a[y:y + h, x + at[1]:x + at[1] + 3] = ink
            x += w + rng.integers(2, 8)
        a = a + rng.normal(0, 0.02, a.shape)
        out.append(np.stack([(a[::-1, ::-1] if i % 2 else a) * 2 - 1] * 3))
    return np.stack(out).astype("f")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """ocr-cls, optimized, with pictures to calibrate it."""
    path = tmp_path_factory.mktemp("cls")
    subprocess.run([WINML, "optimize", "-m", real_model("ocr-cls"), "-o", path / "cls.onnx", "--input-shape", "x=1,3,48,192"], check=True,
                   capture_output=True)
    np.savez(path / "cls.npz", x=lines_of_text(64))
    return path / "cls.onnx", path / "cls.npz"


def measured(winml, tmp_path, source, data, *args):
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "--overwrite", "--calibration-data", data, "--samples", "64", "--accuracy",
              "-f", "json", *args)
    assert r.code == 0, r.err
    onnx.checker.check_model(onnx.load(tmp_path / "q.onnx"), full_check=True)
    return r.json["accuracy"]["outputs"][0]["sqnr_db"], tools(r.json)


@pytest.mark.parametrize("flags,gain", [(["-p", "w8a16"], 1), (["-p", "w8a16", "--weight-type", "int8"], 3)])
def test_a_real_classifier_equalised(winml, tmp_path, classifier, flags, gain):
    before, _ = measured(winml, tmp_path, *classifier, *flags)
    after, done = measured(winml, tmp_path, *classifier, *flags, "--equalize")
    assert done["equalize"] >= 15 and after > before + gain, (before, after)


def test_the_npu_takes_an_equalised_model(winml, tmp_path):
    need_qnn()
    _, model = MODELS["mobile"]()
    onnx.save(model, tmp_path / "in.onnx")
    npu = ["--ep", "qnn", "--device", "npu"]
    r = winml("quantize", "-m", tmp_path / "in.onnx", "-o", tmp_path / "q.onnx", "-p", "w8a8", "--equalize", *npu)
    assert r.code == 0, r.err
    r = winml("compile", "-m", tmp_path / "q.onnx", "-o", tmp_path / "c.onnx", *npu, "--ep-options", "soc_model=60", "--ep-options", "htp_arch=73")
    assert r.code == 0, r.err
    assert {n.op_type for n in onnx.load(tmp_path / "c.onnx").graph.node} <= {"EPContext", "QuantizeLinear", "DequantizeLinear"}


def shown(model, names, feeds):
    """Values of a model by name, over all feeds."""
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names)
    return [np.concatenate(v) for v in zip(*answers(probe, feeds))]


def outputs_of_layers(model):
    return {n.name: n.output[0] for n in model.graph.node if n.name.startswith("layer")}


def means(model, feeds):
    names = outputs_of_layers(model)
    return {k: v.mean((0, *range(2, v.ndim))) for k, v in zip(names, shown(model, names.values(), feeds))}


def save_feeds(path, feeds):
    np.savez(path, **{k: np.stack([f[k] for f in feeds]) for k in feeds[0]})


def test_a_bias_takes_the_mean_error(quantize, tmp_path):
    """One layer: the new bias is the old one plus the mean of (float - plainly quantised), computed here from both models."""
    m = Chain(30)
    x = m.input("x", [1, 4, 12, 12])
    model = m.build(m.node("Sigmoid", [m.layer("Conv", x, 6, 4, kernel=[3, 3])]))
    feeds = feeds_of(model, 6, unit=True)
    save_feeds(tmp_path / "x.npz", feeds)
    args = ["--weight-type", "int4", "--activation-type", "uint16", "--calibration-data", tmp_path / "x.npz"]
    plain, _ = quantize(model, None, *args)
    want = constants(model)["b0"] + (means(model, feeds)["layer0"] - means(plain, feeds)["layer0"])
    got, report = quantize(model, None, *args, "--bias-correction")
    assert tools(report) == {"bias_correction": 1}
    w = constants(got)
    have = w["b0_quantized"] * w["b0_quantized_scale"]
    assert np.abs(want - constants(model)["b0"]).max() > 100 * w["b0_quantized_scale"].max()
    assert np.abs(have - want).max() <= 2 * w["b0_quantized_scale"].max()


@pytest.mark.parametrize("name", ["mobile", "decoder", "gemms"])
def test_mean_errors_go(quantize, tmp_path, name):
    """Level after level: afterwards the mean of every channel of every layer is that of the float model."""
    _, model = MODELS[name](bad=False)
    feeds = feeds_of(model, 8, unit=True)
    save_feeds(tmp_path / "x.npz", feeds)
    args = ["--weight-type", "int4", "--activation-type", "uint16", "--calibration-data", tmp_path / "x.npz"]
    plain, _ = quantize(model, None, *args)
    got, report = quantize(model, None, *args, "--bias-correction")
    assert tools(report)["bias_correction"] == len(outputs_of_layers(model))
    a, b, c = means(model, feeds), means(plain, feeds), means(got, feeds)
    error = lambda v: sum(((a[k] - v[k]) ** 2).sum() for k in a)  # noqa: E731
    assert error(c) < error(b) / 100
    assert sqnr(model, got, feeds) > sqnr(model, plain, feeds) + 1


def test_a_matrix_and_the_sum_behind_it(quantize, tmp_path):
    m = Chain(31)
    x = m.input("x", [2, 5, 16])
    y = m.node("Relu", [m.node("Add", [m.weight("shift", 32, scale=0.2), m.layer("MatMul", x, 32, 16)])])
    model = m.build(m.node("Sigmoid", [m.layer("MatMul", y, 8, 32)]))  # the second has no bias: it gets none
    feeds = feeds_of(model, 8, unit=True)
    save_feeds(tmp_path / "x.npz", feeds)
    args = ["--weight-type", "int4", "--activation-type", "uint16", "--calibration-data", tmp_path / "x.npz"]
    plain, _ = quantize(model, None, *args)
    got, report = quantize(model, None, *args, "--bias-correction")
    assert tools(report) == {"bias_correction": 1}
    total = next(n.output[0] for n in model.graph.node if n.op_type == "Add")
    below = [n.output[0] for n in got.graph.node if n.op_type == "Add"]  # its Relu is gone, or not
    a, b, c = (shown(v, [t], feeds)[0].mean((0, 1)) for v, t in ((model, total), (plain, below[0]), (got, below[0])))
    assert ((a - c) ** 2).sum() < ((a - b) ** 2).sum() / 50
    assert not np.array_equal(constants(got)["shift_quantized"], constants(plain)["shift_quantized"])


def test_a_node_that_is_left_alone_keeps_its_bias(quantize):
    _, model = MODELS["gemms"](bad=False)
    _, report = quantize(model, None, "--exclude", "layer1", "--bias-correction")
    assert tools(report) == {"bias_correction": 2}
    got, _ = quantize(model, None, "--exclude", "layer1", "--bias-correction")
    assert np.array_equal(constants(got)["b1"], constants(model)["b1"])


@pytest.mark.parametrize("more,gain", [([], 2), (["--equalize"], 3)])
def test_a_real_classifier_corrected(winml, tmp_path, classifier, more, gain):
    flags = ["-p", "w8a16"]
    before, _ = measured(winml, tmp_path, *classifier, *flags)
    after, done = measured(winml, tmp_path, *classifier, *flags, "--bias-correction", *more)
    assert done["bias_correction"] >= 50 and after > before + gain, (before, after)
