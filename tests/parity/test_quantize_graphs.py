"""Static quantisation of random models (quantize_graphs.py) with random options: the same nodes, scales, zero points and
integers as ONNX Runtime's own quantizer makes of the same ranges, bit for bit, and the same answers.

Where docs/differences.md promises something else, qdq_oracle.py knows. More seeds: WINML_SEEDS=1000-2000 pytest tests/parity/test_quantize_graphs.py"""
import copy
import json
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config

import qdq_models
from qdq_oracle import Better, hoist, leave_exponents
from quantize_graphs import generate
from test_qdq import PAIRS, assert_same, flags, ort_overrides, ort_quantize, quantize, with_fixer  # noqa: F401

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
        self.converts = chance(0.7)
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


WORDS = ("QUInt8", "QInt8", "QUInt16", "QInt16", "QUInt4", "QInt4")


def override_constant(o, w, one_scale):
    """Channels of a weight beside a bias must be those of the bias, and what is moved has one scale: both stay as they are."""
    a = numpy_helper.to_array(w)
    one, axis = {"quant_type": o.pick(*WORDS)}, o.rng.integers(-a.ndim, a.ndim) if a.ndim else 0
    kind = o.pick("type", "symmetric", "range", "scale", *([] if one_scale else ["axis", "channels"]))
    if kind == "symmetric":
        return [{"symmetric": o.chance(0.5), "reduce_range": o.chance(0.5)}]
    if kind == "range":
        return [{**one, "rmin": -float(np.float32(o.rng.random())), "rmax": float(np.float32(o.rng.random()))}]
    if kind == "scale":
        return [{**one, "scale": o.pick(0.5, 0.03125, 0.01), "zero_point": o.pick(0, 3)}]
    if kind == "axis" and a.ndim:
        return [{"axis": int(axis), "symmetric": o.chance(0.5), **(one if o.chance(0.5) else {})}]
    if kind == "channels" and a.ndim:
        ranges = [{"rmin": -0.25 * (i + 1), "rmax": 0.5 + i} for i in range(a.shape[axis])]
        return [{"axis": int(axis), **one, **ranges[0]}, *ranges[1:]]
    return [one]


def override_activation(o):
    kind = o.pick("type", "range", "scale", "symmetric")
    if kind == "type":
        return [{"quant_type": o.pick(*WORDS[:4])}]
    if kind == "range":
        return [{"rmin": o.pick(-1.5, 0.0, -8.0), "rmax": o.pick(2.5, 0.125)}]
    if kind == "symmetric":
        return [{"symmetric": True}]
    return [{"quant_type": KIND[o.activation].name, "scale": o.pick(0.5, 0.03125, 0.01), "zero_point": o.pick(0, 100)}]


def draw_overrides(o, model, ranges):
    """At most one activation of another type: several mostly contradict one another."""
    read = {i for n in model.graph.node for i in n.input} - {n.input[1] for n in model.graph.node if n.op_type == "Pow"}
    constants = {w.name: w for w in model.graph.initializer if w.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16) and w.name in read}
    values = sorted(n for n in ranges if n not in constants)
    one_scale = {n.input[1] for n in model.graph.node if len(n.input) > 2} | {n.input[0] for n in model.graph.node}
    asked = {n: override_constant(o, constants[n], n in one_scale or o.opset < 13) for n in o.sample(constants)[:3]} if constants else {}
    for n in o.sample(values)[:2]:
        asked[n] = override_activation(o)
    wide = {d.get("quant_type", "") for v in asked.values() for d in v} - {"QUInt8", "QInt8", ""}
    o.contrib |= bool(wide) and o.opset < 21
    return asked


def fixed(o, model, asked):
    """With the conversions of ONNX Runtime's fixer, which needs the type of every activation and converts another symmetry, too."""
    constants = {w.name for w in model.graph.initializer}
    plain = {n: [{"quant_type": KIND[o.activation].name, **d} if n not in constants else d for d in v] for n, v in asked.items()}
    symmetric = {n: d.pop("symmetric") for n, v in plain.items() for d in v if n not in constants and "symmetric" in d}
    out = with_fixer(model, plain, o.activation)
    for n, s in symmetric.items():
        out[n][0]["symmetric"] = s
    return out


def ask(o, model, ranges, folder):
    """Options of the command, and those of ONNX Runtime's quantizer."""
    args, extra = flags(o.weight, o.activation, o.per_channel, o.symmetric), {}
    if o.symmetric is not None:
        extra.update(WeightSymmetric=o.symmetric, ActivationSymmetric=o.symmetric)
    if o.reduce:
        args.append("--reduce-range")
        extra["reduce"] = True
    asked = draw_overrides(o, model, ranges) if o.some == "overrides" else {}
    if o.contrib:
        args.append("--contrib-qdq")
        extra["UseQDQContribOps"] = True  # of several overrides ONNX Runtime looks at the first one's type only
    left = o.sample(n.name for n in model.graph.node) if o.some == "exclude" else []
    if o.qnn:  # whose scale has a type of the EP's own: test_qdq.py
        left += [n.name for n in model.graph.node if n.op_type == "LayerNormalization"]
    if left:
        extra["exclude"] = left
        args += [a for n in extra["exclude"] for a in ("--exclude", n)]
    if o.some == "op_types":
        extra["op_types"] = o.sample({n.op_type for n in model.graph.node})
        args += [a for n in extra["op_types"] for a in ("--op-type", n)]
    if asked:
        (folder / "asked.json").write_text(json.dumps({**asked, "add_qtype_converts": o.converts}))
        args += ["--overrides", folder / "asked.json"]
        extra["TensorQuantOverrides"] = fixed(o, model, asked) if o.converts else ort_overrides(asked)
    if o.qnn:
        args += ["--ep", "qnn", "--no-verify-target"]
        symmetric = True if o.symmetric is None and o.weight == "int4" else o.symmetric  # signed types are, all of them
        c = get_qnn_qdq_config(model, None, activation_type=KIND[o.activation], weight_type=KIND[o.weight], per_channel=o.per_channel,
                               weight_symmetric=symmetric, activation_symmetric=bool(o.symmetric),
                               op_types_to_quantize=extra.get("op_types"), nodes_to_exclude=extra.get("exclude"),
                               init_overrides=extra.get("TensorQuantOverrides"), add_qtype_converts=False)
        extra = {"op_types": c.op_types_to_quantize, "ForceQuantizeNoInputCheck": False, **c.extra_options, **extra, "TensorQuantOverrides": c.extra_options["TensorQuantOverrides"]}
    for d in [d for v in extra.get("TensorQuantOverrides", {}).values() for d in v]:
        d.update({k: d[k].astype("e" if o.half else "f") for k in ("scale", "rmin", "rmax") if k in d})
    return args, extra


def serves_nobody(model):
    """Integers for inputs alone, or none: winml refuses."""
    made = {n.output[0]: n for n in model.graph.node}
    given = {i.name for i in model.graph.input}
    dequantized = [made.get(n.input[0]) for n in model.graph.node if n.op_type == "DequantizeLinear"]
    return all(n is not None and n.input[0] in given for n in dequantized)


def contradiction(quantize, o, model, ranges, folder, why):
    args = [*flags(o.weight, o.activation, o.per_channel, o.symmetric), "--overrides", folder / "asked.json"]
    args += ["--contrib-qdq"] if o.contrib else []
    assert "is wanted as" in quantize(model, ranges, *args, code=2).err, why


@pytest.mark.parametrize("seed", SEEDS)
def test_seed(quantize, tmp_path, seed):
    o = Options(seed)
    model = generate(seed, opset=o.opset, dtype="e" if o.half else "f")
    plain = hoist(model)
    ranges = qdq_models.ranges_of(plain) if o.measured else made_up(plain, o.rng)
    try:
        args, extra = ask(o, plain, ranges, tmp_path)
    except ValueError as e:  # of neighbours in several types
        return contradiction(quantize, o, model, ranges, tmp_path, str(e))
    want = ort_quantize(plain, ranges, o.weight, o.activation, o.per_channel, quantizer=Better, **extra)
    if serves_nobody(want):
        assert "nothing can be quantised" in quantize(model, ranges, *args, code=1).err
        return
    got, report = quantize(model, ranges, *args)
    left = leave_exponents(plain, copy.deepcopy(got), copy.deepcopy(want))
    assert_same(*left)
    if left == [got, want]:
        run_both(plain, got, want)
