"""quantize -p fp16 and -p bf16, judged by the converter in ONNX Runtime's Python package, onnx.checker and answers."""
import os
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.transformers.float16 import convert_float_to_float16

import judge
import minilm
from conftest import DEPS, ROOT, bug, model
from half_models import BETTER, SAME
from opset_models import CASES

FLOAT, HALF, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
RANDOM = {"random_normal", "random_normal_like", "random_uniform", "bernoulli"}
NO_KERNEL = {"eye_like", "random_normal", "random_uniform"}  # of half floats, on the CPU


def parse(opset, text):
    """A model; `= ?` becomes seeded values."""
    rng = np.random.default_rng(3)

    def values(m):
        n = int(np.prod([int(d) for d in m[2].split(",")]))
        v = rng.standard_normal(n).round(4) if m[1] == "float" else rng.integers(0, 256, n)
        return f"{m[0][:-1]}{{{', '.join(map(str, v))}}}"

    text = re.sub(r"(float|uint8)\[([\d,]+)\] \w+ = \?", values, text)
    m = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1]> g {text}')
    for g in graphs(m.graph):
        for i, n in enumerate(g.node):
            n.name = f"{g.name}_{n.op_type}_{i}"
    if not any(n.domain for n in m.graph.node):
        del m.opset_import[1]
    return m


def graphs(g):
    yield g
    for n in g.node:
        for a in n.attribute:
            if a.type == AttributeProto.GRAPH:
                yield from graphs(a.g)


def attribute(a):
    if a.type == AttributeProto.GRAPH:
        return a.name, contents(a.g)
    if a.type == AttributeProto.TENSOR:
        return a.name, tensor(a.t)
    v = helper.get_attribute_value(a)
    return a.name, tuple(v) if isinstance(v, list) else v


def tensor(t):
    return t.data_type, tuple(t.dims), numpy_helper.to_array(t).tobytes()


def contents(g):
    """Everything but the order of nodes and initializers, and types of inner values."""
    nodes = {n.output[0]: (n.name, n.op_type, n.domain, tuple(n.input), tuple(n.output),
                           tuple(sorted((attribute(a) for a in n.attribute), key=lambda a: a[0]))) for n in g.node}
    signature = tuple((v.name, v.type.tensor_type.elem_type) for v in (*g.input, *g.output))
    return (tuple(sorted(nodes.items(), key=lambda kv: kv[0])), signature,
            tuple(sorted((t.name, *tensor(t)) for t in g.initializer)))


def same_types(ours, theirs):
    a, b = ({v.name: v.type.tensor_type.elem_type for v in m.graph.value_info} for m in (ours, theirs))
    return {k: (v, b[k]) for k, v in a.items() if k in b and v != b[k]}


@pytest.fixture
def convert(winml, tmp_path):
    def run(m, *args, precision="fp16"):
        source, out = tmp_path / "m.onnx", tmp_path / "half.onnx"
        if isinstance(m, str):
            source = m
        else:
            onnx.save(m, source)
        r = winml("quantize", "-m", source, "-o", out, "-p", precision, "--overwrite", "--no-accuracy", "-f", "json", *args)
        assert r.code == 0, r.err
        onnx.checker.check_model(str(out), full_check=True)
        return str(source), str(out), r.json
    return run


def run_both(a, b, seeds=(0, 1)):
    x, y = judge.session(a), judge.session(b)
    assert [(v.name, v.type) for v in x.get_inputs()] == [(v.name, v.type) for v in y.get_inputs()]
    assert [(v.name, v.type) for v in x.get_outputs()] == [(v.name, v.type) for v in y.get_outputs()]
    for seed in seeds:
        f = judge.feeds(x, seed=seed)
        for p, q in zip(x.run(None, f), y.run(None, f)):
            yield (p, q) if not isinstance(p, list) else (np.concatenate([v.ravel() for v in p]), np.concatenate([v.ravel() for v in q]))


def near(a, b, tolerance):
    for p, q in run_both(a, b):
        assert p.dtype == q.dtype and p.shape == q.shape
        if p.dtype.kind == "f":
            np.testing.assert_allclose(p, q, rtol=tolerance, atol=tolerance)


def test_the_table_is_what_the_schemas_say():
    done = subprocess.run([sys.executable, f"{ROOT}/scripts/half-types", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name, opset, text", SAME, ids=[row[0] for row in SAME])
def test_same_as_the_converter(convert, tmp_path, name, opset, text):
    m = parse(opset, text)
    theirs = convert_float_to_float16(onnx.ModelProto.FromString(m.SerializeToString()), keep_io_types=True)
    source, out, _ = convert(m)
    ours = onnx.load(out)
    assert contents(ours.graph) == contents(theirs.graph)
    assert not same_types(ours, theirs)
    if name in NO_KERNEL:
        with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
            judge.session(out)
        return
    onnx.save(theirs, tmp_path / "theirs.onnx")
    for p, q in () if name in RANDOM else run_both(out, str(tmp_path / "theirs.onnx")):
        np.testing.assert_array_equal(p, q)
    if name not in RANDOM | {"limits"}:
        near(source, out, 2e-2)


@pytest.mark.parametrize("name, opset, text", BETTER, ids=[row[0] for row in BETTER])
def test_better_than_the_converter(convert, name, opset, text):
    m = parse(opset, text)
    source, out, _ = convert(m)
    near(source, out, 2e-2)
    theirs = convert_float_to_float16(onnx.ModelProto.FromString(m.SerializeToString()), keep_io_types=True)
    assert contents(onnx.load(out).graph) != contents(theirs.graph), "it is the same now: a row for SAME"


@pytest.mark.parametrize("name", ["ocr-cls", "ocr-rec", "vad-static", "orientation"])
def test_real_models(convert, name):
    source, out, _ = convert(model(name))
    theirs = convert_float_to_float16(onnx.load(source), keep_io_types=True)
    ours = onnx.load(out)
    assert contents(ours.graph) == contents(theirs.graph) and not same_types(ours, theirs)


def test_vad_with_its_branches(convert):
    """Outputs of branches without a declared type stay so; the converter's shape inference declares them."""
    source, out, _ = convert(model("vad"))
    theirs, ours = convert_float_to_float16(onnx.load(source), keep_io_types=True), onnx.load(out)
    a, b = ([sorted((n.name, n.op_type, tuple(n.input), tuple(n.output)) for n in g.node) for g in graphs(m.graph)] for m in (ours, theirs))
    assert a == b
    x, y = judge.session(source), judge.session(out)
    rng = np.random.default_rng(0)
    for rate, n in ((16000, 512), (8000, 256)):
        f = {"input": rng.standard_normal((1, n)).astype("f4"), "state": np.zeros((2, 1, 128), "f4"), "sr": np.array(rate, "i8")}
        for p, q in zip(x.run(None, f), y.run(None, f)):
            np.testing.assert_allclose(p, q, rtol=2e-2, atol=2e-2)


def test_minilm(convert, tmp_path):
    if not os.path.exists(f"{DEPS}/models/minilm/model.safetensors"):
        pytest.skip("MiniLM could not be fetched")
    path = tmp_path / "minilm.onnx"
    onnx.save(minilm.build(f"{DEPS}/models/minilm", 16), path)
    source, out, r = convert(str(path))
    theirs = convert_float_to_float16(onnx.load(source), keep_io_types=True)
    assert contents(onnx.load(out).graph) == contents(theirs.graph)
    assert os.path.getsize(out) < 0.51 * os.path.getsize(source)
    for p, q in run_both(source, out, seeds=(0,)):
        assert float(np.sum(p * q) / np.linalg.norm(p) / np.linalg.norm(q)) > 0.99999


@pytest.mark.parametrize("name, opset, text", [(c[0], c[1], c[4]) for c in CASES], ids=[c[0] for c in CASES])
def test_many_operators_load_and_answer(winml, tmp_path, name, opset, text):
    m = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {text}')
    source, out = tmp_path / "m.onnx", tmp_path / "half.onnx"
    onnx.save(m, source)
    try:
        before = judge.session(str(source))
    except Exception:
        pytest.skip("this ONNX Runtime does not load the source")
    r = winml("quantize", "-m", source, "-o", out, "-p", "fp16", "--no-accuracy", "-f", "json")
    if r.code:
        assert "could become float16" in r.json["error"]["message"] and not out.exists()
        return
    onnx.checker.check_model(str(out), full_check=True)
    try:
        after = judge.session(str(out))
    except Exception as e:
        assert "NOT_IMPLEMENTED" in str(e)  # the operator takes half by its schema, the CPU has no kernel for it
        return
    f = judge.feeds(before)
    try:
        answers = after.run(None, {k: v.copy() for k, v in f.items()})  # old BatchNormalization writes into its inputs
    except Exception as e:
        assert "MLFloat16 data type is not supported" in str(e)
        return
    for p, q in zip(before.run(None, f), answers):
        if isinstance(p, np.ndarray) and p.dtype == np.float32:
            np.testing.assert_allclose(p, q, rtol=3e-2, atol=3e-2)


# --- bugs: what the README of tests/data/bugs asks for ---

@pytest.mark.parametrize("name", ["b33_captured_by_branch", "b38_int8_weight_stays", "b39_constant_roles", "b44_name_collision",
                                  "b49_half_float_exceptions", "b71_sequences", "loop_reads_outer", "empty_optionals",
                                  "b69_ir_3_weights_are_inputs", "unsorted", "b35_shared_weight_one_norm"])
def test_bugs(convert, name):
    source, out, _ = convert(bug(name))
    if name == "b69_ir_3_weights_are_inputs":
        x, y = judge.session(source), judge.session(out)
        assert [v.name for v in y.get_inputs()] == ["x"]
        f = judge.feeds(y)
        np.testing.assert_allclose(x.run(None, f)[0], y.run(None, f)[0], rtol=1e-2, atol=1e-2)
        return
    near(source, out, 1e-2)


def test_roles_of_constants(convert):
    _, out, _ = convert(bug("b39_constant_roles"))
    m = onnx.load(out)
    by_name = {t.name: t for t in m.graph.initializer}
    assert by_name["w"].data_type == FLOAT and by_name["k"].data_type == FLOAT
    assert {"w", "x"} <= {v.name for v in m.graph.input} and {"k", "z"} <= {v.name for v in m.graph.output}
    s = judge.session(out)
    f = judge.feeds(s)
    w = next(v for v in s.get_overridable_initializers() if v.name == "w")
    assert not np.allclose(s.run(["y"], f)[0], s.run(["y"], {**f, "w": np.full(w.shape, 3, "f4")})[0])


def test_what_resize_takes(convert):
    _, out, _ = convert(bug("b49_half_float_exceptions"))
    m = onnx.load(out)
    types = {t.name: t.data_type for t in m.graph.initializer}
    assert types["scales"] == FLOAT and types["sizes"] == TensorProto.INT64
    by_sizes = next(n for n in m.graph.node if n.op_type == "Resize" and len(n.input) == 4)
    assert list(by_sizes.input[1:3]) == ["", ""]


# --- options ---

def test_inputs_and_outputs_too(convert):
    m = parse(13, "(float[1,4] x, int64 n) => (float[1,4] y) <float[4,4] w = ?> { a = MatMul(x, w)  h = Max(a, a)  y = Neg(h) }")
    source, out, _ = convert(m, "--no-keep-io-types")
    theirs = convert_float_to_float16(m, keep_io_types=False)
    assert contents(onnx.load(out).graph) == contents(theirs.graph)
    s = judge.session(out)
    assert [v.type for v in (*s.get_inputs(), *s.get_outputs())] == ["tensor(float16)", "tensor(int64)", "tensor(float16)"]


def test_kept_operators_and_nodes(convert):
    m = parse(13, "(float[1,4] x) => (float[1,4] y) <float[4,4] w = ?, float[4,4] v = ?> { a = MatMul(x, w)  b = Sigmoid(a)  c = MatMul(b, v)  y = Neg(c) }")
    _, out, r = convert(m, "--keep-op", "Sig*", "--exclude", m.graph.node[2].name)
    types = {t.name: t.data_type for t in onnx.load(out).graph.initializer}
    assert types == {"w": HALF, "v": FLOAT}
    assert [n.op_type for n in onnx.load(out).graph.node] == ["Cast", "MatMul", "Cast", "Sigmoid", "MatMul", "Cast", "Neg", "Cast"]
    near(str(_), out, 1e-2)


def test_nothing_to_do(winml, tmp_path):
    for m in (bug("b72_half_model"), parse(13, "(int64[2] x) => (int64[2] y) { y = Neg(x) }"),
              parse(13, "(float[2] x) => (float[2] y) { y = Max(x, x) }")):
        path = m
        if not isinstance(m, str):
            path = tmp_path / "m.onnx"
            onnx.save(m, path)
        r = winml("quantize", "-m", path, "-o", tmp_path / "o.onnx", "-p", "fp16", "-f", "json")
        assert r.code == 1 and "could become float16" in r.json["error"]["message"] and not (tmp_path / "o.onnx").exists()


def test_same_bytes_twice_and_already_half(winml, convert, tmp_path):
    source, out, _ = convert(model("ocr-cls"))
    again = tmp_path / "again.onnx"
    assert winml("quantize", "-m", source, "-o", again, "-p", "fp16", "--no-accuracy").code == 0
    assert again.read_bytes() == open(out, "rb").read()
    r = winml("quantize", "-m", again, "-o", tmp_path / "twice.onnx", "-p", "fp16", "-f", "json")
    assert r.code == 1 and "could become float16" in r.json["error"]["message"] and not (tmp_path / "twice.onnx").exists()


def test_functions_of_the_model_stay(convert):
    text = """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[4] x) => (float[4] y) {
      a = Relu(x)  b = local.Shift(a)  y = Neg(b) }
      <domain: "local", opset_import: ["": 17]> Shift (p) => (q) { k = Constant<value = float {0.001}>()  q = Add(p, k) }"""
    source, out, _ = convert(onnx.parser.parse_model(text))
    near(source, out, 1e-2)
    assert [n.op_type for n in onnx.load(out).graph.node] == ["Cast", "Relu", "Cast", "Shift", "Cast", "Neg", "Cast"]


def test_a_half_model_with_a_float_part(convert):
    m = parse(13, "(float[1,4] x, float[1,4] y) => (float[1,4] z) <float[4,4] w = ?> { h = Cast<to=10>(x)  n = Neg(h)  f = Cast<to=1>(n)  a = Add(f, y)  z = MatMul(a, w) }")
    source, out, r = convert(m)
    assert r["nodes_quantized"] == 2
    ours = onnx.load(out)
    reads_x = [n for n in ours.graph.node if "x" in n.input]
    assert [(n.op_type, n.output[0]) for n in reads_x] == [("Cast", "h")]
    near(source, out, 1e-2)


# --- bfloat16 ---

def test_bf16(convert):
    m = parse(13, "(float[2,8] x) => (float[2,4] y, int64[2,4] i) <float[8,4] w = ?, float[4] b = ?, int64[1] k = {4}>"
              " { a = MatMul(x, w)  s = Add(a, b)  t, i = TopK(s, k)  y = Sigmoid(t) }")
    w = numpy_helper.to_array(m.graph.initializer[0])
    source, out, _ = convert(m, precision="bf16")
    ours = onnx.load(out)
    by_name = {t.name: t for t in ours.graph.initializer}
    assert ours.opset_import[0].version == 22 and by_name["w"].data_type == BF16
    np.testing.assert_array_equal(numpy_helper.to_array(by_name["w"]).view("u2"), w.astype(ml_dtypes.bfloat16).view("u2"))
    assert [n.op_type for n in ours.graph.node] == ["Cast", "MatMul", "Add", "Cast", "TopK", "Cast", "Sigmoid", "Cast"]
    assert {helper.get_node_attr_value(n, "to") for n in ours.graph.node if n.op_type == "Cast"} == {FLOAT, BF16}
    x = np.random.default_rng(0).standard_normal((2, 8)).astype("f4")
    want = judge.session(source).run(None, {"x": x})[0]
    got = ReferenceEvaluator(ours).run(None, {"x": x})[0]
    np.testing.assert_allclose(got.astype("f4"), want, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("name", ["ocr-cls", "filetype"])
def test_bf16_of_real_models_is_valid(convert, winml, tmp_path, name):
    source, out, _ = convert(model(name), precision="bf16")
    assert os.path.getsize(out) < 0.6 * os.path.getsize(source)
    r = winml("quantize", "-m", source, "-o", tmp_path / "b.onnx", "-p", "bf16", "-f", "json")
    assert r.code == 0 and "hardly take bfloat16" in r.json["accuracy"]["note"]
