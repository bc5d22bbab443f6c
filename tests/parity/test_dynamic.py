"""quantize -p dynamic gives the numbers of ONNX Runtime's quantize_dynamic."""
import collections

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import judge
from conftest import model

RNG = np.random.default_rng(7)


def floats(*shape):
    return RNG.standard_normal(shape).astype("f4")


def build(nodes, inits, inputs, outputs, opset=17, domains=()):
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(k, *v) for k, v in inputs.items()],
                          [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in outputs.items()],
                          [numpy_helper.from_array(v, k) for k, v in inits.items()])
    ids = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(g, opset_imports=ids, ir_version=8)


def chain():
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["h"], "m1"), helper.make_node("Relu", ["h"], ["r"], "r1"),
             helper.make_node("MatMul", ["r", "w2"], ["a"], "m2"), helper.make_node("MatMul", ["r", "w3"], ["b"], "m3"),
             helper.make_node("Add", ["a", "b"], ["y"], "add")]
    return build(nodes, {"w1": floats(8, 6), "w2": floats(6, 5), "w3": floats(6, 5)}, {"x": (TensorProto.FLOAT, [2, 8])}, {"y": [2, 5]})


def gemms():
    nodes = [helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], "g1", transB=1), helper.make_node("Gemm", ["h", "w2"], ["y"], "g2"),
             helper.make_node("Gemm", ["h", "w3", "b1"], ["z"], "g3", alpha=0.5)]
    return build(nodes, {"w1": floats(6, 8), "b1": floats(6), "w2": floats(6, 3), "w3": floats(6, 6)}, {"x": (TensorProto.FLOAT, [2, 8])},
                 {"y": [2, 3], "z": [2, 6]})


def convs():
    nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["h"], "c1", pads=[1, 1, 1, 1]), helper.make_node("Conv", ["h", "w2"], ["y"], "c2", group=2)]
    return build(nodes, {"w1": floats(4, 3, 3, 3), "b1": floats(4), "w2": floats(4, 2, 1, 1)}, {"x": (TensorProto.FLOAT, [1, 3, 8, 8])},
                 {"y": [1, 4, 8, 8]})


def tables():
    nodes = [helper.make_node("Gather", ["t", "i"], ["e"], "emb"), helper.make_node("Add", ["e", "p"], ["s"], "add"),
             helper.make_node("MatMul", ["s", "w"], ["y"], "m")]
    return build(nodes, {"t": floats(20, 8), "p": floats(8), "w": floats(8, 4)}, {"i": (TensorProto.INT64, [1, 3])}, {"y": [1, 3, 4]})


def tables_that_matrices_read():
    """Rows of a table are multiplied, moved and multiplied, and read as floats: the integers are used where they can be."""
    nodes = [helper.make_node("Gather", ["t", "i"], ["e"], "emb"), helper.make_node("MatMul", ["e", "w"], ["a"], "m1"),
             helper.make_node("Transpose", ["e"], ["et"], "move", perm=[1, 0]), helper.make_node("MatMul", ["et", "v"], ["y"], "m2"),
             helper.make_node("Gather", ["u", "i"], ["f"], "emb2"), helper.make_node("Add", ["a", "f"], ["z"], "add")]
    return build(nodes, {"t": floats(20, 8), "u": floats(20, 4), "w": floats(8, 4), "v": floats(3, 2)}, {"i": (TensorProto.INT64, [3])},
                 {"y": [8, 2], "z": [3, 4]})


def lstm(direction="forward"):
    d = 2 if direction == "bidirectional" else 1
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], "lstm", hidden_size=5, direction=direction)]
    return build(nodes, {"w": floats(d, 20, 4), "r": floats(d, 20, 5), "b": floats(d, 40)}, {"x": (TensorProto.FLOAT, [3, 1, 4])},
                 {"y": [3, d, 1, 5], "h": [d, 1, 5], "c": [d, 1, 5]})


def attention():
    nodes = [helper.make_node("Attention", ["x", "w", "b"], ["y"], "att", domain="com.microsoft", num_heads=2)]
    return build(nodes, {"w": floats(8, 24), "b": floats(24)}, {"x": (TensorProto.FLOAT, [1, 3, 8])}, {"y": [1, 3, 8]}, domains=["com.microsoft"])


GRAPHS = {"chain": chain, "gemms": gemms, "convs": convs, "tables": tables, "tables-matrices": tables_that_matrices_read, "lstm": lstm, "lstm-both": lambda: lstm("bidirectional"),
          "attention": attention}
FORMS = {"uint8": ([], dict(weight_type=QuantType.QUInt8)),
         "int8": (["--weight-type", "int8"], dict(weight_type=QuantType.QInt8)),
         "int8-free": (["--weight-type", "int8", "--no-symmetric"], dict(weight_type=QuantType.QInt8, extra_options={"WeightSymmetric": False})),
         "channels": (["--weight-type", "int8", "--per-channel"], dict(weight_type=QuantType.QInt8, per_channel=True)),
         "reduced": (["--reduce-range"], dict(weight_type=QuantType.QUInt8, reduce_range=True))}


def run(path, m):
    s = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(3)
    feed = {}
    for i in m.graph.input:
        shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
        whole = i.type.tensor_type.elem_type == TensorProto.INT64
        feed[i.name] = rng.integers(0, 20, shape) if whole else rng.standard_normal(shape).astype("f4")
    return s.run(None, feed)


def integers(path):
    """The quantised weights with their scales and zero points."""
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer
            if t.name.endswith(("_quantized", "_scale", "_zero_point"))}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_numbers(winml, tmp_path, graph, form):
    if graph == "convs" and form != "uint8" and form != "reduced":
        pytest.skip("ONNX Runtime has no ConvInteger for int8 weights: winml takes uint8")
    flags, options = FORMS[form]
    m = GRAPHS[graph]()
    source, own, theirs = tmp_path / "m.onnx", tmp_path / "o.onnx", tmp_path / "t.onnx"
    onnx.save(m, source)
    r = winml("quantize", "-m", source, "-o", own, "-p", "dynamic", "-f", "json", *flags)
    assert r.code == 0, r.err
    quantize_dynamic(source, theirs, **options)
    judge.check(own)
    ops = [collections.Counter(n.op_type for n in onnx.load(p).graph.node) for p in (own, theirs)]
    assert ops[0] == ops[1]
    a, b = integers(own), integers(theirs)
    assert set(a) == set(b)
    for name in a:
        assert a[name].dtype == b[name].dtype and a[name].shape == b[name].shape and np.array_equal(a[name], b[name]), name
    for x, y in zip(run(own, m), run(theirs, m)):
        assert np.array_equal(x, y)
    assert r.json["nodes_quantized"] >= 1 and r.json["accuracy"]["samples"] >= 1


def test_conv_with_int8_asked_for_loads(winml, tmp_path):
    onnx.save(convs(), tmp_path / "m.onnx")
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-p", "dynamic", "--weight-type", "int8", "-f", "json")
    assert r.code == 0, r.err
    assert r.json["accuracy"]["outputs"][0]["cosine"] > 0.99


@pytest.mark.parametrize("name", ["filetype", "vad-static"])
def test_real_models(winml, tmp_path, name):
    r = winml("quantize", "-m", model(name), "-o", tmp_path / "o.onnx", "-p", "dynamic", "-f", "json")
    assert r.code == 0, r.err
    judge.check(tmp_path / "o.onnx")
    assert r.json["size_after"] < 0.9 * r.json["size_before"]


def test_nothing_to_do_is_said(winml, tmp_path):
    m = build([helper.make_node("Relu", ["x"], ["y"])], {}, {"x": (TensorProto.FLOAT, [2])}, {"y": [2]})
    onnx.save(m, tmp_path / "m.onnx")
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-p", "dynamic")
    assert r.code == 1 and "no MatMul" in r.err and not (tmp_path / "o.onnx").exists()


def test_sixteen_bits_become_eight_and_it_is_said(winml, tmp_path):
    onnx.save(chain(), tmp_path / "m.onnx")
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-p", "dynamic", "--weight-type", "int16", "-f", "json")
    assert r.code == 0 and "int8" in r.json["notes"][0]["text"]
    assert integers(tmp_path / "o.onnx")["w1_quantized"].dtype == np.int8


def test_gather_that_is_the_last_node(winml, tmp_path):
    m = build([helper.make_node("Relu", ["x"], ["z"], "r"), helper.make_node("Gather", ["t", "i"], ["y"], "g")], {"t": floats(20, 8)},
              {"x": (TensorProto.FLOAT, [2]), "i": (TensorProto.INT64, [3])}, {"z": [2], "y": [3, 8]})
    onnx.save(m, tmp_path / "m.onnx")
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-p", "dynamic")
    assert r.code == 0, r.err
    assert [n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node] == ["Relu", "Gather", "DequantizeLinear"]


@pytest.mark.parametrize("shape", [[6], [2, 6, 5]])
def test_weights_without_columns_of_their_own(winml, tmp_path, shape):
    """ONNX Runtime's tool gives these scales per channel, which its kernels do not take."""
    m = build([helper.make_node("MatMul", ["x", "w"], ["y"], "m")], {"w": floats(*shape)}, {"x": (TensorProto.FLOAT, [2, 3, 6])}, {"y": [2, 3] + shape[2:]})
    onnx.save(m, tmp_path / "m.onnx")
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-p", "dynamic", "--per-channel", "-f", "json")
    assert r.code == 0, r.err
    assert r.json["accuracy"]["outputs"][0]["cosine"] > 0.99 and integers(tmp_path / "o.onnx")["w_scale"].shape == ()


def test_excluded_nodes_stay(winml, tmp_path):
    onnx.save(chain(), tmp_path / "m.onnx")
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-p", "dynamic", "--exclude", "m[23]")
    assert r.code == 0, r.err
    ops = collections.Counter(n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node)
    assert ops["MatMul"] == 2 and ops["MatMulInteger"] == 1
