"""Small float models for the quantizer, one per rule, and larger mixtures. Seeded; every value is float unless said."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F = TensorProto.FLOAT


class Maker:
    """Collects nodes and constants; `build` infers nothing, the checker does."""

    def __init__(self, seed=0, dtype="f"):
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.nodes, self.weights, self.inputs, self.n = [], [], [], 0

    def real(self):
        return helper.np_dtype_to_tensor_dtype(self.dtype)

    def input(self, name, shape, elem=None):
        self.inputs.append(helper.make_tensor_value_info(name, elem or self.real(), shape))
        return name

    def weight(self, name, *shape, scale=1.0, values=None):
        a = (self.rng.standard_normal(shape) * scale).astype(self.dtype) if values is None else np.asarray(values)
        self.weights.append(numpy_helper.from_array(a, name))
        return name

    def node(self, op, inputs, outputs=None, name=None, **attributes):
        self.n += 1
        outputs = outputs or [f"t{self.n}"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name or f"{op.lower()}_{self.n}", **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def build(self, *outputs, opset=21, **types):
        outs = [helper.make_tensor_value_info(o, types.get(o, self.real()), None) for o in outputs]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        onnx.checker.check_model(model, full_check=True)
        return model


def conv(opset=21, **k):
    m = Maker(1, **k)
    x = m.input("x", [1, 3, 10, 10])
    y = m.node("Conv", [x, m.weight("w1", 8, 3, 3, 3), m.weight("b1", 8)], name="conv_bias")
    y = m.node("Conv", [y, m.weight("w2", 4, 8, 1, 1)], name="conv_plain")
    y = m.node("Conv", [y, m.weight("w3", 4, 1, 3, 3), m.weight("b3", 4, scale=3)], name="conv_depthwise", group=4)
    return m.build(y, opset=opset)


def conv_relu(opset=21, **k):
    m = Maker(2, **k)
    x = m.input("x", [1, 3, 8, 8])
    c = m.node("Conv", [x, m.weight("w1", 8, 3, 3, 3), m.weight("b1", 8)])
    r = m.node("Relu", [c])
    c = m.node("Conv", [r, m.weight("w2", 8, 8, 1, 1), m.weight("b2", 8)])
    k6 = m.node("Clip", [c, m.weight("zero", values=np.array(0, m.dtype)), m.weight("six", values=np.array(6, m.dtype))])
    k4 = m.node("Clip", [m.node("Relu", [m.node("Add", [k6, r])]), "", m.weight("four", values=np.array(4, m.dtype))])
    s = m.node("Conv", [k4, m.weight("w3", 8, 8, 1, 1)], ["shared"])
    return m.build(m.node("Relu", [s]), m.node("Sigmoid", [s]), opset=opset)


def conv_transpose(opset=21, **k):
    m = Maker(3, **k)
    x = m.input("x", [1, 4, 6, 6])
    y = m.node("ConvTranspose", [x, m.weight("w1", 4, 5, 2, 2), m.weight("b1", 5)], strides=[2, 2])
    y = m.node("ConvTranspose", [y, m.weight("w2", 5, 3, 3, 3)])
    return m.build(y, opset=opset)


def gemm(opset=21, **k):
    m = Maker(4, **k)
    x = m.input("x", [3, 6])
    y = m.node("Gemm", [x, m.weight("w1", 6, 8), m.weight("b1", 8)])
    y = m.node("Gemm", [y, m.weight("w2", 5, 8), m.weight("b2", 5)], transB=1)
    y = m.node("Gemm", [y, m.weight("w3", 5, 4)], alpha=0.5)
    a = m.node("Gemm", [y, m.weight("w4", 4, 3), m.node("Slice", [x, m.weight("from", values=np.array([0])), m.weight("to", values=np.array([3])),
                                                                  m.weight("axes", values=np.array([1]))])])
    return m.build(a, opset=opset)


def matmul(opset=21, **k):
    m = Maker(5, **k)
    x = m.input("x", [2, 5, 8])
    q = m.node("MatMul", [x, m.weight("wq", 8, 8)])
    q = m.node("Add", [q, m.weight("bq", 8)])
    s = m.node("MatMul", [q, m.node("Transpose", [x], perm=[0, 2, 1])])
    p = m.node("Softmax", [m.node("Mul", [s, m.weight("third", values=np.array(0.35, m.dtype))])], axis=-1)
    y = m.node("MatMul", [p, x])
    v = m.node("MatMul", [y, m.weight("vector", 8)])
    return m.build(v, p, opset=opset)


def norms(opset=21, **k):
    m = Maker(6, **k)
    x = m.input("x", [2, 4, 6])
    y = m.node("LayerNormalization", [x, m.weight("g1", 6), m.weight("b1", 6)], axis=-1)
    y = m.node("InstanceNormalization", [y, m.weight("g2", 4), m.weight("b2", 4)])
    y = m.node("BatchNormalization", [y, m.weight("g3", 4), m.weight("b3", 4), m.weight("mean", 4), m.weight("var", values=np.array([1, 2, 0.5, 3], m.dtype))])
    return m.build(m.node("LayerNormalization", [y, m.weight("g4", 6)], axis=-1), opset=opset)


def moves(opset=21, **k):
    m = Maker(7, **k)
    x = m.input("x", [1, 4, 8, 8])
    ints = lambda name, *v: m.weight(name, values=np.array(v, np.int64))
    y = m.node("MaxPool", [x], kernel_shape=[2, 2])
    y = m.node("AveragePool", [y], kernel_shape=[2, 2])
    y = m.node("Transpose", [y], perm=[0, 2, 3, 1])
    y = m.node("Slice", [y, ints("from", 0), ints("to", 4), ints("axes", 1)])
    y = m.node("Unsqueeze", [y, ints("one", 1)])
    y = m.node("Squeeze", [y, "one"])
    y = m.node("Resize", [y, "", m.weight("scales", values=np.float32([1, 2, 1, 1]))], mode="nearest")
    y = m.node("Flatten", [y])
    y = m.node("Reshape", [y, ints("shape", 6, -1)])
    a, b = m.node("Split", [y, ints("parts", 2, 4)], ["head", "tail"], axis=0)
    top = m.node("TopK", [a, ints("k", 3)], ["top", "which"])[0]
    g = m.node("Gather", [b, ints("rows", 1, 0)])
    e = m.node("GatherElements", [g, m.weight("elements", values=np.array([[0, 1, 2], [2, 1, 0]]))], axis=1)
    return m.build(m.node("Add", [top, m.node("Add", [e, m.weight("c", 1)])]), m.node("Sigmoid", [b]), "which", opset=opset, which=TensorProto.INT64)


def pads(opset=21, **k):
    m = Maker(8, **k)
    x = m.input("x", [1, 2, 4, 4])
    p = m.weight("pads", values=np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    one, zero = m.weight("one", values=np.array(1, m.dtype)), m.weight("zero", values=np.array(0, m.dtype))
    kinds = [([], {}), ([zero], {}), ([one], {}), ([], {"mode": "reflect"}), ([], {"mode": "edge"}), ([], {"mode": "wrap"})]
    outs = [m.node("Sigmoid", [m.node("Pad", [x, p, *v], **a)]) for v, a in kinds]
    return m.build(*outs, opset=opset)


def choices(opset=21, **k):
    m = Maker(9, **k)
    x, y = m.input("x", [2, 3]), m.input("y", [2, 3])
    c = m.node("Greater", [x, y])
    w = m.node("Where", [c, x, m.weight("low", values=np.array(-4, m.dtype))])
    z = m.node("Concat", [w, y, m.weight("rows", 1, 3)], axis=0)
    table = m.node("Gather", [m.weight("table", 7, 3), m.weight("ids", values=np.array([1, 5]))])
    return m.build(z, m.node("Mul", [table, x]), m.node("HardSwish", [w]), opset=opset)


def shared(opset=21, **k):
    m = Maker(10, **k)
    x, y = m.input("x", [1, 4, 6, 6]), m.input("y", [1, 4, 6, 6])
    w, b = m.weight("w", 4, 4, 1, 1), m.weight("b", 4)
    p = m.node("Conv", [x, w, b])
    q = m.node("Conv", [y, w, b])
    r = m.node("Conv", [m.node("Add", [p, q]), m.weight("w2", 4, 4, 1, 1), b])
    c = m.weight("c", 1, 4, 1, 1)
    return m.build(m.node("Mul", [m.node("Add", [r, c]), c]), p, opset=opset)


def outputs(opset=21, **k):
    """Values that are outputs and read on; an output that is an input's neighbour."""
    m = Maker(11, **k)
    x = m.input("x", [2, 4])
    a = m.node("MatMul", [x, m.weight("w1", 4, 4)], ["inner"])
    r = m.node("Relu", [a], ["relu_out"])
    b = m.node("MatMul", [r, m.weight("w2", 4, 4)])
    return m.build("inner", "relu_out", m.node("Softmax", [b]), opset=opset)


def branches(opset=21, **k):
    m = Maker(12, **k)
    x = m.input("x", [2, 4])
    cond = m.input("cond", [], TensorProto.BOOL)
    w = m.weight("w", 4, 4)
    a = m.node("MatMul", [x, w], ["a"])
    out = lambda n: [helper.make_tensor_value_info(n, m.real(), [2, 4])]
    then = helper.make_graph([helper.make_node("MatMul", ["a", "w"], ["then_out"], "then_mm")], "then", [], out("then_out"))
    other = helper.make_graph([helper.make_node("Neg", ["a"], ["else_out"], "else_neg")], "else", [], out("else_out"))
    y = m.node("If", [cond], then_branch=then, else_branch=other)
    return m.build(m.node("Add", [y, a]), opset=opset)


def mixed(opset=21, **k):
    """The graph of the comment in ORT's own mixed-precision helper, with 16-bit functions beside it."""
    m = Maker(13, **k)
    x, y = m.input("x", [2, 4]), m.input("y", [2, 4])
    one = m.node("Sigmoid", [x], ["op1_out"], "Op1")
    two = m.node("Tanh", [y], ["op2_out"], "Op2")
    three = m.node("MatMul", [one, m.weight("w3", 4, 4)], ["op3_out"], "Op3")
    four = m.node("Mul", [two, m.weight("c", 4)], ["op4_out"], "Op4")
    five = m.node("Add", [three, four], ["op5_out"], "Op5")
    six = m.node("Softmax", [five], ["op6_out"], "Op6")
    seven = m.node("Neg", [two], ["op7_out"], "Op7")
    return m.build(six, seven, m.node("Abs", [two], ["op8_out"], "Op8"), opset=opset)


def attention(kind, opset=21):
    """Scores with a mask of float limits, or of -10000: added, or chosen by Where; for use with `mask` of ones and zeros."""
    m = Maker(20)
    x, mask = m.input("x", [2, 6, 8]), m.input("mask", [2, 6])
    low = m.weight("low", values=np.float32({"where_inf": -np.inf, "mul_small": -10000}.get(kind, np.finfo("f").min)))
    q, k = m.node("MatMul", [x, m.weight("wq", 8, 8, scale=0.5)]), m.node("MatMul", [x, m.weight("wk", 8, 8, scale=0.5)])
    s = m.node("MatMul", [q, m.node("Transpose", [k], perm=[0, 2, 1])])
    wide = m.node("Unsqueeze", [mask, m.weight("ax", values=np.array([1]))])
    if kind.startswith("mul"):
        s = m.node("Add", [s, m.node("Mul", [m.node("Sub", [m.weight("one", values=np.float32(1)), wide]), low])])
    else:
        s = m.node("Where", [m.node("Cast", [wide], to=TensorProto.BOOL), s, low])
    p = m.node("Softmax", [s], axis=-1)
    return m.build(m.node("MatMul", [p, m.node("MatMul", [x, m.weight("wv", 8, 8)])]), opset=opset)


def feeds_of(model, n=3, seed=0, unit=False, **given):
    """Seeded inputs: normal, or from [0, 1) as `winml quantize` takes them when it is given no data."""
    rng, weights = np.random.default_rng(seed), {w.name for w in model.graph.initializer}
    return [{**{i.name: random_like(i, rng, unit) for i in model.graph.input if i.name not in weights}, **given} for _ in range(n)]


def random_like(i, rng, unit=False):
    t = i.type.tensor_type
    shape = [d.dim_value if d.dim_value > 0 else 1 for d in t.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(t.elem_type)
    draw = rng.random if unit else rng.standard_normal
    return np.array(rng.integers(0, 2, shape) if dtype.kind in "iub" else draw(shape)).astype(dtype)


def ranges_of(model, feeds=None):
    """Lowest and highest of every float value over seeded runs, as ONNX Runtime computes them without optimisations."""
    import onnxruntime as ort
    types = {v.name: v.type.tensor_type.elem_type for v in [*model.graph.value_info, *model.graph.input, *model.graph.output]}
    alive = {o for n in model.graph.node for o in n.output} | {i.name for i in model.graph.input}
    alive -= {w.name for w in model.graph.initializer}
    real = [n for n, t in types.items() if t in (TensorProto.FLOAT, TensorProto.FLOAT16) and n in alive]
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    have = {o.name for o in wide.graph.output}
    wide.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in real if n not in have and n not in {i.name for i in model.graph.input})
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    s = ort.InferenceSession(wide.SerializeToString(), o, providers=["CPUExecutionProvider"])
    low, high = {}, {}
    for feed in feeds or feeds_of(model):
        values = {**feed, **dict(zip([o.name for o in s.get_outputs()], s.run(None, feed)))}
        for n in real:
            v = values[n]
            low[n], high[n] = min(v.min(), low.get(n, v.min())), max(v.max(), high.get(n, v.max()))
    return {n: (low[n], high[n]) for n in real}


ALL = [conv, conv_relu, conv_transpose, gemm, matmul, norms, moves, pads, choices, shared, outputs, branches]
