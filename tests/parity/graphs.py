"""Graphs compared by what they compute: names of inner values and nodes, order of nodes and of initializers do not
count; operators, attributes, operands, constants, inputs and outputs do."""
from collections import Counter

import numpy as np
import onnx
from onnx import numpy_helper

EXACT = 16  # constants of more elements are compared by type and sizes; the answers are compared anyway


def type_key(value):
    t = value.type
    if not t.HasField("tensor_type"):
        return t.WhichOneof("value")
    dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in t.tensor_type.shape.dim]
    return t.tensor_type.elem_type, tuple(dims) if t.tensor_type.HasField("shape") else None


def tensor_key(t):
    size = int(np.prod(t.dims, dtype=np.int64))
    key = ("constant", t.data_type, tuple(t.dims))
    if size > EXACT:
        return key
    if t.data_type == onnx.TensorProto.STRING:
        return key + (tuple(t.string_data),)
    a = numpy_helper.to_array(t).ravel()
    return key + (tuple(f"{float(v):.5g}" if a.dtype.kind == "f" else str(v) for v in a),)


def attribute_key(a, scope):
    if a.type == onnx.AttributeProto.GRAPH:
        return a.name, graph_key(a.g, scope)
    if a.type == onnx.AttributeProto.TENSOR:
        return a.name, tensor_key(a.t)
    v = onnx.helper.get_attribute_value(a)
    if isinstance(v, float):
        v = f"{v:.5g}"
    return a.name, tuple(f"{x:.5g}" if isinstance(x, float) else x for x in v) if isinstance(v, (list, tuple)) else v


def graph_key(g, outer=None):
    """Inputs, outputs, and how often each operator is applied to each operands."""
    scope = dict(outer or {})
    inner = bool(outer is not None)
    initial = Counter()
    for t in g.initializer:
        scope[t.name] = tensor_key(t)
        initial[scope[t.name]] += 1
    for i, v in enumerate(g.input):
        if v.name in scope:  # a default that callers may replace
            scope[v.name] = ("default", v.name, scope[v.name])
        else:
            scope[v.name] = ("input", i if inner else v.name)
    nodes = Counter()
    for n in g.node:
        domain = "" if n.domain == "ai.onnx" else n.domain
        attributes = tuple(sorted((attribute_key(a, scope) for a in n.attribute), key=repr))
        operands = [scope[i] if i else None for i in n.input]
        while operands and operands[-1] is None:
            operands.pop()
        key = (domain, n.op_type, attributes, tuple(operands))
        nodes[key] += 1
        for i, o in enumerate(n.output):
            if o:
                scope[o] = (key, i)
    outputs = tuple((None if inner else o.name, scope[o.name]) for o in g.output)
    inputs = tuple(None if inner else (v.name, type_key(v)) for v in g.input)
    return inputs, outputs, frozenset(nodes.items()), frozenset(initial.items())


def same(a, b):
    """None, or what differs."""
    x, y = graph_key(a.graph), graph_key(b.graph)
    for what, p, q in zip(("inputs", "outputs", "nodes", "constants"), x, y):
        if p != q:
            return what
    opsets = [{(("" if o.domain == "ai.onnx" else o.domain), o.version) for o in m.opset_import} for m in (a, b)]
    if a.ir_version != b.ir_version:
        return "IR version"
    return None if opsets[0] == opsets[1] else "operator sets"
