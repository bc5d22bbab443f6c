"""Random float models for the quantizer. A seed gives one model: inputs, then operators that read what is there, in chains
with side branches; constants are now and then shared. Of a seed, fewer `steps` give a model that begins the same, which
makes a failure small.

An operator is a function that gets the net and adds nodes; it returns False where nothing there suits it."""
import numpy as np
from onnx import TensorProto, helper

from qdq_models import Maker

OPS = []  # (function, first opset, how often)


def op(since=11, weight=1):
    def add(f):
        OPS.append((f, since, weight))
        return f
    return add


class Net(Maker):
    def __init__(self, seed, opset=21, dtype="f"):
        super().__init__(seed, dtype)
        self.opset = opset
        self.shapes = {}  # of the float values that may be read, newest last
        self.known = []   # constants: (name, shape, whether it is a bias)
        self.read = set()
        self.extra = []   # outputs of other types
        self.slashes = self.chance(0.2)

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def size(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def fresh(self, kind):
        self.n += 1
        return f"/net/{kind}_{self.n}/out.0" if self.slashes else f"{kind}{self.n}"

    def ints(self, *values):
        return self.weight(self.fresh("i"), values=np.array(values, np.int64))

    def bias(self, *shape, **more):
        return self.const(*shape, bias=True, **more)

    def const(self, *shape, scale=None, share=0.15, shift=0.0, values=None, bias=False):
        """A constant; one of the same shape that is there already now and then."""
        same = [n for n, s, b in self.known if s == shape and b == bias]
        if values is None and same and self.chance(share):
            return self.pick(*same)
        name = self.fresh("w")
        if values is None:
            values = self.rng.standard_normal(shape) * (scale or self.pick(1e-3, 0.1, 0.5, 1, 1, 4)) + shift
            if self.chance(0.06):
                values = np.zeros(shape)
            elif self.chance(0.06):
                values = np.full(shape, values.flat[0])
            elif self.chance(0.06):
                values = np.abs(values)
        values = np.asarray(values, self.dtype)
        if self.chance(0.05):  # as a node; ORT's quantizer is given it as an initializer
            self.node("Constant", [], [name], value=helper.make_tensor(name, self.real(), values.shape, values.ravel()))
        else:
            self.weight(name, values=values)
        self.known.append((name, tuple(values.shape), bias))
        return name

    def take(self, *ranks, fits=lambda s: True):
        """A float value of one of these ranks (any, when none are named), likely a new one; None: there is none."""
        able = [n for n, s in self.shapes.items() if (not ranks or len(s) in ranks) and fits(s)]
        if not able:
            return None
        x = able[-1 - min(int(self.rng.exponential(0.9)), len(able) - 1)]
        self.read.add(x)
        return x

    def put(self, name, shape):
        self.shapes[name] = tuple(int(d) for d in shape)
        return name

    def emit(self, op, inputs, shape, **attributes):
        out = self.node(op, inputs, [self.fresh("t")], **attributes)
        return self.put(out, shape)

    def finish(self):
        loose = [n for n in self.shapes if n not in self.read and n not in {i.name for i in self.inputs}]
        inner = [n for n in self.shapes if n in self.read and n not in {i.name for i in self.inputs}]
        outs = loose + ([self.pick(*inner)] if inner and self.chance(0.3) else [])
        types = dict(self.extra)
        return self.build(*outs, *types, opset=self.opset, **types)


def generate(seed, steps=None, opset=21, dtype="f"):
    g = Net(seed, opset, dtype)
    shapes = [(1, g.size(1, 6), g.size(4, 9), g.size(4, 9)), (g.size(1, 2), g.size(2, 6), g.size(2, 8)), (g.size(1, 4), g.size(2, 9))]
    kinds = [g.pick(0, 0, 0, 1, 1, 2)] + ([g.pick(0, 1, 2)] if g.chance(0.3) else [])
    for i, k in enumerate(kinds):
        g.put(g.input(f"x{i}", shapes[k]), shapes[k])
    able = [(f, w) for f, since, w in OPS if since <= opset]
    p = np.array([w for _, w in able], float)
    made, goal = 0, g.size(3, 9)
    for _ in range(60):
        if made >= min(goal, steps or goal):
            break
        f = able[g.rng.choice(len(able), p=p / p.sum())][0]
        made += f(g) is not False
    return g.finish()


def broadcast(g, shape):
    """A shape that goes together with `shape` without making it larger."""
    s = [d if g.chance(0.7) else 1 for d in shape][g.size(0, len(shape)):]
    return tuple(s) if g.chance(0.7) else tuple(shape)


# Weights


@op(weight=5)
def conv(g):
    x = g.take(4, fits=lambda s: s[1] > 0)
    if not x:
        return False
    n, c, h, w = g.shapes[x]
    k = [g.size(1, min(3, h)), g.size(1, min(3, w))]
    group = g.pick(1, 1, c, *[d for d in range(1, c + 1) if c % d == 0])
    m = group * g.size(1, 3) if group > 1 else g.size(1, 8)
    a = {}
    if g.chance(0.5):
        pads = [g.size(0, 1) for _ in range(4)]
        a["pads"] = pads
    elif g.chance(0.2):
        pads, a["auto_pad"] = None, "SAME_UPPER"
    else:
        pads = [0] * 4
    strides = a["strides"] = [g.size(1, 2), g.size(1, 2)]
    if group > 1:
        a["group"] = group
    inputs = [x, g.const(m, c // group, *k)]
    if g.chance(0.7):
        inputs.append(g.bias(m, scale=g.pick(None, 1, 30)))
    size = [(d + pads[i] + pads[i + 2] - k[i]) // strides[i] + 1 if pads else -(-d // strides[i]) for i, d in enumerate((h, w))]
    y = g.emit("Conv", inputs, (n, m, *size), **a)
    if g.chance(0.3):
        relu(g, y)


@op()
def conv_1d(g):
    x = g.take(3)
    if not x:
        return False
    n, c, w = g.shapes[x]
    k, m = g.size(1, min(3, w)), g.size(1, 6)
    inputs = [x, g.const(m, c, k)] + ([g.bias(m)] if g.chance(0.6) else [])
    g.emit("Conv", inputs, (n, m, w - k + 1))


@op(weight=2)
def conv_transpose(g):
    x = g.take(4)
    if not x:
        return False
    n, c, h, w = g.shapes[x]
    k, s, m = g.size(1, 3), g.size(1, 2), g.size(1, 5)
    inputs = [x, g.const(c, m, k, k)] + ([g.bias(m)] if g.chance(0.6) else [])
    g.emit("ConvTranspose", inputs, (n, m, (h - 1) * s + k, (w - 1) * s + k), strides=[s, s])


@op(weight=3)
def gemm(g):
    x = g.take(2)
    if not x:
        return False
    m, k = g.shapes[x]
    a, n = {}, g.size(1, 8)
    if g.chance(0.15):
        a["transA"], (m, k) = 1, (k, m)
    shape = (k, n)
    if g.chance(0.5):
        a["transB"], shape = 1, (n, k)
    if g.chance(0.2):
        a["alpha"] = g.pick(0.5, 2.0)
    inputs = [x, g.const(*shape)]
    if g.chance(0.75):
        inputs.append(g.bias(n, share=0.3))
    g.emit("Gemm", inputs, (m, n), **a)


@op()
def gemm_of_activations(g):
    x = g.take(2)
    y = g.take(2, fits=lambda s: s[0] == g.shapes[x][1]) if x else None
    if not y:
        return False
    inputs = [x, y]
    if g.chance(0.5):
        z = g.take(fits=lambda s: s in ((g.shapes[y][1],), (g.shapes[x][0], g.shapes[y][1]), (1, g.shapes[y][1])))
        inputs += [z] if z else []
    g.emit("Gemm", inputs, (g.shapes[x][0], g.shapes[y][1]))


@op(weight=4)
def matmul(g):
    x = g.take(2, 3, 4)
    if not x:
        return False
    *batch, m, k = g.shapes[x]
    n = g.size(1, 8)
    kind = g.size(0, 9)
    if kind == 0:
        g.emit("MatMul", [x, g.const(k)], (*batch, m))
    elif kind == 1:
        g.emit("MatMul", [g.const(n, m), x], (*batch, n, k))
    elif kind == 2 and batch:
        g.emit("MatMul", [x, g.const(batch[-1], k, n)], (*batch, m, n))
    else:
        y = g.emit("MatMul", [x, g.const(k, n)], (*batch, m, n))
        if g.chance(0.4):
            g.read.add(y)
            g.emit("Add", g.pick([y, g.const(n)], [g.const(n), y]), (*batch, m, n))


@op(weight=2)
def matmul_of_activations(g):
    x = g.take(2, 3, 4)
    if not x:
        return False
    *batch, m, k = s = g.shapes[x]
    perm = [*range(len(batch)), len(s) - 1, len(s) - 2]
    t = g.emit("Transpose", [x], (*batch, k, m), perm=perm)
    g.read.add(t)
    g.emit("MatMul", [x, t], (*batch, m, m))


@op(since=17, weight=2)
def layer_norm(g):
    x = g.take(2, 3, 4)
    if not x:
        return False
    s = g.shapes[x]
    axis = g.pick(-1, -1, len(s) - 1)
    inputs = [x, g.const(s[-1], shift=1)] + ([g.bias(s[-1])] if g.chance(0.7) else [])
    g.emit("LayerNormalization", inputs, s, axis=axis)


@op()
def instance_norm(g):
    x = g.take(3, 4)
    if not x:
        return False
    c = g.shapes[x][1]
    g.emit("InstanceNormalization", [x, g.const(c, shift=1), g.bias(c)], g.shapes[x])


@op(weight=2)
def batch_norm(g):
    x = g.take(2, 3, 4)
    if not x:
        return False
    c = g.shapes[x][1]
    mean, var = g.const(c, share=0), g.const(values=0.5 + g.rng.random(c))
    g.emit("BatchNormalization", [x, g.const(c, shift=1), g.bias(c), mean, var], g.shapes[x])


@op(weight=0.5)
def recurrent(g):
    x = g.take(3)
    if not x:
        return False
    t, b, i = g.shapes[x]
    kind, h, d = g.pick("LSTM", "GRU", "RNN"), g.size(2, 4), g.size(1, 2)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    inputs = [x, g.const(d, gates * h, i, scale=0.5), g.const(d, gates * h, h, scale=0.5)] + ([g.const(d, 2 * gates * h)] if g.chance(0.6) else [])
    more = {"direction": "bidirectional"} if d == 2 else {}
    y = g.emit(kind, inputs, (t, d, b, h), hidden_size=h, **more)
    g.read.add(y)
    if d == 1:
        squeeze_at(g, y, 1)


# Functions of one value


@op(weight=3)
def relu(g, x=None):
    x = x or g.take()
    g.read.add(x)
    kind = g.size(0, 5)
    if kind < 3:
        return g.emit("Relu", [x], g.shapes[x])
    low = g.const(values=g.pick(0.0, -0.5, 0.25)) if g.chance(0.7) else ""
    high = g.const(values=g.pick(6.0, 1.0, 0.75)) if kind > 3 else ""
    inputs = [x, low, high]
    while not inputs[-1]:
        inputs.pop()
    return g.emit("Clip", inputs, g.shapes[x])


UNARY = [("Sigmoid", 11), ("Tanh", 11), ("Sigmoid", 11), ("Tanh", 11), ("LeakyRelu", 11), ("Elu", 11), ("Selu", 11), ("HardSigmoid", 11), ("Softplus", 11),
         ("Softsign", 11), ("HardSwish", 14), ("Gelu", 20), ("Mish", 18), ("Erf", 11), ("Abs", 11), ("Neg", 11), ("Floor", 11), ("Ceil", 11), ("Sin", 11),
         ("Cos", 11), ("Round", 11), ("Sign", 11), ("Identity", 11), ("ThresholdedRelu", 11), ("Celu", 12), ("Atan", 11), ("Not quantised", 11)]


@op(weight=4)
def unary(g):
    x = g.take()
    kind = g.pick(*[k for k, since in UNARY if since <= g.opset and (k != "Celu" or g.dtype == "f")])
    if kind == "Not quantised":
        half = g.node("Cast", [x], [g.fresh("h")], to=TensorProto.DOUBLE)
        return g.emit("Cast", [half], g.shapes[x], to=g.real())
    return g.emit(kind, [x], g.shapes[x])


@op()
def root(g):
    x = g.take()
    y = g.emit("Abs", [x], g.shapes[x])
    g.read.add(y)
    g.emit("Sqrt", [y], g.shapes[x])


@op(weight=2)
def softmax(g):
    x = g.take(2, 3, 4)
    if not x:
        return False
    g.emit(g.pick("Softmax", "Softmax", "Softmax", "LogSoftmax"), [x], g.shapes[x], axis=g.pick(-1, -1, 1))


@op()
def exponent(g):
    x = g.take()
    g.emit("Pow", [x, g.const(values=2.0)], g.shapes[x])


# Functions of two values


@op(weight=5)
def with_constant(g):
    x = g.take()
    s = g.shapes[x]
    kind = g.pick("Add", "Add", "Mul", "Mul", "Sub", "Div", "Max", "Min", "PRelu")
    c = g.const(values=0.5 + g.rng.random(broadcast(g, s))) if kind == "Div" else g.const(*broadcast(g, s))
    swap = kind not in ("Div", "PRelu") and g.chance(0.3)
    g.emit(kind, [c, x] if swap else [x, c], s)


@op(weight=3)
def of_two(g):
    x = g.take()
    y = g.take(fits=lambda s: s == g.shapes[x])
    g.emit(g.pick("Add", "Mul", "Sub", "Max", "Min", "Sum", "Mean"), [x, y], g.shapes[x])


@op(weight=2)
def where(g):
    x = g.take()
    s = g.shapes[x]
    c = g.node(g.pick("Greater", "Less"), [x, g.const(values=0.25)], [g.fresh("c")])
    y = g.take(fits=lambda t: t == s) if g.chance(0.4) else g.const(*broadcast(g, s))
    g.emit("Where", [c, *g.pick([x, y], [y, x])], s)


@op(weight=3)
def concat(g):
    x = g.take(2, 3, 4)
    if not x:
        return False
    s = g.shapes[x]
    axis = g.size(0, len(s) - 1)
    fit = lambda t: len(t) == len(s) and all(a == b for i, (a, b) in enumerate(zip(s, t)) if i != axis)
    parts = [x, g.take(fits=fit)]
    shapes = [g.shapes[p] for p in parts]
    if g.chance(0.4):
        shapes.append(s)
        parts.append(g.const(*s))
    g.emit("Concat", parts, [sum(t[axis] for t in shapes) if i == axis else d for i, d in enumerate(s)], axis=axis)


# Moving values


@op(weight=2)
def pool(g):
    x = g.take(4, fits=lambda s: min(s[2:]) >= 2)
    if not x:
        return False
    n, c, h, w = g.shapes[x]
    kind = g.pick("MaxPool", "MaxPool", "AveragePool", "LpPool")
    g.emit(kind, [x], (n, c, (h - 2) // 2 + 1, (w - 2) // 2 + 1), kernel_shape=[2, 2], strides=[2, 2])


@op(weight=2)
def global_pool(g):
    x = g.take(3, 4)
    if not x:
        return False
    n, c, *rest = g.shapes[x]
    g.emit(g.pick("GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool"), [x], (n, c, *[1] * len(rest)))


@op(weight=2)
def resize(g):
    x = g.take(4, fits=lambda s: max(s[2:]) < 16)
    if not x:
        return False
    n, c, h, w = g.shapes[x]
    mode = g.pick("nearest", "linear")
    roi = g.weight(g.fresh("roi"), values=np.zeros(0, g.dtype)) if g.opset < 13 else ""
    if g.chance(0.5):
        g.emit("Resize", [x, roi, g.weight(g.fresh("scales"), values=np.float32([1, 1, 2, 2]))], (n, c, 2 * h, 2 * w), mode=mode)
    else:
        none = g.weight(g.fresh("scales"), values=np.zeros(0, "f")) if g.opset < 13 else ""
        g.emit("Resize", [x, roi, none, g.ints(n, c, h + 1, w)], (n, c, h + 1, w), mode=mode)


@op(weight=2)
def reshape(g):
    x = g.take()
    s = g.shapes[x]
    total = int(np.prod(s))
    if g.chance(0.25) and len(s) > 1:
        g.emit("Flatten", [x], (s[0], total // s[0]))
    elif len(s) == 2 and s[1] % 2 == 0:
        g.emit("Reshape", [x, g.ints(s[0], s[1] // 2, 2)], (s[0], s[1] // 2, 2))
    elif len(s) == 4:
        g.emit("Reshape", [x, g.ints(0, 0, -1)], (*s[:2], s[2] * s[3]))
    else:
        g.emit("Reshape", [x, g.ints(1, -1)], (1, total))


@op(weight=2)
def transpose(g):
    x = g.take(2, 3, 4)
    if not x:
        return False
    perm = [int(i) for i in g.rng.permutation(len(g.shapes[x]))]
    g.emit("Transpose", [x], [g.shapes[x][i] for i in perm], perm=perm)


def squeeze_at(g, x, axis):
    s = g.shapes[x]
    rest = [d for i, d in enumerate(s) if i != axis]
    g.read.add(x)
    return g.emit("Squeeze", [x, g.ints(axis)], rest) if g.opset >= 13 else g.emit("Squeeze", [x], rest, axes=[axis])


@op()
def squeeze(g):
    x = g.take(3, 4, fits=lambda s: 1 in s)
    return squeeze_at(g, x, g.shapes[x].index(1)) if x else False


@op()
def unsqueeze(g):
    x = g.take(1, 2, 3)
    if not x:
        return False
    axis = g.size(0, len(g.shapes[x]))
    s = list(g.shapes[x])
    s.insert(axis, 1)
    return g.emit("Unsqueeze", [x, g.ints(axis)], s) if g.opset >= 13 else g.emit("Unsqueeze", [x], s, axes=[axis])


@op(weight=2)
def slice_of(g):
    x = g.take(2, 3, 4, fits=lambda s: s[-1] > 1)
    if not x:
        return False
    s = list(g.shapes[x])
    end = g.size(1, s[-1])
    g.emit("Slice", [x, g.ints(0), g.ints(end), g.ints(-1)], (*s[:-1], end))


@op(weight=2)
def split(g):
    x = g.take(2, 3, 4, fits=lambda s: s[1] > 1)
    if not x:
        return False
    s = g.shapes[x]
    a = g.size(1, s[1] - 1)
    outs, parts = [g.fresh("t"), g.fresh("t")], (a, s[1] - a)
    if g.opset >= 13:
        g.node("Split", [x, g.ints(*parts)], outs, axis=1)
    else:
        g.node("Split", [x], outs, axis=1, split=list(parts))
    for o, d in zip(outs, parts):
        g.put(o, (s[0], d, *s[2:]))


@op(weight=2)
def pad(g):
    x = g.take(2, 3, 4, fits=lambda s: s[-1] > 1)
    if not x:
        return False
    s = g.shapes[x]
    inputs = [x, g.ints(*[0] * (len(s) - 1), 1, *[0] * len(s))]
    mode = g.pick("constant", "constant", "constant", "reflect", "edge")
    if mode == "constant" and g.chance(0.7):
        inputs.append(g.const(values=g.pick(0.0, 1.0, -0.5)))
    g.emit("Pad", inputs, (*s[:-1], s[-1] + 1), **({"mode": mode} if mode != "constant" or g.chance(0.5) else {}))


@op(weight=2)
def gather(g):
    kind = g.size(0, 3)
    if kind == 0:
        rows, width = g.size(3, 9), g.size(2, 6)
        g.emit("Gather", [g.const(rows, width), g.ints(0, 2, 1)], (3, width))
    elif kind == 1:
        x = g.take(2, 3, 4)
        g.emit("Gather", [x, g.ints(0, g.shapes[x][1] - 1)], (g.shapes[x][0], 2, *g.shapes[x][2:]), axis=1) if x else None
    elif kind == 2:
        x = g.take(2, 3, 4)
        g.emit("Gather", [x, g.weight(g.fresh("i"), values=np.int64(0))], (g.shapes[x][0], *g.shapes[x][2:]), axis=1) if x else None
    else:
        x = g.take(2)
        if not x:
            return False
        i = g.weight(g.fresh("i"), values=np.zeros((1, g.shapes[x][1]), np.int64))
        g.emit("GatherElements", [x, i], (1, g.shapes[x][1]), axis=0)


@op()
def spread(g):
    x = g.take(2, 3, fits=lambda s: np.prod(s) < 200)
    if not x:
        return False
    s = g.shapes[x]
    if g.chance(0.5):
        g.emit("Tile", [x, g.ints(*[1] * (len(s) - 1), 2)], (*s[:-1], 2 * s[-1]))
    else:
        g.emit("Expand", [x, g.ints(2, *s)], (2, *s))


@op()
def depth(g):
    x = g.take(4, fits=lambda s: s[1] % 4 == 0)
    if not x:
        return False
    n, c, h, w = g.shapes[x]
    g.emit("DepthToSpace", [x], (n, c // 4, 2 * h, 2 * w), blocksize=2)


@op(weight=2)
def reduce(g):
    x = g.take(2, 3, 4)
    if not x:
        return False
    s = g.shapes[x]
    axis, keep = len(s) - 1, g.size(0, 1)
    kind = g.pick("ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2")
    rest = (*s[:-1], 1) if keep else s[:-1]
    if g.opset >= 18 or (kind == "ReduceSum" and g.opset >= 13):
        g.emit(kind, [x, g.ints(axis)], rest, keepdims=keep)
    else:
        g.emit(kind, [x], rest, keepdims=keep, axes=[axis])


@op()
def which(g):
    x = g.take(2, 3, 4)
    if not x:
        return False
    s = g.shapes[x]
    if g.chance(0.5):
        out = g.node("ArgMax", [x], [g.fresh("a")], axis=1)
        g.extra.append((out, TensorProto.INT64))
    else:
        values, where = g.fresh("t"), g.fresh("a")
        g.node("TopK", [x, g.ints(1)], [values, where], axis=-1)
        g.put(values, (*s[:-1], 1))
        g.extra.append((where, TensorProto.INT64))


@op()
def cumulative(g):
    x = g.take(2, 3)
    if not x:
        return False
    g.emit("CumSum", [x, g.weight(g.fresh("i"), values=np.int64(1))], g.shapes[x])


@op(weight=0.7)
def branch(g):
    """Both sides read the value from outside; one has a matrix product with a constant of the outer graph."""
    x = g.take(2)
    if not x:
        return False
    m, k = g.shapes[x]
    w, out = g.const(k, k), g.fresh("t")
    cond = g.input(g.fresh("cond"), [], TensorProto.BOOL)
    kind = lambda n: [helper.make_tensor_value_info(n, g.real(), [m, k])]
    then = helper.make_graph([helper.make_node("MatMul", [x, w], [out + "_then"], out + "_mm")], "then", [], kind(out + "_then"))
    other = helper.make_graph([helper.make_node("Neg", [x], [out + "_else"], out + "_neg")], "else", [], kind(out + "_else"))
    g.node("If", [cond], [out], then_branch=then, else_branch=other)
    g.put(out, (m, k))
