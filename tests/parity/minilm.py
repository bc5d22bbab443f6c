"""all-MiniLM-L6-v2 as ONNX, from its real weights: a BERT written out with onnx's own helpers, sequence length open.

    python tests/parity/minilm.py OUT.onnx [LENGTH]
"""
import json
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


def safetensors(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    out = {}
    for name, t in head.items():
        if name != "__metadata__" and t["dtype"] == "F32":
            a, b = t["data_offsets"]
            out[name] = np.frombuffer(data[a:b], "f4").reshape(t["shape"])
    return out


class Writer:
    def __init__(self):
        self.nodes, self.inits, self.n = [], [], 0

    def init(self, name, array):
        self.inits.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind, *inputs, out=None, **attrs):
        self.n += 1
        out = out or f"{kind.lower()}_{self.n}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], f"{kind}_{self.n}", **attrs))
        return out

    def linear(self, x, weights, prefix):
        w = self.init(prefix + ".weight_t", weights[prefix + ".weight"].T)
        return self.op("Add", self.op("MatMul", x, w), self.init(prefix + ".bias", weights[prefix + ".bias"]))

    def norm(self, x, weights, prefix, eps):
        return self.op("LayerNormalization", x, self.init(prefix + ".weight", weights[prefix + ".weight"]),
                       self.init(prefix + ".bias", weights[prefix + ".bias"]), axis=-1, epsilon=eps)


def attention(w, x, mask, weights, prefix, heads, size):
    shape = w.init(prefix + ".heads", np.array([0, 0, heads, size], "i8"))
    parts = []
    for part, perm in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        h = w.linear(x, weights, f"{prefix}.self.{part}")
        parts.append(w.op("Transpose", w.op("Reshape", h, shape), perm=perm))
    scores = w.op("Div", w.op("MatMul", parts[0], parts[1]), w.init(prefix + ".scale", np.array(size ** 0.5, "f4")))
    probs = w.op("Softmax", w.op("Add", scores, mask), axis=-1)
    y = w.op("Transpose", w.op("MatMul", probs, parts[2]), perm=[0, 2, 1, 3])
    return w.op("Reshape", y, w.init(prefix + ".joined", np.array([0, 0, heads * size], "i8")))


def gelu(w, x, name):
    half, root, one = (w.init(f"{name}.{k}", np.array(v, "f4")) for k, v in (("half", 0.5), ("root", 2 ** 0.5), ("one", 1)))
    return w.op("Mul", w.op("Mul", x, w.op("Add", w.op("Erf", w.op("Div", x, root)), one)), half)


def build(folder, length=None):
    weights = safetensors(os.path.join(folder, "model.safetensors"))
    weights = {k.removeprefix("bert."): v for k, v in weights.items()}
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        c = json.load(f)
    w, eps = Writer(), c["layer_norm_eps"]
    heads, size = c["num_attention_heads"], c["hidden_size"] // c["num_attention_heads"]
    e = "embeddings."
    words = w.op("Gather", w.init(e + "word", weights[e + "word_embeddings.weight"]), "input_ids")
    kinds = w.op("Gather", w.init(e + "kind", weights[e + "token_type_embeddings.weight"]), "token_type_ids")
    zero, one, axis = (w.init(k, np.array([v], "i8")) for k, v in (("zero", 0), ("one", 1), ("axis", 1)))
    places = w.init(e + "place", weights[e + "position_embeddings.weight"])
    count = w.op("Slice", w.op("Shape", "input_ids"), axis, w.init("two", np.array([2], "i8")), zero)
    place = w.op("Slice", places, zero, count, zero) if length is None else w.init(e + "places", weights[e + "position_embeddings.weight"][:length])
    x = w.norm(w.op("Add", w.op("Add", words, kinds), place), weights, e + "LayerNorm", eps)
    mask = w.op("Cast", w.op("Unsqueeze", "attention_mask", w.init("axes", np.array([1, 2], "i8"))), to=TensorProto.FLOAT)
    mask = w.op("Mul", w.op("Sub", w.init("one_f", np.array(1, "f4")), mask), w.init("least", np.array(-10000, "f4")))
    for i in range(c["num_hidden_layers"]):
        p = f"encoder.layer.{i}."
        y = w.linear(attention(w, x, mask, weights, p + "attention", heads, size), weights, p + "attention.output.dense")
        x = w.norm(w.op("Add", y, x), weights, p + "attention.output.LayerNorm", eps)
        y = w.linear(gelu(w, w.linear(x, weights, p + "intermediate.dense"), p + "gelu"), weights, p + "output.dense")
        x = w.norm(w.op("Add", y, x), weights, p + "output.LayerNorm", eps)
    w.op("Identity", x, out="last_hidden_state")
    dim = length or "sequence"
    ins = [helper.make_tensor_value_info(k, TensorProto.INT64, [1, dim]) for k in ("input_ids", "attention_mask", "token_type_ids")]
    outs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, dim, c["hidden_size"]])]
    used = {name for n in w.nodes for name in n.input}
    while True:  # the slice of places that a fixed length makes superfluous
        dead = [n for n in w.nodes if n.output[0] not in used and n.output[0] != "last_hidden_state"]
        if not dead:
            break
        w.nodes = [n for n in w.nodes if n not in dead]
        used = {name for n in w.nodes for name in n.input}
    g = helper.make_graph(w.nodes, "minilm", ins, outs, [t for t in w.inits if t.name in used])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def pooled(hidden, mask):
    """The sentence vector: the mean over real tokens, of length 1."""
    m = mask[..., None].astype("f4")
    v = (hidden * m).sum(1) / m.sum(1)
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


if __name__ == "__main__":
    cache = os.environ.get("WINML_DEPS") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "winml-build")
    save(build(os.path.join(cache, "models", "minilm"), int(sys.argv[2]) if len(sys.argv) > 2 else None), sys.argv[1])
