"""Where the quantizer of ONNX Runtime gives a wrong result, an exception or nothing: what winml does instead. Judged by
answers: quantised against float, both run by ONNX Runtime. docs/differences.md lists these cases."""
import json
import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import qdq_models
from conftest import bug
from qdq_oracle import Better
from qdq_models import Maker, feeds_of, ranges_of
from test_qdq import PAIRS, assert_same, flags, ort_quantize, quantize, runs, write_ranges  # noqa: F401

OFF = "ORT_DISABLE_ALL"


def session(model, level=OFF):
    import onnxruntime as ort
    o = ort.SessionOptions()
    o.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    return ort.InferenceSession(model if isinstance(model, (str, bytes)) else model.SerializeToString(), o, providers=["CPUExecutionProvider"])


def answers(model, feeds, level=OFF):
    s = session(model, level)
    return [s.run(None, f) for f in feeds]


def largest_error(model, quantised, feeds, output=0):
    a, b = answers(model, feeds), answers(quantised, feeds)
    return max(np.abs(x[output].astype("d") - y[output].astype("d")).max() for x, y in zip(a, b))


def sqnr(model, quantised, feeds, output=0):
    a, b = answers(model, feeds), answers(quantised, feeds)
    a, b = (np.concatenate([v[output].ravel() for v in r]).astype("d") for r in (a, b))
    return 10 * np.log10((a ** 2).sum() / max(((a - b) ** 2).sum(), 1e-300))


def scale_of(model, name):
    return float(next(numpy_helper.to_array(w) for w in model.graph.initializer if w.name == name))


def notes(report):
    return " ".join(n["subject"] + ": " + n["text"] for n in report.get("notes", []))


def by_name(model):
    return {w.name: numpy_helper.to_array(w) for w in model.graph.initializer}


@pytest.mark.parametrize("name", ["b42_bias_overflow_conv", "b42_bias_overflow_gemm", "tiny_weight_big_bias"])
@pytest.mark.parametrize("weight,activation", PAIRS)
@pytest.mark.parametrize("per_channel", [False, True])
def test_bias_that_does_not_fit(quantize, name, weight, activation, per_channel):
    model = onnx.load(bug(name))
    got, report = quantize(model, None, *flags(weight, activation, per_channel, None))
    rng = np.random.default_rng(1)
    feeds = [{i.name: rng.random([d.dim_value for d in i.type.tensor_type.shape.dim]).astype("f") for i in model.graph.input} for _ in range(3)]
    step = max(scale_of(got, f"{o.name}_scale") for o in got.graph.output)
    assert largest_error(model, got, feeds) <= 2 * step
    assert "'w'" in notes(report) and "bias 'b'" in notes(report)


def test_bias_that_does_not_fit_is_lost_by_ort():
    model = onnx.shape_inference.infer_shapes(onnx.load(bug("b42_bias_overflow_conv")))
    feeds = feeds_of(model)
    got = ort_quantize(model, ranges_of(model))
    assert largest_error(model, got, feeds) > 1


@pytest.mark.parametrize("weight,activation,per_channel", [("int8", "uint8", True), ("uint8", "uint8", False), ("int8", "int16", True)])
def test_bias_that_does_not_fit_beside_one_channel(quantize, weight, activation, per_channel):
    """Of one channel the least scale is computed as of several, in floats."""
    m = Maker(41)
    moved = m.node("Slice", [m.input("x", [4, 8]), *[m.weight(n, values=np.array([v])) for n, v in (("from", 1), ("to", 4), ("axes", 1))]])
    model = m.build(m.node("Gemm", [moved, m.weight("w", 3, 1, scale=1e-3), m.weight("b", values=np.float32([9876.54]))]))
    ranges = {**ranges_of(model), "x": (np.float32(-0.011), np.float32(0.013))}
    got, report = quantize(model, ranges, *flags(weight, activation, per_channel, None))
    assert "'w'" in notes(report)
    assert_same(got, ort_quantize(model, ranges, weight, activation, per_channel, quantizer=Better))


def test_output_that_is_cut_later(quantize):
    """The range of what Relu and Clip read is that of their results, but not where all of it is seen."""
    m = Maker(42)
    y = m.node("MatMul", [m.input("x", [4, 8]), m.weight("w", 8, 8)])
    model = m.build(m.node("Relu", [y]), y)
    feeds = feeds_of(model)
    got, _ = quantize(model, ranges_of(model))
    assert sqnr(model, got, feeds, 0) > 30 and sqnr(model, got, feeds, 1) > 30
    assert sqnr(model, ort_quantize(model, ranges_of(model)), feeds, 1) < 10


def test_what_a_relu_and_a_branch_read(quantize):
    m = Maker(43)
    y = m.node("MatMul", [m.input("x", [2, 4]), m.weight("w", 4, 4)])
    sides = [helper.make_graph([helper.make_node(op, [y], [op], op)], op, [], [helper.make_tensor_value_info(op, m.real(), [2, 4])]) for op in ("Neg", "Abs")]
    model = m.build(m.node("Relu", [y]), m.node("If", [m.input("cond", [], TensorProto.BOOL)], then_branch=sides[0], else_branch=sides[1]))
    feeds = [f for cond in (False, True) for f in feeds_of(model, cond=np.array(cond))]
    ranges = ranges_of(model, feeds)
    got, _ = quantize(model, ranges)
    assert_same(got, ort_quantize(model, ranges, quantizer=Better))
    assert sqnr(model, got, feeds, 1) > 30
    with pytest.raises(Exception, match="not output of any previous nodes|Invalid model|INVALID"):
        runs(ort_quantize(model, ranges))


@pytest.mark.parametrize("name", ["b43_transposed_conv_channels", "b43_transposed_conv_channels_group2"])
@pytest.mark.parametrize("weight,activation", [("uint8", "uint8"), ("int8", "uint16"), ("int8", "int8")])
def test_channels_of_transposed_convolutions(quantize, name, weight, activation):
    model = onnx.load(bug(name))
    error = {}
    for per_channel in False, True:
        got, report = quantize(model, None, *flags(weight, activation, per_channel, None))
        error[per_channel] = -sqnr(model, got, feeds_of(model, 8, unit=True))
        assert not notes(report)
    assert error[True] <= error[False] and error[False] < -25
    dq = next(n for n in got.graph.node if n.input[0].endswith("w_quantized"))
    assert helper.get_attribute_value(dq.attribute[0]) == 1


@pytest.mark.parametrize("weight,activation,per_channel", [("uint8", "uint8", False), ("int8", "uint16", True)])
def test_names_that_are_taken(quantize, weight, activation, per_channel):
    model = onnx.load(bug("b44_name_collision"))
    got, _ = quantize(model, None, *flags(weight, activation, per_channel, None))
    names = [o for n in got.graph.node for o in n.output] + [w.name for w in got.graph.initializer] + [i.name for i in got.graph.input]
    assert len(names) == len(set(names))
    assert len({n.name for n in got.graph.node}) == len(got.graph.node)
    assert {n.name for n in model.graph.node if n.name and n.op_type != "Relu"} <= {n.name for n in got.graph.node}
    assert [o.name for o in got.graph.output] == [o.name for o in model.graph.output]
    assert sqnr(model, got, feeds_of(model, unit=True)) > 25


def test_what_is_quantised_already(quantize):
    r = quantize(onnx.load(bug("b38_int8_weight_stays")), None, code=1)
    assert "quantised already" in r.err
    for axis in 0, 1:
        model = onnx.load(bug(f"b74_blocked_int4_axis{axis}"))
        got, report = quantize(model, None, "--samples", "200")
        assert "quantised already" in notes(report)
        kept = [n for n in got.graph.node if n.op_type == "DequantizeLinear" and any(a.name == "block_size" for a in n.attribute)]
        assert len(kept) == 1 and sqnr(model, got, feeds_of(model, unit=True)) > 30


def test_a_quantised_part_is_left_alone(quantize):
    """DQ -> Transpose -> MatMul: ONNX Runtime's quantizer does not come back. The moved value has the scale that is there."""
    m = Maker(30)
    x = m.input("x", [3, 4])
    m.weight("w_int", values=m.rng.integers(-127, 128, (5, 4)).astype(np.int8))
    m.weight("w_s", values=np.float32(0.01)), m.weight("w_z", values=np.int8(0))
    w = m.node("DequantizeLinear", ["w_int", "w_s", "w_z"], ["w"])
    y = m.node("Gemm", [x, m.node("Transpose", [w], ["wt"]), m.weight("b", 5)])
    m.weight("q_s", values=np.float32(0.02)), m.weight("q_z", values=np.uint8(100))
    z = m.node("DequantizeLinear", [m.node("QuantizeLinear", [y, "q_s", "q_z"], ["q"]), "q_s", "q_z"], ["z"])
    model = m.build(m.node("Sigmoid", [z]))
    got, report = quantize(model, None)
    nodes = {n.output[0]: n for n in got.graph.node}
    assert list(nodes["wt_QuantizeLinear_Output"].input) == ["wt", "w_s", "w_z"]
    assert len([n for n in got.graph.node if n.op_type == "QuantizeLinear" and n.output[0] == "q"]) == 1
    assert list(nodes["q"].input) == [y, "q_s", "q_z"] and list(nodes["z"].input) == ["q", "q_s", "q_z"]
    assert np.isclose(by_name(got)["b_quantized_scale"][0], by_name(got)["x_scale"] * np.float32(0.01))
    assert sqnr(model, got, feeds_of(model, unit=True)) > 35


def test_branches_and_loops(quantize):
    model = onnx.load(bug("b33_captured_by_branch"))
    got, report = quantize(model, None)
    assert "in branches and loops stay" in notes(report)
    for cond in False, True:
        feeds = [{**f, "cond": np.array(cond)} for f in feeds_of(model, unit=True)]
        assert sqnr(model, got, feeds) > 30
    model = onnx.load(bug("loop_reads_outer"))
    got, _ = quantize(model, None, "--samples", "50")
    assert sqnr(model, got, feeds_of(model, 5, unit=True)) > 20


def test_roles_of_constants(quantize):
    model = onnx.load(bug("b39_constant_roles"))
    got, _ = quantize(model, None)
    assert [i.name for i in got.graph.input] == [i.name for i in model.graph.input]
    assert [o.name for o in got.graph.output] == [o.name for o in model.graph.output]
    assert by_name(got)["w"].dtype == np.float32
    feeds = feeds_of(model, unit=True)
    assert sqnr(model, got, feeds) > 30
    other = [{**f, "w": (by_name(model)["w"] * 0.5).astype("f")} for f in feeds]
    assert sqnr(model, got, other) > 30
    assert not np.allclose(answers(got, feeds)[0][0], answers(got, other)[0][0])


@pytest.mark.parametrize("args", [[], ["-p", "w8a16"], ["--per-channel", "--weight-type", "int8"], ["--contrib-qdq"]])
def test_half_models_load(quantize, args):
    model = onnx.load(bug("b72_half_model"))
    got, _ = quantize(model, None, *args)
    assert sqnr(model, got, feeds_of(model, unit=True)) > 25
    session(got, "ORT_ENABLE_ALL")


@pytest.mark.parametrize("args", [[], ["-p", "w8a16"], ["--per-channel"]])
def test_old_models(quantize, args):
    """Opset 9 and IR 3: no conversion knows it, so the nodes are those of com.microsoft."""
    model = onnx.load(bug("b69_ir_3_weights_are_inputs"))
    got, report = quantize(model, None, *args)
    assert [i.name for i in got.graph.input] == ["x"]
    assert {n.domain for n in got.graph.node if "quantizeLinear" in n.op_type} == {"com.microsoft"}
    assert sqnr(model, got, [{"x": f["x"]} for f in feeds_of(model, unit=True)]) > 30


def test_equal_names_and_sequences(quantize):
    got, _ = quantize(onnx.load(bug("b73_equal_node_names")), None)
    session(got)
    model = onnx.load(bug("b71_sequences"))
    got, _ = quantize(model, None)
    sequences = {"SplitToSequence", "SequenceInsert", "SequenceConstruct"}
    made = {o for n in got.graph.node if n.op_type in sequences for o in n.output}
    assert not [n for n in got.graph.node if "uantizeLinear" in n.op_type and set(n.input) & made]
    assert answers(got, feeds_of(model, unit=True))[0][0] is not None


def test_parameters_stay_float(quantize):
    got, _ = quantize(onnx.load(bug("b49_half_float_exceptions")), None)
    for n in got.graph.node:
        if n.op_type == "Resize":
            assert not any("uantize" in i for i in n.input[1:])
    m = Maker(31)
    x = m.input("x", [1, 3, 8, 8])
    old = m.node("Upsample", [x, m.weight("scales", values=np.float32([1, 1, 2, 2]))], mode="nearest")
    got, _ = quantize(m.build(m.node("Sigmoid", [old]), opset=9), None)
    assert next(n for n in got.graph.node if n.op_type == "Upsample").input[1] == "scales"


def test_range_of_numbers_keeps_its_length(quantize):
    m = Maker(32)
    x = m.input("n", [])
    r = m.node("Range", [m.weight("zero", values=np.float32(0)), x, m.weight("one", values=np.float32(1))])
    model = m.build(m.node("Sqrt", [m.node("Abs", [r])]))
    got, _ = quantize(model, {n: (np.float32(0), np.float32(1000)) for n in ["n", r, "t2", "t3"]})
    assert sorted(set(got.graph.node[0].input)) == ["n", "one", "zero"]
    assert answers(got, [{"n": np.array(999, "f")}])[0][0].shape == (999,)


def test_factor_of_a_bias(quantize):
    m = Maker(33)
    model = m.build(m.node("Gemm", [m.input("x", [3, 6]), m.weight("w", 6, 4), m.weight("b", 4, scale=5)], beta=0.5))
    feeds = feeds_of(model)
    ranges = ranges_of(model, feeds)
    assert sqnr(model, ort_quantize(model, ranges), feeds) < 10
    got, _ = quantize(model, ranges)
    assert sqnr(model, got, feeds) > 30
    assert {a.name: a.f for n in got.graph.node if n.op_type == "Gemm" for a in n.attribute} == {"beta": 1}


@pytest.mark.parametrize("activation, low, high", [("int8", -127, 127), ("uint8", -127.5, 127.5)])
def test_range_of_a_type_that_is_used_symmetrically(quantize, tmp_path, activation, low, high):
    """One-sided values get 7 bits of a symmetric type: more of the tail must go than the best range of 8 bits cuts off."""
    m = Maker(40)
    x = np.append(m.rng.pareto(3, 40_000), -0.01).astype("f")
    model = m.build(m.node("Sigmoid", [m.input("x", [x.size])]))
    np.savez(tmp_path / "data.npz", x=x[None])

    def scale(symmetric):
        args = flags("int8", activation, False, symmetric)
        return scale_of(quantize(model, None, "--method", "mse", "--calibration-data", tmp_path / "data.npz", *args)[0], "x_scale")

    def error(step):
        return ((np.clip(np.rint(x.astype("d") / step), low, high) * step - x) ** 2).sum()

    best = min(error(x.max() / high * share) for share in np.linspace(0.02, 1, 400))
    ends_of_8_bits = 255 * scale(False)
    assert error(scale(True)) <= 1.01 * best and error(ends_of_8_bits / high) > 1.04 * best


@pytest.mark.parametrize("shape", [[], [1], [1, 1], [1, 4], [3, 4], [3, 1]])
def test_shapes_of_a_gemm_bias(quantize, shape):
    m = Maker(34)
    model = m.build(m.node("Gemm", [m.input("x", [3, 6]), m.weight("w", 6, 4), m.weight("b", *shape)]))
    got, report = quantize(model, ranges_of(model), "--per-channel")
    assert sqnr(model, got, feeds_of(model)) > 30
    assert ("stays float" in notes(report)) == (shape == [3, 1])


def test_bias_that_is_a_weight_elsewhere(quantize):
    """As a bias it has 32 bits, as an operand of Add 8; ONNX Runtime takes the 8 for both."""
    m = Maker(35)
    c = m.node("Conv", [m.input("x", [1, 3, 5, 5]), m.weight("w", 3, 3, 1, 1), m.weight("b", 3, scale=0.01)])
    model = m.build(m.node("Add", [m.node("Transpose", [c], perm=[0, 2, 3, 1]), "b"]))
    got, _ = quantize(model, ranges_of(model))
    kinds = sorted(w.dtype.name for n, w in by_name(got).items() if n.startswith("b_quantized") and w.shape == (3,))
    assert kinds == ["int32", "uint8"]


@pytest.mark.parametrize("kind", ["mul", "mul_small", "where", "where_inf"])
@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("weight,activation", [("uint8", "uint8"), ("int16", "uint16")])
def test_masks(quantize, kind, shown, weight, activation):
    model = qdq_models.attention(kind)
    mask = np.float32([[1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]])
    feeds = feeds_of(model, mask=mask)
    ranges = ranges_of(model, feeds if shown else feeds_of(model, mask=np.ones((2, 6), "f")))
    ranges = {n: tuple(np.clip(v, np.finfo("f").min, np.finfo("f").max) for v in r) for n, r in ranges.items()}
    got, report = quantize(model, ranges, *flags(weight, activation, False, None))
    assert sqnr(model, got, feeds) > (26 if activation == "uint8" else 45)
    assert "mask" in notes(report)
    if shown and kind != "where_inf" and activation == "uint8":
        assert sqnr(model, ort_quantize(model, ranges, weight, activation), feeds) < 15


def test_exponents(quantize):
    """Symmetric unsigned integers have none for 2, but for 1.99997, and such a power of a negative number is NaN."""
    m = Maker(39)
    model = m.build(m.node("Pow", [m.input("x", [64]), m.weight("two", values=np.float32(2))]))
    feeds = feeds_of(model)
    ranges = ranges_of(model, feeds)
    assert sqnr(model, ort_quantize(model, ranges, "int16", "uint16", ActivationSymmetric=True), feeds) < 0
    for weight, activation in PAIRS:
        for symmetric in False, True:
            got, _ = quantize(model, ranges, *flags(weight, activation, False, symmetric))
            assert sqnr(model, got, feeds) > 35
            if activation not in ("uint8", "uint16") or not symmetric:
                assert_same(got, ort_quantize(model, ranges, weight, activation, ActivationSymmetric=symmetric))


def test_numbers_that_are_none(quantize):
    m = Maker(36)
    bad = m.rng.standard_normal((4, 4)).astype("f")
    bad[1, 2] = np.nan
    y = m.node("MatMul", [m.input("x", [2, 4]), m.weight("w", values=bad)])
    model = m.build(m.node("Relu", [m.node("MatMul", ["x", m.weight("v", 4, 4)])]), y)
    got, report = quantize(model, {"x": (np.float32(-3), np.float32(3)), y: (np.float32(-3), np.float32(3)), "t2": (np.float32(-9), np.float32(9)),
                                   "t3": (np.float32(0), np.float32(9))})
    assert "tensor 'w': it stays float: it holds NaN" in notes(report)
    assert "w" in by_name(got) and "v_quantized" in by_name(got)


def test_nothing_to_spread(quantize):
    """Ranges without width, weights of zeros and without elements: scale 1, zero point 0, as ONNX Runtime has it."""
    m = Maker(37)
    x = m.input("x", [2, 4])
    y = m.node("MatMul", [x, m.weight("w", values=np.zeros((4, 3), "f"))])
    e = m.node("Concat", [x, m.weight("none", values=np.zeros((0, 4), "f"))], axis=0)
    model = m.build(y, e)
    ranges = {n: (np.float32(0), np.float32(0)) for n in ["x", y, e]}
    got, _ = quantize(model, ranges)
    for name, w in by_name(got).items():
        assert not name.endswith("_scale") or w == 1
    runs(got)


def test_ranges_of_another_model(quantize):
    model = qdq_models.conv()
    r = quantize(model, {"x": (np.float32(0), np.float32(1))}, code=1)
    assert "lacks the range" in r.err and "'t1'" in r.err


def test_pairs_without_kernels(quantize):
    r = quantize(qdq_models.conv(), None, *flags("uint8", "int8", False, None), code=2)
    assert "int8" in r.err and "uint8 weights" in r.err


@pytest.mark.parametrize("text,message", [
    ('{"w1": [{"quant_typ": "QInt8"}]}', "'quant_typ' is no key"), ('{"w1": [{"quant_type": "QInt7"}]}', "QUInt8, QInt8"),
    ('{"w9": [{"quant_type": "QInt8"}]}', "'w9'"), ('{"w1": [{"scale": 1}]}', "scale and zero_point together"),
    ('{"w1": [{"axis": 7}]}', "no axis 7"), ('{"w1": [{"axis": 0}, {}, {}]}', "8 channels"), ('{"w1": [{"convert": {"quant_type": "QInt16"}}]}', "is a constant"),
    ('{"x": [{"axis": 0}]}', "no constant"), ('{"x": [{"convert": {"quant_type": "QUInt8"}}]}', "type that it has"),
    ('{"x": [{"convert": {"quant_type": "QInt16", "recv_nodes": ["nobody"]}}]}', "'nobody'"),
    ('{"nodes": {"*": {"excluded": true}}}', "'excluded' is no key"), ('{"x": [{"rmin": 2, "rmax": 1}]}', "above rmax"), ("[]", "an object is expected")])
def test_overrides_with_mistakes(quantize, tmp_path, text, message):
    (tmp_path / "asked.json").write_text(text)
    r = quantize(qdq_models.conv(), None, "--overrides", tmp_path / "asked.json", code=2)
    assert message in r.err


def test_rules_for_nodes_and_operators(quantize, tmp_path):
    (tmp_path / "asked.json").write_text(json.dumps({
        "nodes": {"conv_*wise": {"exclude": True}, "conv_plain": {"weight_type": "int16", "per_channel": True}},
        "op_types": {"Conv": {"weight_type": "int8"}, "Sigmoid": {"activation_type": "uint16"}}, "tensors": {"t[2]": {"rmin": -8, "rmax": 8}}}))
    got, _ = quantize(qdq_models.conv(), None, "--overrides", tmp_path / "asked.json")
    w = by_name(got)
    assert w["w1_quantized"].dtype == np.int8 and w["w1_scale"].shape == ()
    assert w["w2_quantized"].dtype == np.int16 and w["w2_scale"].shape == (4,)
    assert "w3" in w and "w3_quantized" not in w
    assert np.isclose(w["t2_scale"], 16 / 255)


def test_constants_of_nodes_are_weights(quantize):
    model = qdq_models.conv()
    ranges = ranges_of(model)
    plain, _ = quantize(model, ranges)
    nodes = [helper.make_node("Constant", [], [w.name], f"const_{w.name}", value=w) for w in model.graph.initializer]
    hidden = onnx.ModelProto()
    hidden.CopyFrom(model)
    del hidden.graph.initializer[:]
    kept = list(hidden.graph.node)
    del hidden.graph.node[:]
    hidden.graph.node.extend(nodes + kept)
    got, _ = quantize(hidden, ranges)
    assert_same(got, plain)


def test_size_and_time_of_a_large_weight(winml, tmp_path):
    """int8 weights: a quarter of the size, written from the source while it is mapped."""
    m = Maker(38)
    y = m.node("MatMul", [m.input("x", [1, 2048]), m.weight("w", 2048, 4096)])
    onnx.save(m.build(y), tmp_path / "m.onnx")
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "q.onnx", "--no-accuracy", "--samples", "1")
    assert r.code == 0, r.err
    assert os.path.getsize(tmp_path / "q.onnx") < 0.26 * os.path.getsize(tmp_path / "m.onnx")
