"""compile: artifacts, validation, cache, and the life of child processes."""
import json
import os
import signal
import subprocess
import time

import onnx
import pytest

from conftest import WINML, bug, model, need_openvino, need_qnn, need_vnpu, no_leftovers
from judge import ops


def vnpu(*options):
    out = ["--ep", "vnpu", "--device", "npu"]
    for o in options:
        out += ["--ep-options", o]
    return out


@pytest.mark.parametrize("embed", [False, True])
def test_artifact(winml, tmp_path, embed):
    need_vnpu()
    r = winml("compile", "-m", model("orientation"), "--output-dir", tmp_path, *vnpu(), "--embed" if embed else "--no-embed", "-f", "json")
    assert r.code == 0, r.err
    out = tmp_path / "orientation_vnpu_ctx.onnx"
    assert r.json["models"][0]["output_path"] == str(out) and out.exists()
    side = r.json["models"][0]["context_binary_path"]
    assert (side is None) == embed
    assert sorted(f for f in os.listdir(tmp_path) if f != "cache") == sorted([out.name] + ([] if embed else [os.path.basename(side)]))
    meta = {p.key: p.value for p in onnx.load(out, load_external_data=False).metadata_props}
    assert os.path.samefile(os.path.join(tmp_path, meta["winml.source_model"]), model("orientation"))
    i = winml("inspect", "-m", out, "-f", "json").json["ep_contexts"]
    assert i[0]["source"] == "VirtualNPUExecutionProvider" and i[0]["state"] == ("embedded" if embed else "beside")
    p = winml("perf", "-m", out, *vnpu(), "--iterations", "2", "-o", tmp_path / "r.json")
    assert p.code == 0, p.err
    assert winml("compile", "-m", out, "-o", tmp_path / "x.onnx", *vnpu()).code == 1


def test_cache(winml, tmp_path):
    need_vnpu()
    args = ["compile", "-m", model("orientation"), "-o", tmp_path / "o.onnx", *vnpu(), "-f", "json", "--overwrite"]
    first, second = winml(*args), winml(*args)
    assert not first.json["models"][0]["cached"] and second.json["models"][0]["cached"]
    assert not winml(*args, "--ep-options", "min_nodes=2").json["models"][0]["cached"], "another option is another identity"
    assert not winml(*args, "--no-use-cache").json["models"][0]["cached"]


def test_shared_context(winml, tmp_path):
    need_vnpu()
    r = winml("compile", "-m", bug("conv_bn_tapped"), "-m", bug("unsorted"), "--output-dir", tmp_path / "out", *vnpu(), "-f", "json", "--no-validate")
    assert r.code == 0, r.err
    assert len(r.json["models"]) == 2 and all(os.path.exists(m["output_path"]) for m in r.json["models"])
    assert winml("compile", "-m", bug("unsorted"), "-m", bug("odd_dims"), *vnpu()).code == 2


def test_session_back_end(winml, tmp_path):
    need_vnpu()
    r = winml("compile", "-m", model("orientation"), "-o", tmp_path / "s.onnx", *vnpu(), "--compiler", "ort_session", "-f", "json")
    assert r.code == 0 and "EPContext" in ops(tmp_path / "s.onnx"), r.err
    assert "ort_session" in winml("compile", "--list", *vnpu()).out


def test_openvino(winml, tmp_path):
    need_openvino()
    r = winml("compile", "-m", model("orientation"), "-o", tmp_path / "o.onnx", "--ep", "openvino", "--device", "cpu", "-f", "json")
    assert r.code == 0 and r.json["models"][0]["validation"][0]["cosine"] > 0.99, r.err


@pytest.mark.parametrize("ep", ["cpu", "cuda", "dml", "migraphx"])
def test_eps_without_a_compiler(winml, tmp_path, ep):
    r = winml("compile", "-m", bug("odd_dims"), "-o", tmp_path / "o.onnx", "--ep", ep)
    assert r.code == 1 and "EPContext" in r.err, r.err


def test_nothing_for_the_device(winml, tmp_path):
    need_vnpu()
    r = winml("compile", "-m", model("orientation"), "-o", tmp_path / "o.onnx", *vnpu("refuse_ops=all"), "-f", "json")
    assert r.code == 1 and "no node" in r.json["error"]["message"] and not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("what", ["fail", "crash", "kill", "hang", "exit"])
@pytest.mark.parametrize("where,code", [("compile", 1), ("load", 3), ("run", 4), ("teardown", 0)])
def test_faults(winml, tmp_path, what, where, code):
    need_vnpu()
    out = tmp_path / "o.onnx"
    r = winml("compile", "-m", model("orientation"), "-o", out, *vnpu(f"fault={what}@{where}"), "--timeout", "3", "-f", "json")
    if what == "hang" and where != "teardown":
        code = 1
    assert r.code == code, r.err
    no_leftovers(tmp_path)
    if where == "teardown":
        assert out.exists() and "EPContext" in ops(out)
        assert (r.json["salvaged"] is None) == (what == "fail")
    else:
        assert not out.exists() and not (tmp_path / "o_vnpu.bin").exists() and r.json["error"]["message"]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_nothing(tmp_path, signum):
    need_vnpu()
    p = subprocess.Popen([WINML, "compile", "-m", model("orientation"), "-o", str(tmp_path / "o.onnx"), *vnpu("fault=hang@compile"), "--no-use-cache"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    p.send_signal(signum)
    _, err = p.communicate(timeout=20)
    assert p.returncode == 1 and "Aborted" in err
    assert os.listdir(tmp_path) == []
    assert not subprocess.run(["pgrep", "-f", f"{WINML} __job"], capture_output=True, text=True).stdout


def test_child_dies_with_its_parent(tmp_path):
    need_vnpu()
    p = subprocess.Popen([WINML, "compile", "-m", model("orientation"), "-o", str(tmp_path / "o.onnx"), *vnpu("fault=hang@compile"), "--no-use-cache"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1.5)
    assert subprocess.run(["pgrep", "-f", f"{WINML} __job"], capture_output=True, text=True).stdout
    p.kill()
    p.wait()
    time.sleep(0.5)
    assert not subprocess.run(["pgrep", "-f", f"{WINML} __job"], capture_output=True, text=True).stdout
    assert not (tmp_path / "o.onnx").exists() and len(os.listdir(tmp_path)) == 1
    done = subprocess.run([WINML, "compile", "-m", model("orientation"), "-o", str(tmp_path / "o.onnx"), *vnpu(), "--no-use-cache"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not [n for n in os.listdir(tmp_path) if n.startswith(".")], "what the killed one left"
