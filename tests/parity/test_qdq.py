"""Static quantisation against ONNX Runtime's own quantizer: the same model and the same ranges must give the same nodes,
names, scales, zero points and integers, bit for bit."""
import copy
import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import minilm
import qdq_models
from conftest import DEPS, WINML, model as conftest_model
from qdq_oracle import Better

CODE = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "uint16": TensorProto.UINT16, "int16": TensorProto.INT16,
        "uint4": TensorProto.UINT4, "int4": TensorProto.INT4}
PAIRS = [(w, a) for w in ("uint8", "int8", "uint16", "int16") for a in ("uint8", "int8", "uint16", "int16") if (w, a) != ("uint8", "int8")]


def write_ranges(path, ranges):
    def number(v):
        return {"data": float(v), "dtype": str(v.dtype), "CLS": "numpy.array"}
    data = {n: {"lowest": number(a), "highest": number(b), "CLS": "TensorData"} for n, (a, b) in ranges.items()}
    path.write_text(json.dumps({"CLS": "TensorsData", "data": data, "smooth_quant": False,
                                "calibration_method": {"CLS": "CalibrationMethod", "value": "CalibrationMethod.MinMax"}}))


def ort_quantize(model, ranges, weight="uint8", activation="uint8", per_channel=False, reduce=False, exclude=(), op_types=None, quantizer=None, **extra):
    from onnxruntime.quantization.calibrate import CalibrationMethod, TensorData, TensorsData
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
    model = copy.deepcopy(model)
    p = model.metadata_props.add()  # types are there already
    p.key, p.value = "onnx.infer", "onnxruntime.quant"
    op_types = op_types or list({n.op_type for n in model.graph.node} - {"Cast", "QuantizeLinear", "DequantizeLinear"})
    data = TensorsData(CalibrationMethod.MinMax, {n: TensorData(lowest=a, highest=b) for n, (a, b) in ranges.items()})
    options = {"ForceQuantizeNoInputCheck": True, "ActivationSymmetric": False, **extra}
    return (quantizer or QDQQuantizer)(model, per_channel, reduce, CODE[weight], CODE[activation], data, [], list(exclude), op_types, options).quantize_model()


def attributes(n):
    out = []
    for a in n.attribute:
        v = helper.get_attribute_value(a)
        out.append((a.name, parts(v) if a.type == onnx.AttributeProto.GRAPH else repr(v)))
    return sorted(out, key=str)


def parts(graph):
    """Everything but orders; constants by their bytes."""
    nodes = {n.name: (n.op_type, n.domain, list(n.input), list(n.output), attributes(n)) for n in graph.node}
    assert len(nodes) == len(graph.node), "two nodes of one name"
    weights = {}
    for t in graph.initializer:
        a = numpy_helper.to_array(t)
        weights[t.name] = (t.data_type, list(t.dims), a.tobytes())
    return {"nodes": nodes, "weights": weights, "inputs": [i.name for i in graph.input], "outputs": [o.name for o in graph.output]}


def assert_same(got, want):
    got, want = parts(got.graph), parts(want.graph)
    assert got["inputs"] == want["inputs"] and got["outputs"] == want["outputs"]
    for kind in ("nodes", "weights"):
        g, w = got[kind], want[kind]
        assert sorted(g) == sorted(w), f"{kind}: too many {sorted(g.keys() - w.keys())}, missing {sorted(w.keys() - g.keys())}"
        for n in w:
            assert g[n] == w[n], f"{kind} {n}: {show(g[n])}, ONNX Runtime: {show(w[n])}"


def show(v):
    if isinstance(v[0], int):
        a = np.frombuffer(v[2], helper.tensor_dtype_to_np_dtype(v[0]))
        return v[:2], a[:40].tolist()
    return v


@pytest.fixture
def quantize(winml, tmp_path):
    """The model as winml quantises it, and what the report says."""
    def run(model, ranges=None, *args, code=0):
        onnx.save(model, tmp_path / "in.onnx")
        if ranges is not None:
            write_ranges(tmp_path / "ranges.json", ranges)
            args = (*args, "--calibration-cache", tmp_path / "ranges.json")
        r = winml("quantize", "-m", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--overwrite", "--no-accuracy", "--format", "json", *args)
        assert r.code == code, r.err
        if code:
            return r
        out = onnx.load(tmp_path / "out.onnx")
        onnx.checker.check_model(out, full_check=True)
        return out, r.json
    return run


def runs(model, seed=7, optimised=True):
    """Answers of a model on the CPU, and that it loads with ORT's optimisations as well."""
    import onnxruntime as ort
    if optimised:
        ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    o = ort.SessionOptions()
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    s = ort.InferenceSession(model.SerializeToString(), o, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    return s.run(None, {i.name: qdq_models.random_like(i, rng) for i in model.graph.input})


def flags(weight, activation, per_channel, symmetric):
    out = ["--weight-type", weight, "--activation-type", activation]
    if per_channel:
        out.append("--per-channel")
    if symmetric is not None:
        out.append("--symmetric" if symmetric else "--no-symmetric")
    return out


def both(quantize, model, ranges, weight="uint8", activation="uint8", per_channel=False, symmetric=None, optimised=True):
    extra = {} if symmetric is None else {"WeightSymmetric": symmetric, "ActivationSymmetric": symmetric}
    want = ort_quantize(model, ranges, weight, activation, per_channel, quantizer=Better, **extra)
    got, report = quantize(model, ranges, *flags(weight, activation, per_channel, symmetric))
    assert_same(got, want)
    runs(got, optimised=optimised)
    return got, report


@pytest.mark.parametrize("make", qdq_models.ALL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("weight,activation,per_channel,symmetric", [
    ("uint8", "uint8", False, None), ("int8", "uint8", True, None), ("uint8", "uint16", True, False), ("int16", "int16", False, True)])
def test_every_rule(quantize, make, weight, activation, per_channel, symmetric):
    model = make()
    both(quantize, model, qdq_models.ranges_of(model), weight, activation, per_channel, symmetric)


@pytest.mark.parametrize("weight,activation", PAIRS)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("symmetric", [None, False, True])
def test_every_pair_of_types(quantize, weight, activation, per_channel, symmetric):
    for make in qdq_models.conv_relu, qdq_models.gemm:
        model = make()
        both(quantize, model, qdq_models.ranges_of(model), weight, activation, per_channel, symmetric)


def ort_overrides(asked):
    """ORT's form in Python from its form in JSON."""
    from onnxruntime.quantization import QuantType
    def one(d):
        out = {}
        for k, v in d.items():
            if k == "quant_type":
                v = getattr(QuantType, v)
            elif k == "convert":
                v = one(v)
            elif k == "recv_nodes":
                v = set(v)
            elif k in ("rmin", "rmax", "scale"):
                v = np.array(v, np.float32)
            elif k == "zero_point":
                v = np.array(v)
            out[k] = v
        if "zero_point" in out:
            out["zero_point"] = out["zero_point"].astype(helper.tensor_dtype_to_np_dtype(out["quant_type"].tensor_type))
        return out
    return {t: [one(d) for d in v] for t, v in asked.items()}


def with_fixer(model, asked, activation="uint8"):
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization.execution_providers.qnn.mixed_precision_overrides_utils import MixedPrecisionTensorQuantOverridesFixer as Fixer
    from onnxruntime.quantization.tensor_quant_overrides import TensorQuantOverridesHelper
    kind = getattr(QuantType, {"uint8": "QUInt8", "uint16": "QUInt16", "int8": "QInt8", "int16": "QInt16"}[activation])
    o = TensorQuantOverridesHelper(ort_overrides(asked))
    Fixer.create_from_model(o, model, kind).apply(kind, False)
    return o.get_dict()


OVERRIDES = {
    "type_and_range": {"w1": [{"quant_type": "QInt8"}], "x": [{"rmin": -2.5, "rmax": 1.25}], "t1": [{"symmetric": True}]},
    "channels": {"w1": [{"axis": 0, "quant_type": "QInt16", "reduce_range": True}], "w2": [{"axis": -4, "symmetric": False}]},
    "every_channel": {"w2": [{"axis": 0, "rmin": -1.0 - i, "rmax": 2.0 + i} for i in range(4)]},
    "scales": {"w1": [{"quant_type": "QInt8", "scale": 0.03125, "zero_point": 3}], "t2": [{"quant_type": "QUInt8", "scale": 0.1, "zero_point": 100}],
               "w3": [{"quant_type": "QUInt8", "axis": 0, "scale": 0.02 + i, "zero_point": 7 * i} for i in range(4)]},
    "bias_as_weight": {"b1": [{"quant_type": "QInt16"}], "b3": [{"axis": 0, "quant_type": "QInt8"}]},
    "convert_all": {"t1": [{"quant_type": "QUInt16", "convert": {"quant_type": "QUInt8"}}]},
    "convert_some": {"x": [{"convert": {"quant_type": "QUInt16", "recv_nodes": ["conv_bias"], "symmetric": True}}]},
}


@pytest.mark.parametrize("case", OVERRIDES)
def test_overrides(quantize, tmp_path, case):
    model = qdq_models.conv()
    ranges = qdq_models.ranges_of(model)
    asked = {**OVERRIDES[case], "add_qtype_converts": False}
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    want = ort_quantize(model, ranges, quantizer=Better, TensorQuantOverrides=ort_overrides(OVERRIDES[case]))
    got, _ = quantize(model, ranges, "--overrides", tmp_path / "asked.json")
    assert_same(got, want)
    runs(got)


MIXED = {
    "one": (qdq_models.mixed, {"op4_out": [{"quant_type": "QUInt16"}]}),
    "two_neighbours": (qdq_models.mixed, {"op4_out": [{"quant_type": "QUInt16"}], "op5_out": [{"quant_type": "QUInt16"}]}),
    "input": (qdq_models.mixed, {"x": [{"quant_type": "QUInt16"}]}),
    "output": (qdq_models.mixed, {"op7_out": [{"quant_type": "QInt16"}]}),
    "output_that_is_read": (qdq_models.outputs, {"inner": [{"quant_type": "QUInt16"}]}),
    "moved": (qdq_models.matmul, {"t4": [{"quant_type": "QUInt16"}]}),
    "softmax": (qdq_models.matmul, {"t6": [{"quant_type": "QUInt16"}]}),
    "beside_relu": (qdq_models.conv_relu, {"shared": [{"quant_type": "QUInt16"}]}),
}


@pytest.mark.parametrize("case", MIXED)
def test_mixed_precision(quantize, tmp_path, case):
    make, asked = MIXED[case]
    model = make()
    ranges = qdq_models.ranges_of(model)
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    got, _ = quantize(model, ranges, "--overrides", tmp_path / "asked.json")
    assert_same(got, ort_quantize(model, ranges, quantizer=Better, TensorQuantOverrides=with_fixer(model, asked)))
    runs(got)


@pytest.mark.parametrize("make", qdq_models.ALL + [qdq_models.mixed], ids=lambda f: f.__name__)
@pytest.mark.parametrize("weight,activation,per_channel", [("uint8", "uint8", False), ("uint8", "uint16", False), ("int8", "uint16", True), ("int8", "int16", True)])
def test_qnn(quantize, make, weight, activation, per_channel):
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config
    kind = {"uint8": QuantType.QUInt8, "uint16": QuantType.QUInt16, "int8": QuantType.QInt8, "int16": QuantType.QInt16}
    model = make()
    ranges = qdq_models.ranges_of(model)
    c = get_qnn_qdq_config(model, None, activation_type=kind[activation], weight_type=kind[weight], per_channel=per_channel)
    overrides = c.extra_options.setdefault("TensorQuantOverrides", {})
    for n in model.graph.node:  # the EP leaves the node to the CPU otherwise
        if n.op_type == "LayerNormalization" and (weight, activation) == ("int8", "uint16"):
            overrides[n.input[1]] = [{"quant_type": QuantType.QUInt8, "symmetric": False}]
    want = ort_quantize(model, ranges, weight, activation, per_channel, op_types=c.op_types_to_quantize, quantizer=Better,
                        ForceQuantizeNoInputCheck=False, **c.extra_options)
    got, _ = quantize(model, ranges, *flags(weight, activation, per_channel, None), "--ep", "qnn", "--no-verify-target")
    assert_same(got, want)
    runs(got)


@pytest.mark.parametrize("weight,asked", [("int8", "QUInt8"), ("uint8", "QInt8"), ("int8", "QUInt4")])
def test_qnn_with_another_type_of_one_weight(quantize, tmp_path, weight, asked):
    """Whether weights are symmetric is decided by the type that most have."""
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config
    model = qdq_models.conv()
    ranges, overrides = qdq_models.ranges_of(model), {"w1": [{"quant_type": asked}]}
    (tmp_path / "asked.json").write_text(json.dumps(overrides))
    kind = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}[weight]
    c = get_qnn_qdq_config(model, None, weight_type=kind, init_overrides=ort_overrides(overrides))
    want = ort_quantize(model, ranges, weight, op_types=c.op_types_to_quantize, quantizer=Better, ForceQuantizeNoInputCheck=False, **c.extra_options)
    got, _ = quantize(model, ranges, *flags(weight, "uint8", False, None), "--ep", "qnn", "--no-verify-target", "--overrides", tmp_path / "asked.json")
    assert_same(got, want)


HALF = [qdq_models.conv, qdq_models.conv_relu, qdq_models.gemm, qdq_models.norms, qdq_models.moves, qdq_models.shared, qdq_models.choices]


@pytest.mark.parametrize("make", HALF, ids=lambda f: f.__name__)
@pytest.mark.parametrize("weight,activation,per_channel", [("uint8", "uint8", False), ("int8", "uint16", True)])
def test_half_models(quantize, make, weight, activation, per_channel):
    """ORT's optimiser makes a QLinearConcat of half scales, which its own check then refuses: loaded without it."""
    model = make(dtype="e")
    both(quantize, model, qdq_models.ranges_of(model), weight, activation, per_channel, optimised=make is not qdq_models.choices)


@pytest.fixture(scope="module", params=["ocr-cls", "ocr-rec"])
def real_model(request, tmp_path_factory):
    """A float model in opset 21 with its types and ranges; constants are initializers there: ORT's quantizer would take
    Constant nodes for activations."""
    path = tmp_path_factory.mktemp("real") / "m.onnx"
    subprocess.run([WINML, "optimize", "-m", conftest_model(request.param), "-o", path, "--opset", "21", "--no-verify"], check=True, capture_output=True)
    model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    x = model.graph.input[0]
    shape = [d.dim_value if d.dim_value > 0 else s for d, s in zip(x.type.tensor_type.shape.dim, (1, 3, 48, 96))]
    feeds = [{x.name: np.random.default_rng(i).random(shape).astype("f") * 2 - 1} for i in range(2)]
    return model, qdq_models.ranges_of(model, feeds)


@pytest.mark.parametrize("weight,activation,per_channel", [("uint8", "uint8", False), ("int8", "uint16", True), ("uint8", "uint16", False)])
def test_real_models(quantize, real_model, weight, activation, per_channel):
    got, report = both(quantize, *real_model, weight, activation, per_channel)
    assert report["qdq_nodes_inserted"] > 100


@pytest.fixture(scope="module")
def sentence_model():
    """MiniLM of 16 tokens, in opset 21."""
    folder = f"{DEPS}/models/minilm"
    if not os.path.exists(f"{folder}/model.safetensors"):
        pytest.skip("the model minilm could not be fetched")
    model = minilm.build(folder, 16)
    model.opset_import[0].version = 21  # what it is made of did not change since 17
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    rng, ones = np.random.default_rng(3), np.ones((1, 16), np.int64)
    feeds = [{"input_ids": rng.integers(1000, 20000, (1, 16)), "attention_mask": ones, "token_type_ids": ones - 1} for _ in range(2)]
    return model, qdq_models.ranges_of(model, feeds)


@pytest.mark.parametrize("weight,activation,per_channel", [("uint8", "uint8", False), ("int8", "uint16", True)])
def test_sentences(quantize, sentence_model, weight, activation, per_channel):
    """Equal but for the mask, which no sample shows and ORT therefore forgets: test_qdq_better.py."""
    model, ranges = sentence_model
    got, _ = quantize(model, ranges, *flags(weight, activation, per_channel, None))
    want = ort_quantize(model, ranges, weight, activation, per_channel)
    made = {n.output[0]: n for n in model.graph.node}
    scores = {n.input[0] for n in model.graph.node if n.op_type == "Softmax"}
    masks = {made[s].input[1] for s in scores}
    apart = {f"{v}_{k}" for v in scores | masks | {"least"} for k in ("scale", "zero_point", "quantized")}
    for m in got, want:
        kept = [w for w in m.graph.initializer if w.name not in apart]
        del m.graph.initializer[:]
        m.graph.initializer.extend(kept)
    assert_same(got, want)
    assert len(scores) == 6 and len(masks) == 1


@pytest.mark.parametrize("weight,activation,per_channel", [("int4", "uint8", False), ("uint4", "uint8", True), ("int4", "uint16", True), ("uint4", "int16", False)])
@pytest.mark.parametrize("make", [qdq_models.conv, qdq_models.gemm, qdq_models.matmul], ids=lambda f: f.__name__)
def test_four_bits(quantize, make, weight, activation, per_channel):
    model = make()
    both(quantize, model, qdq_models.ranges_of(model), weight, activation, per_channel)


@pytest.mark.parametrize("make", qdq_models.ALL, ids=lambda f: f.__name__)
def test_contrib_operators(quantize, make):
    """In an older opset ORT's quantizer takes QuantizeLinear of com.microsoft for 16 bits, and so does --contrib-qdq."""
    model = make(opset=17)
    ranges = qdq_models.ranges_of(model)
    got, _ = quantize(model, ranges, *flags("uint8", "uint16", False, None), "--contrib-qdq")
    assert_same(got, ort_quantize(model, ranges, "uint8", "uint16", quantizer=Better))
    runs(got)
    assert got.opset_import[0].version == 17


@pytest.mark.parametrize("make", [qdq_models.conv_relu, qdq_models.matmul, qdq_models.moves], ids=lambda f: f.__name__)
@pytest.mark.parametrize("opset", [13, 17])
def test_opset_is_raised(quantize, make, opset):
    model, raised = make(opset=opset), make(opset=21)
    ranges = qdq_models.ranges_of(raised)
    got, _ = quantize(model, ranges, *flags("uint8", "uint16", False, None))
    assert got.opset_import[0].version == 21
    want = ort_quantize(raised, ranges, "uint8", "uint16")
    assert parts(got.graph)["weights"].items() >= {n: w for n, w in parts(want.graph)["weights"].items() if "scale" in n or "quantized" in n}.items()
    runs(got)


@pytest.mark.parametrize("extra", [{"reduce": True}, {"exclude": ["conv_plain"]}, {"op_types": ["Conv"]}, {"op_types": ["Relu", "Conv"]}], ids=str)
def test_choices(quantize, extra):
    model = qdq_models.conv() if "exclude" in extra else qdq_models.conv_relu()
    ranges = qdq_models.ranges_of(model)
    args = ["--reduce-range"] if "reduce" in extra else []
    for kind, option in ("exclude", "--exclude"), ("op_types", "--op-type"):
        for v in extra.get(kind, []):
            args += [option, v]
    got, _ = quantize(model, ranges, *args)
    assert_same(got, ort_quantize(model, ranges, **extra))
    runs(got)


def test_cache_of_ranges(quantize, tmp_path):
    """Written once, read the next time and by ONNX Runtime: the same model comes out."""
    from onnxruntime.quantization.calibrate import load_tensors_data
    model = qdq_models.conv()
    cache = tmp_path / "cache.json"
    first, report = quantize(model, None, "--calibration-cache", cache)
    again, report2 = quantize(model, None, "--calibration-cache", cache, "--seed", "1")
    assert first.SerializeToString() == again.SerializeToString()
    assert report["dataset"] != report2["dataset"] and "cache.json" in report2["dataset"]
    known = load_tensors_data(cache)
    assert_same(first, ort_quantize(model, {n: known[n].range_value for n in known.keys()}))
