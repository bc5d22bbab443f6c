"""From a float model to one for the NPU: optimized, quantized by the EP's rules, compiled; the EP takes all of it."""
import onnx
import pytest

import judge
from conftest import model, need_qnn

NPU = ["--ep", "qnn", "--device", "npu"]


@pytest.mark.parametrize("precision", ["w8a8", "w8a16"])
def test_the_npu_takes_the_whole_model(winml, tmp_path, precision):
    need_qnn()
    small, ints, out = tmp_path / "small.onnx", tmp_path / "ints.onnx", tmp_path / "out.onnx"
    r = winml("optimize", "-m", model("ocr-cls"), "-o", small, "--input-shape", "x=1,3,48,192", *NPU, "--no-verify-target")
    assert r.code == 0, r.err
    r = winml("quantize", "-m", small, "-o", ints, "-p", precision, *NPU, "-f", "json")
    assert r.code == 0, r.err
    assert r.json["qdq_nodes_inserted"] > 100 and r.json["accuracy"]["outputs"][0]["cosine"] > 0.99
    judge.check(ints)
    r = winml("compile", "-m", ints, "-o", out, *NPU, "--ep-options", "soc_model=60", "--ep-options", "htp_arch=73", "-f", "json")
    assert r.code == 0, r.err
    # what is left beside the compiled part converts at the edges
    assert {n.op_type for n in onnx.load(out).graph.node} <= {"EPContext", "QuantizeLinear", "DequantizeLinear"}
    assert sum(n.op_type == "EPContext" for n in onnx.load(out).graph.node) == 1
