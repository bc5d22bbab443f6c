"""ONNX Runtime's quantizer with the differences that docs/differences.md promises, so that everything else can be compared
bit for bit."""
import copy

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnxruntime.quantization.calibrate import TensorData
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer


class Better(QDQQuantizer):
    """Scales are raised for biases beside weights of every type, not of symmetric signed ones only, and by the scale that the
    input has, not by the one that its own range would give where it is a moved value. Ranges of half floats stay half floats.
    What a Relu or Clip reads keeps its range where it is an output, too; the operator stays where a branch reads that as well,
    and where overrides of its output let more through than it does. A bias stays
    float for the nodes that are excluded."""

    def scale_of(self, name, reader):
        """Of a value as `reader` reads it: from where it was moved, its own, or a constant's."""
        info = self.tensors_to_quantize[name]
        if info.quant_para_provider:
            return self.scale_of(info.quant_para_provider.input_name, info.quant_para_provider.node_name)
        own = self.quantization_params.get(name)
        return own.get_for_consumer(reader)["scale"] if own else self.initializer_quant_params[name]["scale"]

    def _adjust_weight_quant_params_for_bias_tensors(self):
        real, own = self.initializer_quant_params, self.quantization_params
        self.quantization_params = copy.deepcopy(own)
        for b in self.bias_to_quantize.values():
            if b.input_name in own and b.input_name in self.tensors_to_quantize:
                self.quantization_params[b.input_name].get_for_consumer(b.node_name)["scale"] = self.scale_of(b.input_name, b.node_name)
        masked = self.initializer_quant_params = copy.deepcopy(real)
        for p in masked.values():
            p["quant_type"], p["zero_point"] = TensorProto.INT8, np.zeros_like(p["zero_point"])
        super()._adjust_weight_quant_params_for_bias_tensors()
        for n, p in real.items():
            p["scale"] = masked[n]["scale"]
        self.initializer_quant_params, self.quantization_params = real, own

    def adjust_tensor_ranges(self):
        before = {n: self.tensors_range[n] for n in self.tensors_range.keys()}
        outputs = {o.name for o in self.model.graph().output}
        softmax = {n.output[0] for n in self.model.nodes() if n.op_type == "Softmax"}
        super().adjust_tensor_ranges()
        for n, was in before.items():
            low, high = self.tensors_range[n].range_value
            kind = was.range_value[0].dtype
            if n in outputs - softmax:
                self.tensors_range[n] = was
            elif low.dtype != kind:
                self.tensors_range[n] = TensorData(lowest=low.astype(kind), highest=high.astype(kind))

    def _quantize_bias_tensors(self):
        users = {b: [n for n in self.model.nodes() if b in n.input] for b in self.bias_to_quantize}
        kept = {b: copy.deepcopy(self.model.get_initializer(b)) for b, nodes in users.items() if len(nodes) > 1}
        super()._quantize_bias_tensors()
        for b, tensor in kept.items():
            self.model.add_initializer(tensor)
            for n in self.model.nodes():
                if list(n.output) == [b]:
                    n.output[0] = f"{b}_DequantizeLinear_Output"
                elif n.name == self.bias_to_quantize[b].node_name:
                    n.input[2] = f"{b}_DequantizeLinear_Output"

    def try_replacing_upstream_output(self, upstream, output):
        asked = self.tensor_quant_overrides.get(output, [{}])[0]
        cuts = not (asked.get("symmetric") or "scale" in asked or "rmin" in asked)
        return cuts and upstream not in read_inside(self.model.graph()) and super().try_replacing_upstream_output(upstream, output)


def read_inside(graph):
    """What branches and loops of a graph read."""
    inner = [a.g for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH]
    return {i for g in inner for n in g.node for i in n.input}.union(*[read_inside(g) for g in inner])


def hoist(model):
    """Constant nodes are weights, which ONNX Runtime's quantizer takes for activations."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for n in [n for n in out.graph.node if n.op_type == "Constant"]:
        t = out.graph.initializer.add()
        t.CopyFrom(n.attribute[0].t)
        t.name = n.output[0]
        out.graph.node.remove(n)
    constants = {t.name for t in out.graph.initializer}
    for v in [v for v in out.graph.value_info if v.name in constants]:
        out.graph.value_info.remove(v)
    return out


def leave_exponents(model, got, want):
    """Constants that are exponents of Pow come back exactly; ONNX Runtime's need not. The models without them."""
    names = {n.input[1] for n in model.graph.node if n.op_type == "Pow"}
    for m in got, want:
        weights = {w.name: w for w in m.graph.initializer}
        for n in names & {w[:-len("_scale")] for w in weights if w.endswith("_scale")}:
            parts = [weights[f"{n}_{part}"] for part in ("quantized", "scale", "zero_point")]
            q, scale, zero = (numpy_helper.to_array(t) for t in parts)
            if m is got:
                exact = constant(model, n)
                np.testing.assert_array_equal(((q.astype("f") - zero.astype("f")) * scale).astype(exact.dtype), exact)
            for t in parts:
                m.graph.initializer.remove(t)
    return [got, want]


def constant(model, name):
    return next(numpy_helper.to_array(w) for w in model.graph.initializer if w.name == name)
