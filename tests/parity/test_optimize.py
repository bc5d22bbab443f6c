"""optimize: fewer nodes, the same answers, valid files."""
import json
import os
import shutil

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import ORT_LIBRARY, bug, model, need_openvino, need_qnn, need_vnpu, no_leftovers
from judge import check, ops, same_answers, session

MOST = {"ocr-cls": 179, "ocr-det": 272, "ocr-rec": 334, "layout": 450, "orientation": 80, "turn": 406, "filetype": 95, "pitch": 220}


@pytest.mark.parametrize("name", MOST)
def test_real_model(winml, tmp_path, name):
    source, out = model(name), tmp_path / "out put é.onnx"
    shapes = {"ocr-cls": {"x": [1, 3, 48, 192]}, "ocr-det": {"x": [1, 3, 64, 64]}, "ocr-rec": {"x": [1, 3, 48, 96]}}.get(name)
    args = [f"--input-shape={k}={','.join(map(str, v))}" for k, v in (shapes or {}).items()]
    r = winml("optimize", "-m", source, "-o", out, "-f", "json", *args)
    assert r.code == 0, r.err
    d = r.json
    assert d["verify"]["cpu"]["status"] == "passed"
    assert d["nodes"]["after"] == len(ops(out)) <= MOST[name]
    check(str(out))
    same_answers(source, str(out), shapes, seeds=(0,), rtol=2e-3, atol=1e-4)
    no_leftovers(tmp_path)


@pytest.mark.parametrize("name", ["ocr-cls", "layout", "turn"])
def test_twice_is_once(winml, tmp_path, name):
    a, b, c = tmp_path / "a.onnx", tmp_path / "b.onnx", tmp_path / "c.onnx"
    for source, out in ((model(name), a), (model(name), b), (a, c)):
        assert winml("optimize", "-m", source, "-o", out, "--no-verify").code == 0
    assert a.read_bytes() == b.read_bytes(), "the same input gives the same bytes"
    assert a.read_bytes() == c.read_bytes(), "optimizing again changes nothing"


def test_nothing_is_kept_about_the_user(winml, tmp_path):
    home, temp = tmp_path / "home", tmp_path / "temp"
    home.mkdir()
    temp.mkdir()
    r = winml("optimize", "-m", model("ocr-cls"), "-o", tmp_path / "o.onnx", "--verify", HOME=str(home),
              XDG_CACHE_HOME=str(home / "cache"), TMPDIR=str(temp), WINML_ORT=ORT_LIBRARY)
    assert r.code == 0, r.err
    assert not os.listdir(home) and not os.listdir(temp), "ONNX Runtime's telemetry writes there"


def test_verify_with_given_inputs(winml, tmp_path):
    data = tmp_path / "in.npz"
    np.savez(data, input=np.random.rand(1, 576).astype("f"), state=np.zeros((2, 1, 128), "f"), sr=np.array(16000, "i8"))
    r = winml("optimize", "-m", model("vad"), "-o", tmp_path / "o.onnx", "--input-data", data, "-f", "json")
    assert r.code == 0 and r.json["verify"]["cpu"]["status"] == "passed", r.err
    assert r.json["nodes"]["all_after"] < r.json["nodes"]["all_before"]


def test_ort_saving_with_a_compiling_ep_fails(tmp_path):
    """What winml must never do: the day this stops failing, or starts to pass for winml's way, this test says so."""
    need_vnpu()
    from conftest import WINML
    ort.register_execution_provider_library("vnpu.virtual", os.path.join(os.path.dirname(WINML), "ep", "libwinml_virtual_npu.so"))
    devices = [d for d in ort.get_ep_devices() if d.ep_name == "VirtualNPUExecutionProvider"]
    if not devices:
        pytest.skip("this onnxruntime lists no virtual device")
    options = ort.SessionOptions()
    options.add_provider_for_devices(devices[:1], {})
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    with pytest.raises(Exception, match="compiled nodes"):
        ort.InferenceSession(model("orientation"), options)


@pytest.mark.parametrize("ep,device,need", [("qnn", "npu", need_qnn), ("vnpu", "npu", need_vnpu), ("openvino", "cpu", need_openvino)])
def test_for_an_ep(winml, tmp_path, ep, device, need):
    need()
    out = tmp_path / "o.onnx"
    r = winml("optimize", "-m", model("ocr-cls"), "-o", out, "--input-shape", "x=1,3,48,192", "--ep", ep, "--device", device,
              "-f", "json")
    assert r.code == 0, r.err
    target = r.json["target"]
    assert target["status"] == "loads", target
    assert target["placement"][0]["ep"] == target["ep"] and target["placement"][0]["nodes"] > 100
    assert "EPContext" not in ops(out)
    check(str(out))


def test_ep_that_cannot_load_it_leaves_the_output(winml, tmp_path):
    need_vnpu()
    out = tmp_path / "o.onnx"
    r = winml("optimize", "-m", model("orientation"), "-o", out, "--ep", "vnpu", "--device", "npu", "--ep-options",
              "fault=crash@load", "-f", "json")
    assert r.code == 0 and out.exists()
    assert r.json["target"]["status"] == "failed" and "SIGSEGV" in r.json["target"]["reason"]
    assert "winml compile" in r.json["hint"]


def test_absent_ep(winml, tmp_path):
    r = winml("optimize", "-m", bug("odd_dims"), "-o", tmp_path / "o.onnx", "--ep", "vitisai", "-f", "json")
    assert r.code == 0 and r.json["target"]["status"] == "not verified"


def test_output_rules(winml, tmp_path):
    source = tmp_path / "m.onnx"
    shutil.copy(bug("b39_constant_roles"), source)
    assert winml("optimize", "-m", source).code == 0 and (tmp_path / "m_opt.onnx").exists()
    r = winml("optimize", "-m", source)
    assert r.code == 1 and "--overwrite" in r.err
    assert winml("optimize", "-m", source, "-o", source).code == 1
    assert winml("optimize", "-m", source, "-o", source, "--overwrite").code == 0
    check(str(source))
    assert winml("optimize", "-m", source, "-o", tmp_path / "new" / "deep" / "x.onnx").code == 0
    r = winml("optimize", "-m", source, "--check-optim", "-o", tmp_path / "none.onnx")
    assert r.code == 0 and not (tmp_path / "none.onnx").exists()


def test_full_disk(winml, tmp_path):
    r = winml("optimize", "-m", bug("odd_dims"), "-o", "/dev/full/x.onnx")
    assert r.code == 1 and "/dev/full" in r.err


@pytest.mark.parametrize("args,word", [
    (["--input-shape", "nope=1"], "no input 'nope'"), (["--input-shape", "x"], "NAME=1,3,48,192"),
    (["--input-shape", "x=1,2"], "dimensions"), (["--input-dim", "Q=3"], "'Q'"), (["--ep", "nonsense"], "nonsense"),
    (["--device", "tpu"], "'tpu' is not one of"), (["--enable-nonsense"], "--enable-nonsense"),
    (["--enable-attention-onnx-fusion", "--enable-attention-expandedattention"], "undo each other")])
def test_usage(winml, tmp_path, args, word):
    r = winml("optimize", "-m", model("ocr-cls"), "-o", tmp_path / "o.onnx", *args)
    assert r.code == 2 and word in r.err and not (tmp_path / "o.onnx").exists(), r.err


def test_config(winml, tmp_path):
    c = tmp_path / "c.json"
    c.write_text('{"conv_bn_fusion": false, "gelu-fusion": true}')
    r = winml("optimize", "-m", model("orientation"), "-o", tmp_path / "o.onnx", "-c", c, "-f", "json")
    assert r.code == 0
    status = {p["name"]: p for p in r.json["passes"]}
    assert status["conv-bn-fusion"]["status"] == "skipped" and status["conv-bn-fusion"]["reason"] == "switched off"
    assert status["gelu-fusion"]["status"] == "nothing to do", "asked for, but there is no Gelu in it"
    c.write_text('{"conv-bn-fuson": true}')
    r = winml("optimize", "-m", model("orientation"), "-o", tmp_path / "p.onnx", "-c", c)
    assert r.code == 2 and "conv-bn-fuson" in r.err


def big(path, mib):
    n = mib * 1024 * 1024 // 4
    w = np.random.default_rng(0).standard_normal((n // 1024, 1024)).astype("f")
    node = helper.make_node("MatMul", ["x", "w"], ["m"], "mm"), helper.make_node("Identity", ["m"], ["y"], "id")
    g = helper.make_graph(node, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, n // 1024])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1024])], [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_weights_beside_and_by_reference(winml, tmp_path):
    source = tmp_path / "big.onnx"
    big(source, 101)
    out, ref = tmp_path / "out.onnx", tmp_path / "ref.onnx"
    r = winml("optimize", "-m", source, "-o", out, "--verify", "-f", "json")
    assert r.code == 0 and r.json["data_file"] == "out.onnx.data" and r.json["verify"]["cpu"]["status"] == "passed", r.err
    assert os.path.getsize(out) < 10_000 and os.path.getsize(tmp_path / "out.onnx.data") >= 101 << 20
    same_answers(str(source), str(out), seeds=(0,))
    r = winml("optimize", "-m", source, "-o", ref, "--weights", "reference", "-f", "json")
    assert r.code == 0 and os.path.getsize(ref) < 10_000, r.err
    same_answers(str(source), str(ref), seeds=(0,))
    # and on from there: the output of the output
    r = winml("optimize", "-m", out, "-o", tmp_path / "again.onnx", "-f", "json")
    assert r.code == 0, r.err
    same_answers(str(source), str(tmp_path / "again.onnx"), seeds=(0,))
    no_leftovers(tmp_path)


def test_half_and_bfloat_types_are_kept(winml, tmp_path):
    out = tmp_path / "o.onnx"
    assert winml("optimize", "-m", bug("b72_half_model"), "-o", out).code == 0
    assert "Cast" not in ops(out)
    same_answers(bug("b72_half_model"), str(out), rtol=1e-2, atol=1e-2)
    w = helper.make_tensor("w", TensorProto.BFLOAT16, [4, 4], [1.0] * 16)
    g = helper.make_graph([helper.make_node("Identity", ["x"], ["i"], "a"), helper.make_node("MatMul", ["i", "w"], ["y"], "m")], "g",
                          [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [2, 4])],
                          [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [2, 4])], [w])
    path = tmp_path / "bf16.onnx"
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    r = winml("optimize", "-m", path, "-o", tmp_path / "b.onnx", "-f", "json")
    assert r.code == 0 and ops(tmp_path / "b.onnx") == ["MatMul"], r.err
    assert r.json["verify"]["cpu"]["status"] == "not verified"


def test_what_runs_long_is_not_verified_unasked(winml, tmp_path):
    """A second or less is measured on no machine; a loop of ten million rounds takes seconds on all."""
    m = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) <int64 rounds = {10000000}, bool go = {1}> {
        y = Loop <body = b (int64 i, bool c, float[1] a) => (bool d, float[1] n) { d = Identity(c) n = Neg(a) }> (rounds, go, x) }""")
    onnx.save(m, tmp_path / "m.onnx")
    r = winml("optimize", "-m", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-f", "json")
    assert r.code == 0, r.err
    assert r.json["verify"]["cpu"]["status"] == "not verified" and "--verify" in r.json["verify"]["cpu"]["reason"]
    assert (tmp_path / "o.onnx").exists()
