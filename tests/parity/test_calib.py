"""Ranges of tensors against the calibrators of onnxruntime.quantization: the same numbers, bit for bit; and the cache both ways."""
import contextlib
import io
import json
import os
import subprocess
import warnings

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime import quantization as ortq
from onnxruntime.quantization import calibrate

from conftest import WINML

PROGRAM = os.path.join(os.path.dirname(WINML), "tests", "calib", "winml_calib")
METHODS = ["minmax", "moving-average", "entropy", "percentile", "mse", "kl"]


def data_sets(dtype):
    """name -> samples of one tensor, all finite and of one shape."""
    rng = np.random.default_rng(4)
    f16 = dtype == np.float16
    out = {
        "normal": [rng.normal(size=(3, 700)) for _ in range(4)],
        "shifted": [rng.normal(2, 0.5, size=900) for _ in range(2)],
        "laplace": [rng.laplace(size=5000) for _ in range(3)],
        "heavy": [rng.standard_t(2, size=4000).clip(-3e4, 3e4) for _ in range(3)],
        "relu": [np.maximum(rng.normal(size=3000), 0) for _ in range(3)],
        "relu6": [rng.normal(3, 3, size=3000).clip(0, 6) for _ in range(3)],
        "negative": [-np.abs(rng.normal(size=1000)) - 0.25 for _ in range(2)],
        "uniform": [rng.uniform(-1, 3, size=2500)],
        "growing": [rng.normal(size=500) * 4.0**i for i in range(5)],
        "outlier": [np.append(rng.normal(size=999), 50.0 + i) for i in range(3)],
        "pixels": [rng.integers(0, 256, size=2000) / 255 for _ in range(2)],
        "integers": [rng.integers(-5, 9, size=300) for _ in range(2)],
        "zeros": [np.zeros(64) for _ in range(2)],
        "minus zero": [np.array([-0.0, 0.0, -0.0])],
        "constant": [np.full(50, 3.0) for _ in range(2)],
        "constant below": [np.full(50, -0.7)],
        "one": [np.array([0.3])],
        "two": [np.array([-1.5, 4.25])],
        "scalar": [np.array(2.0), np.array(-2.5)],
        "symmetric": [np.linspace(-1, 1, 2049)],
        "edges": [np.linspace(0, 1, 2049), np.linspace(0, 1, 2049)],
        "large": [rng.normal(size=800) * (1e3 if f16 else 1e30)],
        "small": [rng.normal(size=800) * (1e-3 if f16 else 1e-30)],
        "odd length": [rng.normal(size=n) for n in (1237,)],
    }
    if not f16:
        out["subnormal"] = [rng.normal(size=800) * 1e-39]
        out["narrow"] = [1000 + rng.uniform(size=2000) * 0.5]
        out["tight"] = [np.float32(1) + rng.integers(0, 3000, size=2000) * np.float32(2.0**-23)] # bins hardly wider than a step
        out["too tight"] = [np.float32(1) + rng.integers(0, 90, size=500) * np.float32(2.0**-23)]
        out["many"] = [rng.normal(size=200_001)]
    return {k: [np.asarray(a).astype(dtype) for a in v] for k, v in out.items()}


DATA = {"float32": data_sets(np.float32), "float16": data_sets(np.float16)}
CASES = [(d, name) for d, sets in DATA.items() for name in sets]


def run(*args, fails=False):
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert (done.returncode != 0) == fails, done.stderr
    if fails:
        return done.stderr
    out = {}
    for line in done.stdout.splitlines():
        if not line.startswith("#"):
            name, low, high, dtype = line.rsplit(" ", 3)
            out[name] = (float.fromhex(low), float.fromhex(high), dtype)
    return out


def ours(tmp_path, method, samples, **opts):
    np.savez(tmp_path / "x.npz", **{f"x@{i}": a for i, a in enumerate(samples)})
    return run(method, tmp_path / "x.npz", *(f"{k}={v}" for k, v in opts.items()))["x"]


def ours_arrays(tmp_path, method, samples, dtype):
    low, high, _ = ours(tmp_path, method, samples)
    return np.asarray(low, dtype), np.asarray(high, dtype)


def collector(samples, method, symmetric=False, bins=2048, levels=128, percentile=99.999):
    """The range of ORT's collector; None where it refuses the data."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            c = calibrate.HistogramCollector(method, symmetric, bins, levels, percentile, "same")
            c.collect({"x": samples})
            low, high = c.compute_collection_result()["x"][:2]
        except ValueError as e:
            assert "Too many bins" in str(e) or "is not finite" in str(e) or "supplied range" in str(e), e
            return None
    return np.asarray(low), np.asarray(high)


def same(got, want, dtype):
    """Every bit, but for the sign of zero. Ends that cross in ORT's answer are exchanged in ours."""
    low, high = float(want[0]), float(want[1])
    assert want[0].dtype == want[1].dtype == dtype
    assert got == (min(low, high), max(low, high), str(dtype)), (got, low, high)


class Reader(calibrate.CalibrationDataReader):
    def __init__(self, samples):
        self.left = list(samples)

    def get_next(self):
        return {"x": self.left.pop(0)} if self.left else None


def identity(path, dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["n"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", kind, shape)], [helper.make_tensor_value_info("y", kind, shape)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def calibrator(tmp_path, samples, method, one_by_one=False, **extra):
    """TensorsData of a whole calibration of a model whose x and y are the samples."""
    identity(tmp_path / "m.onnx", samples[0].dtype)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        c = calibrate.create_calibrator(str(tmp_path / "m.onnx"), None, str(tmp_path / "a.onnx"), method, extra_options=extra)
        flat = [a.reshape(-1) for a in samples]
        for part in ([[a] for a in flat] if one_by_one else [flat]):
            c.collect_data(Reader(part))
        return c.compute_data()


@pytest.mark.parametrize("dtype,name", CASES)
@pytest.mark.parametrize("symmetric", [False, True])
def test_minmax(tmp_path, dtype, name, symmetric):
    samples = DATA[dtype][name]
    want = calibrator(tmp_path, samples, calibrate.CalibrationMethod.MinMax, symmetric=symmetric)["x"]
    form = "symmetric" if symmetric else "free"
    same(ours(tmp_path, "minmax", samples, form=form), (want.lowest[0], want.highest[0]), np.dtype(dtype))


@pytest.mark.parametrize("dtype,name", CASES)
@pytest.mark.parametrize("symmetric,averaging", [(False, 0.01), (True, 0.3)])
def test_moving_average(tmp_path, dtype, name, symmetric, averaging):
    samples = DATA[dtype][name]
    want = calibrator(tmp_path, samples, calibrate.CalibrationMethod.MinMax, True, symmetric=symmetric, moving_average=True,
                      averaging_constant=averaging)["x"]
    got = ours(tmp_path, "moving-average", samples, form="symmetric" if symmetric else "free", averaging=averaging, threads=3)
    same(got, (want.lowest[0], want.highest[0]), np.dtype(dtype))


@pytest.mark.parametrize("dtype,name", CASES)
@pytest.mark.parametrize("opts", [{}, {"percentile": 99.0}, {"percentile": 75.0, "bins": 128}, {"form": "free"},
                                  {"form": "free", "percentile": 90.0, "bins": 301}, {"percentile": 100.0, "bins": 10}],
                         ids=lambda o: "-".join(map(str, o.values())) or "default")
def test_percentile(tmp_path, dtype, name, opts):
    samples = DATA[dtype][name]
    how = {k: v for k, v in opts.items() if k != "form"}
    want = collector(samples, "percentile", opts.get("form") != "free", **how)
    got = ours(tmp_path, "percentile", samples, threads=2, **opts)
    if want is None and dtype == "float16": # edges that coincide in half precision: ours are single then
        want = collector([a.astype(np.float32) for a in samples], "percentile", opts.get("form") != "free", **how)
        want = want and tuple(w.astype(np.float16) for w in want)
    if want is None: # values too close together for so many bins: nothing can be cut off
        all_of_it = np.concatenate([a.reshape(-1) for a in samples])
        want = all_of_it.min(), all_of_it.max()
    same(got, want, np.dtype(dtype))


@pytest.mark.parametrize("dtype,name", CASES)
@pytest.mark.parametrize("bins,levels", [(128, 128), (512, 128), (1001, 64)])
def test_entropy(tmp_path, dtype, name, bins, levels):
    samples = DATA[dtype][name]
    want = collector(samples, "entropy", bins=bins, levels=levels)
    got = ours(tmp_path, "entropy", samples, bins=bins, levels=levels, threads=2)
    if want is None and dtype == "float16":
        want = collector([a.astype(np.float32) for a in samples], "entropy", bins=bins, levels=levels)
        want = want and tuple(w.astype(np.float16) for w in want)
    if want is None:
        all_of_it = np.concatenate([a.reshape(-1) for a in samples])
        want = all_of_it.min(), all_of_it.max()
    same(got, want, np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [np.nan, -np.inf, np.inf]], ids=["nan", "inf", "all"])
def test_not_finite(tmp_path, dtype, bad):
    """As if they were not there. ORT's collector leaves NaN out as well, where it takes it."""
    good = [a.reshape(-1) for a in DATA[dtype]["laplace"]]
    rng = np.random.default_rng(9)
    mixed = [np.insert(a, rng.integers(0, a.size, 20), np.resize(bad, 20)).astype(dtype) for a in good]
    mixed += [np.resize(bad, mixed[0].size).astype(dtype)] # a sample of nothing else
    whole = np.concatenate(good)
    same(ours(tmp_path, "minmax", mixed), (whole.min(), whole.max()), np.dtype(dtype))
    same(ours(tmp_path, "moving-average", mixed), ours_arrays(tmp_path, "moving-average", good, dtype), np.dtype(dtype))
    for opts in ({"bins": 100}, {"bins": 100, "form": "free"}):
        want = collector(good, "percentile", "form" not in opts, bins=100)
        same(ours(tmp_path, "percentile", mixed, **opts), want, np.dtype(dtype))
        if bad == [np.nan] and "form" in opts:
            assert collector(mixed, "percentile", bins=100) == want
    want = collector(good, "entropy", bins=256)
    same(ours(tmp_path, "entropy", mixed, bins=256), want, np.dtype(dtype))
    if bad == [np.nan]:
        assert collector(mixed, "entropy", bins=256) == want


def test_minmax_over_samples_that_are_nan(tmp_path):
    samples = [np.array([1, -2], np.float32), np.array([np.nan, np.nan], np.float32), np.array([5, 4], np.float32)]
    want = calibrator(tmp_path, samples, calibrate.CalibrationMethod.MinMax)["x"]
    same(ours(tmp_path, "minmax", samples), (want.lowest[0], want.highest[0]), np.dtype("float32"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("values", [[], [np.nan], [np.inf, -np.inf]], ids=["empty", "nan", "inf"])
def test_nothing_finite(tmp_path, method, dtype, values):
    assert ours(tmp_path, method, [np.array(values, dtype)]) == (0, 0, dtype)
    if not values and method in ("entropy", "percentile"):
        same((0.0, 0.0, dtype), collector([np.array([], dtype)], method, method == "percentile", bins=256), np.dtype(dtype))


@pytest.mark.parametrize("method", ["entropy", "percentile"])
def test_samples_of_several_sizes(tmp_path, method):
    """ORT refuses them; together they are one array."""
    rng = np.random.default_rng(2)
    samples = [rng.laplace(size=n).astype(np.float32) for n in (1, 1000, 33, 0, 4097)]
    same(ours(tmp_path, method, samples), collector([np.concatenate(samples)], method, method == "percentile"), np.dtype("float32"))


@pytest.mark.parametrize("method", METHODS)
def test_threads_do_not_show(tmp_path, method):
    rng = np.random.default_rng(3)
    samples = [rng.laplace(size=777).astype(np.float32) for _ in range(9)]
    results = {ours(tmp_path, method, samples, threads=n) for n in (1, 2, 5, 9)}
    assert len(results) == 1


@pytest.mark.parametrize("method,option", [("percentile", "percentile=101"), ("percentile", "percentile=-1"), ("percentile", "percentile=nan"),
                                           ("percentile", "bins=99999999"), ("entropy", "bins=100"), ("entropy", "bins=20000"),
                                           ("entropy", "levels=4096"), ("moving-average", "averaging=1.5")])
def test_refused_options(tmp_path, method, option):
    np.savez(tmp_path / "x.npz", **{"x@0": np.zeros(3, np.float32)})
    error = run(method, tmp_path / "x.npz", option, fails=True)
    assert error.startswith(f"usage: calibration method {method}: ")


@pytest.mark.parametrize("name", ["laplace", "heavy", "relu6", "growing"])
def test_entropy_by_default_clips(tmp_path, name):
    samples = DATA["float32"][name]
    got = ours(tmp_path, "entropy", samples)
    same(got, collector(samples, "entropy"), np.dtype("float32"))
    if name in ("heavy", "growing"):
        assert got[1] - got[0] < np.ptp(np.concatenate(samples))


def static(model, out, method, cache=None, samples=None):
    with contextlib.redirect_stdout(io.StringIO()):
        ortq.quantize_static(str(model), str(out), Reader(samples) if samples else None, calibrate_method=method,
                             calibration_cache_path=cache and str(cache), activation_type=ortq.QuantType.QUInt8)
    return {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(str(out)).graph.initializer}


@pytest.mark.parametrize("name", ["MinMax", "Percentile", "Entropy"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_cache_of_ort_is_read_and_written(tmp_path, name, dtype):
    method = calibrate.CalibrationMethod[name]
    extra = {} if name == "MinMax" else {"num_bins": 128}
    data = calibrator(tmp_path, DATA[dtype]["laplace"], method, **extra)
    calibrate.save_tensors_data(data, tmp_path / "ort.json")
    ranges = run(name.lower(), tmp_path / "ort.json", f"out={tmp_path / 'ours.json'}")
    assert list(ranges) == list(data.keys())
    for tensor, t in data.items():
        assert ranges[tensor][:2] == (float(np.squeeze(t.lowest)), float(np.squeeze(t.highest)))
        assert ranges[tensor][2] == dtype or name != "MinMax" # ORT writes some ends as plain numbers, and the type is lost
    data = calibrate.load_tensors_data(tmp_path / "ort.json")
    again = calibrate.load_tensors_data(tmp_path / "ours.json")
    assert again.calibration_method == method and list(again.keys()) == list(data.keys())
    for tensor, t in again.items():
        for key in ("lowest", "highest"):
            mine, theirs = getattr(t, key), getattr(data[tensor], key)
            assert mine.shape == theirs.shape and mine == theirs and (mine.dtype == dtype or name != "MinMax")
    if name == "MinMax": # nothing but the ranges is in it: the very same document
        assert json.load(open(tmp_path / "ours.json")) == json.load(open(tmp_path / "ort.json"))
    assert run(name.lower(), tmp_path / "ours.json") == ranges


@pytest.mark.parametrize("name", ["MinMax", "Percentile", "Entropy"])
def test_ort_quantizes_with_our_cache(tmp_path, name):
    """The scales that its own calibration gives."""
    rng = np.random.default_rng(8)
    w = rng.normal(size=(6, 5)).astype(np.float32)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["h"], "mm"), helper.make_node("Relu", ["h"], ["y"], "r")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 5])],
                              [onnx.numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "f.onnx")
    method = calibrate.CalibrationMethod[name]
    samples = [rng.laplace(size=(4, 6)).astype(np.float32) for _ in range(3)]
    want = static(tmp_path / "f.onnx", tmp_path / "a.onnx", method, samples=list(samples))
    tensors = {"x": samples, "h": [a @ w for a in samples], "y": [np.maximum(a @ w, 0) for a in samples]}
    np.savez(tmp_path / "t.npz", **{f"{k}@{i}": a for k, v in tensors.items() for i, a in enumerate(v)})
    run(name.lower(), tmp_path / "t.npz", f"out={tmp_path / 'c.json'}", *(["bins=128"] if name == "Entropy" else []))
    got = static(tmp_path / "f.onnx", tmp_path / "b.onnx", method, cache=tmp_path / "c.json")
    assert got.keys() == want.keys() and any(k.endswith("_scale") for k in want)
    for k in want: # matrix products may be summed in another order
        np.testing.assert_allclose(got[k], want[k], rtol=1e-6, atol=0)


def test_cache_of_crossed_ends(tmp_path):
    """ORT's percentile of a value that is always the same."""
    data = calibrator(tmp_path, DATA["float32"]["constant"], calibrate.CalibrationMethod.Percentile, symmetric=False)
    low, high = float(data["x"].lowest), float(data["x"].highest)
    assert low > high
    calibrate.save_tensors_data(data, tmp_path / "p.json")
    assert run("percentile", tmp_path / "p.json")["x"][:2] == (high, low)


def test_calibration_table_is_read(tmp_path):
    """What write_calibration_table writes: the tensors at the top, or the whole TensorsData."""
    data = calibrator(tmp_path, DATA["float32"]["normal"], calibrate.CalibrationMethod.MinMax)
    want = ours(tmp_path, "minmax", DATA["float32"]["normal"])
    for table in (dict(data.items()), data):
        ortq.write_calibration_table(table, str(tmp_path))
        assert run("minmax", tmp_path / "calibration.json") == {k: want for k in data.keys()}


@pytest.mark.parametrize("name", ["é", "日本/語:0", 'a"b\\c', "tab\tname", "😀"])
def test_names_of_tensors(tmp_path, name):
    np.savez(tmp_path / "x.npz", x=np.array([1, -2], np.float32))
    data = calibrate.TensorsData(calibrate.CalibrationMethod.MinMax, {name: (np.array([-2], np.float32), np.array([1], np.float32))})
    calibrate.save_tensors_data(data, tmp_path / "a.json")
    run("minmax", tmp_path / "a.json", f"out={tmp_path / 'b.json'}")
    assert list(calibrate.load_tensors_data(tmp_path / "b.json").keys()) == [name]


def test_method_of_a_cache(tmp_path):
    samples = DATA["float32"]["normal"]
    np.savez(tmp_path / "x.npz", **{f"x@{i}": a for i, a in enumerate(samples)})
    for method in METHODS:
        cache = tmp_path / f"{method}.json"
        run(method, tmp_path / "x.npz", f"out={cache}", "bins=128")
        calibrate.load_tensors_data(cache)
        for asked in METHODS:
            if asked == method:
                run(asked, cache)
            else:
                error = run(asked, cache, fails=True)
                assert f"asked for is {asked}" in error and error.startswith("usage:") and "remove the file" in error
        assert run("any", cache) == run(method, cache)


def small(path, seed):
    rng = np.random.default_rng(seed)
    inits = {"w": rng.normal(size=(6, 5)), "s": np.full(6, 2.0), "b": np.zeros(6)}
    graph = helper.make_graph([helper.make_node("LayerNormalization", ["x", "s", "b"], ["n"], "ln"), helper.make_node("MatMul", ["n", "w"], ["y"], "mm")], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 5])],
                              [onnx.numpy_helper.from_array(v.astype(np.float32), k) for k, v in inits.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("flags,smooth", [([], False), (["--equalize"], False), (["--smooth-quant", "0.5"], True), (["--method", "percentile"], False)])
def test_ort_reads_what_is_said_of_the_model(winml, tmp_path, flags, smooth):
    """Our own member beside ORT's; SmoothQuant is said in ORT's way, too, which then calibrates again."""
    r = winml("quantize", "-m", small(tmp_path / "m.onnx", 1), "-o", tmp_path / "q.onnx", "--calibration-cache", tmp_path / "c.json", *flags)
    assert r.code == 0, r.err
    document = json.loads((tmp_path / "c.json").read_text())
    data = calibrate.load_tensors_data(tmp_path / "c.json")
    assert list(data.keys()) == list(document["data"]) and set(data.keys()) >= {"x", "n", "y"}
    assert document["smooth_quant"] is smooth and len(document["winml"]["model"]) == 16


def test_cache_of_another_model(winml, tmp_path):
    def run_it(model, out):
        r = winml("quantize", "-m", model, "-o", tmp_path / out, "--calibration-cache", tmp_path / "c.json", "-f", "json")
        assert r.code == 0, r.err
        return r

    first = small(tmp_path / "m.onnx", 1)
    run_it(first, "a.onnx")
    onnx.save(onnx.load(first), tmp_path / "outside.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert run_it(tmp_path / "outside.onnx", "b.onnx").json["warnings"] == [] # the same weights, wherever they are
    other = run_it(small(tmp_path / "trained.onnx", 2), "c.onnx")
    assert any("comes from another model" in w for w in other.json["warnings"]), other.json["warnings"]


def test_distribution_of_ort(tmp_path):
    data = calibrator(tmp_path, [a.astype(np.float32) for a in DATA["float32"]["normal"]], calibrate.CalibrationMethod.Distribution,
                      num_bins=512)
    calibrate.save_tensors_data(data, tmp_path / "d.json")
    assert run("any", tmp_path / "d.json")["x"][:2] == (float(data["x"].lowest), float(data["x"].highest))
    assert "the ranges come from method Distribution" in run("minmax", tmp_path / "d.json", fails=True)


def test_smooth_quant_of_ort(tmp_path):
    data = calibrate.TensorsData(calibrate.CalibrationMethod.MinMax, {"x": (np.array([-2], np.float32), np.array([1], np.float32))})
    calibrate.save_tensors_data(data, tmp_path / "s.json", smooth_quant=True)
    assert "SmoothQuant" in run("minmax", tmp_path / "s.json", fails=True)


@pytest.mark.parametrize("bad,word", [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")])
def test_cache_of_no_numbers(tmp_path, bad, word):
    """Python writes NaN and Infinity into JSON."""
    data = calibrate.TensorsData(calibrate.CalibrationMethod.MinMax, {
        "fine": (np.array([-2], np.float32), np.array([1], np.float32)), "worse": (np.array([bad], np.float32), np.array([bad], np.float32))})
    calibrate.save_tensors_data(data, tmp_path / "n.json")
    error = run("minmax", tmp_path / "n.json", fails=True)
    assert "tensor 'worse'" in error and word in error and "calibrate again" in error


BITS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767), "uint4": (0, 15), "int4": (-8, 7)}


def quantizer(low, high, integer, symmetric):
    """Scale, zero point and ends of the integers, by ORT's own formula."""
    qmin, qmax = BITS[integer]
    if symmetric and qmin < 0:
        qmin += 1
    kind = np.dtype(integer if "4" not in integer else "int8")
    zero, scale = ortq.quant_utils.compute_scale_zp(np.float64(low), np.float64(high), np.array(qmin).astype(kind) if qmin < 0 else np.array(qmin),
                                                    np.array(qmax), symmetric)
    return float(scale), int(zero), qmin, qmax


def error(x, low, high, integer="uint8", symmetric=False):
    """Sum of squared errors of x quantised and back."""
    scale, zero, qmin, qmax = quantizer(low, high, integer, symmetric)
    q = np.clip(np.rint(x / scale) + zero, qmin, qmax)
    return float((((q - zero) * scale - x) ** 2).sum())


def shares(low, high):
    """Ranges to compare with: every pair of fractions of the ends."""
    steps = np.concatenate([[1, 0.995, 0.99, 0.98], np.linspace(0.95, 0.1, 18), [0.07, 0.05, 0.03, 0.02, 0.01]])
    lows = [low * s for s in steps] if low < 0 else [0]
    highs = [high * s for s in steps] if high > 0 else [0]
    return [(a, b) for a in lows for b in highs if a < b]


SHAPES = ["normal", "shifted", "laplace", "heavy", "relu", "relu6", "negative", "uniform", "growing", "outlier", "pixels", "integers"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("integer,symmetric", [("uint8", False), ("int8", True), ("int8", False), ("uint4", False), ("uint8", True), ("uint16", False)])
def test_mse_is_the_least(tmp_path, dtype, name, integer, symmetric):
    samples = DATA[dtype][name]
    x = np.concatenate([a.reshape(-1) for a in samples]).astype(np.float64)
    low, high, _ = ours(tmp_path, "mse", samples, integer=integer, threads=2, form="symmetric" if symmetric else "free")
    assert x.min() <= low or symmetric and low == -high
    got, whole = error(x, low, high, integer, symmetric), error(x, x.min(), x.max(), integer, symmetric)
    tiny = 1e-12 + x.size * np.abs(x).max() ** 2 * 2.0**-25 * (dtype == "float32") # floats are known to 1/256 of an octave
    best = min(error(x, a, b, integer, symmetric) for a, b in shares(x.min(), x.max()))
    slack = 1.1 if dtype == "float32" and name == "integers" else 1.03
    assert got <= whole * (slack - 0.02) + tiny and got <= best * slack + tiny, (low, high, got, best, whole)


def test_mse_error_is_that_of_onnxruntime(tmp_path):
    """The formula that the tests judge by is what QuantizeLinear and DequantizeLinear do."""
    import onnxruntime
    x = np.concatenate(DATA["float32"]["heavy"])
    low, high, _ = ours(tmp_path, "mse", [x])
    scale, zero, _, _ = quantizer(low, high, "uint8", False)
    init = [onnx.numpy_helper.from_array(np.float32(scale), "s"), onnx.numpy_helper.from_array(np.uint8(zero), "z")]
    graph = helper.make_graph([helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"])],
                              "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])], init)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    y = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    np.testing.assert_allclose(((y - x).astype(np.float64) ** 2).sum(), error(x.astype(np.float64), low, high), rtol=1e-3)
    assert error(x.astype(np.float64), low, high) < 0.99 * error(x.astype(np.float64), x.min(), x.max())


def divergence(x, low, high, parts=8):
    """As src/calib/kl.c defines it, of the values themselves, with 8 asymmetric bits."""
    x, zeros = np.sort(x[x != 0]), int((x == 0).sum())
    step = (high - low) / 255
    first = round(low / step)
    edges = (np.arange(256 * parts + 1) / parts + first - 0.5) * step
    p = np.diff(np.searchsorted(x, edges)).astype(float).reshape(256, parts)
    clipped = int((x < edges[0]).sum()), int((x >= edges[-1]).sum())
    held, inside = p.sum(1), p.sum() + zeros
    if not inside:
        return np.inf
    inside += sum(clipped) > 0
    p[0, 0] += clipped[0]
    p[-1, -1] += clipped[1]
    q = np.where(held > 0, held / np.maximum((p > 0).sum(1), 1), 0.5)[:, None] / inside * np.ones(parts)
    p /= x.size + zeros
    filled = (p > 0).sum(1)
    chance = np.where(held > filled, (filled - 1) / 2 * (1 - filled / np.maximum(held, 1)), 0).sum() / (x.size + zeros)
    sum_ = (p[p > 0] * np.log(p[p > 0] / q[p > 0])).sum() - chance
    return sum_ + (zeros / (x.size + zeros) * np.log(inside / (x.size + zeros)) if zeros else 0)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["normal", "shifted", "laplace", "heavy", "relu", "negative", "uniform", "growing", "outlier"])
def test_kl_is_the_least(tmp_path, dtype, name):
    samples = DATA[dtype][name]
    x = np.concatenate([a.reshape(-1) for a in samples]).astype(np.float64)
    low, high, _ = ours(tmp_path, "kl", samples, threads=2)
    got, whole = divergence(x, min(low, 0), max(high, 0)), divergence(x, min(x.min(), 0), max(x.max(), 0))
    best = min(divergence(x, a, b) for a, b in shares(x.min(), x.max()))
    print(low, high, got, best, whole)
    assert got <= whole * 1.01 + 0.01 and got <= best * 1.05 + 0.02, (low, high, got, best, whole)


@pytest.mark.parametrize("method", ["mse", "kl"])
def test_what_methods_of_ours_do(tmp_path, method):
    rng = np.random.default_rng(5)
    flat, heavy = rng.uniform(-1, 2, 50_000).astype(np.float32), rng.standard_t(3, size=50_000).astype(np.float32)
    low, high, _ = ours(tmp_path, method, [flat])
    assert -1 <= low < -0.98 and 1.97 < high <= 2 # nothing to gain
    low, high, _ = ours(tmp_path, method, [heavy])
    assert high - low < 0.9 * np.ptp(heavy)
    skewed = np.concatenate([rng.normal(size=50_000), rng.uniform(4, 300, 4)]).astype(np.float32)
    low, high, _ = ours(tmp_path, "kl", [skewed]) # each end for itself
    assert high < 200 and low < -3
    huge = np.concatenate([rng.normal(size=5000), [-3.4e38, 3.4e38]]).astype(np.float32)
    low, high, _ = ours(tmp_path, method, [huge, huge])
    assert np.isfinite([low, high]).all() and low < high
    for values in ([0.0], [3.0], [-0.5], [0.0] * 9, [1e-42, -1e-42], [-1.0, 0.0]):
        a = np.array(values, np.float32)
        assert ours(tmp_path, method, [a])[:2] == (a.min(), a.max())
    assert ours(tmp_path, method, [heavy], integer="int16")[0] <= 0.97 * heavy.min() # 16 bits have room
    error = run(method, tmp_path / "x.npz", "integer=float32", fails=True)
    assert error.startswith(f"usage: calibration method {method}: float32 is no integer type")
