"""Models and samples that are valid but unusual, and such that are not: every precision gives a model that is checked, loads and answers like its
source, or refuses in two lines that say what, where and what to do. docs/commands/quantize.md, "Special inputs", is the list."""
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import odd_models
from conftest import no_leftovers
from judge import session

PRECISIONS = {"w8a8": 20, "fp16": 55, "int4": 15, "dynamic": 33}  # the least SQNR in dB over all outputs
NOTHING = {"w8a8": "nothing can be quantised", "fp16": "that could become float16", "int4": "no MatMul with a constant float weight",
           "dynamic": "with a constant float32 weight"}
UNFIT = {  # the precisions that find nothing to do
    "int4": "bias_is_output conv_1d conv_3d conv_bias_computed gather_table_twice lstm no_shape_conv open_conv optional_slots shared_bias"
            " size_1_everything vector_matmul weight_twice_in_a_node zero_bias",
    "int4 dynamic": "constant_of_shape conv_weight_input default_input einsum empty_weight empty_weight_out functions gemm_alpha_0 gemm_beta_0"
                    " gemm_trans_a gru inf_weight nan_weight only_constants only_identity same_output_twice_read scalars weight_left"
                    " weight_through_identity weight_through_reshape weight_through_transpose",
    "w8a8 int4 dynamic": "only_shapes", "fp16 dynamic": "half_already",
    "w8a8 fp16 int4 dynamic": "no_nodes only_bool only_double only_integers only_strings"}
OTHER = {  # other refusals: exit status, what is said
    ("quantised", "w8a8"): (1, "quantised already"), ("quantised", "int4"): (1, NOTHING["int4"]), ("quantised", "dynamic"): (1, NOTHING["dynamic"]),
    ("string_input", "w8a8"): (1, "input 's' takes texts"), ("sequence_input", "w8a8"): (1, "input 's' takes a sequence"),
    ("optional_input", "w8a8"): (1, "input 'o' takes an optional value"), ("gemm_int", "w8a8"): (3, "no kernel for operator Gemm"),
    ("custom_operator", "w8a8"): (3, "no operator Nobody of domain my.ops"),
    **{("no_outputs", p): (1, "the graph has no outputs") for p in PRECISIONS},
    **{(f"opset_{n}", "dynamic"): (1, f"dynamic quantization needs opset 11: the model uses opset {n}") for n in range(7, 11)},
    ("ir3_listed", "dynamic"): (1, "dynamic quantization needs opset 11: the model uses opset 9")}
REFUSED = OTHER | {(m, p): (1, NOTHING[p]) for ps, ms in UNFIT.items() for p in ps.split() for m in ms.split()}
DOES_NOT_RUN = {"custom_operator", "gemm_int", "equal_node_names", "sequence_input"}  # the source itself, or nothing can be given to it
NOT_FINITE = {"nan_weight", "inf_weight", "nan_bias", "inf_bias", "nan_value", "inf_value"}


@pytest.fixture
def quantize(winml, tmp_path):
    def run(model, precision, *args, code=0):
        source, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
        source.write_bytes(model.SerializeToString())
        out.unlink(missing_ok=True)
        r = winml("quantize", "-m", source, "-o", out, "-p", precision, "-f", "json", *args)
        assert r.code == code, r.err
        assert out.exists() == (code == 0)
        no_leftovers(tmp_path)
        return r
    return run


def value_for(i, rng):
    shape = [d if isinstance(d, int) else 2 for d in i.shape] or ([2, 8] if i.name == "x" and i.type == "tensor(float)" else [])
    if "string" in i.type:
        return np.array(["a"] * shape[0], object)
    if i.type.startswith("optional"):
        return rng.random([2, 8]).astype("f")
    kind = {"float": "f4", "double": "f8", "float16": "f2", "int64": "i8", "int32": "i4", "int8": "i1", "bool": "?"}[i.type[7:-1]]
    return (rng.random(shape) if kind[0] == "f" else rng.integers(0, 2, shape)).astype(kind)


def worst_sqnr(before, after, seeds=(1, 2, 3)):
    """Of all outputs; integers must be equal, and what is finite must be so in both."""
    a, b = session(before), session(after)
    names = [o.name for o in a.get_outputs()]
    assert [o.name for o in b.get_outputs()] == names and [o.type for o in b.get_outputs()] == [o.type for o in a.get_outputs()]
    power, noise = np.zeros(len(names)), np.zeros(len(names))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        feed = {i.name: value_for(i, rng) for i in a.get_inputs()}
        for k, (x, y) in enumerate(zip(a.run(None, feed), b.run(None, feed))):
            assert x.shape == y.shape
            if x.dtype.kind != "f":
                assert np.array_equal(x, y)
                continue
            assert np.array_equal(np.isfinite(x), np.isfinite(y)), names[k]
            x, y = x.astype("d"), y.astype("d")
            power[k] += (x[np.isfinite(x)] ** 2).sum()
            noise[k] += ((x - y)[np.isfinite(x)] ** 2).sum()
    return min([10 * np.log10(p / n) for p, n in zip(power, noise) if n > 0], default=999)


def checked(path):
    """Whether the full check passes."""
    try:
        onnx.checker.check_model(str(path), full_check=True)
        return True
    except Exception:
        return False


@pytest.mark.parametrize("name", odd_models.MODELS)
def test_every_precision(quantize, tmp_path, name):
    model = odd_models.MODELS[name]()
    for precision, least in PRECISIONS.items():
        code, text = REFUSED.get((name, precision), (0, ""))
        r = quantize(model, precision, code=code)
        if code:
            assert text in r.json["error"]["message"] and "Hint: " in r.err, r.err
            continue
        assert checked(tmp_path / "o.onnx") or not checked(tmp_path / "m.onnx")
        if name not in DOES_NOT_RUN | NOT_FINITE | {"no_shape_conv", "open_conv", "huge_weight"}:
            assert worst_sqnr(tmp_path / "m.onnx", tmp_path / "o.onnx") >= least, precision


WAYS = {"w8a16": ["-p", "w8a16"], "channels": ["-p", "w8a8", "--weight-type", "int8", "--per-channel"], "contrib": ["-p", "w8a16", "--contrib-qdq"],
        "int4_static": ["-p", "w8a16", "--weight-type", "int4"], "half_all": ["-p", "fp16", "--no-keep-io-types"], "w4a16": ["-p", "w4a16"],
        "w8a32": ["-p", "w8a32", "--gather"], "chain": ["-p", "int4", "-p", "w8a8", "-p", "fp16"], "percentile": ["--method", "percentile"],
        "tools": ["--equalize", "--bias-correction", "--smooth-quant", "0.5", "--scale-search"], "rank": ["--rank", "3"], "mixed": ["--target-sqnr", "60"]}
ODDEST = ["batch_0", "empty_constant", "float_sequence", "foreign_names", "half_and_float", "loop_body", "nan_some", "names_like_ours", "no_type", "open_batch",
          "quantised_half_way", "shadowed_name", "sparse_constant", "unsorted", "weight_in_two_roles"]


@pytest.mark.parametrize("way", WAYS)
def test_every_way(winml, tmp_path, way):
    least = {"w4a16": 15, "chain": 15, "w8a32": 35, "int4_static": 10, "half_all": 50}.get(way, 20)
    for name in ODDEST:
        source, out = tmp_path / f"{name}.onnx", tmp_path / f"{name}_out.onnx"
        source.write_bytes(odd_models.MODELS[name]().SerializeToString())
        r = winml("quantize", "-m", source, "-o", out, "-f", "json", *WAYS[way])
        if (name, way) == ("batch_0", "mixed"):
            assert r.code == 1 and "nothing to measure the goal by" in r.err and not out.exists()
            continue
        assert r.code == 0, (name, r.err)
        assert checked(out) or not checked(source), name
        if way == "half_all":
            assert all(o["sqnr_db"] is None or o["sqnr_db"] > least for o in r.json["accuracy"]["outputs"] if "sqnr_db" in o), name
        else:
            assert worst_sqnr(source, out) >= least, name
    no_leftovers(tmp_path)


def test_optional_inputs_stay_float(quantize, tmp_path):
    quantize(odd_models.MODELS["optional_input"](), "fp16", "--no-keep-io-types")
    s = session(tmp_path / "o.onnx")
    assert [i.type for i in s.get_inputs()] == ["optional(tensor(float))"] and [o.type for o in s.get_outputs()] == ["tensor(float16)"]


def test_a_half_model_is_given_4_bits(quantize, tmp_path):
    r = quantize(odd_models.MODELS["half_already"](), "w4a16")
    assert any("fp16: no operator" in w for w in r.json["warnings"])
    assert [n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node] == ["MatMulNBits"]
    quantize(odd_models.MODELS["only_identity"](), "w4a16", code=1)


def test_what_asks_for_numbers_reads_floats(quantize, tmp_path):
    """Where a value is no number, the model takes another: integers would always be numbers."""
    quantize(odd_models.MODELS["nan_some"](), "w8a8")
    m = onnx.load(tmp_path / "o.onnx")
    asks = next(n for n in m.graph.node if n.op_type == "IsNaN")
    assert next(n.op_type for n in m.graph.node if asks.input[0] in n.output) == "Sqrt"
    assert [n for n in m.graph.node if n.op_type == "QuantizeLinear" and n.input[0] == asks.input[0]]


@pytest.mark.parametrize("name", ["nan_weight", "inf_weight"])
def test_weights_that_are_no_numbers(quantize, tmp_path, name):
    model = odd_models.MODELS[name]()
    model.graph.node[1].output[0] = "k"
    model.graph.initializer.append(numpy_helper.from_array(np.eye(4, dtype="f"), "v"))
    model.graph.node.append(helper.make_node("MatMul", ["k", "v"], ["y"], "last"))
    for precision in "int4", "dynamic":
        r = quantize(model, precision)
        assert [n["subject"] for n in r.json["notes"] if "stays float" in n["text"]] == ["w"]
        assert worst_sqnr(tmp_path / "m.onnx", tmp_path / "o.onnx") > 15
    r = quantize(model, "w8a8")
    assert [n for n in r.json["notes"] if "holds NaN" in n["text"] or "infinities" in n["text"]]


def test_why_a_weight_does_not_serve(quantize):
    for precision in "int4", "dynamic":
        for name, text in (("weight_through_transpose", "computed by Transpose: `winml optimize`"), ("default_input", "which callers may replace")):
            assert text in quantize(odd_models.MODELS[name](), precision, code=1).err


def test_sizes_come_from_weights(quantize, tmp_path):
    """Channels of Conv and columns of MatMul, where the file leaves them open; what is typed wins."""
    quantize(odd_models.MODELS["open_conv"](), "w8a8")
    r = quantize(odd_models.MODELS["no_shape_conv"](), "w8a8")
    assert r.json["nodes_quantized"] == 1 and r.json["qdq_nodes_inserted"] == 6, "what has no rank is quantised as well"
    model = odd_models.parse("(float[N,K] x, float[M,K] z) => (float[N,5] y) <float[6,5] w = ?> { m = MatMul(x, w)  k = ReduceMax<keepdims=0>(z)  y = Add(m, k) }")
    quantize(model, "w8a8")
    r = quantize(model, "w8a8", "--input-dim", "K=7", code=4)
    assert "MatMul" in r.err
    r = quantize(model, "w8a8", "--input-shape", "x=2,9", code=4)


def test_operators_that_are_not_there(quantize, tmp_path):
    """Weights become integers all the same; that nobody ran the result is said."""
    for precision in "int4", "dynamic", "fp16":
        r = quantize(odd_models.MODELS["custom_operator"](), precision)
        assert any("was not run" in w and "Nobody" in w for w in r.json["warnings"]) and r.json["accuracy"]["samples"] == 0
        if precision != "fp16":
            assert [n for n in r.json["notes"] if n["subject"] == "types" and "Nobody" in n["text"]]
    assert any(n.op_type == "Nobody" for n in onnx.load(tmp_path / "o.onnx").graph.node)


def test_ranges_of_a_model_that_cannot_be_fed(quantize, winml, tmp_path):
    """Texts are no calibration data, but with ranges from a cache the model need not run."""
    plain = odd_models.parse("(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { y = MatMul(x, w) }")
    quantize(plain, "w8a8", "--calibration-cache", tmp_path / "ranges.json")
    want = onnx.load(tmp_path / "o.onnx")
    quantize(odd_models.MODELS["string_input"](), "w8a8", "--calibration-cache", tmp_path / "ranges.json")
    got = onnx.load(tmp_path / "o.onnx")
    scales = lambda m: {t.name: float(numpy_helper.to_array(t)) for t in m.graph.initializer if t.name.endswith("_scale")}
    assert scales(got) == scales(want)


# --- files

def linear(path, **external):
    """A MatMul whose weight lies in another file; the bytes of the weight."""
    model = odd_models.parse("(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { y = MatMul(x, w) }")
    t = model.graph.initializer[0]
    values = numpy_helper.to_array(t)
    t.ClearField("float_data"), t.ClearField("raw_data")
    t.data_location = TensorProto.EXTERNAL
    for k, v in external.items():
        e = t.external_data.add()
        e.key, e.value = k, str(v)
    path.write_bytes(model.SerializeToString())
    return values.tobytes()


@pytest.mark.parametrize("entries, size, text", [
    ({"location": "nowhere.bin"}, 128, "nowhere.bin' is not there"), ({"location": "w.bin"}, 50, "which has 50 bytes"),
    ({"location": "w.bin"}, 0, "which has 0 bytes"), ({"location": "w.bin", "offset": 64}, 128, "bytes 64 to 192"),
    ({"location": "w.bin", "length": 64}, 128, "64 bytes of data, its dimensions need 128"), ({"location": "../w.bin"}, 128, "leaves the model's folder"),
    ({"location": "sub/../../w.bin"}, 128, "leaves the model's folder"), ({"location": "/w.bin"}, 128, "is absolute"), ({}, 128, "without a location"),
    ({"location": "w.bin", "offset": "many"}, 128, "offset 'many'"), ({"location": "w.bin", "offset": -4}, 128, "offset '-4'"),
    ({"location": "w.bin", "offset": 2**63}, 128, "bytes 9223372036854775808 to"), ({"location": "folder"}, 128, "folder")])
def test_weights_in_other_files(winml, tmp_path, entries, size, text):
    """Looked at before any work, in the same words for all."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "w.bin").write_bytes(linear(tmp_path / "m.onnx", **entries)[:size])
    said = set()
    for precision in PRECISIONS:
        r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-p", precision)
        assert r.code == 1 and text in r.err and "m.onnx" in r.err, r.err
        said.add(r.err)
    assert len(said) == 1 and sorted(os.listdir(tmp_path)) == ["folder", "m.onnx", "w.bin"]


def test_weights_of_the_source_stay(winml, tmp_path):
    data = linear(tmp_path / "m.onnx", location="w.bin")
    (tmp_path / "w.bin").write_bytes(data)
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "w.bin", "--overwrite", "-p", "int4")
    assert r.code == 1 and "holds weights of the source" in r.err
    for precision in PRECISIONS:
        assert winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--overwrite", "-p", precision).code == 0
        assert (tmp_path / "w.bin").read_bytes() == data and checked(tmp_path / "o.onnx")
    (tmp_path / "copy.onnx").write_bytes((tmp_path / "m.onnx").read_bytes())
    assert winml("quantize", "-m", tmp_path / "copy.onnx", "-o", tmp_path / "copy.onnx", "--overwrite", "-p", "int4").code == 0
    assert (tmp_path / "w.bin").read_bytes() == data, "another model still needs them"


@pytest.mark.parametrize("content, text", [
    (b"", "the file is empty"), (b"\x08", "byte 1"), (bytes(100), "byte "), (b"hello, I am a text", "byte "), (b"PK\3\4" + bytes(60), "zip archive"),
    (b"\x89PNG\r\n\x1a\n" + bytes(60), "a picture"), (b"\xff\xd8\xff\xe0" + bytes(60), "a picture"), (b"%PDF-1.7" + bytes(60), "a PDF"),
    ((20).to_bytes(8, "little") + b'{"a": {}}' + bytes(60), "safetensors")])
def test_files_that_are_no_models(winml, tmp_path, content, text):
    (tmp_path / "m.onnx").write_bytes(content)
    for precision in PRECISIONS:
        r = winml("quantize", "-m", tmp_path / "m.onnx", "-p", precision)
        assert r.code == 1 and text in r.err and "Hint: " in r.err and os.listdir(tmp_path) == ["m.onnx"], r.err


def test_every_cut_of_a_file(winml, tmp_path):
    whole = odd_models.MODELS["quantised_half_way"]().SerializeToString()
    for n in range(1, len(whole), len(whole) // 40):
        (tmp_path / "m.onnx").write_bytes(whole[:n])
        r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-p", "int4")
        assert r.code == 1 and "m.onnx" in r.err and len(r.err.splitlines()) <= 4 and not (tmp_path / "o.onnx").exists(), (n, r.err)


def damaged(what):
    m = odd_models.parse(odd_models.LINEAR)
    g, w = m.graph, m.graph.initializer[0]
    if what == "short":
        w.raw_data = numpy_helper.to_array(w).tobytes()[:60]
        w.ClearField("float_data")
    elif what == "negative":
        w.dims[0] = -8
    elif what == "huge":
        w.dims[0] = 2**62
    elif what == "weight twice":
        g.initializer.add().CopyFrom(w)
    elif what == "value twice":
        g.node.add().CopyFrom(g.node[0])
    elif what == "unknown value":
        g.node[0].input[0] = "ghost"
    elif what == "cycle":
        g.node[0].input[0] = "y"
    elif what == "unmade output":
        g.output[0].name = "nothing"
    return m


@pytest.mark.parametrize("what, text", [
    ("short", "60 bytes of data, its dimensions need 128"), ("negative", "dimension 0 is -8"), ("huge", "overflow"), ("weight twice", "two initializers named 'w'"),
    ("value twice", "'h' is produced by"), ("unknown value", "reads 'ghost', which nothing defines"), ("cycle", "cycle"), ("unmade output", "'nothing'")])
def test_models_that_break_the_rules(quantize, what, text):
    for precision in PRECISIONS:
        assert text in quantize(damaged(what), precision, code=1).err


@pytest.mark.parametrize("what, text", [("Sigmoidd", "No Op registered for Sigmoidd"), ("arity", "input size 3"), ("sizes", "ncompatible dimensions")])
def test_models_that_the_runtime_refuses(quantize, what, text):
    """The structure is whole. What needs a run is refused; what does not, is done, with a warning."""
    m = odd_models.parse(odd_models.LINEAR)
    if what == "sizes":
        m.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 9
    elif what == "arity":
        m.graph.node[0].input.append("x")
    else:
        m.graph.node[1].op_type = what
        del m.graph.node[1].input[1]
    assert text in quantize(m, "w8a8", code=3).err
    if what != "arity":
        assert any(text in w for w in quantize(m, "int4").json["warnings"])


@pytest.mark.parametrize("folder, name", [("with blanks", "my model.onnx"), ("b\u00e4r \u732b", "\u00fc \u6a21\u578b.onnx"), ("dots.a.b", "m.v1.2.onnx"), ("plain", "noext")])
def test_names_of_files(winml, tmp_path, folder, name):
    (tmp_path / folder).mkdir()
    source = tmp_path / folder / name
    source.write_bytes(odd_models.parse(odd_models.LINEAR).SerializeToString())
    for precision, suffix in (("w8a8", "_quantized"), ("fp16", "_fp16"), ("int4", "_int4"), ("dynamic", "_dynamic")):
        assert winml("quantize", "-m", source, "-p", precision).code == 0
        assert (tmp_path / folder / f"{name.removesuffix('.onnx')}{suffix}.onnx").exists(), os.listdir(tmp_path / folder)
    data = tmp_path / folder / "my s\u00e4mples.npz"
    np.savez(data, x=np.ones((2, 2, 8), "f"))
    r = winml("quantize", "-m", source, "-o", tmp_path / "new folder \u732b" / "o.onnx", "--calibration-data", data, "-f", "json")
    assert r.code == 0 and r.json["samples"] == 2 and checked(tmp_path / "new folder \u732b" / "o.onnx")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_output_over_the_input(winml, tmp_path, precision):
    source = tmp_path / "m.onnx"
    before = odd_models.parse(odd_models.LINEAR).SerializeToString()
    source.write_bytes(before)
    r = winml("quantize", "-m", source, "-o", source, "-p", precision)
    assert r.code == 1 and "is the input" in r.err and source.read_bytes() == before
    (tmp_path / "keep.onnx").write_bytes(before)
    assert winml("quantize", "-m", source, "-o", source, "--overwrite", "-p", precision).code == 0
    assert checked(source) and worst_sqnr(tmp_path / "keep.onnx", source) >= PRECISIONS[precision]
    no_leftovers(tmp_path)


# --- samples

X = np.random.default_rng(0).random((3, 2, 8)).astype("f")


def no_number(v):
    a = X.copy()
    a[1, 0, 0] = v
    return a


@pytest.mark.parametrize("arrays, text", [
    ({"xx": X}, "missing 'x'; not an input 'xx'"), ({"x": X[0, 0]}, "2 dimensions"), ({"x": X[None]}, "takes 2 at a time"),
    ({"x": X[:, :, :7]}, "dimension 1 is 8 in the model, 7 in the data"), ({"x": np.float32(1)}, "2 dimensions"), ({"x": X[:0]}, "0 rows"),
    ({}, "holds no arrays"), ({"x": X.astype("c8")}, "complex")])
def test_samples_that_do_not_fit(quantize, tmp_path, arrays, text):
    np.savez(tmp_path / "d.npz", **arrays)
    model = odd_models.parse(odd_models.LINEAR)
    for precision in PRECISIONS:
        r = quantize(model, precision, "--calibration-data", tmp_path / "d.npz", code=2)
        assert text in r.err and "d.npz" in r.err and "Hint: " in r.err, r.err


@pytest.mark.parametrize("dtype", ["f8", "f2", "i8", "i4", "u1", "?"])
def test_samples_of_other_types(quantize, tmp_path, dtype):
    whole = np.random.default_rng(1).integers(0, 2, (3, 2, 8))
    scales = []
    for d in dtype, "f4":
        np.savez(tmp_path / "d.npz", x=whole.astype(d))
        quantize(odd_models.parse(odd_models.LINEAR), "w8a8", "--calibration-data", tmp_path / "d.npz")
        scales.append({t.name: float(numpy_helper.to_array(t)) for t in onnx.load(tmp_path / "o.onnx").graph.initializer if t.name.endswith("_scale")})
    assert scales[0] == scales[1]


def test_arrays_beside_the_inputs_are_left_out(quantize, tmp_path):
    """Labels stand in most files of samples. A file for every sample does the same."""
    model, folder = odd_models.parse(odd_models.LINEAR), tmp_path / "many"
    folder.mkdir()
    for i, x in enumerate(X):
        np.savez(folder / f"{i}.npz", x=x, labels=np.arange(5))
    np.savez(tmp_path / "one.npz", x=X, labels=np.arange(3), w=np.ones((3, 8, 4)))
    for data, names in (folder, "'labels'"), (tmp_path / "one.npz", "'labels', 'w'"):
        for precision in PRECISIONS:
            r = quantize(model, precision, "--calibration-data", data)
            assert r.err.count(f"no inputs of the model, left out: {names}") == 1, r.err
            assert r.json["accuracy"]["samples"] == 3


@pytest.mark.parametrize("method", ["minmax", "moving-average", "entropy", "percentile", "mse", "kl"])
def test_samples_that_are_no_numbers(quantize, tmp_path, method):
    model = odd_models.parse(odd_models.LINEAR)
    results = {}
    for name, x in {"some": no_number(np.nan), "inf": no_number(np.inf), "all": np.full_like(X, np.nan), "zero": np.zeros_like(X)}.items():
        np.savez(tmp_path / f"{name}.npz", x=x)
        r = quantize(model, "w8a8", "--calibration-data", tmp_path / f"{name}.npz", "--method", method)
        scales = {t.name: float(numpy_helper.to_array(t)) for t in onnx.load(tmp_path / "o.onnx").graph.initializer if t.name.endswith("_scale")}
        results[name] = scales["x_scale"], " ".join(n["text"] for n in r.json["notes"]), " ".join(r.json["warnings"])
        assert all(np.isfinite(v) and v > 0 for v in scales.values())
    for name in "some", "inf":
        scale, notes, warnings = results[name]
        assert 0.1 / 255 < scale <= 1 / 255 and "held NaN or infinities, too (the first: 'x')" in notes and not warnings
    assert results["all"][0] == 1 and "held no number in any sample (the first: 'x')" in results["all"][2]
    assert results["zero"][0] == 1 and "the range 0 to 0 (the first: 'x')" in results["zero"][1] and not results["zero"][2]


@pytest.mark.parametrize("n", ["0", "-1", "1.5", "x", "99999999999999999999"])
def test_numbers_of_samples(quantize, n):
    for precision in PRECISIONS:
        assert "--samples" in quantize(odd_models.parse(odd_models.LINEAR), precision, "--samples", n, code=2).err


def test_folders_and_files_without_samples(quantize, tmp_path):
    model = odd_models.parse(odd_models.LINEAR)
    for name, make in {"empty": lambda p: p.mkdir(), "hidden": lambda p: (p.mkdir(), (p / ".DS_Store").write_text("x")), "deep": lambda p: (p / "sub").mkdir(parents=True),
                       "none.npz": lambda p: p.write_bytes(b""), "words.csv": lambda p: p.write_text("1,2\n")}.items():
        make(tmp_path / name)
        r = quantize(model, "w8a8", "--calibration-data", tmp_path / name, code=1)
        assert name in r.err and "Hint: " in r.err, r.err


def test_weights_beyond_2_gib(winml, tmp_path):
    """Offsets and sizes past 32 bits. The file is sparse: 2.2 GB of zeros with a few numbers behind the first 2 GiB."""
    k, n = 34000, 16384
    first = np.full(n, 0.5, "f")
    g = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], "mm")], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, k])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, n])],
                          [TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[k, n], data_location=TensorProto.EXTERNAL)])
    e = g.initializer[0].external_data.add()
    e.key, e.value = "location", "w.bin"
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    with open(tmp_path / "w.bin", "wb") as f:
        f.seek((k - 1) * n * 4)
        f.write(first.tobytes())
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-p", "int4", "-f", "json")
    assert r.code == 0, r.err
    assert r.json["size_before"] > 2**31 and "above 2 GiB" in r.json["accuracy"]["note"] and r.json["size_after"] < r.json["size_before"] / 7
    m = onnx.load(tmp_path / "o.onnx", load_external_data=False)
    packed = next(t for t in m.graph.initializer if t.name == "w_Q4")
    place = {e.key: e.value for e in packed.external_data}
    ints = np.memmap(tmp_path / place["location"], np.uint8, "r", int(place["offset"]), tuple(packed.dims))
    last = (k - 1) % 128
    assert (ints[:, -1, last // 2] >> 4 * (last % 2) & 15 == 0).all() and (ints[:, 0] == 0x88).all()
