"""Inputs that broke other tools: what README.md in tests/data/bugs says, for every command."""
import glob
import os

import numpy as np
import onnx
import pytest

from conftest import BUGS, bug, need_vnpu, no_leftovers
from judge import check, ops, same_answers, session

ALL = sorted(os.path.relpath(p, BUGS)[:-5] for p in glob.glob(f"{BUGS}/**/*.onnx", recursive=True))
BROKEN = {"b69_ir_absent": "ir_version", "b69_opset_absent": "opset_import", "b69_ir_99": "99", "b69_opset_999": "999",
          "b70_cut_by_one": "byte 191", "b70_cut_in_weights": "byte ", "b70_empty": "empty", "b70_html_page": "web page",
          "b70_length_is_huge": "byte ", "b70_lfs_pointer": "Git LFS pointer", "duplicate_value": "'a' is produced by",
          "external_escape": "leaves the model's folder", "external_missing": "nowhere.data"}
COMPILED = [n for n in ALL if n.startswith("b54")]
READABLE = {"b69_ir_absent", "b69_opset_absent", "b69_ir_99", "b69_opset_999", "external_escape", "external_missing"}
NO_KERNEL = {"functions_custom"}
GOOD = [n for n in ALL if n not in BROKEN and n not in COMPILED]


def test_they_are_all_here():
    assert len(ALL) >= 55


@pytest.mark.parametrize("name", ALL)
def test_inspect(winml, name):
    r = winml("inspect", "-m", bug(name), "-f", "json")
    if name in BROKEN and name not in READABLE:
        assert r.code == 1 and BROKEN[name] in r.json["error"]["message"]
    else:
        assert r.code == 0, r.err
        assert r.json["nodes"] >= 1


@pytest.mark.parametrize("name", ALL)
def test_optimize(winml, tmp_path, name):
    out = tmp_path / "o.onnx"
    r = winml("optimize", "-m", bug(name), "-o", out, "-f", "json")
    no_leftovers(tmp_path)
    if name in COMPILED:
        assert r.code == 2 and "already compiled for QNNExecutionProvider" in r.json["error"]["message"] and not out.exists()
    elif name in BROKEN:
        assert r.code == 1 and BROKEN[name] in r.json["error"]["message"] and not out.exists()
        assert "\n" not in r.json["error"]["message"]
    else:
        assert r.code == 0, r.err
        assert r.json["verify"]["cpu"]["status"] == ("not verified" if name in NO_KERNEL else "passed")
        again = tmp_path / "again.onnx"
        assert winml("optimize", "-m", out, "-o", again).code == 0
        assert again.read_bytes() == out.read_bytes()
        if name not in NO_KERNEL | {"b73_equal_node_names", "b71_sequences"}:
            same_answers(bug(name), str(out), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", [n for n in ALL if n not in GOOD])
def test_perf_and_compile_refuse(winml, tmp_path, name):
    need_vnpu()
    p = winml("perf", "-m", bug(name), "--iterations", "1", "--warmup", "0", "-o", tmp_path / "r.json", "-f", "json")
    assert p.code in (1, 3) and p.json["error"]["message"] and not (tmp_path / "r.json").exists()
    c = winml("compile", "-m", bug(name), "-o", tmp_path / "c.onnx", "--ep", "vnpu", "--device", "npu", "-f", "json")
    assert c.code == 1 and not (tmp_path / "c.onnx").exists()
    if name in COMPILED:
        assert "already compiled" in c.json["error"]["message"]
    no_leftovers(tmp_path)


@pytest.mark.parametrize("name", [n for n in GOOD if n not in NO_KERNEL])
def test_perf(winml, tmp_path, name):
    r = winml("perf", "-m", bug(name), "--ep", "cpu", "--iterations", "2", "--warmup", "1", "-o", tmp_path / "r.json", "-f", "json")
    if name == "b73_equal_node_names":
        assert r.code == 3 and "same node name" in r.json["error"]["message"]
        return
    assert r.code == 0, r.err
    assert len(r.json["raw_samples_ms"]) == 2
    if name == "b29_norm_scale_broadcasts_wide":
        assert r.json["benchmark_info"]["session_level"] == "basic"
    if name.startswith("b26"):
        assert r.json["benchmark_info"]["session_level"] == "disabled" and "works" in r.json["benchmark_info"]["session_level_note"]


@pytest.mark.parametrize("name", [n for n in GOOD if n not in NO_KERNEL | {"b73_equal_node_names"}])
def test_compile(winml, tmp_path, name):
    need_vnpu()
    r = winml("compile", "-m", bug(name), "-o", tmp_path / "c.onnx", "--ep", "vnpu", "--device", "npu", "-f", "json")
    no_leftovers(tmp_path)
    if r.code == 0:
        assert r.json["models"][0]["validation_passed"] and "EPContext" in ops(tmp_path / "c.onnx")
    else:
        # nothing in it that the device takes, or types it does not run: said in one sentence, nothing left
        assert r.code in (1, 3) and r.json["error"]["message"] and not (tmp_path / "c.onnx").exists()


def optimized(winml, tmp_path, name, *args):
    out = tmp_path / "o.onnx"
    r = winml("optimize", "-m", bug(name), "-o", out, "-f", "json", *args)
    assert r.code == 0, r.err
    return onnx.load(out), r.json


def test_no_op_between_constants_goes(winml, tmp_path):
    for name in ("b26_edge_after_fusion_cast", "b26_edge_after_fusion_dropout"):
        m, _ = optimized(winml, tmp_path, name, "--overwrite")
        assert len(m.graph.node) <= 1


def test_captured_value(winml, tmp_path):
    m, _ = optimized(winml, tmp_path, "b33_captured_by_branch")
    assert [n.op_type for n in m.graph.node] == ["If"] and len(m.graph.initializer) == 1


def test_shared_weight_is_copied_once(winml, tmp_path):
    m, _ = optimized(winml, tmp_path, "b35_shared_weight_one_norm")
    assert [n.op_type for n in m.graph.node].count("Conv") == 2 and "BatchNormalization" not in [n.op_type for n in m.graph.node]
    a, b = session(bug("b35_shared_weight_one_norm")), session(str(tmp_path / "o.onnx"))
    x = {i.name: np.random.default_rng(3).standard_normal(i.shape).astype("f") for i in a.get_inputs()}
    names = [o.name for o in a.get_outputs()]
    before, after = dict(zip(names, a.run(None, x))), dict(zip(names, b.run(None, x)))
    assert np.array_equal(before["y2"], after["y2"])


def test_quantised_weights_stay(winml, tmp_path):
    m, d = optimized(winml, tmp_path, "b38_int8_weight_stays")
    assert [n.op_type for n in m.graph.node].count("DequantizeLinear") == [n.op_type for n in onnx.load(bug("b38_int8_weight_stays")).graph.node].count("DequantizeLinear")
    assert any(t.data_type == onnx.TensorProto.INT8 for t in m.graph.initializer)
    for name in ("b74_blocked_int4_axis0", "b74_blocked_int4_axis1"):
        m, _ = optimized(winml, tmp_path, name, "--overwrite")
        assert any(t.data_type == onnx.TensorProto.INT4 for t in m.graph.initializer)
        assert any(a.name == "block_size" for n in m.graph.node for a in n.attribute)


def test_roles_of_constants(winml, tmp_path):
    m, _ = optimized(winml, tmp_path, "b39_constant_roles")
    assert "k" in [o.name for o in m.graph.output] and "k" in [t.name for t in m.graph.initializer]
    assert "w" in [i.name for i in m.graph.input] and "z" in [o.name for o in m.graph.output]
    s = session(str(tmp_path / "o.onnx"))
    feed = {i.name: np.ones([d if isinstance(d, int) else 1 for d in i.shape], "f") for i in s.get_inputs()}
    w = next(t for t in m.graph.initializer if t.name == "w")
    one = s.run(["y"], feed)[0]
    two = s.run(["y"], {**feed, "w": 5 * np.ones(list(w.dims), "f")})[0]
    assert not np.array_equal(one, two)


def test_node_names_become_unique(winml, tmp_path):
    m, d = optimized(winml, tmp_path, "b73_equal_node_names")
    names = [n.name for n in m.graph.node]
    assert len(set(names)) == len(names)
    assert next(p for p in d["passes"] if p["name"] == "unique-node-names")["applied"] >= 4
    s = session(str(tmp_path / "o.onnx"))
    x = np.array([[1.5, -3.0]], "f").reshape([d if isinstance(d, int) else 1 for d in s.get_inputs()[0].shape])
    k = np.array([0.5, -2.0], "f")
    np.testing.assert_allclose(s.run(None, {s.get_inputs()[0].name: x})[0], np.abs((x + k) * k) - x, rtol=1e-6)


def test_opset_imported_once(winml, tmp_path):
    m, _ = optimized(winml, tmp_path, "b69_opset_alias_twice")
    assert [o.domain for o in m.opset_import] in ([""], ["ai.onnx"])


def test_unused_goes(winml, tmp_path):
    m, _ = optimized(winml, tmp_path, "initializer_roles")
    assert "unused" not in [t.name for t in m.graph.initializer] and "table" in [o.name for o in m.graph.output]
    assert "k" in [i.name for i in m.graph.input]


def test_odd_dims_with_a_shape(winml, tmp_path):
    m, d = optimized(winml, tmp_path, "odd_dims", "--input-shape", "x=1,3,8,8")
    assert [v.dim_value for v in m.graph.input[0].type.tensor_type.shape.dim] == [1, 3, 8, 8]


LEAST = {"w8a8": 25, "fp16": 55, "int4": 15, "dynamic": 30}  # dB
CANNOT = ("nothing can be quantised", "quantised already", "no MatMul with", "with a constant float32 weight", "that could become float16",
          "dynamic quantization needs opset 11")


@pytest.mark.parametrize("name", ALL)
def test_quantize(winml, tmp_path, name):
    """Refused for a reason that is known beforehand, or whole: checked, loads, answers like the source, the same bytes twice."""
    source, out = bug(name), tmp_path / "q.onnx"
    for precision, least in LEAST.items():
        out.unlink(missing_ok=True)
        r = winml("quantize", "-m", source, "-o", out, "-p", precision, "-f", "json")
        no_leftovers(tmp_path)
        assert out.exists() == (r.code == 0)
        if name in COMPILED:
            assert r.code == 2 and "already compiled for QNNExecutionProvider" in r.json["error"]["message"]
        elif name in BROKEN:
            assert r.code == 1 and BROKEN[name] in r.json["error"]["message"] and "\n" not in r.json["error"]["message"]
        elif name in NO_KERNEL and precision == "w8a8":
            assert r.code == 3 and "no operator Magic" in r.json["error"]["message"]
        elif r.code:
            assert r.code == 1 and any(c in r.json["error"]["message"] for c in CANNOT) and "Hint: " in r.err, r.err
        else:
            check(str(out))
            rows = r.json["accuracy"].get("outputs", [])
            assert rows or name in NO_KERNEL | {"b73_equal_node_names"}
            assert all(row.get("sqnr_db") is None or row["sqnr_db"] > least for row in rows), rows
            if precision == "w8a8":
                first = out.read_bytes()
                assert winml("quantize", "-m", source, "-o", out, "-p", precision, "--overwrite").code == 0
                assert out.read_bytes() == first
