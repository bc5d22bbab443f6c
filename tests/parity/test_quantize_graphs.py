"""Static quantisation of random models (quantize_graphs.py) with random options: the same nodes, scales, zero points and
integers as ONNX Runtime's own quantizer makes of the same ranges, bit for bit, and the same answers.

Where docs/differences.md promises something else, qdq_oracle.py knows. More seeds: WINML_SEEDS=1000-2000 pytest tests/parity/test_quantize_graphs.py"""
import copy
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantType
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

import qdq_models
from qdq_oracle import Better, hoist, leave_exponents
from quantize_graphs import generate
from test_qdq import PAIRS, assert_same, flags, ort_quantize, quantize  # noqa: F401

SEEDS = range(*map(int, os.environ.get("WINML_SEEDS", "0-250").split("-")))
KIND = {"uint8": QuantType.QUInt8, "uint16": QuantType.QUInt16, "int8": QuantType.QInt8, "int16": QuantType.QInt16, "uint4": QuantType.QUInt4,
        "int4": QuantType.QInt4}
WIDE = {"uint16", "int16", "uint4", "int4"}


class Options:
    """What is asked of both quantizers."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng([seed, 1])
        chance = lambda p: rng.random() < p
        pick = lambda *a: a[rng.integers(len(a))]
        self.weight, self.activation = pick(*PAIRS, ("uint8", "uint8"), ("int8", "uint8"))
        if chance(0.15) and self.activation != "int8":
            self.weight = pick("int4", "uint4")
        self.per_channel, self.symmetric = chance(0.4), pick(None, None, False, True)
        self.reduce, self.qnn, self.half = chance(0.1), chance(0.2), chance(0.12)
        wide = {self.weight, self.activation} & WIDE
        self.opset = 21 if self.half else pick(21, 21, 22, *range(13 if self.per_channel else 11, 21))
        self.contrib = bool(wide) and self.opset < 21
        self.measured = chance(0.5)
        self.some = pick("op_types", "exclude", "overrides", None, None, None)
        self.chance, self.pick = chance, pick

    def sample(self, names):
        names = sorted(names)
        return [n for n in names if self.chance(0.3)] or [self.pick(*names)]


def made_up(model, rng):
    """Ranges of every kind, those of no width and one-sided ones too."""
    types = {v.name: v.type.tensor_type.elem_type for v in [*model.graph.value_info, *model.graph.input, *model.graph.output]}
    out = {}
    for n, t in types.items():
        if t not in (TensorProto.FLOAT, TensorProto.FLOAT16):
            continue
        a, b = np.sort(rng.standard_normal(2) * 10 ** rng.uniform(-3, 2))
        a, b = [(a, b), (a, b), (-abs(a), abs(b)), (0, abs(b)), (a, a), (0, 0), (abs(a), abs(a) + abs(b))][rng.choice(7, p=[.3, .2, .2, .15, .05, .02, .08])]
        real = helper.tensor_dtype_to_np_dtype(t)
        out[n] = np.asarray(a, real)[()], np.asarray(b, real)[()]
    return out


def answers(model, feeds):
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    s = ort.InferenceSession(model.SerializeToString(), o, providers=["CPUExecutionProvider"])
    return s.run(None, feeds)


def run_both(model, got, want):
    feeds = qdq_models.feeds_of(model, 1)[0]
    for a, b in zip(answers(got, feeds), answers(want, feeds)):
        np.testing.assert_array_equal(a, b)


def ask(o, model, ranges):
    """Options of the command, and those of ONNX Runtime's quantizer."""
    args, extra = flags(o.weight, o.activation, o.per_channel, o.symmetric), {}
    if o.symmetric is not None:
        extra.update(WeightSymmetric=o.symmetric, ActivationSymmetric=o.symmetric)
    if o.reduce:
        args.append("--reduce-range")
        extra["reduce"] = True
    if o.contrib:
        args.append("--contrib-qdq")
    if o.some == "exclude":
        extra["exclude"] = o.sample(n.name for n in model.graph.node)
        args += [a for n in extra["exclude"] for a in ("--exclude", n)]
    if o.some == "op_types":
        extra["op_types"] = o.sample({n.op_type for n in model.graph.node})
        args += [a for n in extra["op_types"] for a in ("--op-type", n)]
    if o.qnn:
        args += ["--ep", "qnn"]
        symmetric = True if o.symmetric is None and o.weight == "int4" else o.symmetric  # signed types are, all of them
        c = get_qnn_qdq_config(model, None, activation_type=KIND[o.activation], weight_type=KIND[o.weight], per_channel=o.per_channel,
                               weight_symmetric=symmetric, activation_symmetric=bool(o.symmetric),
                               op_types_to_quantize=extra.get("op_types"), nodes_to_exclude=extra.get("exclude"))
        extra = {"op_types": c.op_types_to_quantize, "ForceQuantizeNoInputCheck": False, **c.extra_options, **extra}
    return args, extra


@pytest.mark.parametrize("seed", SEEDS)
def test_seed(quantize, tmp_path, seed):
    o = Options(seed)
    model = generate(seed, opset=o.opset, dtype="e" if o.half else "f")
    plain = hoist(model)
    ranges = qdq_models.ranges_of(plain) if o.measured else made_up(plain, o.rng)
    args, extra = ask(o, plain, ranges)
    want = ort_quantize(plain, ranges, o.weight, o.activation, o.per_channel, quantizer=Better, **extra)
    if not any(n.op_type == "DequantizeLinear" for n in want.graph.node):
        assert "nothing can be quantised" in quantize(model, ranges, *args, code=1).err
        return
    got, report = quantize(model, ranges, *args)
    left = leave_exponents(plain, copy.deepcopy(got), copy.deepcopy(want))
    assert_same(*left)
    if left == [got, want]:
        run_both(plain, got, want)
