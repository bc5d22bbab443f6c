"""Writes the small models of the ORT tests into this folder. Needs the package onnx; run by hand, the
results are kept in the repository so that tests need no Python."""
import os

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

HERE = os.path.dirname(os.path.abspath(__file__))


def value(name, shape, dtype=T.FLOAT):
    return h.make_tensor_value_info(name, dtype, shape)


def save(name, nodes, inputs, outputs, initializers=(), opset=17, ir=8, domains=()):
    graph = h.make_graph(nodes, name, inputs, outputs, list(initializers))
    imports = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    model = h.make_model(graph, opset_imports=imports, ir_version=ir)
    onnx.save(model, os.path.join(HERE, name + ".onnx"))
    return model


w = nh.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
two = nh.from_array(np.array([2], np.float32), "two")

# y = (x + w) * 2
static = save("static", [h.make_node("Add", ["x", "w"], ["s"], "add"), h.make_node("Mul", ["s", "two"], ["y"], "mul")],
              [value("x", [2, 3])], [value("y", [2, 3])], [w, two])
# a symbolic dimension, and an output whose shape depends on the data
save("dynamic", [h.make_node("Add", ["x", "two"], ["y"], "add"), h.make_node("NonZero", ["x"], ["nz"], "nz")],
     [value("x", ["N", 3])], [value("y", ["N", 3]), value("nz", [2, "K"], T.INT64)], [two])
# promises a shape that it does not keep
save("liar", [h.make_node("Reshape", ["x", "to"], ["y"], "reshape")], [value("x", [2, 3]), value("to", [2], T.INT64)],
     [value("y", [2, 3])])
# strings, a sequence, an input with a default
save("kinds", [h.make_node("Identity", ["t"], ["u"], "id"), h.make_node("SequenceConstruct", ["x", "x"], ["q"], "seq"),
               h.make_node("Add", ["x", "k"], ["y"], "add")],
     [value("t", [2], T.STRING), value("x", [2]), value("k", [1])],
     [value("u", [2], T.STRING), h.make_tensor_sequence_value_info("q", T.FLOAT, None), value("y", [2])],
     [nh.from_array(np.array([5], np.float32), "k")])
# a constant part without inputs: its value, and an integer one
save("constant", [h.make_node("Mul", ["w", "two"], ["y"], "mul"), h.make_node("Shape", ["w"], ["d"], "shape")],
     [], [value("y", [2, 3]), value("d", [2], T.INT64)], [w, two])
# outputs without types, as a skeleton has them
model = h.make_model(h.make_graph(
    [h.make_node("Shape", ["x"], ["s"], "shape"), h.make_node("Relu", ["x"], ["r"], "relu"),
     h.make_node("SplitToSequence", ["x"], ["q"], "split", axis=1), h.make_node("Cast", ["x"], ["c"], "cast", to=T.FLOAT16)],
    "skeleton", [value("x", ["N", 4, None])], [onnx.ValueInfoProto(name=n) for n in ("s", "r", "q", "c")]),
    opset_imports=[h.make_opsetid("", 17)], ir_version=8)
onnx.save(model, os.path.join(HERE, "skeleton.onnx"))
# weights as byte ranges of another file
os.makedirs(os.path.join(HERE, "weights"), exist_ok=True)
with open(os.path.join(HERE, "weights", "all.bin"), "wb") as f:
    f.write(bytes(64) + np.arange(6, dtype=np.float32).tobytes())
ext = T(name="w", data_type=T.FLOAT, dims=[2, 3], data_location=T.EXTERNAL)
for k, v in (("location", "weights/all.bin"), ("offset", "64"), ("length", "24")):
    ext.external_data.add(key=k, value=v)
save("external", [h.make_node("Add", ["x", "w"], ["y"], "add")], [value("x", [2, 3])], [value("y", [2, 3])], [ext])
# an input is an output as well, and so is a weight
save("through", [h.make_node("Neg", ["x"], ["y"], "neg")], [value("x", [2, 3])], [value("x", [2, 3]), value("y", [2, 3]), value("w", [2])],
     [nh.from_array(np.array([5, 7], np.float32), "w")])
# failures
save("no_kernel", [h.make_node("Conv", ["x", "k"], ["y"], "conv1")], [value("x", [1, 1, 3, 3], T.DOUBLE),
     value("k", [1, 1, 1, 1], T.DOUBLE)], [value("y", [1, 1, 3, 3], T.DOUBLE)])
save("no_op", [h.make_node("Magic", ["x"], ["y"], "m", domain="vendor")], [value("x", [1])], [value("y", [1])],
     domains=["vendor"])
save("ep_context", [h.make_node("EPContext", ["x"], ["y"], "part", domain="com.microsoft", embed_mode=1, main_context=1,
                                ep_cache_context=b"x", source="QNNExecutionProvider")],
     [value("x", [1])], [value("y", [1])], domains=["com.microsoft"])
save("names", [h.make_node("Abs", ["x"], ["a"], "n"), h.make_node("Neg", ["a"], ["y"], "n")], [value("x", [1])],
     [value("y", [1])])
save("fails", [h.make_node("Reshape", ["x", "to"], ["y"], "reshape")], [value("x", [2, 3]), value("to", [1], T.INT64)],
     [value("y", ["K"])])
save("opset_999", [h.make_node("Abs", ["x"], ["y"], "n")], [value("x", [1])], [value("y", [1])], opset=999)
save("ir_99", [h.make_node("Abs", ["x"], ["y"], "n")], [value("x", [1])], [value("y", [1])], ir=99)
with open(os.path.join(HERE, "cut.onnx"), "wb") as f:
    f.write(static.SerializeToString()[:-3])
# dies of ORT's own optimiser from level basic on: 1/1 multiplies the result of a Cast that does nothing
one = nh.from_array(np.array([1], np.float32), "one")
save("optimiser_trap", [h.make_node("Cast", ["x"], ["mid"], "cast", to=T.FLOAT), h.make_node("Div", ["one", "one"], ["r"], "div"),
                        h.make_node("Mul", ["mid", "r"], ["y"], "mul")], [value("x", [2])], [value("y", [2])], [one])
# quantised: what an NPU takes
s, z = nh.from_array(np.array(0.02, np.float32), "s"), nh.from_array(np.array(0, np.int8), "z")
k = nh.from_array(np.arange(-4, 5, dtype=np.int8).reshape(1, 1, 3, 3), "k")
save("qdq", [h.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"], "xq"), h.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"], "xd"),
             h.make_node("DequantizeLinear", ["k", "s", "z"], ["kd"], "kd"), h.make_node("Conv", ["xd", "kd"], ["c"], "conv"),
             h.make_node("QuantizeLinear", ["c", "s", "z"], ["cq"], "cq"), h.make_node("DequantizeLinear", ["cq", "s", "z"], ["y"], "yd")],
     [value("x", [1, 1, 6, 6])], [value("y", [1, 1, 4, 4])], [s, z, k], opset=17)
