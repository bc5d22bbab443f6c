"""Small valid models with something odd in them, by name: text of onnx.parser, `= ?` stands for seeded values. Each has a matrix or a convolution
that every precision has work with, unless its name says otherwise."""
import re

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F = TensorProto.FLOAT


def parse(text, opset=17, ir=8, domains=()):
    """`float16` constants are given as float and cast."""
    rng = np.random.default_rng(5)

    def values(m):
        dims = [int(d) for d in m[2].split(",") if d]
        v = rng.standard_normal(int(np.prod(dims))).round(4) if m[1].startswith("float") else rng.integers(0, 100, int(np.prod(dims)))
        return f"{m[0][:-1]}{{{', '.join(map(str, v))}}}"

    text = re.sub(r"(float|float16|double|int8|uint8|int32|int64)(?:\[([\d,]*)\]) \w+ = \?", values, text)
    imports = ", ".join(f'"{d}": 1' for d in domains)
    return onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["": {opset}{", " if imports else ""}{imports}]> g {text}')


MODELS = {}


def odd(f):
    MODELS[f.__name__] = f
    return f


def row(name, text, opset=17, ir=8, **k):
    MODELS[name] = lambda: parse(text, opset, ir, **k)


LINEAR = "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float[4] b = ?> { h = MatMul(x, w)  y = Add(h, b) }"

# --- nothing to do
row("only_integers", "(int64[4] x) => (int64[4] y) { y = Add(x, x) }")
row("only_shapes", "(float[2,3] x) => (int64[2] y) { y = Shape(x) }")
row("only_identity", "(float[2,3] x) => (float[2,3] y) { y = Identity(x) }")
row("only_constants", "() => (float[2] y) <float[2] a = ?> { y = Neg(a) }")
row("only_double", "(double[2,8] x) => (double[2,4] y) <double[8,4] w = ?> { y = MatMul(x, w) }")
row("only_bool", "(bool[4] x) => (bool[4] y) { y = Not(x) }")
row("only_strings", "(string[4] x) => (string[4] y) { y = Identity(x) }")
row("only_branches", "(bool c, float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { y = If(c) <then_branch = t () => (float[2,4] p) { p = MatMul(x, w) },"
    " else_branch = e () => (float[2,4] q) { n = Neg(x)  q = MatMul(n, w) }> }")


@odd
def no_nodes():
    g = helper.make_graph([], "g", [helper.make_tensor_value_info("x", F, [2])], [helper.make_tensor_value_info("x", F, [2])])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@odd
def no_outputs():
    m = parse(LINEAR)
    del m.graph.output[:]
    return m


# --- shapes
row("batch_0", "(float[0,8] x) => (float[0,4] y) <float[8,4] w = ?, float[4] b = ?> { h = MatMul(x, w)  y = Add(h, b) }")
row("open_batch", "(float[N,8] x) => (float[N,4] y) <float[8,4] w = ?, float[4] b = ?> { h = MatMul(x, w)  y = Add(h, b) }")
row("open_conv", "(float[N,C,H,W] x) => (float[N,4,H,W] y) <float[4,3,1,1] w = ?> { y = Conv(x, w) }")


@odd
def no_shapes():
    m = parse(LINEAR)
    for v in (*m.graph.input, *m.graph.output):
        v.type.tensor_type.ClearField("shape")
    return m


@odd
def no_shape_conv():
    m = parse("(float[1,3,8,8] x) => (float[1,4,6,6] y) <float[4,3,3,3] w = ?, float[4] b = ?> { c = Conv(x, w, b)  y = Relu(c) }")
    for v in (*m.graph.input, *m.graph.output):
        v.type.tensor_type.ClearField("shape")
    return m


@odd
def no_type():
    """An output whose type nobody tells."""
    m = parse(LINEAR)
    m.graph.output[0].ClearField("type")
    return m


row("scalars", "(float x) => (float y) <float a = {1.5}, float b = {2}> { h = Mul(x, a)  y = Add(h, b) }")
row("vector_matmul", "(float[8] x) => (float y) <float[8] w = ?> { y = MatMul(x, w) }")
row("rank_1_output", "(float[8] x) => (float[4] y) <float[8,4] w = ?> { y = MatMul(x, w) }")
row("empty_constant", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float[0,4] e = {}> { m = MatMul(x, w)  y = Concat<axis=0>(m, e) }")
row("empty_weight", "(float[2,0] x) => (float[2,4] y) <float[0,4] w = {}, float[4] b = ?> { m = MatMul(x, w)  y = Add(m, b) }")
row("empty_weight_out", "(float[2,8] x) => (float[2,0] y, float[2,8] z) <float[8,0] w = {}> { y = MatMul(x, w)  z = Sigmoid(x) }")
row("empty_value", "(float[2,8] x) => (float[0,4] y) <float[8,4] w = ?, int64[1] s = {0}, int64[1] a = {0}> { e = Slice(x, s, s, a)  y = MatMul(e, w) }")
row("size_1_everything", "(float[1,1] x) => (float[1,1] y) <float[1,1] w = {0.5}, float[1] b = {0.25}> { y = Gemm(x, w, b) }")

# --- types of inputs
row("string_input", "(string[2] s, float[2,8] x) => (string[2] t, float[2,4] y) <float[8,4] w = ?> { t = Identity(s)  y = MatMul(x, w) }")
row("bool_input", "(bool[2,8] c, float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float[2,8] z = ?> { s = Where(c, x, z)  y = MatMul(s, w) }")
row("int8_input", "(int8[2,8] q) => (float[2,4] y) <float[8,4] w = ?> { x = Cast<to=1>(q)  y = MatMul(x, w) }")
row("double_input", "(double[2,8] d) => (float[2,4] y) <float[8,4] w = ?> { x = Cast<to=1>(d)  y = MatMul(x, w) }")
row("half_input", "(float16[2,8] d) => (float[2,4] y) <float[8,4] w = ?> { x = Cast<to=1>(d)  y = MatMul(x, w) }")
row("double_weight", "(double[2,8] x, float[2,8] f) => (double[2,4] y, float[2,4] g) <double[8,4] w = ?, float[8,4] v = ?> { y = MatMul(x, w)  g = MatMul(f, v) }")
row("int_matmul", "(int32[2,8] x, float[2,8] f) => (int32[2,4] y, float[2,4] g) <int32[8,4] w = ?, float[8,4] v = ?> { y = MatMul(x, w)  g = MatMul(f, v) }")
row("sequence_input", "(seq(float[2,8]) s, int64 i) => (float[2,4] y) <float[8,4] w = ?> { x = SequenceAt(s, i)  y = MatMul(x, w) }")
row("optional_input", "(optional(float[2,8]) o) => (float[2,4] y) <float[8,4] w = ?> { x = OptionalGetElement(o)  y = MatMul(x, w) }", 18)
row("unused_input", "(float[2,8] x, float[3] u) => (float[2,4] y) <float[8,4] w = ?> { y = MatMul(x, w) }")

# --- roles of constants
row("weight_is_output", "(float[2,8] x) => (float[2,4] y, float[8,4] w) <float[8,4] w = ?> { y = MatMul(x, w) }")
row("bias_is_output", "(float[2,8] x) => (float[2,4] y, float[4] b) <float[8,4] w = ?, float[4] b = ?> { y = Gemm(x, w, b) }")
row("input_is_output", "(float[2,8] x) => (float[2,4] y, float[2,8] x) <float[8,4] w = ?> { y = MatMul(x, w) }")
row("same_output_twice_read", "(float[2,8] x) => (float[2,8] y, float[2,8] h) { h = Sigmoid(x)  y = Mul(h, h) }")
row("weight_in_two_roles", "(float[2,8] x) => (float[2,8] y, int64[2] s, float[8,8] t) <float[8,8] w = ?, int64[1] k = {2}> { y = MatMul(x, w)  s = Shape(w)  t = CumSum(w, c)  c = Constant<value = int64 {0}>() }")
row("weight_everywhere", "(float[8,8] x) => (float[8,8] y, float[8,8] z) <float[8,8] w = ?> { y = MatMul(x, w)  z = Add(x, w) }")
row("weight_left", "(float[8,4] x) => (float[8,4] y) <float[8,8] w = ?> { y = MatMul(w, x) }")
row("weights_only", "(float[8,4] x) => (float[8,4] y) <float[8,8] w = ?, float[8,4] v = ?> { c = MatMul(w, v)  y = Add(c, x) }")
row("same_input_twice", "(float[4,4] x) => (float[4,4] y) <float[4,4] w = ?> { s = MatMul(x, x)  t = Mul(s, s)  u = MatMul(w, w)  y = MatMul(t, w) }")
row("weight_twice_in_a_node", "(float[4,4] x) => (float[4,4] y) <float[4,4] w = ?> { y = Gemm(x, w, w) }")
row("shared_bias", "(float[2,8] x) => (float[2,4] y, float[2,4] z) <float[8,4] w = ?, float[8,4] v = ?, float[4] b = ?> { y = Gemm(x, w, b)  z = Gemm(x, v, b) }")
row("shared_weight", "(float[2,8] x, float[2,8] u) => (float[2,4] y, float[2,4] z) <float[8,4] w = ?> { y = MatMul(x, w)  z = MatMul(u, w) }")
row("weight_through_identity", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { v = Identity(w)  y = MatMul(x, v) }")
row("weight_through_transpose", "(float[2,8] x) => (float[2,4] y) <float[4,8] w = ?> { v = Transpose(w)  y = MatMul(x, v) }")
row("weight_through_reshape", "(float[2,8] x) => (float[2,4] y) <float[32] w = ?, int64[2] s = {8,4}> { v = Reshape(w, s)  y = MatMul(x, v) }")
row("value_floats", "(float[3,3] x) => (float[3,3] y) <float[3,3] w = ?> { c = Constant<value_floats=[1.5, 2.5, 3.5]>()  k = Constant<value_float=2.5>()  a = Mul(x, c)  b = Mul(a, k)  y = MatMul(b, w) }")
row("constant_of_shape", "(float[2,8] x) => (float[2,4] y) <int64[2] s = {8,4}> { w = ConstantOfShape<value = float[1] {0.25}>(s)  y = MatMul(x, w) }")
row("default_input", "(float[2,8] x, float[8,4] w) => (float[2,4] y) <float[8,4] w = ?, float[4] b = ?> { m = MatMul(x, w)  y = Add(m, b) }")
row("ir3_listed", "(float[2,8] x, float[8,4] w, float[4] b) => (float[2,4] y) <float[8,4] w = ?, float[4] b = ?> { m = MatMul(x, w)  y = Add(m, b) }", 9, 3)


@odd
def sparse_weight():
    m = parse("(float[2,8] x, float[8,4] s) => (float[2,4] y, float[2,4] z) <float[8,4] v = ?> { y = MatMul(x, s)  z = MatMul(x, v) }")
    del m.graph.input[1]
    values = helper.make_tensor("s", F, [3], [1.0, 2.0, 3.0])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, helper.make_tensor("s_idx", TensorProto.INT64, [3], [1, 9, 17]), [8, 4]))
    return m


@odd
def sparse_constant():
    m = parse("(float[2,8] x) => (float[2,4] y, float[2,4] z) <float[8,4] v = ?> { y = MatMul(x, s)  z = MatMul(x, v) }")
    values = helper.make_tensor("sv", F, [3], [1.0, 2.0, 3.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("s_idx", TensorProto.INT64, [3], [1, 9, 17]), [8, 4])
    m.graph.node.insert(0, helper.make_node("Constant", [], ["s"], sparse_value=sparse))
    return m


# --- numbers
row("zero_weight", "(float[2,8] x) => (float[2,4] y) <float[2,8] z = ?, float[4] b = ?> { k = Constant<value = float[8,4] {" + ",".join(["0"] * 32) + "}>()  m = MatMul(x, k)  y = Add(m, b) }")
row("zero_bias", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float[4] b = {0,0,0,0}> { y = Gemm(x, w, b) }")
row("zero_range_value", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { d = Sub(x, x)  y = MatMul(d, w) }")
row("constant_value", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float one = {1}> { d = Sub(x, x)  e = Add(d, one)  y = MatMul(e, w) }")


def with_weight(**values):
    m = parse(LINEAR + "")
    for t in m.graph.initializer:
        if t.name in values:
            a = numpy_helper.to_array(t).copy()
            a.flat[3] = values[t.name]
            t.CopyFrom(numpy_helper.from_array(a.astype("f"), t.name))
    return m


MODELS["nan_weight"] = lambda: with_weight(w=np.nan)
MODELS["inf_weight"] = lambda: with_weight(w=np.inf)
MODELS["nan_bias"] = lambda: with_weight(b=np.nan)
MODELS["inf_bias"] = lambda: with_weight(b=-np.inf)
MODELS["huge_weight"] = lambda: with_weight(w=3e38)
MODELS["denormal_weight"] = lambda: with_weight(w=1e-42)


@odd
def tiny_weights():
    m = parse(LINEAR)
    m.graph.initializer[0].CopyFrom(numpy_helper.from_array((numpy_helper.to_array(m.graph.initializer[0]) * 1e-40).astype("f"), "w"))
    return m


row("nan_value", "(float[2,8] x) => (float[2,4] y, float[2,8] n) <float[8,4] w = ?, float two = {-2}> { s = Sub(x, two)  t = Neg(s)  n = Log(t)  y = MatMul(x, w) }")
row("inf_value", "(float[2,8] x) => (float[2,4] y, float[2,8] n) <float[8,4] w = ?> { s = Sub(x, x)  n = Reciprocal(s)  y = MatMul(x, w) }")
row("nan_some", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float h = {0.5}> { s = Sub(x, h)  n = Sqrt(s)  c = IsNaN(n)  z = Where(c, x, n)  y = MatMul(z, w) }")
row("gemm_beta_0", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float[4] b = ?> { y = Gemm<beta=0.0>(x, w, b) }")
row("gemm_alpha_0", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float[4] b = ?> { y = Gemm<alpha=0.0>(x, w, b) }")
row("gemm_trans_a", "(float[8,2] x) => (float[2,4] y) <float[8,4] w = ?, float[4] b = ?> { y = Gemm<transA=1>(x, w, b) }")
row("gemm_int", "(int32[2,8] x, float[2,8] f) => (int32[2,4] y, float[2,4] g) <int32[8,4] w = ?, float[8,4] v = ?> { y = Gemm(x, w)  g = MatMul(f, v) }")

# --- names
row("names_like_ours", "(float[2,8] x) => (float[2,4] y, float[2,8] x_QuantizeLinear_Output) <float[8,4] w = ?, float[8,4] w_quantized = ?, float[8] x_scale = ?, float[8] w_scale = ?, float[4] b = ?>"
    " { x_QuantizeLinear_Output = Mul(x, x_scale)  x_DequantizeLinear_Output = Add(x_QuantizeLinear_Output, w_scale)  y_QuantizeLinear_Input = MatMul(x_DequantizeLinear_Output, w)"
    "  w_Q4 = MatMul(x, w_quantized)  a = Add(y_QuantizeLinear_Input, w_Q4)  y = Add(a, b) }")


@odd
def node_names_like_ours():
    m = names_like_ours = MODELS["names_like_ours"]()
    for n, name in zip(m.graph.node, ["x_QuantizeLinear", "x_DequantizeLinear", "y_DequantizeLinear", "y_QuantizeLinear", "w_DequantizeLinear", "graph_input_cast0"]):
        n.name = name
    return m


@odd
def foreign_names():
    m = parse(LINEAR)
    names = {"x": "\u5165\u529b \u732b:0", "w": "gewicht/\u00e4\"quote\"", "h": "a b\tc", "b": "\u00df\\", "y": "\u51fa\u529b"}
    for t in m.graph.initializer:
        t.name = names[t.name]
    for v in (*m.graph.input, *m.graph.output):
        v.name = names[v.name]
    for n in m.graph.node:
        n.input[:] = [names[i] for i in n.input]
        n.output[:] = [names[i] for i in n.output]
        n.name = "\u2603 " + n.op_type
    return m


@odd
def no_node_names():
    m = parse(LINEAR)
    for n in m.graph.node:
        n.name = ""
    return m


@odd
def equal_node_names():
    m = parse("(float[2,8] x) => (float[2,4] y) <float[8,8] w = ?, float[8,4] v = ?> { h = MatMul(x, w)  s = Sigmoid(h)  y = MatMul(s, v) }")
    for n in m.graph.node:
        n.name = "n"
    return m


@odd
def long_names():
    m = parse(LINEAR)
    m.graph.node[0].output[0] = m.graph.node[1].input[0] = "h" * 5000
    return m


row("shadowed_name", "(bool c, float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { m = MatMul(x, w)  y = If(c) <then_branch = t () => (float[2,4] p) <float[4] x_scale = ?> { p = Mul(m, x_scale) },"
    " else_branch = e () => (float[2,4] q) <float[4] x_zero_point = ?> { q = Add(m, x_zero_point) }> }")

# --- structure
row("branch_and_outside", "(bool c, float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { m = MatMul(x, w)  y = If(c) <then_branch = t () => (float[2,4] p) { n = Neg(x)  p = MatMul(n, w) },"
    " else_branch = e () => (float[2,4] q) { q = Relu(m) }> }")
row("loop_body", "(float[2,8] x, int64 n) => (float[2,8] y) <bool t = {1}, float[8,8] w = ?> { h = MatMul(x, w)  y = Loop(n, t, h) <body = b (int64 i, bool k, float[2,8] v) => (bool d, float[2,8] o)"
    " <float[8,8] u = ?> { d = Identity(k)  a = MatMul(v, u)  o = Sigmoid(a) }> }")
row("scan_body", "(float[3,2,8] x) => (float[3,2,4] y) <float[8,8] w = ?> { h = MatMul(x, w)  y = Scan<num_scan_inputs=1, body = b (float[2,8] v) => (float[2,4] o) <float[8,4] u = ?> { o = MatMul(v, u) }>(h) }")


@odd
def functions():
    m = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float[2,8] x) => (float[2,4] y) {
        h = my.twice(x)  w = Constant<value_float=0.5>()  y = my.project(h) }
        <opset_import: ["": 17], domain: "my"> twice (a) => (b) { b = Add(a, a) }
        <opset_import: ["": 17], domain: "my"> project (a) => (b) { s = Constant<value_ints=[8,4]>()  w = ConstantOfShape<value = float[1] {0.25}>(s)  b = MatMul(a, w) }""")
    return m


@odd
def function_and_matrix():
    m = functions()
    m.graph.node[2].output[0] = "f"
    m.graph.node.append(helper.make_node("MatMul", ["f", "v"], ["y"]))
    m.graph.initializer.append(numpy_helper.from_array(np.random.default_rng(1).standard_normal((4, 4)).astype("f"), "v"))
    return m


@odd
def custom_operator():
    m = parse(LINEAR, domains=("my.ops",))
    m.graph.node[1].domain = "my.ops"
    m.graph.node[1].op_type = "Nobody"
    return m


row("quantised", "(float[2,8] x) => (float[2,4] y) <float s = {0.02}, uint8 z = {128}, uint8[8,4] w = ?, float t = {0.01}, uint8 o = {50}> { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)"
    "  v = DequantizeLinear(w, t, o)  m = MatMul(d, v)  p = QuantizeLinear(m, s, z)  y = DequantizeLinear(p, s, z) }")
row("quantised_half_way", "(float[2,8] x) => (float[2,4] y) <float s = {0.02}, uint8 z = {128}, uint8[8,8] w = ?, float t = {0.01}, uint8 o = {50}, float[8,4] u = ?> { q = QuantizeLinear(x, s, z)"
    "  d = DequantizeLinear(q, s, z)  v = DequantizeLinear(w, t, o)  m = MatMul(d, v)  r = Sigmoid(m)  y = MatMul(r, u) }")
row("qlinear", "(float[2,8] x) => (float[2,4] y) <float s = {0.02}, uint8 z = {128}, uint8[8,8] w = ?, float[8,4] u = ?> { q = QuantizeLinear(x, s, z)  m = QLinearMatMul(q, s, z, w, s, z, s, z)"
    "  d = DequantizeLinear(m, s, z)  y = MatMul(d, u) }")
row("dynamic_already", "(float[2,8] x) => (float[2,4] y) <uint8[8,8] w = ?, uint8 z = {128}, float[8,4] u = ?, float k = {0.001}> { q, s, o = DynamicQuantizeLinear(x)  i = MatMulInteger(q, w, o, z)"
    "  f = Cast<to=1>(i)  g = Mul(f, s)  h = Mul(g, k)  y = MatMul(h, u) }")


def halved(m, *names):
    for t in m.graph.initializer:
        if t.name in names:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float16), t.name))
    return m


MODELS["half_already"] = lambda: halved(parse("(float16[2,8] x) => (float16[2,4] y) <float[8,4] w = ?> { y = MatMul(x, w) }"), "w")
MODELS["half_and_float"] = lambda: halved(parse("(float16[2,8] x, float[2,8] f) => (float16[2,4] y, float[2,4] g) <float[8,4] w = ?, float[8,4] v = ?>"
                                               " { y = MatMul(x, w)  g = MatMul(f, v) }"), "w")
row("bfloat_already", "(float[2,8] f) => (float[2,4] g) <float[8,4] v = ?> { b = Cast<to=16>(f)  c = Cast<to=1>(b)  g = MatMul(c, v) }")
row("float8_values", "(float[2,8] f) => (float[2,4] g) <float[8,4] v = ?, float s = {0.1}, float8e4m3fn z = {0}> { q = QuantizeLinear(f, s, z)  d = DequantizeLinear(q, s, z)  g = MatMul(d, v) }", 19, 9)
row("training_dropout", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float r = {0.5}, bool t = {0}> { d = Dropout(x, r, t)  y = MatMul(d, w) }")
row("unsorted", "(float[2,8] x) => (float[2,4] y) <float[8,8] w = ?, float[8,4] v = ?> { y = MatMul(s, v)  s = Sigmoid(h)  h = MatMul(x, w) }")
row("optional_slots", "(float[1,3,8,8] x) => (float[1,3,16,16] y) <float[4] s = {1,1,2,2}, float[3,3,1,1] w = ?> { r = Resize(x, , s)  y = Conv(r, w, ) }")
row("einsum", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { y = Einsum<equation = \"ij,jk->ik\">(x, w) }")
row("gru", "(float[3,2,4] x) => (float[3,1,2,5] y) <float[1,15,4] w = ?, float[1,15,5] r = ?> { y, h = GRU<hidden_size=5>(x, w, r) }")
row("lstm", "(float[3,2,4] x) => (float[3,1,2,5] y) <float[1,20,4] w = ?, float[1,20,5] r = ?> { y, h, c = LSTM<hidden_size=5>(x, w, r) }")
row("conv_1d", "(float[1,3,9] x) => (float[1,4,7] y) <float[4,3,3] w = ?, float[4] b = ?> { y = Conv(x, w, b) }")
row("conv_3d", "(float[1,2,4,4,4] x) => (float[1,3,3,3,3] y) <float[3,2,2,2,2] w = ?> { y = Conv(x, w) }")
row("conv_weight_input", "(float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y) <float[4] b = ?> { y = Conv(x, w, b) }")
row("conv_bias_computed", "(float[1,3,8,8] x, float[4] c) => (float[1,4,6,6] y) <float[4,3,3,3] w = ?> { b = Abs(c)  y = Conv(x, w, b) }")
row("gather_out", "(int64[3] i, float[3,4] x) => (float[3,4] y) <float[10,4] t = ?, float[4,4] w = ?> { g = Gather(t, i)  a = Add(g, x)  y = MatMul(a, w) }")
row("gather_table_twice", "(int64[3] i) => (float[3,10] y) <float[10,4] t = ?> { g = Gather(t, i)  u = Transpose(t)  y = MatMul(g, u) }")
row("random_inside", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { r = RandomNormalLike<seed=1.0>(x)  z = Mul(r, x)  y = MatMul(z, w) }")
row("unconnected_part", "(float[2,8] x, float[2,8] u) => (float[2,4] y) <float[8,4] w = ?, float[8,4] v = ?> { y = MatMul(x, w)  dead = MatMul(u, v) }")
row("float_sequence", "(float[4,8] x) => (float[2,4] y) <float[8,4] w = ?, int64[2] p = {2,2}, int64 i = {0}> { s = SplitToSequence(x, p)  a = SequenceAt(s, i)  y = MatMul(a, w) }")
row("optional_inside", "(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?> { o = Optional(x)  a = OptionalGetElement(o)  y = MatMul(a, w) }", 18)


def opset(n, ir):
    if n < 8:
        return parse("(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float[2,4] b = ?> { h = MatMul(x, w)  s = Sigmoid(h)  y = Add(s, b) }", n, ir)
    return parse("(float[2,8] x) => (float[2,4] y) <float[8,4] w = ?, float[4] b = ?> { h = MatMul(x, w)  s = Sigmoid(h)  y = Add(s, b) }", n, ir)


for n in range(7, 25):
    MODELS[f"opset_{n}"] = lambda n=n: opset(n, 8 if n < 19 else 9 if n < 21 else 10 if n < 23 else 11)
for i in range(4, 13):
    MODELS[f"ir_{i}"] = lambda i=i: opset(11, i)
