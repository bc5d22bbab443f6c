"""Small decoders in the forms that exporters write: RMS normalisation from parts, rotary embeddings with tables computed
from positions or gathered from constants, past keys and values joined in front, keys repeated for groups of heads by
shapes computed on the way, causal masks from comparisons of ranges."""
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, GROUPS, SIZE, INNER, WORDS, ROWS = 32, 4, 2, 8, 48, 64, 64


@dataclass
class Form:
    opset: int = 17
    layers: int = 2
    batch: object = 1       # a number or a symbol
    head_norms: bool = False  # of queries and keys, as Qwen3 has
    tables: str = "computed"  # or "gathered"
    padding: bool = True      # an attention_mask is read
    rotated: int = SIZE       # columns of a head that are rotated
    groups: int = GROUPS


class Graph:
    def __init__(self, form):
        self.form, self.nodes, self.constants, self.n = form, [], {}, 0
        self.rng = np.random.default_rng(7)

    def const(self, value, dtype=None):
        a = np.asarray(value, dtype=dtype)
        key = (a.tobytes(), a.shape, a.dtype.str)
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(a, f"c{len(self.constants)}")
        return self.constants[key].name

    def ints(self, *v):
        return self.const(v, np.int64)

    def weight(self, *dims, scale=0.3, around=0.0):
        return self.const(self.rng.standard_normal(dims) * scale + around, np.float32)

    def op(self, kind, *inputs, to=None, **attributes):
        self.n += 1
        out = to or f"v{self.n}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=f"{kind}_{self.n}", **attributes))
        return out

    def reduce_mean(self, x):
        if self.form.opset >= 18:
            return self.op("ReduceMean", x, self.ints(-1), keepdims=1)
        return self.op("ReduceMean", x, axes=[-1], keepdims=1)

    def length(self, x, axis):
        """A scalar, as torch.jit.trace writes it."""
        return self.op("Gather", self.op("Shape", x), self.const(axis, np.int64))

    def shape(self, *parts):
        """Numbers and scalars in one vector."""
        return self.op("Concat", *(self.ints(p) if isinstance(p, int) else self.op("Unsqueeze", p, self.ints(0)) for p in parts), axis=0)


def cast(g, x, dtype=TensorProto.FLOAT):
    out = g.op("Cast", x)
    g.nodes[-1].attribute.append(helper.make_attribute("to", dtype))
    return out


def rms_norm(g, x, width):
    square = g.op("Pow", x, g.const(2, np.float32))
    root = g.op("Sqrt", g.op("Add", g.reduce_mean(square), g.const(1e-6, np.float32)))
    unit = g.op("Mul", x, g.op("Div", g.const(1, np.float32), root))
    return g.op("Mul", g.weight(width, scale=0.2, around=1), unit)


def tables(g):
    """cos and sin as [batch, 1, length, rotated]."""
    inverse = 1.0 / 10000 ** (np.arange(0, g.form.rotated, 2) / g.form.rotated)
    if g.form.tables == "gathered":
        angle = np.arange(ROWS)[:, None] * np.concatenate([inverse, inverse])
        both = [g.op("Gather", g.const(f(angle), np.float32), "position_ids", axis=0) for f in (np.cos, np.sin)]
    else:
        row = cast(g, g.op("Unsqueeze", "position_ids", g.ints(1)))
        angle = g.op("Transpose", g.op("MatMul", g.const(inverse[None, :, None], np.float32), row), perm=[0, 2, 1])
        twice = g.op("Concat", angle, angle, axis=-1)
        both = [g.op("Cos", twice), g.op("Sin", twice)]
    return [g.op("Unsqueeze", t, g.ints(1)) for t in both]


def rotate(g, x, cos, sin):
    whole, rest = x, None
    if g.form.rotated != SIZE:
        x = g.op("Slice", whole, g.ints(0), g.ints(g.form.rotated), g.ints(3), g.ints(1))
        rest = g.op("Slice", whole, g.ints(g.form.rotated), g.ints(2**63 - 1), g.ints(3), g.ints(1))
    half = g.op("Unsqueeze", g.op("Div", g.length(x, 3), g.const(2, np.int64)), g.ints(0))
    first = g.op("Slice", x, g.ints(0), half, g.ints(3), g.ints(1))
    second = g.op("Slice", x, half, g.ints(2**63 - 1), g.ints(3), g.ints(1))
    turned = g.op("Concat", g.op("Neg", second), first, axis=-1)
    y = g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))
    return g.op("Concat", y, rest, axis=-1) if rest else y


def split_heads(g, x, heads, width, norm):
    dims = g.shape(g.length(x, 0), g.length(x, 1), heads, SIZE)
    y = g.op("Reshape", g.op("MatMul", x, g.weight(HIDDEN, width)), dims)
    if norm:
        y = rms_norm(g, y, SIZE)
    return g.op("Transpose", y, perm=[0, 2, 1, 3])


def repeat(g, x):
    """Keys or values of a group for each of its heads."""
    each = HEADS // g.form.groups
    if each == 1:
        return x
    batch, keys = g.length(x, 0), g.length(x, 2)
    five = g.shape(batch, g.form.groups, each, keys, SIZE)
    minus = g.op("Mul", g.op("ConstantOfShape", g.ints(5), value=helper.make_tensor("one", TensorProto.INT64, [1], [1])), g.const(-1, np.int64))
    ones = g.op("ConstantOfShape", g.ints(5), value=helper.make_tensor("one", TensorProto.INT64, [1], [1]))
    five = g.op("Where", g.op("Equal", five, minus), ones, five)
    wide = g.op("Expand", g.op("Unsqueeze", x, g.ints(2)), five)
    return g.op("Reshape", wide, g.shape(batch, HEADS, keys, SIZE))


def causal_mask(g):
    """[batch or 1, 1, queries, keys]: 0, or the lowest number where a query must not look."""
    past, new = g.length("past_key_0", 2), g.length("input_ids", 1)
    keys = g.op("Range", g.const(0, np.int64), g.op("Add", past, new), g.const(1, np.int64))
    queries = g.op("Add", g.op("Range", g.const(0, np.int64), new, g.const(1, np.int64)), past)
    seen = g.op("LessOrEqual", g.op("Unsqueeze", keys, g.ints(0, 1, 2)), g.op("Unsqueeze", queries, g.ints(0, 1, 3)))
    if g.form.padding:
        seen = g.op("And", seen, g.op("Unsqueeze", cast(g, "attention_mask", TensorProto.BOOL), g.ints(1, 2)))
    return g.op("Where", seen, g.const(0, np.float32), g.const(np.finfo(np.float32).min, np.float32))


def attention(g, x, layer, mask, cos, sin):
    form = g.form
    q = rotate(g, split_heads(g, x, HEADS, HIDDEN, form.head_norms), cos, sin)
    k = rotate(g, split_heads(g, x, form.groups, form.groups * SIZE, form.head_norms), cos, sin)
    v = split_heads(g, x, form.groups, form.groups * SIZE, False)
    k = g.op("Concat", f"past_key_{layer}", k, to=f"present_key_{layer}", axis=-2)
    v = g.op("Concat", f"past_value_{layer}", v, to=f"present_value_{layer}", axis=-2)
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", repeat(g, k), perm=[0, 1, 3, 2])), g.const(SIZE ** -0.5, np.float32))
    weights = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
    y = g.op("Transpose", g.op("MatMul", weights, repeat(g, v)), perm=[0, 2, 1, 3])
    y = g.op("Reshape", y, g.shape(g.length(x, 0), g.length(x, 1), -1))
    return g.op("MatMul", y, g.weight(HIDDEN, HIDDEN))


def gated(g, x):
    a = g.op("MatMul", x, g.weight(HIDDEN, INNER))
    a = g.op("Mul", a, g.op("Sigmoid", a))
    return g.op("MatMul", g.op("Mul", a, g.op("MatMul", x, g.weight(HIDDEN, INNER))), g.weight(INNER, HIDDEN))


def value(name, kind, *dims):
    return helper.make_tensor_value_info(name, kind, dims)


def interface(form):
    f, i, b = TensorProto.FLOAT, TensorProto.INT64, form.batch
    inputs = [value("input_ids", i, b, "new"), value("position_ids", i, b, "new")]
    if form.padding:
        inputs.append(value("attention_mask", i, b, "keys"))
    outputs = [value("logits", f, b, "new", WORDS)]
    for n in range(form.layers):
        for what in ("key", "value"):
            inputs.append(value(f"past_{what}_{n}", f, b, form.groups, "past", SIZE))
            outputs.append(value(f"present_{what}_{n}", f, b, form.groups, "keys", SIZE))
    return inputs, outputs


def decoder(form):
    g = Graph(form)
    x = g.op("Gather", g.weight(WORDS, HIDDEN, scale=1), "input_ids")
    cos, sin = tables(g)
    mask = causal_mask(g)
    for layer in range(form.layers):
        x = g.op("Add", x, attention(g, rms_norm(g, x, HIDDEN), layer, mask, cos, sin))
        x = g.op("Add", x, gated(g, rms_norm(g, x, HIDDEN)))
    g.op("MatMul", rms_norm(g, x, HIDDEN), g.weight(HIDDEN, WORDS), to="logits")
    inputs, outputs = interface(form)
    graph = helper.make_graph(g.nodes, "decoder", inputs, outputs, list(g.constants.values()))
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", form.opset)], ir_version=8 if form.opset < 21 else 10)
    onnx.checker.check_model(m, full_check=True)
    return m


def feeds(form, batch, new, past, padded=0, seed=0):
    """Left padding: the first keys of the first row are not there."""
    rng = np.random.default_rng(seed)
    out = {"input_ids": rng.integers(0, WORDS, (batch, new)), "position_ids": np.tile(np.arange(past, past + new), (batch, 1))}
    if form.padding:
        out["attention_mask"] = np.ones((batch, past + new), np.int64)
        out["attention_mask"][0, :padded] = 0
    for n in range(form.layers):
        for what in ("key", "value"):
            out[f"past_{what}_{n}"] = rng.standard_normal((batch, form.groups, past, SIZE)).astype(np.float32)
    return out
