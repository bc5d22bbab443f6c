"""optimize --check-optim: what each capability would do is what it does; and what the target wants."""
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import WINML, model, need_openvino, need_qnn, need_vnpu, no_leftovers
from judge import check, ops, same_answers


def save(path, nodes, inputs, outputs, inits=(), opset=17, ir=8):
    def info(name, shape, kind=TensorProto.FLOAT):
        return helper.make_tensor_value_info(name, kind, shape)
    graph = helper.make_graph(nodes, "g", [info(*i) for i in inputs], [info(*o) for o in outputs],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in dict(inits).items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir), path)
    return path


def gelu(path, bias=False, opset=17):
    n = helper.make_node
    nodes = [n("Add", ["v", "b"], ["x"], "add_bias")] if bias else []
    nodes += [n("Div", ["x", "root"], ["a"], "div"), n("Erf", ["a"], ["e"], "erf"), n("Add", ["e", "one"], ["p"], "plus"),
              n("Mul", ["x", "p"], ["m"], "mul"), n("Mul", ["m", "half"], ["y"], "halve")]
    inits = {"root": np.float32(2 ** .5), "one": np.float32(1), "half": np.float32(.5)}
    if bias:
        inits["b"] = np.ones(8, "f")
    return save(path, nodes, [("v" if bias else "x", [2, 8])], [("y", [2, 8])], inits, opset)


def by_name(findings):
    return {f["name"]: f for f in findings}


def run(winml, path, *args):
    r = winml("optimize", "-m", path, "--check-optim", "-f", "json", *args)
    assert r.code == 0, r.err
    return r.json


def test_gelu(winml, tmp_path):
    path = gelu(tmp_path / "m.onnx")
    d = run(winml, path)
    found = by_name(d["findings"])
    assert set(found) == {"gelu-fusion", "gelu-approximation", "gelu-singlegelu", "gelu2-singlegelu"}
    fusion = found["gelu-fusion"]
    assert fusion["nodes"]["removed"]["by_op"] == {"Div": 1, "Erf": 1, "Add": 1, "Mul": 1}
    assert {n["name"] for n in fusion["nodes"]["removed"]["nodes"]} == {"div", "erf", "plus", "mul"}
    assert fusion["nodes"]["modified"]["nodes"] == [{"op_type": "com.microsoft::Gelu", "name": "halve", "was": "Mul"}]
    assert set(fusion["constants"]["removed"]) == {"root", "one", "half"}
    approximation = found["gelu-approximation"]
    assert approximation["compared_with"] == "gelu-fusion" and approximation["lossy"]
    assert approximation["nodes"]["modified"]["nodes"][0]["was"] == "com.microsoft::Gelu"
    assert not approximation["nodes"]["removed"]["nodes"], "not what gelu-fusion does"
    assert sorted(os.listdir(tmp_path)) in (["m.onnx"], ["cache", "m.onnx"])


def test_dependant_with_its_own_work(winml, tmp_path):
    found = by_name(run(winml, gelu(tmp_path / "m.onnx", bias=True))["findings"])
    assert found["bias-gelu-fusion"]["compared_with"] == "gelu-fusion"
    assert found["bias-gelu-fusion"]["nodes"]["removed"]["by_op"] == {"Add": 1}


def test_standard_gelu_is_default(winml, tmp_path):
    d = run(winml, gelu(tmp_path / "m.onnx", opset=20))
    assert "gelu-fusion" not in by_name(d["findings"])
    assert next(p for p in d["baseline"]["passes"] if p["name"] == "gelu-fusion")["applied"] == 1
    assert d["baseline"]["nodes_after"] == 1


@pytest.mark.parametrize("name", ["orientation", "ocr-cls", "turn"])
def test_findings_are_what_the_flags_do(winml, tmp_path, name):
    """Every finding, and some that find nothing, against a run with the flag."""
    source = model(name)
    d = run(winml, source)

    def nodes(*flags):
        r = winml("optimize", "-m", source, "-o", tmp_path / "o.onnx", "--overwrite", "--no-verify", "-f", "json",
                  "--disable-ort-graph-optimization", "--allow-unsafe", *flags)
        assert r.code == 0, r.err
        return r.json["nodes"]["all_after"]
    base = nodes()
    assert d["findings"], "this model has something to find"
    for f in d["findings"]:
        if f["name"] == "ort-graph-optimization":
            continue
        before = nodes(f"--enable-{f['compared_with']}") if f["compared_with"] else base
        change = f["nodes"]["added"]["count"] - f["nodes"]["removed"]["count"]
        assert nodes(f"--enable-{f['name']}") == before + change, f["name"]
    for f in [f for f in d["nothing"] if f["name"] != "ort-graph-optimization"][::9]:
        assert nodes(f"--enable-{f['name']}") == base, f["name"]


@pytest.mark.parametrize("name", ["gelu", "turn"])
def test_npu_reports_the_same_minus_unsafe(winml, tmp_path, name):
    path = gelu(tmp_path / "m.onnx", bias=True) if name == "gelu" else model(name)
    cpu, npu = run(winml, path, "--ep", "cpu"), run(winml, path, "--ep", "qnn", "--device", "npu")
    on_cpu, on_npu = by_name(cpu["findings"]), by_name(npu["findings"])
    left_out = {s["name"]: s["reason"] for s in npu["skipped"]}
    assert set(on_npu) <= set(on_cpu)
    for missing in set(on_cpu) - set(on_npu):
        assert "com.microsoft::" in left_out[missing] and "QNN" in left_out[missing], missing
    for f in on_npu:
        assert on_npu[f]["nodes"] == on_cpu[f]["nodes"]
        made = on_npu[f]["nodes"]["added"]["by_op"].keys() | on_npu[f]["nodes"]["modified"]["by_op"].keys()
        assert not {op.split("::")[1] for op in made if "::" in op} - set(ops(path)), "nothing that the target lacks, unless it was there"
    assert {s["name"] for s in cpu["skipped"]} <= {s["name"] for s in npu["skipped"]}
    assert all(s["reason"] for s in npu["skipped"])
    assert npu["target"]["ep"] == "QNNExecutionProvider" and npu["target"]["wants"]
    if name == "gelu":
        assert "gelu-fusion" in left_out and "bias-gelu-fusion" in left_out


def test_text(winml, tmp_path):
    path = gelu(tmp_path / "m.onnx")
    r = winml("optimize", "-m", path, "--check-optim", "--enable-gelu-fusion")
    assert r.code == 0 and "ignored" in r.err
    for word in ("nothing is written", "--enable-gelu-fusion", "nodes: -4 +0 ~1", "removed: Add (1), Div (1), Erf (1), Mul (1)",
                 "com.microsoft::Gelu 'halve', was Mul", "constants: ~0 +0 -3", "nhwc-transformer"):
        assert word in r.out, word
    nothing = save(tmp_path / "n.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", [2])], [("y", [2])])
    r = winml("optimize", "-m", nothing, "--check-optim")
    assert r.code == 0 and "No other capability applies" in r.out


def test_six_nodes_unless_verbose(winml, tmp_path):
    nodes = [helper.make_node("Where", ["c", "x" if not i else f"w{i - 1}", "x"], [f"w{i}"], f"where{i}") for i in range(2)]
    parts = [f"p{i}" for i in range(9)]
    nodes += [helper.make_node("Split", ["w1"], parts, "split", axis=0), helper.make_node("Concat", parts[::-1], ["y"], axis=0)]
    path = save(tmp_path / "m.onnx", nodes, [("x", [9, 2]), ("c", [9, 2], TensorProto.BOOL)], [("y", [9, 2])])
    short, long = winml("optimize", "-m", path, "--check-optim").out, winml("optimize", "-m", path, "--check-optim", "-v").out
    assert "... and 2 more" in short and "... and" not in long
    assert long.count("      Slice '") > 8 > short.count("      Slice '")


def test_interrupt(winml, tmp_path):
    path = model("ocr-det")
    child = subprocess.run(["timeout", "--preserve-status", "-s", "INT", "0.05", WINML, "optimize", "-m", path, "--check-optim"],
                           capture_output=True, text=True, timeout=60, env={**os.environ, "WINML_CACHE_DIR": str(tmp_path)})
    assert child.returncode in (0, 1, 130) and "Traceback" not in child.stderr
    no_leftovers(os.path.dirname(path))


def test_errors(winml, tmp_path):
    broken = tmp_path / "b.onnx"
    broken.write_bytes(b"\x08\x08\x12")
    assert winml("optimize", "-m", broken, "--check-optim").code == 1
    assert winml("optimize", "-m", gelu(tmp_path / "m.onnx"), "--check-optim", "--ep", "qnn", "--device", "cpu").code == 2
    assert winml("optimize", "--check-optim").code == 2


# --- what a target wants ---

def high_rank(path):
    n = helper.make_node
    nodes = [n("Relu", ["x"], ["r"]), n("Reshape", ["r", "high"], ["a"]), n("Transpose", ["a"], ["b"], perm=[0, 1, 4, 5, 2, 3]),
             n("Reshape", ["b", "flat"], ["y"])]
    return save(path, nodes, [("x", [4, 64])], [("y", [4, 64])],
                {"high": np.array([2, 2, 4, 4, 2, 2], "i8"), "flat": np.array([4, 64], "i8")})


def split(path):
    n = helper.make_node
    nodes = [n("Split", ["x"], ["a", "b"], axis=1), n("Relu", ["a"], ["c"]), n("Add", ["c", "b"], ["y"])]
    return save(path, nodes, [("x", [2, 8])], [("y", [2, 4])], opset=13)


def wants(d):
    return {w["capability"]: w for w in d["target"]["wants"]}


def optimize(winml, path, out, *args):
    r = winml("optimize", "-m", path, "-o", out, "-f", "json", *args)
    assert r.code == 0, r.err
    check(str(out))
    same_answers(str(path), str(out))
    return r.json


def test_want_is_applied_and_listed(winml, tmp_path):
    need_vnpu()
    path, out = split(tmp_path / "m.onnx"), tmp_path / "o.onnx"
    d = optimize(winml, path, out, "--ep", "vnpu", "--device", "npu")
    assert wants(d)["static-split-to-slice"]["status"] == "applied" and ops(out).count("Slice") == 2
    assert d["target"]["placed_before"] == {"on_target": 3, "elsewhere": 0}
    assert d["target"]["placed_after"] == {"on_target": 4, "elsewhere": 0}
    d = optimize(winml, path, tmp_path / "p.onnx", "--ep", "vnpu", "--device", "npu", "--disable-static-split-to-slice")
    assert wants(d)["static-split-to-slice"]["reason"] == "switched off" and "Slice" not in ops(tmp_path / "p.onnx")


def test_want_that_is_a_loss_is_undone(winml, tmp_path):
    need_vnpu()
    path, out = split(tmp_path / "m.onnx"), tmp_path / "o.onnx"
    d = optimize(winml, path, out, "--ep", "vnpu", "--device", "npu", "--ep-options", "ops=Split,Relu,Add")
    assert "undone" in wants(d)["static-split-to-slice"]["reason"] and "Slice" not in ops(out)
    assert d["target"]["placed_after"]["elsewhere"] == 0
    d = optimize(winml, path, tmp_path / "p.onnx", "--ep", "vnpu", "--device", "npu", "--ep-options", "ops=Split,Relu,Add",
                 "--enable-static-split-to-slice")
    assert "Slice" in ops(tmp_path / "p.onnx"), "what was asked for by name is done"
    assert any("leaves 2 nodes" in w for w in d["warnings"])


def test_want_is_asked_of_the_ep(winml, tmp_path):
    need_vnpu()
    path, out = high_rank(tmp_path / "m.onnx"), tmp_path / "o.onnx"
    d = optimize(winml, path, out, "--ep", "vnpu", "--device", "npu")
    assert "by itself" in wants(d)["highdimRTR-lowdimRTR"]["reason"]
    assert [i.dims[0] for i in onnx.load(out).graph.initializer if i.dims == [6]], "the shape of rank 6 is still there"
    d = optimize(winml, path, tmp_path / "p.onnx", "--ep", "vnpu", "--device", "npu", "--ep-options", "ops=Relu,Reshape")
    assert wants(d)["highdimRTR-lowdimRTR"]["status"] == "applied"


def test_qnn_takes_no_rank_six(winml, tmp_path):
    need_qnn()
    path, out = high_rank(tmp_path / "m.onnx"), tmp_path / "o.onnx"
    d = optimize(winml, path, out, "--ep", "qnn", "--device", "npu")
    t, w = d["target"], wants(d)["highdimRTR-lowdimRTR"]
    assert t["status"] == "loads" and t["placed_after"]["elsewhere"] <= t["placed_before"]["elsewhere"]
    assert w["status"] == "applied" or "by itself" in w["reason"]


def test_openvino_says_its_version(winml, tmp_path):
    path = split(tmp_path / "m.onnx")
    d = run(winml, path, "--ep", "openvino", "--device", "gpu")
    w = wants(d)["untie-constant-batched-matmul"]
    assert w["status"] == "not applied" and ("2026.2" in w["reason"] or "not known" in w["reason"])


def test_clamp_bounds(winml, tmp_path):
    n = helper.make_node
    path = save(tmp_path / "m.onnx", [n("Add", ["x", "mask"], ["s"]), n("Softmax", ["s"], ["y"], axis=-1)], [("x", [2, 3])],
                [("y", [2, 3])], {"mask": np.array([0, -3.4e38, -np.inf], "f")})
    out = tmp_path / "o.onnx"
    for args, low in (([], None), (["--clamp-min", "-65504"], -65504), (["--enable-clamp-constant-values"], -1000)):
        r = winml("optimize", "-m", path, "-o", out, "--overwrite", "-f", "json", *args)
        assert r.code == 0, r.err
        mask = numpy_helper.to_array(onnx.load(out).graph.initializer[0])
        assert mask[1] == low if low else mask[1] < -1e38
    assert winml("optimize", "-m", path, "-o", out, "--overwrite", "--clamp-min", "5").code == 2
