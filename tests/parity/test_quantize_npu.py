"""From a float model to one for the NPU: optimized, quantized by the EP's rules, compiled; the EP takes all of it."""
import os

import onnx
import pytest

import judge
import minilm
from conftest import DEPS, model, need_qnn

NPU = ["--ep", "qnn", "--device", "npu"]


TEXTS = ["Quantization maps floating point numbers to integers.", "The stock market fell sharply today.", "12 + 30 = 42",
         "Two girls are playing football on the beach."]
PICTURES = {"ocr-cls": "x=1,3,48,192", "ocr-rec": "x=1,3,48,320"}


def source_of(name, folder):
    """The model, what fixes its sizes, what it is calibrated with."""
    if name != "minilm":
        return model(name), ["--input-shape", PICTURES[name]], []
    if not os.path.exists(f"{DEPS}/models/minilm/model.safetensors"):
        pytest.skip("the model minilm could not be fetched")
    onnx.save(minilm.build(f"{DEPS}/models/minilm"), folder / "minilm.onnx")
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    return folder / "minilm.onnx", ["--input-dim", "sequence=32"], ["--calibration-data", folder / "texts.txt", "--tokenizer", f"{DEPS}/models/minilm"]


# Cosines are those of plain minmax with a scale per tensor, less a margin: 8 bits are few for a BERT.
@pytest.mark.parametrize("name, precision, cosine", [("ocr-cls", "w8a8", 0.99), ("ocr-cls", "w8a16", 0.99), ("ocr-rec", "w8a8", 0.97),
                                                     ("ocr-rec", "w8a16", 0.97), ("minilm", "w8a8", 0.6), ("minilm", "w8a16", 0.97),
                                                     ("minilm", "mixed", 0.994)])
def test_the_npu_takes_the_whole_model(winml, tmp_path, name, precision, cosine):
    need_qnn()
    source, sizes, data = source_of(name, tmp_path)
    small, ints, out = tmp_path / "small.onnx", tmp_path / "ints.onnx", tmp_path / "out.onnx"
    r = winml("optimize", "-m", source, "-o", small, *sizes, *NPU, "--no-verify-target")
    assert r.code == 0, r.err
    r = winml("quantize", "-m", small, "-o", ints, "-p", *(["w8a8", "--auto-mixed"] if precision == "mixed" else [precision]), *data, *NPU, "-f", "json")
    assert r.code == 0, r.err
    assert r.json["qdq_nodes_inserted"] > 100 and r.json["accuracy"]["outputs"][0]["cosine"] > cosine
    target = r.json["target"]
    assert target["nodes"] == target["nodes_on_target"] > 100 and not target["left_in_float"] and not target["elsewhere"]
    judge.check(ints)
    r = winml("compile", "-m", ints, "-o", out, *NPU, "--ep-options", "soc_model=60", "--ep-options", "htp_arch=73", "-f", "json")
    assert r.code == 0, r.err
    judged = r.json["models"][0]
    # 8 bits are few for a BERT: single steps of rounding change its answers, on the CPU as well
    assert judged["validation_passed"] and (judged["cpu_cosine"] is not None) == ((name, precision) == ("minilm", "w8a8"))
    if judged["cpu_cosine"]:
        assert judged["cpu_cosine"] < 0.98 and "single steps of rounding" in judged["validation_note"]
        r = winml("compile", "-m", ints, "-o", tmp_path / "strict.onnx", *NPU, "--min-cosine", "0.9")
        assert r.code == 1 and "differs from the CPU result" in r.err and not (tmp_path / "strict.onnx").exists()
    # what is left beside the compiled part converts at the edges
    assert {n.op_type for n in onnx.load(out).graph.node} <= {"EPContext", "QuantizeLinear", "DequantizeLinear"}
    assert sum(n.op_type == "EPContext" for n in onnx.load(out).graph.node) == 1
