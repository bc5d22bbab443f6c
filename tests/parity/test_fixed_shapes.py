"""optimize --input-shape and --input-dim: a dynamic model becomes a static one, and sizes it cannot run with are refused."""
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import judge
from conftest import model

TWO = '<ir_version: 8, opset_import: ["" : 17]> g (float[n,m] x, float[n,k] z) => (float[n,m] y, float[n,k] w) { y = Relu(x)  w = Relu(z) }'
RESHAPE = '<ir_version: 8, opset_import: ["" : 17]> g (float[n,m] x) => (float[p,2] y) <int64[2] s = {-1,2}> { y = Reshape(x, s) }'


def saved(tmp_path, text):
    path = tmp_path / "m.onnx"
    onnx.save(parser.parse_model(text), path)
    return path


def sizes(values):
    return {v.name: [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in v.type.tensor_type.shape.dim] for v in values}


def fixed(winml, path, tmp_path, *flags):
    out = tmp_path / "o.onnx"
    r = winml("optimize", "-m", path, "-o", out, "--overwrite", "-f", "json", *flags)
    assert r.code == 0, r.err
    judge.check(out)
    g = onnx.load(out).graph
    return sizes(g.input), sizes(g.output), r.json


@pytest.mark.parametrize("flags", [["--input-shape", "x=3,4", "--input-dim", "k=5"], ["--input-shape", "x=3,4", "--input-shape", "z=,5"],
                                   ["--input-dim", "n=3", "--input-dim", "m=4", "--input-dim", "k=5"]])
def test_a_symbol_has_one_size(winml, tmp_path, flags):
    ins, outs, report = fixed(winml, saved(tmp_path, TWO), tmp_path, *flags)
    assert ins == {"x": [3, 4], "z": [3, 5]} and outs == {"y": [3, 4], "w": [3, 5]}
    assert report["warnings"] == [] and report["verify"]["cpu"]["status"] == "passed"


def test_what_is_open_is_said(winml, tmp_path):
    ins, _, report = fixed(winml, saved(tmp_path, TWO), tmp_path, "--input-shape", "x=3,4")
    assert ins == {"x": [3, 4], "z": [3, "k"]}
    assert report["warnings"] == ["input 'z' is still open: float[3,k]"]


def test_typed_shapes_may_differ(winml, tmp_path):
    ins, outs, _ = fixed(winml, saved(tmp_path, TWO), tmp_path, "--input-shape", "x=3,4", "--input-shape", "z=2,5")
    assert ins == {"x": [3, 4], "z": [2, 5]} and outs == {"y": [3, 4], "w": [2, 5]}


def test_sizes_that_cannot_run_are_refused(winml, tmp_path):
    path, out = saved(tmp_path, RESHAPE), tmp_path / "o.onnx"
    r = winml("optimize", "-m", path, "-o", out, "--input-shape", "x=3,3")
    assert r.code == 2 and "--input-shape" in r.err and "cannot be reshaped" in r.err and not out.exists()
    _, outs, _ = fixed(winml, path, tmp_path, "--input-shape", "x=3,4")
    assert outs == {"y": [6, 2]}


BRANCHES = """<ir_version: 8, opset_import: ["" : 17]> g (float[n,m] x, bool c) => (float[a,b] y) <int64[1] zero = {0}, int64[1] one = {1}, int64[2] all = {4,-1}> {
    h = Relu(x)
    y = If(c) <then_branch = t () => (float[k,l] ty) { f = Squeeze(h, zero)  ty = Unsqueeze(f, one) },
               else_branch = e () => (float[k2,l2] ey) { f2 = Reshape(h, all)  ey = Abs(f2) }>
}"""


def test_a_branch_that_does_not_fit_only_fails_when_taken(winml, tmp_path):
    path, out = saved(tmp_path, BRANCHES), tmp_path / "o.onnx"
    np.savez(tmp_path / "else.npz", x=np.ones((3, 4), "f4"), c=np.array(False))
    _, _, report = fixed(winml, path, tmp_path, "--input-shape", "x=3,4", "--input-data", tmp_path / "else.npz")
    assert {p["name"]: p["applied"] for p in report["passes"]}["impossible-branch-elimination"] == 1
    session = onnxruntime.InferenceSession(str(out))
    x = -np.ones((3, 4), "f4")
    assert np.array_equal(session.run(None, {"x": x, "c": np.array(False)})[0], np.zeros((4, 3), "f4"))
    with pytest.raises(Exception, match="this_branch_does_not_fit_the_sizes"):
        session.run(None, {"x": x, "c": np.array(True)})
    # one row fits both, and open sizes may
    for flags in (["--input-shape", "x=1,4"], []):
        _, _, report = fixed(winml, path, tmp_path, *flags)
        assert {p["name"]: p["applied"] for p in report["passes"]}["impossible-branch-elimination"] == 0


def test_a_real_model_with_such_a_branch_loads_everywhere(winml, tmp_path):
    np.savez(tmp_path / "in.npz", input=np.ones((1, 576), "f4"), state=np.zeros((2, 1, 128), "f4"), sr=np.array(16000))
    _, _, report = fixed(winml, model("vad"), tmp_path, "--input-shape", "input=1,576", "--input-shape", "state=2,1,128", "--input-data",
                         tmp_path / "in.npz")
    assert report["nodes"]["all_after"] < 200 and report["warnings"] == []
    onnxruntime.InferenceSession(str(tmp_path / "o.onnx"))  # with ORT's optimisations: the pinned source does not load so


def test_real_model_becomes_static(winml, tmp_path):
    ins, outs, report = fixed(winml, model("ocr-cls"), tmp_path, "--input-shape", "x=1,3,48,192", "--opset", "17")
    assert ins == {"x": [1, 3, 48, 192]} and list(outs.values()) == [[1, 2]]
    assert report["opset"] == 17 and report["warnings"] == []
    judge.same_answers(model("ocr-cls"), tmp_path / "o.onnx", {"x": [1, 3, 48, 192]}, seeds=(0,), rtol=1e-3)
