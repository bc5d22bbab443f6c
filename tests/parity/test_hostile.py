"""Models that are valid and yet stop or crash whoever runs them: a reason instead of a hang, nothing left behind."""
import os
import re
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import WINML, no_leftovers
from judge import ops, session

FLOAT, INT32, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL


def save(path, nodes, inputs, outputs, constants):
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                          [helper.make_tensor_value_info(*o) for o in outputs],
                          [numpy_helper.from_array(v, k) for k, v in constants.items()])
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def endless(path):
    body = helper.make_graph([helper.make_node("Identity", ["go_in"], ["go"]), helper.make_node("Add", ["k", "k"], ["s"])], "body",
                             [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go_in", BOOL, [])],
                             [helper.make_tensor_value_info("go", BOOL, []), helper.make_tensor_value_info("s", FLOAT, [1])])
    return save(path, [helper.make_node("Loop", ["", "c"], ["never"], body=body), helper.make_node("Relu", ["x"], ["y"])],
                [("x", FLOAT, [2])], [("y", FLOAT, [2])], {"c": np.array(True), "k": np.ones(1, "f")})


def test_model_that_never_ends(winml, tmp_path):
    source, out = endless(tmp_path / "m.onnx"), tmp_path / "o.onnx"
    r = winml("optimize", "-m", source, "-o", out, "-f", "json")
    assert r.code == 0, r.err
    verified = r.json["verify"]["cpu"]
    assert verified["status"] == "not verified" and "more than 3 s" in verified["reason"]
    assert ops(out) == ["Relu"]
    no_leftovers(tmp_path)


def test_one_interrupt_ends_a_run_that_never_ends(tmp_path):
    source = endless(tmp_path / "m.onnx")
    p = subprocess.Popen([WINML, "optimize", "-m", source, "-o", tmp_path / "o.onnx", "--verify"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    while "Verifying" not in p.stderr.readline():
        assert p.poll() is None
    time.sleep(1)
    assert p.poll() is None, "it waits for the model"
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=20)
    assert p.returncode == 1 and "Aborted!" in err
    assert os.listdir(tmp_path) == ["m.onnx"]


@pytest.mark.parametrize("how", [[], ["--weights", "reference"]])
def test_what_a_killed_run_left_goes_with_the_next(winml, tmp_path, how):
    source = endless(tmp_path / "m.onnx")
    out = tmp_path / "out"
    p = subprocess.Popen([WINML, "optimize", "-m", source, "-o", out / "o.onnx", "--verify", *how], stderr=subprocess.PIPE, text=True)
    while "Verifying" not in p.stderr.readline():
        assert p.poll() is None
    p.kill()
    p.communicate()
    assert len(os.listdir(out)) == 1, "nobody could remove it"
    r = winml("optimize", "-m", source, "-o", out / "o.onnx", "--no-verify", *how)
    assert r.code == 0 and os.listdir(out) == ["o.onnx"]


@pytest.mark.skipif(os.name == "nt" or os.uname().machine != "x86_64", reason="only x86 traps on this division")
def test_model_that_crashes_the_runtime(winml, tmp_path):
    source = save(tmp_path / "m.onnx", [helper.make_node("Div", ["x", "minus"], ["y"])], [("x", INT32, [1])],
                  [("y", INT32, [1])], {"minus": np.array([-1], "i4")})
    data = tmp_path / "in.npz"
    np.savez(data, x=np.array([-2**31], "i4"))
    r = winml("optimize", "-m", source, "-o", tmp_path / "out" / "o.onnx", "--input-data", data, "-f", "json")
    assert r.code == -signal.SIGFPE
    assert r.json["error"]["kind"] == "crash" and "arithmetic error" in r.err
    assert os.listdir(tmp_path / "out") == [], "the private folder is gone"


def test_one_constant_that_cannot_be_computed(winml, tmp_path):
    """The other hundred are folded, and few sessions are opened to find it."""
    nodes, names = [helper.make_node("Gather", ["k", "bad"], ["g"])], ["g"]
    for i in range(100):
        nodes.append(helper.make_node("Exp", [f"k{i}"], [f"e{i}"]))
        names.append(f"e{i}")
    nodes += [helper.make_node("Add", ["x", n], [f"y_{n}"]) for n in names]
    constants = {f"k{i}": np.array([i / 100], "f") for i in range(100)} | {"k": np.ones(2, "f"), "bad": np.array([9])}
    source = save(tmp_path / "m.onnx", nodes, [("x", FLOAT, [1])], [(f"y_{n}", FLOAT, [1]) for n in names], constants)
    r = winml("optimize", "-m", source, "-o", tmp_path / "o.onnx", "-f", "json", "--no-verify")
    assert r.code == 0, r.err
    kinds = ops(tmp_path / "o.onnx")
    assert kinds.count("Exp") == 0 and kinds.count("Gather") == 1


def weights_beside(path, data):
    m = onnx.load(save(path, [helper.make_node("Mul", ["x", "w"], ["m"]), helper.make_node("Mul", ["m", "k"], ["y"])],
                       [("x", FLOAT, [512])], [("y", FLOAT, [512])], {"w": np.ones(512, "f"), "k": np.full(1, 2, "f")}))
    onnx.save_model(m, path, save_as_external_data=True, location=data, size_threshold=1024)
    return path


@pytest.mark.parametrize("flags", [["-o", "w.bin", "--overwrite"], ["-o", "o.onnx", "--diff", "w.bin", "--overwrite"],
                                   ["-o", "o.onnx", "--diff", "m.onnx", "--overwrite"], ["-o", "o.onnx", "--diff", "./o.onnx"]])
def test_files_of_the_source_are_not_replaced(winml, tmp_path, flags):
    weights_beside(tmp_path / "m.onnx", "w.bin")
    before = {f: (tmp_path / f).read_bytes() for f in ("m.onnx", "w.bin")}
    r = winml("optimize", "-m", "m.onnx", *flags, cwd=tmp_path)
    assert r.code in (1, 2) and ("holds weights of the source" in r.err or "is the source model" in r.err or "is the resulting model" in r.err), r.err
    assert {f: (tmp_path / f).read_bytes() for f in sorted(os.listdir(tmp_path)) if f != "cache"} == before


def test_data_file_of_another_model_is_not_replaced(winml, tmp_path):
    """The output is new, its data file would not be."""
    n = 101 << 18
    save(tmp_path / "m.onnx", [helper.make_node("Mul", ["x", "w"], ["y"])], [("x", FLOAT, [n])], [("y", FLOAT, [n])],
         {"w": np.ones(n, "f")})
    (tmp_path / "o.onnx.data").write_text("of somebody else")
    r = winml("optimize", "-m", "m.onnx", "-o", "o.onnx", cwd=tmp_path)
    assert r.code == 1 and "'o.onnx.data' already exists" in r.err and "--overwrite" in r.err, r.err
    assert (tmp_path / "o.onnx.data").read_text() == "of somebody else" and not (tmp_path / "o.onnx").exists()
    no_leftovers(tmp_path)
    assert winml("optimize", "-m", "m.onnx", "-o", "o.onnx", "--overwrite", cwd=tmp_path).code == 0
    os.rename(tmp_path / "o.onnx", tmp_path / "source.onnx")
    r = winml("optimize", "-m", "source.onnx", "-o", "o.onnx", "--overwrite", cwd=tmp_path)
    assert r.code == 1 and "'o.onnx.data' holds weights of the source" in r.err, r.err
    onnx.load(tmp_path / "source.onnx")


def test_comparison_is_not_written_over_a_file(winml, tmp_path):
    weights_beside(tmp_path / "m.onnx", "w.bin")
    (tmp_path / "page.html").write_text("mine")
    r = winml("optimize", "-m", "m.onnx", "-o", "o.onnx", "--diff", "page.html", cwd=tmp_path)
    assert r.code == 1 and "--overwrite" in r.err and not (tmp_path / "o.onnx").exists()
    assert winml("optimize", "-m", "m.onnx", "-o", "o.onnx", "--diff", "new/page.html", cwd=tmp_path).code == 0
    assert (tmp_path / "new" / "page.html").exists()


def test_verification_that_was_asked_for_is_delivered_or_refused(winml, tmp_path):
    (tmp_path / "bad.npz").write_text("no numpy")
    source = weights_beside(tmp_path / "m.onnx", "w.bin")
    r = winml("optimize", "-m", source, "-o", tmp_path / "o.onnx", "--input-data", tmp_path / "bad.npz")
    assert r.code and "bad.npz" in r.err and not (tmp_path / "o.onnx").exists(), r.err
    unknown = tmp_path / "u.onnx"
    g = helper.make_graph([helper.make_node("Nobody", ["x"], ["y"], domain="my.ops")], "g",
                          [helper.make_tensor_value_info("x", FLOAT, [2])], [helper.make_tensor_value_info("y", FLOAT, [2])])
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)], ir_version=8), unknown)
    r = winml("optimize", "-m", unknown, "-o", tmp_path / "o.onnx", "--verify")
    assert r.code and "Nobody" in r.err and not (tmp_path / "o.onnx").exists(), r.err
    r = winml("optimize", "-m", unknown, "-o", tmp_path / "o.onnx", "-f", "json")
    cpu = r.json["verify"]["cpu"]
    assert r.code == 0 and cpu["status"] == "not verified" and cpu["source_loads"] is False and "Nobody" in cpu["load_error"]
    assert [w for w in r.json["warnings"] if "does not load" in w and "Nobody" in w]
    r = winml("optimize", "-m", unknown, "-o", tmp_path / "o.onnx", "--overwrite")
    assert r.code == 0 and re.search("^Warning: the source does not load .*Nobody", r.out, re.M)
    r = winml("optimize", "-m", unknown, "-o", tmp_path / "o.onnx", "--overwrite", "--no-verify", "-f", "json")
    assert r.code == 0 and r.json["verify"]["cpu"]["source_loads"] is None and r.json["warnings"] == []
    r = winml("optimize", "-m", source, "-o", tmp_path / "p.onnx", "-f", "json")
    assert r.json["verify"]["cpu"]["source_loads"] is True and r.json["verify"]["cpu"]["load_error"] is None


def test_runtime_that_is_not_there(winml, tmp_path):
    source = weights_beside(tmp_path / "m.onnx", "w.bin")
    r = winml("optimize", "-m", source, "-o", tmp_path / "o.onnx", "-f", "json", WINML_ORT=str(tmp_path / "none.so"))
    cpu = r.json["verify"]["cpu"]
    assert r.code == 0 and cpu["status"] == "not verified" and "none.so" in cpu["reason"] and cpu["source_loads"] is None


def test_verification_tries_both_signs_and_other_sizes(winml, tmp_path):
    """What the file says wrongly about an inner value shows with another batch only; ONNX Runtime's own optimiser believes
    it, so its work must be undone."""
    g = helper.make_graph([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Shape", ["a"], ["y"])], "g",
                          [helper.make_tensor_value_info("x", FLOAT, ["N", 6])], [helper.make_tensor_value_info("y", INT64, [2])],
                          value_info=[helper.make_tensor_value_info("a", FLOAT, [1, 6])])
    path, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    r = winml("optimize", "-m", path, "-o", out, "-f", "json")
    assert r.code == 0 and r.json["verify"]["cpu"]["status"] == "passed", r.err
    assert session(out).run(None, {"x": np.zeros((3, 6), "f")})[0].tolist() == [3, 6]
