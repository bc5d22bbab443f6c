"""Small graphs in the forms in which PyTorch's exporters write layers of transformers: batch and length open or fixed,
seeded weights."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS = 32, 4
SIZE = HIDDEN // HEADS


class Graph:
    def __init__(self, opset=17, seed=0):
        self.opset, self.nodes, self.weights, self.inputs, self.outputs = opset, [], [], [], []
        self.rng = np.random.default_rng(seed)
        self.n = 0

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value, shape, name="y", dtype=TensorProto.FLOAT):
        self.op("Identity", value, out=name)
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def op(self, kind, *inputs, out=None, outs=1, **attributes):
        self.n += 1
        names = [out] if out else [f"{kind.lower()}_{self.n}_{i}" for i in range(outs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"/{kind}_{self.n}", **attributes))
        return names[0] if len(names) == 1 else names

    def const(self, value, dtype=None):
        a = np.asarray(value)
        a = a.astype(dtype or ("f4" if a.dtype.kind == "f" else "i8"))
        self.n += 1
        self.weights.append(numpy_helper.from_array(a, f"const_{self.n}"))
        return self.weights[-1].name

    def weight(self, *shape, scale=0.2):
        return self.const(self.rng.standard_normal(shape) * scale)

    def linear(self, x, width=HIDDEN, depth=HIDDEN, bias=True, swapped=False):
        y = self.op("MatMul", x, self.weight(depth, width))
        b = [self.weight(width), y] if swapped else [y, self.weight(width)]
        return self.op("Add", *b) if bias else y

    def size(self, x, axis):
        """x.size(axis) as a vector of one."""
        return self.op("Unsqueeze", self.op("Gather", self.op("Shape", x), self.const(axis), axis=0), self.const([0]))

    def shape(self, x, *rest):
        return self.op("Concat", self.size(x, 0), self.size(x, 1), *[self.const([r]) for r in rest], axis=0)

    def norm(self, x, eps=1e-12):
        return self.op("LayerNormalization", x, self.const(1 + 0.1 * self.rng.standard_normal(HIDDEN)), self.weight(HIDDEN), axis=-1, epsilon=eps)

    def model(self):
        g = helper.make_graph(self.nodes, "layer", self.inputs, self.outputs, self.weights)
        m = helper.make_model(g, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        onnx.checker.check_model(m, full_check=True)
        return m


def split(g, x, flat, perm=(0, 2, 1, 3), dynamic=True, size=SIZE):
    """view(batch, length, heads, size).transpose(1, 2)"""
    to = g.shape(x, HEADS, size) if dynamic else g.const([0, -1, HEADS, size])
    return g.op("Transpose", g.op("Reshape", flat, to), perm=perm)


def join(g, x, context, dynamic=True, width=HIDDEN):
    y = g.op("Transpose", context, perm=[0, 2, 1, 3])
    return g.op("Reshape", y, g.shape(x, width) if dynamic else g.const([0, 0, width]))


def extended_mask(g, mask, lowest=-10000.0):
    """(1 - mask[:, None, None, :]) * lowest"""
    m = g.op("Unsqueeze", g.op("Unsqueeze", mask, g.const([1])), g.const([2]))
    m = g.op("Sub", g.const(1.0), g.op("Cast", m, to=TensorProto.FLOAT))
    return g.op("Mul", m, g.const(lowest))


def bert(batch="batch", length="length", layers=1, scale="div", lowest=-10000.0, dynamic=True, opset=17):
    g = Graph(opset)
    x = g.input("x", [batch, length, HIDDEN])
    m = extended_mask(g, g.input("mask", [batch, length], TensorProto.INT64), lowest)
    for _ in range(layers):
        q, k, v = g.linear(x, swapped=True), g.linear(x), g.linear(x)
        q, v, k = split(g, x, q, dynamic=dynamic), split(g, x, v, dynamic=dynamic), split(g, x, k, (0, 2, 3, 1), dynamic)
        if scale == "query":
            q = g.op("Mul", q, g.const(SIZE ** -0.5))
        s = g.op("MatMul", q, k)
        if scale == "div":
            s = g.op("Div", s, g.const(SIZE ** 0.5))
        s = g.op("Softmax", g.op("Add", s, m), axis=-1)
        y = g.linear(join(g, x, g.op("MatMul", s, v), dynamic))
        x = g.op("Add", y, x)
        x = g.norm(x) if opset >= 17 else x
    g.output(x, [batch, length, HIDDEN])
    return g.model()


def distilbert(batch="batch", length="length", lowest=float(np.finfo("f4").min)):
    """The query is divided; masked products are replaced."""
    g = Graph()
    x = g.input("x", [batch, length, HIDDEN])
    mask = g.input("mask", [batch, length], TensorProto.INT64)
    q, k, v = (split(g, x, g.linear(x)) for _ in range(3))
    q = g.op("Div", q, g.const(SIZE ** 0.5))
    s = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    m = g.op("Unsqueeze", g.op("Equal", mask, g.const(0)), g.const([1, 2]))
    s = g.op("Softmax", g.op("Where", g.op("Expand", m, g.op("Shape", s)), g.const(lowest), s), axis=-1)
    g.output(join(g, x, g.op("MatMul", s, v)), [batch, length, HIDDEN])
    return g.model()


def vit(batch="batch", length=17):
    g = Graph()
    x = g.input("x", [batch, length, HIDDEN])
    q, k, v = (split(g, x, g.linear(x)) for _ in range(3))
    s = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const(SIZE ** -0.5))
    g.output(g.linear(join(g, x, g.op("MatMul", g.op("Softmax", s, axis=-1), v))), [batch, length, HIDDEN])
    return g.model()


def timm(batch="batch", length=17, constant=True):
    """One projection for all three, taken apart after [3, batch, heads, length, size]."""
    g = Graph()
    x = g.input("x", [batch, length, HIDDEN])
    qkv = g.linear(x, 3 * HIDDEN) if constant else g.input("qkv", [batch, length, 3 * HIDDEN])
    qkv = g.op("Transpose", g.op("Reshape", qkv, g.shape(x, 3, HEADS, SIZE)), perm=[2, 0, 3, 1, 4])
    q, k, v = (g.op("Gather", qkv, g.const(i), axis=0) for i in range(3))
    s = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const(SIZE ** -0.5))
    g.output(g.linear(join(g, x, g.op("MatMul", g.op("Softmax", s, axis=-1), v))), [batch, length, HIDDEN])
    return g.model()


def sdpa(batch="batch", length=11):
    """scaled_dot_product_attention: the root of the scale on both operands."""
    g = Graph()
    x = g.input("x", [batch, length, HIDDEN])
    q, k, v = (split(g, x, g.linear(x)) for _ in range(3))
    root = SIZE ** -0.25
    s = g.op("MatMul", g.op("Mul", q, g.const(root)), g.op("Mul", g.op("Transpose", k, perm=[0, 1, 3, 2]), g.const(root)))
    g.output(join(g, x, g.op("MatMul", g.op("Softmax", s, axis=-1), v)), [batch, length, HIDDEN])
    return g.model()


def gpt2(batch="batch", length="length"):
    """One projection, split along the last axis."""
    g = Graph()
    x = g.input("x", [batch, length, HIDDEN])
    parts = g.op("Split", g.linear(x, 3 * HIDDEN), g.const([HIDDEN] * 3), outs=3, axis=2)
    q, k, v = (split(g, x, p) for p in parts)
    s = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const(SIZE ** 0.5))
    m = extended_mask(g, g.input("mask", [batch, length], TensorProto.INT64))
    s = g.op("Softmax", g.op("Add", s, m), axis=-1)
    g.output(join(g, x, g.op("MatMul", s, v)), [batch, length, HIDDEN])
    return g.model()


def clip(length=7, batch=2):
    """Matrices of [batch * heads]; the query is scaled before its heads are split; causal mask."""
    g = Graph()
    x = g.input("x", [batch, length, HIDDEN])

    def heads(flat):
        y = g.op("Transpose", g.op("Reshape", flat, g.const([batch, length, HEADS, SIZE])), perm=[0, 2, 1, 3])
        return g.op("Reshape", y, g.const([batch * HEADS, -1, SIZE]))
    q = heads(g.op("Mul", g.linear(x), g.const(SIZE ** -0.5)))
    k, v = heads(g.linear(x)), heads(g.linear(x))
    s = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1]))
    causal = np.triu(np.full((length, length), np.finfo("f4").min, "f4"), 1)[None, None]
    s = g.op("Add", g.op("Reshape", s, g.const([batch, HEADS, length, length])), g.const(causal))
    s = g.op("Softmax", g.op("Reshape", s, g.const([batch * HEADS, length, length])), axis=-1)
    y = g.op("Reshape", g.op("MatMul", s, v), g.const([batch, HEADS, length, SIZE]))
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.const([batch, length, HIDDEN]))
    g.output(g.linear(y), [batch, length, HIDDEN])
    return g.model()


def t5(batch="batch", length="length"):
    """No bias, no scale, a learnt bias of relative positions; the mask is added to that."""
    g = Graph()
    x = g.input("x", [batch, length, HIDDEN])
    q, k, v = (split(g, x, g.linear(x, bias=False)) for _ in range(3))
    s = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    bias = g.input("position_bias", [1, HEADS, length, length])
    m = extended_mask(g, g.input("mask", [batch, length], TensorProto.INT64), float(np.finfo("f4").min))
    s = g.op("Softmax", g.op("Add", s, g.op("Add", bias, m)), axis=-1)
    g.output(g.linear(join(g, x, g.op("MatMul", s, v)), bias=False), [batch, length, HIDDEN])
    return g.model()


def cross(batch="batch", length="length", keys="keys"):
    """K and V come from another sequence."""
    g = Graph()
    x, z = g.input("x", [batch, length, HIDDEN]), g.input("z", [batch, keys, HIDDEN])
    q, k, v = split(g, x, g.linear(x)), split(g, z, g.linear(z)), split(g, z, g.linear(z, bias=False))
    s = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const(SIZE ** -0.5))
    s = g.op("Softmax", g.op("Add", s, extended_mask(g, g.input("mask", [batch, keys], TensorProto.INT64))), axis=-1)
    g.output(join(g, x, g.op("MatMul", s, v)), [batch, length, HIDDEN])
    return g.model()


def embeddings(batch="batch", length="length", segments=True, positions="sliced", dtype=TensorProto.INT64, summed=False, opset=17):
    """Words, segments and positions, added and normalised. positions: a Slice of a buffer, given, or counted past padding."""
    g = Graph(opset)
    words = g.input("ids", [batch, length], dtype)
    y = g.op("Gather", g.weight(50, HIDDEN), words)
    if segments:
        y = g.op("Add", y, g.op("Gather", g.weight(2, HIDDEN), g.input("segments", [batch, length], dtype)))
    if positions == "sliced":
        ids = g.op("Slice", g.const(np.arange(16)[None]), g.const([0]), g.size(words, 1), g.const([1]), g.const([1]))
    elif positions == "counted":
        kept = g.op("Cast", g.op("Not", g.op("Equal", words, g.const(1))), to=TensorProto.INT64)
        ids = g.op("Add", g.op("Mul", g.op("CumSum", kept, g.const(1)), kept), g.const(1))
    else:
        ids = g.input("positions", positions, dtype)
    y = g.op("Add", y, g.op("Gather", g.weight(16, HIDDEN), ids))
    g.output(g.norm(y), [batch, length, HIDDEN])
    if summed:
        g.output(g.op("Neg", y), [batch, length, HIDDEN], "sum")
    return g.model()


def sdpa_function(batch="batch", length=11):
    """scaled_dot_product_attention as the newer exporter writes it out: the scale is computed, and K is transposed as a
    matrix per head."""
    g = Graph(18)
    x = g.input("x", [batch, length, HIDDEN])
    q, k, v = (split(g, x, g.linear(x)) for _ in range(3))

    def part(value, first, last):
        return g.op("Slice", g.op("Shape", value), g.const([first]), g.const([last]))
    size = g.op("Cast", part(q, -1, 2 ** 63 - 1), to=TensorProto.FLOAT)
    root = g.op("Sqrt", g.op("Div", g.const([1.0]), g.op("Sqrt", size)))
    last, second, first = part(k, -1, 2 ** 63 - 1), part(k, -2, -1), part(k, -2 ** 63, -2)
    kt = g.op("Transpose", g.op("Reshape", k, g.op("Concat", g.const([-1]), second, last, axis=0)), perm=[0, 2, 1])
    kt = g.op("Reshape", kt, g.op("Concat", first, last, second, axis=0))
    s = g.op("MatMul", g.op("Mul", q, root), g.op("Mul", kt, root))
    g.output(join(g, x, g.op("MatMul", g.op("Softmax", s, axis=-1), v)), [batch, length, HIDDEN])
    return g.model()
