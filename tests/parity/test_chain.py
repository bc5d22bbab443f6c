"""quantize with several -p: what the passes give one by one, each from the file of the one before."""
import onnx
import pytest
from onnxruntime.transformers.float16 import convert_float_to_float16

import judge
from conftest import model
from test_fp16 import contents, parse

TWO_LAYERS = parse(17, "(float[1,3,8,8] x) => (float[1,10] y) <float[8,3,3,3] w = ?, float[8] b = ?, int64[2] s = {1, 512}, float[512,10] v = ?, float[10] c = ?>"
                   " { a = Conv<pads=[1,1,1,1]>(x, w, b)  r = Relu(a)  f = Reshape(r, s)  m = MatMul(f, v)  y = Add(m, c) }")


@pytest.fixture
def quantize(winml, tmp_path):
    def run(source, name, *args):
        out = tmp_path / f"{name}.onnx"
        r = winml("quantize", "-m", source, "-o", out, "--samples", 2, "-f", "json", *args)
        assert r.code == 0, r.err
        judge.check(str(out))
        return str(out), r.json
    return run


def source_of(name, tmp_path):
    if name != "two_layers":
        return model(name)
    onnx.save(TWO_LAYERS, tmp_path / "m.onnx")
    return str(tmp_path / "m.onnx")


@pytest.mark.parametrize("name, passes, db", [
    ("two_layers", ["fp16", "w8a16"], 30), ("two_layers", ["int4", "w8a8"], 10), ("two_layers", ["int4", "w8a8", "fp16"], 10), ("two_layers", ["dynamic", "fp16"], 20),
    ("filetype", ["dynamic", "fp16"], 10), ("filetype", ["int4", "fp16"], 5), ("ocr-cls", ["fp16", "w8a16"], 10)])
def test_as_one_by_one(quantize, tmp_path, name, passes, db):
    source = source_of(name, tmp_path)
    at_once, r = quantize(source, "chain", *(a for p in passes for a in ("-p", p)))
    step, nodes = source, 0
    for i, p in enumerate(passes):
        step, s = quantize(step, f"step{i}", "-p", p)
        nodes += s["nodes_quantized"]
    assert contents(onnx.load(at_once).graph) == contents(onnx.load(step).graph)
    assert r["nodes_quantized"] == nodes and len(r["passes"]) == len(passes)
    assert min(o["sqnr_db"] for o in r["accuracy"]["outputs"]) > db


def test_w4a16_is_int4_and_then_the_converter(quantize, tmp_path):
    source = source_of("two_layers", tmp_path)
    int4, _ = quantize(source, "int4", "-p", "int4", "--block-size", 32)
    both, _ = quantize(source, "both", "-p", "w4a16", "--block-size", 32)
    theirs = convert_float_to_float16(onnx.load(int4), keep_io_types=True)
    assert contents(onnx.load(both).graph) == contents(theirs.graph)
    assert {"MatMulNBits", "Conv"} <= set(judge.ops(both))
