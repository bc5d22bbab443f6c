"""What a target says of a quantised model: how many nodes it takes, and which stay float because it refuses them as integers."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from conftest import ORT_LIBRARY, need_qnn, need_vnpu, no_leftovers

VNPU = ["--ep", "vnpu", "--device", "npu"]


def net(path, middle, size=16):
    """MatMul, the middle, MatMul; every node named after its operator."""
    rng = np.random.default_rng(3)
    weight = [numpy_helper.from_array(rng.standard_normal((size, size)).astype("f4"), f"w{i}") for i in (0, 1)]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["h0"], "first")]
    for i, op in enumerate(middle):
        nodes.append(helper.make_node(op, [f"h{i}"], [f"h{i + 1}"], f"{op}_{i}"))
    nodes.append(helper.make_node("MatMul", [f"h{len(middle)}", "w1"], ["y"], "last"))
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, size]) for n in ("x", "y")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:], weight), ir_version=8,
                                opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def quantize(winml, source, out, *more, code=0):
    r = winml("quantize", "-m", source, "-o", out, "-f", "json", *more)
    assert r.code == code, r.err
    return r.json


def floats_at(path, node):
    """Whether a node reads or writes values that have no integers at all."""
    m = onnx.load(path)
    n = next(n for n in m.graph.node if n.name == node)
    makes = {o: p.op_type for p in m.graph.node for o in p.output}
    reads = {i: p.op_type for p in m.graph.node for i in p.input}
    return [makes.get(n.input[0]) != "DequantizeLinear", reads.get(n.output[0]) != "QuantizeLinear"]


def test_all_is_taken(winml, tmp_path):
    need_vnpu()
    out = tmp_path / "q.onnx"
    t = quantize(winml, net(tmp_path / "m.onnx", ["Sigmoid"]), out, *VNPU)["target"]
    assert (t["status"], t["nodes"], t["left_in_float"], t["elsewhere"]) == ("asked", t["nodes_on_target"], [], [])
    assert t["ep"] == "VirtualNPUExecutionProvider" and t["boundary_qdq"] == 0
    assert t["nodes"] == len(onnx.load(out).graph.node)


def test_conversions_of_inputs_and_outputs_are_counted_apart(winml, tmp_path):
    need_vnpu()
    refuse = ["--ep-options", "refuse_ops=QuantizeLinear,DequantizeLinear"]
    t = quantize(winml, net(tmp_path / "m.onnx", []), tmp_path / "q.onnx", *VNPU, *refuse)["target"]
    assert t["boundary_qdq"] == 2 and t["elsewhere"] == []
    counted = sum(p["nodes"] for p in t["placement"])
    assert t["nodes"] == counted - 2


@pytest.mark.parametrize("refused, left", [("Erf", ["Erf_1"]), ("Erf,Sigmoid", ["Sigmoid_0", "Erf_1"]), ("Relu", ["Relu_2"])])
def test_what_is_refused_stays_float(winml, tmp_path, refused, left):
    need_vnpu()
    source, out = net(tmp_path / "m.onnx", ["Sigmoid", "Erf", "Relu"]), tmp_path / "q.onnx"
    j = quantize(winml, source, out, *VNPU, "--ep-options", f"refuse_ops={refused}")
    if refused == "Relu":  # the integers of its output cut off the same: it is not there to be refused
        assert j["target"]["left_in_float"] == [] and not any(n.op_type == "Relu" for n in onnx.load(out).graph.node)
        return
    assert [n["name"] for n in j["target"]["left_in_float"]] == left
    assert [n["name"] for n in j["target"]["elsewhere"]] == left
    judge.check(out)
    inner = [floats_at(out, n) for n in left]
    if len(left) == 2:  # between two that stay float there are no integers
        assert inner[0][1] and inner[1][0]
    assert j["accuracy"]["outputs"][0]["cosine"] > 0.98


def test_the_html_report_has_it(winml, tmp_path):
    need_vnpu()
    source, page = net(tmp_path / "m.onnx", ["Sigmoid", "Erf"]), tmp_path / "r.html"
    quantize(winml, source, tmp_path / "q.onnx", *VNPU, "--ep-options", "refuse_ops=Erf", "--report", page)
    text = page.read_text()
    assert "nodes on VirtualNPUExecutionProvider, simulated here" in text and "1 node refused as integers" in text and "Rules of" not in text


def test_the_options_that_switch_it_off(winml, tmp_path):
    need_vnpu()
    source, out = net(tmp_path / "m.onnx", ["Sigmoid", "Erf"]), tmp_path / "q.onnx"
    refuse = [*VNPU, "--ep-options", "refuse_ops=Erf,Sigmoid", "--overwrite"]
    t = quantize(winml, source, out, *refuse, "--no-float-refused")["target"]
    assert t["left_in_float"] == [] and sorted(n["op"] for n in t["elsewhere"]) == ["Erf", "Sigmoid"]
    assert floats_at(out, "Sigmoid_0") == [False, False]
    plain = out.read_bytes()
    t = quantize(winml, source, out, *refuse, "--no-verify-target")["target"]
    assert t["status"] == "not asked" and out.read_bytes() == plain


def test_a_value_between_that_had_no_range(winml, tmp_path):
    """With its Clip left float, what the Clip reads needs a range of its own, which nobody measured at first."""
    need_vnpu()
    path, out = tmp_path / "m.onnx", tmp_path / "q.onnx"
    net(path, ["Sigmoid", "Relu", "Erf"])
    m = onnx.load(path)
    clip = m.graph.node[2]
    clip.op_type, clip.name = "Clip", "cut"
    clip.input.append("least")
    m.graph.initializer.append(numpy_helper.from_array(np.float32(0.6), "least"))
    m.graph.node.append(helper.make_node("Neg", ["h1"], ["other"], "other"))
    m.graph.output.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, [4, 16]))
    onnx.save(m, path)
    j = quantize(winml, path, out, *VNPU, "--ep-options", "refuse_ops=Clip")
    assert [n["name"] for n in j["target"]["left_in_float"]] == ["cut"]
    judge.check(out)


def test_a_target_that_refuses_most_changes_nothing(winml, tmp_path):
    need_vnpu()
    source, out = net(tmp_path / "m.onnx", ["Sigmoid", "Erf", "Tanh"]), tmp_path / "q.onnx"
    t = quantize(winml, source, out, *VNPU, "--ep-options", "refuse_ops=Erf,Sigmoid,Tanh,MatMul")["target"]
    assert t["left_in_float"] == [] and t["refuses_most"]
    assert floats_at(out, "first") == [False, False]


@pytest.mark.parametrize("fault", ["fail@compile", "crash@compile", "crash@teardown"])
def test_a_target_that_breaks_costs_no_result(winml, tmp_path, fault):
    need_vnpu()
    source, out = net(tmp_path / "m.onnx", ["Erf"]), tmp_path / "q.onnx"
    t = quantize(winml, source, out, *VNPU, "--ep-options", f"fault={fault}")["target"]
    assert t["status"] == ("asked" if fault.endswith("teardown") else "failed") and t["reason"]
    judge.check(out)
    no_leftovers(tmp_path)


def test_a_target_that_hangs(winml, tmp_path):
    need_vnpu()
    source, out = net(tmp_path / "m.onnx", ["Erf"]), tmp_path / "q.onnx"
    t = quantize(winml, source, out, *VNPU, "--ep-options", "fault=hang@compile", "--timeout", "1")["target"]
    assert t["status"] == "failed" and out.exists()


def test_a_target_that_is_not_here(winml, tmp_path):
    source, out = net(tmp_path / "m.onnx", ["Erf"]), tmp_path / "q.onnx"
    empty = str(tmp_path / "empty")
    r = winml("quantize", "-m", source, "-o", out, "--ep", "qnn", WINML_ORT=ORT_LIBRARY, XDG_CACHE_HOME=empty, HOME=empty,
              WINML_DEPS=empty, WINML_EP_PATH="", VIRTUAL_ENV=empty, PATH="/nowhere")
    assert r.code == 0, r.err
    assert "QNNExecutionProvider: rules applied without asking: EP not on this machine" in r.out
    assert "is not available here" in r.out and out.exists()


def test_other_methods_are_counted_too(winml, tmp_path):
    need_vnpu()
    t = quantize(winml, net(tmp_path / "m.onnx", ["Erf"]), tmp_path / "q.onnx", "-p", "fp16", *VNPU)["target"]
    assert t["status"] == "asked" and t["rules"] is None and t["nodes"] == t["nodes_on_target"] + len(t["elsewhere"])


def test_mixed_precision_keeps_what_is_refused_float(winml, tmp_path):
    need_vnpu()
    source, out = net(tmp_path / "m.onnx", ["Sigmoid", "Erf", "Tanh"]), tmp_path / "q.onnx"
    j = quantize(winml, source, out, *VNPU, "--ep-options", "refuse_ops=Erf,Sigmoid", "--target-sqnr", "45")
    assert [n["name"] for n in j["target"]["left_in_float"]] == ["Sigmoid_0", "Erf_1"]
    inner = [floats_at(out, n) for n in ("Sigmoid_0", "Erf_1")]
    assert inner[0][1] and inner[1][0] and j["mixed_precision"]["raised"] > 0
    judge.check(out)


def test_qnn_refuses_erf(winml, tmp_path):
    need_qnn()
    out = tmp_path / "q.onnx"
    j = quantize(winml, net(tmp_path / "m.onnx", ["Sigmoid", "Erf", "Tanh"]), out, "-p", "w8a16", "--ep", "qnn")
    t = j["target"]
    assert [n["name"] for n in t["left_in_float"]] == ["Erf_1"] and t["rules"] == "qnn" and t["nodes_on_target"] > 0
    judge.check(out)


def spatial_net(path, op, **attributes):
    """A Conv and something behind it, pictures of 8 channels."""
    rng = np.random.default_rng(3)
    init = [numpy_helper.from_array(rng.standard_normal((8, 8, 1, 1)).astype("f4"), "w")]
    init += [numpy_helper.from_array(rng.uniform(0.5, 1, 8).astype("f4"), n) for n in ("s", "b") if op == "GroupNormalization"]
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"], "first"),
             helper.make_node(op, ["h", *[i.name for i in init[1:]]], ["y"], "it", **attributes)]
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 8, 6, 6]) for n in ("x", "y")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:], init), ir_version=10,
                                opset_imports=[helper.make_opsetid("", 21)]), path)
    return path


@pytest.mark.parametrize("op, precision, attributes", [("LRN", "w8a16", {"size": 3}), ("GroupNormalization", "w8a8", {"num_groups": 2})])
def test_qnn_asks_for_a_layout_and_refuses_the_node(winml, tmp_path, op, precision, attributes):
    """Then the whole model does not load; the error names the node, which is all that need stay float."""
    need_qnn()
    source, out = spatial_net(tmp_path / "m.onnx", op, **attributes), tmp_path / "q.onnx"
    t = quantize(winml, source, out, "-p", precision, "--ep", "qnn", "--no-float-refused")["target"]
    assert t["status"] == "failed" and "'it_token_" in t["reason"] and str(out) in t["reason"]
    t = quantize(winml, source, out, "-p", precision, "--ep", "qnn", "--overwrite")["target"]
    assert t["status"] == "asked" and [n["name"] for n in t["left_in_float"]] == ["it"] and t["nodes_on_target"] > 0
    judge.check(out)


def test_qnn_does_not_load_it_float_either(winml, tmp_path):
    """ORT does not know the sizes behind GroupNormalization where the model does not say them, and then QNN refuses it in any form."""
    need_qnn()
    source, out = spatial_net(tmp_path / "m.onnx", "GroupNormalization", num_groups=2), tmp_path / "q.onnx"
    m = onnx.load(source)
    m.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(m, source)
    t = quantize(winml, source, out, "--ep", "qnn", "--no-float-refused")["target"]
    plain = out.read_bytes()
    assert t["status"] == "failed"
    t = quantize(winml, source, out, "--ep", "qnn", "--overwrite")["target"]
    assert t["status"] == "failed" and t["left_in_float"] == [] and out.read_bytes() == plain
