"""quantize -p int4, w4a8, w8a32 give the tensors of ONNX Runtime's MatMulNBitsQuantizer, bit for bit."""
import collections
import copy

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

import judge

# Rows and columns that do not divide into blocks or vectors, fewer rows than a block, one more than blocks and their pairs.
SHAPES = [(1, 1), (2, 9), (3, 5), (15, 8), (16, 16), (17, 33), (19, 7), (31, 64), (33, 300), (49, 3), (64, 24), (65, 20), (127, 12),
          (128, 257), (129, 70), (255, 9), (257, 40), (300, 31), (512, 16), (513, 10)]
TYPES = {"float": ("f4", TensorProto.FLOAT), "half": ("f2", TensorProto.FLOAT16)}


def weights(k, n, dtype, seed=3):
    """Normal numbers; in some columns zeros, one sign, ties between integers, numbers near the ends of the type."""
    rng = np.random.default_rng(seed * 1000 + k * 10 + n)
    w = rng.standard_normal((k, n)).astype("f4") * 0.05
    tiny, huge = (1e-41, 3e37) if dtype == "f4" else (1e-7, 3e4)
    for c in range(0, n, 11):
        w[:, c] = 0
    for c in range(1, n, 11):
        w[:, c] = np.abs(w[:, c]) + 1
    for c in range(2, n, 11):
        w[:, c] = -np.abs(w[:, c]) - 1
    for c in range(3, n, 11):
        w[:, c] = rng.integers(-16, 17, k) / 2
    for c in range(4, n, 11):
        w[:, c] *= tiny / 0.05
    for c in range(5, n, 11):
        w[:, c] = np.clip(w[:, c] * 10, -1, 1) * huge
    for c in range(6, n, 11):
        w[: k // 2, c] = 0
    return w.astype(dtype)


def plain(k, n, seed=3):
    return np.random.default_rng(seed).standard_normal((k, n)).astype("f4")


def near(a, b):
    return a.shape == b.shape and np.abs(a - b).max() < 0.2 * np.abs(b).max()


def build(nodes, inits, inputs, outputs, elem=TensorProto.FLOAT, opset=17):
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(k, *v) for k, v in inputs.items()],
                          [helper.make_tensor_value_info(k, elem, v) for k, v in outputs.items()],
                          [numpy_helper.from_array(v, k) for k, v in inits.items()])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def matmuls(kind):
    dtype, elem = TYPES[kind]
    nodes, inits, inputs, outputs = [], {}, {}, {}
    for k, n in SHAPES:
        at = f"{k}x{n}"
        nodes.append(helper.make_node("MatMul", ["x" + at, "w" + at], ["y" + at], "m" + at))
        inits["w" + at], inputs["x" + at], outputs["y" + at] = weights(k, n, dtype), (elem, [2, 3, k]), [2, 3, n]
    return build(nodes, inits, inputs, outputs, elem)


TABLES = SHAPES[1:] # the seeded indices are 0 and 1


def gathers(kind):
    dtype, elem = TYPES[kind]
    nodes, inits, outputs = [], {}, {}
    for k, n in TABLES:
        at = f"{k}x{n}"
        nodes.append(helper.make_node("Gather", ["t" + at, "i"], ["y" + at], "g" + at))
        inits["t" + at], outputs["y" + at] = weights(k, n, dtype).T.copy(), [3, k]
    return build(nodes, inits, {"i": (TensorProto.INT64, [3])}, outputs, elem)


def theirs(m, path, bits=4, block=128, symmetric=True, level=0, ops=("MatMul",)):
    q = MatMulNBitsQuantizer(copy.deepcopy(m), bits=bits, block_size=block, is_symmetric=symmetric, accuracy_level=level,
                             op_types_to_quantize=ops)
    with np.errstate(all="ignore"):
        q.process()
    onnx.save(q.model.model, path)


def tensors(path):
    return {t.name: (t.data_type, list(t.dims), t.raw_data) for t in onnx.load(path).graph.initializer}


def nodes(path):
    return {n.name: (n.domain, n.op_type, list(n.input), list(n.output), {a.name: helper.get_attribute_value(a) for a in n.attribute})
            for n in onnx.load(path).graph.node}


def answers(path, seed=0):
    s = judge.session(path)
    return s.run(None, judge.feeds(s, {"i": [3]}, seed))


def equal(own, other):
    a, b = tensors(own), tensors(other)
    assert set(a) == set(b)
    for name in a:
        assert a[name][:2] == b[name][:2], name
        x, y = np.frombuffer(a[name][2], "u1"), np.frombuffer(b[name][2], "u1")
        assert np.array_equal(x, y), f"{name}: {np.flatnonzero(x != y)[:5]} of {x.size} bytes"
    assert nodes(own) == nodes(other)


def quantize(winml, tmp_path, m, *flags, code=0):
    onnx.save(m, tmp_path / "m.onnx")
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--overwrite", "-f", "json", *flags)
    assert r.code == code, r.out + r.err
    return r


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_matrices(winml, tmp_path, kind, symmetric, bits):
    m = matmuls(kind)
    for block in (16, 32, 64, 128, 256):
        r = quantize(winml, tmp_path, m, "-p", "int4" if bits == 4 else "w8a32", "--block-size", block, "--no-accuracy",
                     "--rtn-symmetric" if symmetric else "--no-rtn-symmetric")
        theirs(m, tmp_path / "t.onnx", bits, block, symmetric)
        equal(tmp_path / "o.onnx", tmp_path / "t.onnx")
        assert r.json["nodes_quantized"] == len(SHAPES)
    onnx.checker.check_model(tmp_path / "o.onnx", full_check=True)
    for a, b in zip(answers(tmp_path / "o.onnx"), answers(tmp_path / "t.onnx")):
        assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("symmetric", [True, False])
def test_matrices_of_bfloat16(winml, tmp_path, symmetric):
    """No CPU kernels run them, so the tensors alone are compared: integers by the scales before they are rounded."""
    w = weights(70, 30, "f4").astype(ml_dtypes.bfloat16)
    g = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], "m")], "g", [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [2, 70])],
                          [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [2, 30])],
                          [helper.make_tensor("w", TensorProto.BFLOAT16, w.shape, w.tobytes(), True)])
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for bits in (4, 8):
        quantize(winml, tmp_path, m, "-p", "int4" if bits == 4 else "w8a32", "--block-size", 32, "--no-accuracy",
                 "--rtn-symmetric" if symmetric else "--no-rtn-symmetric")
        theirs(m, tmp_path / "t.onnx", bits, 32, symmetric)
        equal(tmp_path / "o.onnx", tmp_path / "t.onnx")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("symmetric", [True, False])
def test_tables(winml, tmp_path, kind, symmetric):
    m = gathers(kind)
    for block in (16, 32, 128):
        quantize(winml, tmp_path, m, "-p", "int4", "--gather", "--block-size", block, "--no-accuracy",
                 "--rtn-symmetric" if symmetric else "--no-rtn-symmetric")
        theirs(m, tmp_path / "t.onnx", 4, block, symmetric, ops=("Gather",))
        equal(tmp_path / "o.onnx", tmp_path / "t.onnx")
    own = onnx.load(tmp_path / "o.onnx")
    assert own.ir_version >= 10 and own.opset_import[0].version == 17
    onnx.checker.check_model(own, full_check=True)
    for a, b in zip(answers(tmp_path / "o.onnx"), answers(tmp_path / "t.onnx")):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("symmetric", [True, False])
def test_tables_of_8_bits(winml, tmp_path, symmetric):
    """ONNX Runtime's quantizer has none: the answers must be as near as 8 bits are."""
    m = gathers("float")
    quantize(winml, tmp_path, m, "-p", "w8a32", "--gather", "--block-size", 32, "--no-accuracy",
             "--rtn-symmetric" if symmetric else "--no-rtn-symmetric")
    onnx.checker.check_model(tmp_path / "o.onnx", full_check=True)
    rows = [helper.get_attribute_value(a) for n in onnx.load(tmp_path / "o.onnx").graph.node for a in n.attribute if a.name == "bits"]
    assert rows == [8] * len(TABLES)
    scales = {t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / "o.onnx").graph.initializer if t.name.endswith("_scales")}
    for shape, got, want in zip(TABLES, answers(tmp_path / "o.onnx"), answers(tmp_path / "m.onnx")):
        step = np.abs(scales["t%dx%d_scales" % shape]).max()
        assert np.abs(got - want).max() <= step * 1.001


@pytest.mark.parametrize("name,level", [("int4", 0), ("w4a32", 0), ("w4a8", 4)])
def test_precisions(winml, tmp_path, name, level):
    m = build([helper.make_node("MatMul", ["x", "w"], ["y"], "m")], {"w": weights(40, 6, "f4")}, {"x": (TensorProto.FLOAT, [2, 40])}, {"y": [2, 6]})
    quantize(winml, tmp_path, m, "-p", name)
    theirs(m, tmp_path / "t.onnx", level=level)
    equal(tmp_path / "o.onnx", tmp_path / "t.onnx")
    quantize(winml, tmp_path, m, "-p", name, "--accuracy-level", 1)
    assert nodes(tmp_path / "o.onnx")["m_Q4"][4]["accuracy_level"] == 1


def test_what_is_left_alone(winml, tmp_path):
    """Gemm, a product of activations, a stack of matrices, a default that callers may replace."""
    f = TensorProto.FLOAT
    m = build([helper.make_node("MatMul", ["x", "w"], ["a"], "m"), helper.make_node("Gemm", ["a", "w"], ["b"], "gemm", transB=1),
               helper.make_node("MatMul", ["x", "v"], ["c"], "two"), helper.make_node("MatMul", ["c", "s"], ["d"], "stack"),
               helper.make_node("MatMul", ["x", "p"], ["e"], "default")],
              {"w": weights(8, 6, "f4"), "s": weights(12, 4, "f4").reshape(2, 6, 4), "p": weights(8, 3, "f4")},
              {"x": (f, [2, 8]), "v": (f, [8, 6]), "p": (f, [8, 3])}, {"b": [2, 8], "d": [2, 2, 4], "e": [2, 3]})
    r = quantize(winml, tmp_path, m, "-p", "int4")
    assert collections.Counter(n[1] for n in nodes(tmp_path / "o.onnx").values()) == {"MatMulNBits": 1, "MatMul": 3, "Gemm": 1}
    assert {"w", "w_Q4", "w_scales", "s", "p"} == set(tensors(tmp_path / "o.onnx"))
    assert [n["text"] for n in r.json["notes"]] == ["stays float: its weight is a stack of matrices"]


def test_a_weight_of_two_nodes_is_made_once(winml, tmp_path):
    m = build([helper.make_node("MatMul", ["x", "w"], ["h"], "a"), helper.make_node("MatMul", ["h", "w"], ["y"], "b")], {"w": weights(20, 20, "f4")},
              {"x": (TensorProto.FLOAT, [2, 20])}, {"y": [2, 20]})
    r = quantize(winml, tmp_path, m, "-p", "int4", "--no-rtn-symmetric")
    assert set(tensors(tmp_path / "o.onnx")) == {"w_Q4", "w_scales", "w_zero_points"}
    assert r.json["passes"][0] == {**r.json["passes"][0], "pass": "rtn", "nodes": 2, "weights": 1}
    quantize(winml, tmp_path, m, "-p", "int4", "--exclude", "a")
    assert set(tensors(tmp_path / "o.onnx")) == {"w", "w_Q4", "w_scales"}


@pytest.mark.parametrize("name,value", [("nan", np.nan), ("inf", np.inf), ("wide", 3.4e38)])
def test_weights_that_are_not_numbers_stay(winml, tmp_path, name, value):
    """One such element would make a column NaN for every input."""
    bad = weights(40, 30, "f4")
    bad[21, 7] = value
    if name == "wide":
        bad[22, 7] = -value
    m = build([helper.make_node("MatMul", ["x", "w"], ["h"], "a"), helper.make_node("MatMul", ["h", "ok"], ["y"], "b"),
               helper.make_node("Gather", ["w", "i"], ["g"], "c")],
              {"w": bad, "ok": weights(30, 30, "f4")}, {"x": (TensorProto.FLOAT, [2, 40]), "i": (TensorProto.INT64, [3])}, {"h": [2, 30], "y": [2, 30], "g": [3, 30]})
    r = quantize(winml, tmp_path, m, "-p", "int4", "--gather", "--no-rtn-symmetric")
    assert [n["text"].split(":")[0] for n in r.json["notes"] if n["subject"] == "w"] == ["stays float"] * 2
    assert {n[1] for n in nodes(tmp_path / "o.onnx").values()} == {"MatMul", "MatMulNBits", "Gather"}
    assert np.array_equal(answers(tmp_path / "o.onnx")[0], answers(tmp_path / "m.onnx")[0], equal_nan=True)


@pytest.mark.parametrize("opset", [11, 17])
def test_sizes_of_one_before_the_matrix(winml, tmp_path, opset):
    f = TensorProto.FLOAT
    w = plain(20, 8)
    pairs = [(r, b) for r in (1, 2, 3, 4) for b in (3, 4)]
    m = build([helper.make_node("MatMul", [f"x{r}", f"w{b}"], [f"y{r}{b}"], f"m{r}{b}") for r, b in pairs],
              {"w3": w[None], "w4": w[None, None]}, {f"x{r}": (f, [2, 3, 4, 20][4 - r:]) for r in (1, 2, 3, 4)},
              {f"y{r}{b}": [None] * (b - 1 if r == 1 else max(r, b)) for r, b in pairs}, opset=opset)
    r = quantize(winml, tmp_path, m, "-p", "int4")
    assert r.json["nodes_quantized"] == 8
    onnx.checker.check_model(tmp_path / "o.onnx", full_check=True)
    for a, b in zip(answers(tmp_path / "o.onnx"), answers(tmp_path / "m.onnx")):
        assert near(a, b)


def test_sub_graphs_and_constant_nodes(winml, tmp_path):
    f = TensorProto.FLOAT
    inner = numpy_helper.from_array(plain(16, 16, 5), "c")
    then = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"], "then_m")], "then", [], [helper.make_tensor_value_info("t", f, [2, 16])])
    other = helper.make_graph([helper.make_node("Constant", [], ["c"], "const", value=inner), helper.make_node("MatMul", ["x", "c"], ["e"], "else_m")],
                              "else", [], [helper.make_tensor_value_info("e", f, [2, 16])])
    m = build([helper.make_node("If", ["q"], ["y"], "if", then_branch=then, else_branch=other)], {"w": plain(16, 16)},
              {"x": (f, [2, 16]), "q": (TensorProto.BOOL, [])}, {"y": [2, 16]})
    r = quantize(winml, tmp_path, m, "-p", "int4", "--block-size", 16)
    assert r.json["nodes_quantized"] == 2
    g = onnx.load(tmp_path / "o.onnx").graph
    assert {t.name for t in g.initializer} == {"w_Q4", "w_scales"}
    branches = {a.name: a.g for a in g.node[0].attribute}
    assert [n.op_type for n in branches["else_branch"].node] == ["MatMulNBits"] == [n.op_type for n in branches["then_branch"].node]
    assert {t.name for t in branches["else_branch"].initializer} == {"c_Q4", "c_scales"}
    for seed in (0, 1, 2):
        for a, b in zip(answers(tmp_path / "o.onnx", seed), answers(tmp_path / "m.onnx", seed)):
            assert near(a, b)


def test_a_table_that_is_a_matrix_too(winml, tmp_path):
    """Two forms of one weight: names differ."""
    f = TensorProto.FLOAT
    m = build([helper.make_node("Gather", ["w", "i"], ["e"], "g"), helper.make_node("MatMul", ["e", "w"], ["y"], "m")], {"w": weights(32, 32, "f4")},
              {"i": (TensorProto.INT64, [3])}, {"y": [3, 32]})
    quantize(winml, tmp_path, m, "-p", "int4", "--gather", "--block-size", 16)
    assert set(tensors(tmp_path / "o.onnx")) == {"w_Q4", "w_scales", "w_Q4_1", "w_scales_1"}
    answers(tmp_path / "o.onnx")


def test_the_comparison_uses_ids_of_the_whole_table(winml, tmp_path):
    """The two rows that 0 and 1 pick are zeros: only other ids show a difference."""
    w = plain(500, 64)
    w[:2] = 0
    m = build([helper.make_node("Gather", ["w", "i"], ["y"], "g")], {"w": w}, {"i": (TensorProto.INT64, [1, 16])}, {"y": [1, 16, 64]})
    r = quantize(winml, tmp_path, m, "-p", "w8a32", "--gather", "--block-size", 32)
    assert 40 < r.json["accuracy"]["outputs"][0]["sqnr_db"] < 50


@pytest.mark.parametrize("flags", [[], ["--gather"]])
def test_nothing_to_convert(winml, tmp_path, flags):
    m = build([helper.make_node("MatMul", ["x", "x"], ["y"], "m")], {}, {"x": (TensorProto.FLOAT, [4, 4])}, {"y": [4, 4]})
    r = quantize(winml, tmp_path, m, "-p", "int4", *flags, code=1)
    assert ("no MatMul or Gather with" if flags else "no MatMul with") in r.json["error"]["message"]
    assert not (tmp_path / "o.onnx").exists()


def test_pieces_of_large_weights(winml, tmp_path):
    """Weights are converted in pieces of 256 KiB: columns that lie in two of them, in a data file and in the model."""
    m = build([helper.make_node("MatMul", ["x", "w"], ["h"], "a"), helper.make_node("MatMul", ["h", "v"], ["y"], "b"),
               helper.make_node("MatMul", ["y", "u"], ["z"], "c"), helper.make_node("MatMul", ["z", "tall"], ["end"], "d")],
              {"w": weights(1000, 2500, "f4"), "v": weights(2500, 301, "f4"), "u": weights(301, 5000, "f4"), "tall": weights(5000, 300, "f4")},
              {"x": (TensorProto.FLOAT, [1, 1000])}, {"end": [1, 300]})
    for bits, block, symmetric in ((4, 32, False), (8, 128, True)):
        quantize(winml, tmp_path, m, "-p", "int4" if bits == 4 else "w8a32", "--block-size", block, "--no-accuracy",
                 "--rtn-symmetric" if symmetric else "--no-rtn-symmetric")
        theirs(m, tmp_path / "t.onnx", bits, block, symmetric)
        equal(tmp_path / "o.onnx", tmp_path / "t.onnx")
