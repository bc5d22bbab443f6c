"""Rules of static quantisation that belong to an EP, judged by what that EP does with the result, or is documented to do."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import judge
from conftest import need_openvino, need_qnn


def net(path, nodes, weights, shape, out_shape):
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), ("y", out_shape))]
    init = [numpy_helper.from_array(np.asarray(a, "f4"), n) for n, a in weights.items()]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:], init), ir_version=8,
                                opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def conv_net(path):
    """Convolutions with a Relu and a Clip behind them, which cut much off."""
    rng = np.random.default_rng(5)
    nodes = [helper.make_node("Conv", ["x", "w0"], ["a"], "conv0"), helper.make_node("Relu", ["a"], ["b"], "relu"),
             helper.make_node("Conv", ["b", "w1"], ["c"], "conv1"), helper.make_node("Clip", ["c", "low", "high"], ["d"], "clip"),
             helper.make_node("Conv", ["d", "w2"], ["y"], "conv2")]
    weights = {f"w{i}": rng.standard_normal((8, 8, 1, 1)) for i in range(3)}
    return net(path, nodes, {**weights, "low": np.float32(0), "high": np.float32(1.5)}, [1, 8, 6, 6], [1, 8, 6, 6])


def norm_net(path):
    rng = np.random.default_rng(6)
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"], "first"),
             helper.make_node("LayerNormalization", ["a", "s", "b"], ["c"], "norm", axis=-1),
             helper.make_node("MatMul", ["c", "w1"], ["y"], "last")]
    return net(path, nodes, {"w0": rng.standard_normal((32, 32)), "w1": rng.standard_normal((32, 32)), "s": rng.uniform(0.5, 2, 32),
                             "b": rng.standard_normal(32)}, [1, 8, 32], [1, 8, 32])


def quantize(winml, source, out, *more):
    r = winml("quantize", "-m", source, "-o", out, "-f", "json", "--overwrite", *more)
    assert r.code == 0, r.err
    judge.check(out)
    return r.json


def arrays(path):
    return {i.name: numpy_helper.to_array(i) for i in onnx.load(path).graph.initializer}


def without_wide_integers(path, out):
    """The model as OpenVINO computes it: 16-bit Q and DQ of activations taken out."""
    m = onnx.load(path)
    wide = {i.name for i in m.graph.initializer if i.data_type in (TensorProto.UINT16, TensorProto.INT16)}
    constant = {i.name for i in m.graph.initializer}
    for n in m.graph.node:
        if n.op_type in ("QuantizeLinear", "DequantizeLinear") and n.input[2] in wide and n.input[0] not in constant:
            n.op_type, n.domain = "Identity", ""
            del n.input[1:], n.attribute[:]
    del m.graph.value_info[:]
    onnx.save(m, out)
    return out


def answer(path, x):
    return judge.session(path).run(None, {"x": x})[0]


def noise(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2) / np.mean(a ** 2)))


def test_openvino_has_int8_weights(winml, tmp_path):
    source, out = conv_net(tmp_path / "m.onnx"), tmp_path / "q.onnx"
    assert quantize(winml, source, out, "--ep", "openvino")["weight_type"] == "int8"
    a = arrays(out)
    assert all(a[f"w{i}_quantized"].dtype == np.int8 and not a[f"w{i}_zero_point"].any() for i in range(3))
    assert quantize(winml, source, out, "--ep", "openvino", "--weight-type", "uint8")["weight_type"] == "uint8"
    assert quantize(winml, source, out)["weight_type"] == "uint8"
    assert quantize(winml, source, out, "--ep", "openvino", "-p", "int16")["weight_type"] == "int16"


@pytest.mark.parametrize("precision", ["w8a16", "int16"])
def test_openvino_takes_wide_integers_out_and_the_answers_stay(winml, tmp_path, precision):
    source, out = conv_net(tmp_path / "m.onnx"), tmp_path / "q.onnx"
    x = np.random.default_rng(1).random((1, 8, 6, 6)).astype("f4")
    want = answer(source, x)
    j = quantize(winml, source, out, "--ep", "openvino", "-p", precision, "--per-channel")
    assert any("half floats" in n["text"] for n in j["notes"])
    assert {"Relu", "Clip"} <= {n.op_type for n in onnx.load(out).graph.node}
    assert noise(want, answer(out, x)) < 0.03
    assert noise(want, answer(without_wide_integers(out, tmp_path / "s.onnx"), x)) < 0.03
    # by the generic rules the integers stand for Relu and Clip, and without them the model is another
    quantize(winml, source, out, "-p", precision, "--per-channel")
    assert not {"Relu", "Clip"} & {n.op_type for n in onnx.load(out).graph.node}
    assert noise(want, answer(without_wide_integers(out, tmp_path / "s.onnx"), x)) > 0.3


def test_openvino_with_8_bits_merges_as_ever(winml, tmp_path):
    source, out = conv_net(tmp_path / "m.onnx"), tmp_path / "q.onnx"
    j = quantize(winml, source, out, "--ep", "openvino")
    assert not {"Relu", "Clip"} & {n.op_type for n in onnx.load(out).graph.node} and j["notes"] == []
    assert j["target"]["rules"] == "openvino"


@pytest.mark.parametrize("device", ["cpu", "gpu", "npu"])
def test_openvino_takes_it(winml, tmp_path, device):
    need_openvino()
    t = quantize(winml, conv_net(tmp_path / "m.onnx"), tmp_path / "q.onnx", "--ep", "openvino", "--device", device)["target"]
    if t["status"] == "not asked":
        pytest.skip(f"OpenVINO has no {device} here")
    assert t["nodes"] == t["nodes_on_target"]


def test_vitisai_quantizes_itself(winml, tmp_path):
    source, out = conv_net(tmp_path / "m.onnx"), tmp_path / "q.onnx"
    r = winml("quantize", "-m", source, "-o", out, "--ep", "vitisai")
    assert r.code == 2 and "quantizes float models itself" in r.err and not out.exists()
    assert quantize(winml, source, out, "--ep", "vitisai", "-p", "w8a8")["target"]["rules"] is None


@pytest.mark.parametrize("per_channel", [[], ["--per-channel"]])
@pytest.mark.parametrize("weight", ["uint8", "int8", "int16", "uint16"])
@pytest.mark.parametrize("activation", ["uint8", "uint16"])
def test_qnn_takes_layer_normalization(winml, tmp_path, activation, weight, per_channel):
    need_qnn()
    source, out = norm_net(tmp_path / "m.onnx"), tmp_path / "q.onnx"
    t = quantize(winml, source, out, "--ep", "qnn", "--activation-type", activation, "--weight-type", weight, *per_channel,
                 "--no-float-refused")["target"]
    assert "LayerNormalization" not in {n["op"] for n in t["elsewhere"]}


def test_qnn_with_int8_throughout(winml, tmp_path):
    need_qnn()
    t = quantize(winml, norm_net(tmp_path / "m.onnx"), tmp_path / "q.onnx", "--ep", "qnn", "--activation-type", "int8", "--weight-type", "int8",
                 "--no-float-refused")["target"]
    assert "LayerNormalization" not in {n["op"] for n in t["elsewhere"]}
