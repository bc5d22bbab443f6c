"""optimize --input-shape and --input-dim: a dynamic model becomes a static one, and sizes it cannot run with are refused."""
import onnx
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


def test_real_model_becomes_static(winml, tmp_path):
    ins, outs, report = fixed(winml, model("ocr-cls"), tmp_path, "--input-shape", "x=1,3,48,192", "--opset", "17")
    assert ins == {"x": [1, 3, 48, 192]} and list(outs.values()) == [[1, 2]]
    assert report["opset"] == 17 and report["warnings"] == []
    judge.same_answers(model("ocr-cls"), tmp_path / "o.onnx", {"x": [1, 3, 48, 192]}, seeds=(0,), rtol=1e-3)
