"""Models that plain quantisation spoils: the same function as a good one, with channels of very different sizes."""
import numpy as np
from onnx import numpy_helper

from qdq_models import Maker


class Chain(Maker):
    """Layers one behind another, of unit gain; `build_bad` gives every second channel between two another size."""

    def __init__(self, seed=0):
        super().__init__(seed)
        self.layers = []  # name, operator, groups, transB

    def layer(self, op, x, out, size, group=1, trans_b=0, bias=True, **attributes):
        i = len(self.layers)
        inputs = size // group if op == "Conv" else size
        kernel = attributes.pop("kernel", [1, 1])
        shape = {"Conv": [out, inputs, *kernel], "ConvTranspose": [size, out // group, *kernel],
                 "Gemm": [out, size] if trans_b else [size, out], "MatMul": [size, out]}[op]
        fan = np.prod(shape) / out
        self.layers.append((f"w{i}", op, group, trans_b))
        if op in ("Conv", "ConvTranspose"):
            attributes["group"] = group
        if op == "Gemm":
            attributes["transB"] = trans_b
        ins = [x, self.weight(f"w{i}", *shape, scale=1.4 / np.sqrt(fan))]
        if bias and op != "MatMul":
            ins.append(self.weight(f"b{i}", out, scale=0.1))
        return self.node(op, ins, name=f"layer{i}", **attributes)


def dense(w, op, group, trans_b):
    """A weight as [out, in, kernel], zeros where groups keep apart."""
    if op == "Gemm":
        return (w if trans_b else w.T)[:, :, None]
    if op == "MatMul":
        return w.T[:, :, None]
    a, b = w.shape[:2]
    full = np.zeros((a, group * b, int(np.prod(w.shape[2:]))), w.dtype)
    for g in range(group):
        rows = slice(g * a // group, (g + 1) * a // group)
        full[rows, g * b:(g + 1) * b] = w[rows].reshape(a // group, b, -1)
    return full if op == "Conv" else full.transpose(1, 0, 2)


def sparse(full, w, op, group, trans_b):
    """The way back."""
    if op == "Gemm":
        return full[:, :, 0] if trans_b else full[:, :, 0].T
    if op == "MatMul":
        return full[:, :, 0].T
    if op == "ConvTranspose":
        full = full.transpose(1, 0, 2)
    a, b = w.shape[:2]
    return np.concatenate([full[g * a // group:(g + 1) * a // group, g * b:(g + 1) * b] for g in range(group)]).reshape(w.shape)


def rescale(weights, layers, pair, s, scaled):
    """W1 / s, W2 * s, and the constants between them / s."""
    (n1, *k1), (n2, *k2) = layers[pair], layers[pair + 1]
    weights[n1] = sparse(dense(weights[n1], *k1) / s[:, None, None], weights[n1], *k1)
    weights[n2] = sparse(dense(weights[n2], *k2) * s[None, :, None], weights[n2], *k2)
    for name in scaled:
        axis = [i for i, d in enumerate(weights[name].shape) if d == len(s)][-1]
        shape = [-1 if i == axis else 1 for i in range(weights[name].ndim)]
        weights[name] = weights[name] / s.reshape(shape)


def equalised(weights, layers, pairs, rounds=300):
    """Nagel et al. 2019, equation 11, for every pair in turn until nothing moves. pairs: number of the first layer -> names
    of the constants that belong to its outputs."""
    w = {k: v.astype("d") for k, v in weights.items()}
    for _ in range(rounds):
        most = 0.0
        for pair, scaled in pairs.items():
            (n1, *k1), (n2, *k2) = layers[pair], layers[pair + 1]
            r1 = np.abs(dense(w[n1], *k1)).max((1, 2))
            r2 = np.abs(dense(w[n2], *k2)).max((0, 2))
            ok = (r1 > 0) & (r2 > 0)
            s = np.where(ok, np.sqrt(np.where(ok, r1, 1) / np.where(ok, r2, 1)), 1.0)
            rescale(w, layers, pair, s, scaled)
            most = max(most, np.abs(np.log(s)).max())
        if most < 1e-9:
            break
    return w


def constants(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def spoil(m, pairs, seed=5, octaves=7.0):
    """Gives channels between layers other sizes; the function stays."""
    w = {t.name: numpy_helper.to_array(t).astype("d") for t in m.weights}
    rng = np.random.default_rng(seed)
    for pair, scaled in pairs.items():
        n = dense(w[m.layers[pair][0]], *m.layers[pair][1:]).shape[0]
        rescale(w, m.layers, pair, 2.0 ** rng.uniform(-octaves / 2, octaves / 2, n), scaled)
    m.weights = [numpy_helper.from_array(w[t.name].astype("f") if w[t.name].dtype == np.float64 and numpy_helper.to_array(t).dtype == np.float32
                                         else numpy_helper.to_array(t), t.name) for t in m.weights]


def mobile(bad=True):
    """Convolutions of a MobileNet, head and all."""
    m = Chain(11)
    x = m.input("x", [1, 3, 24, 24])
    y = m.node("Relu", [m.layer("Conv", x, 16, 3, kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])])
    y = m.node("Relu", [m.layer("Conv", y, 16, 16, group=16, kernel=[3, 3], pads=[1, 1, 1, 1])])
    y = m.node("PRelu", [m.layer("Conv", y, 32, 16), m.weight("slope", 32, 1, 1, scale=0.2)])
    y = m.node("LeakyRelu", [m.layer("Conv", y, 32, 32, group=32, kernel=[3, 3], pads=[1, 1, 1, 1])], alpha=0.1)
    y = m.node("Relu", [m.layer("Conv", y, 48, 32, bias=False)])
    y = m.node("Flatten", [m.node("GlobalAveragePool", [y])])
    y = m.layer("Gemm", y, 10, 48, trans_b=1)
    m.pairs = {0: ["b0"], 1: ["b1"], 2: ["b2"], 3: ["b3"], 4: []}
    if bad:
        spoil(m, m.pairs)
    return m, m.build(m.node("Sigmoid", [y]))


def decoder(bad=True):
    """Transposed convolutions with groups, arithmetic and a normalisation between them."""
    m = Chain(12)
    x = m.input("x", [1, 8, 6, 6])
    y = m.layer("ConvTranspose", x, 12, 8, group=2, kernel=[2, 2], strides=[2, 2])
    y = m.node("Relu", [m.node("Add", [y, m.weight("shift", 1, 12, 1, 1, scale=0.2)])])
    y = m.layer("ConvTranspose", y, 6, 12, group=3, kernel=[3, 3], bias=False)
    y = m.node("Mul", [y, m.weight("gain", values=np.float32(0.7))])
    y = m.node("BatchNormalization", [y, m.weight("g", values=np.linspace(0.5, 1.5, 6, dtype="f")), m.weight("be", 6, scale=0.1),
                                      m.weight("mean", 6, scale=0.1), m.weight("var", values=np.linspace(0.5, 2, 6, dtype="f"))])
    y = m.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2])
    y = m.layer("Conv", y, 4, 6, group=2, kernel=[3, 3])
    m.pairs = {0: ["b0", "shift"], 1: ["be", "mean"]}
    if bad:
        spoil(m, m.pairs)
    return m, m.build(m.node("Sigmoid", [y]))


def feed_forward(bad=True):
    """Matrices, with and without a bias of their own."""
    m = Chain(13)
    x = m.input("x", [2, 5, 16])
    y = m.node("Relu", [m.node("Add", [m.weight("shift", 32, scale=0.2), m.layer("MatMul", x, 32, 16)])])
    y = m.layer("MatMul", y, 16, 32)
    y = m.node("Sub", [m.node("Abs", [y]), m.weight("less", 1, 1, 16, scale=0.1)])
    y = m.layer("MatMul", y, 8, 16)
    m.pairs = {0: ["shift"], 1: ["less"]}
    if bad:
        spoil(m, m.pairs)
    return m, m.build(m.node("Sigmoid", [y]))


def gemms(bad=True):
    m = Chain(14)
    x = m.input("x", [3, 12])
    y = m.node("Relu", [m.layer("Gemm", x, 24, 12, trans_b=1, alpha=0.5, beta=2.0)])
    y = m.layer("Gemm", y, 20, 24)
    y = m.layer("Gemm", m.node("Identity", [y]), 8, 20, trans_b=1)
    m.pairs = {0: ["b0"], 1: ["b1"]}
    if bad:
        spoil(m, m.pairs)
    return m, m.build(m.node("Sigmoid", [y]))


MODELS = {"mobile": mobile, "decoder": decoder, "feed_forward": feed_forward, "gemms": gemms}
