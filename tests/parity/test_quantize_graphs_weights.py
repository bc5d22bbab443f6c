"""Random models (quantize_graphs.py) in half floats, with weights in blocks, and quantised while they run: what ONNX Runtime's
own tools make, bit for bit. Operators for which docs/differences.md promises something else are not drawn.
More seeds: WINML_SEEDS=100-500 pytest tests/parity/test_quantize_graphs_weights.py"""
import collections
import os

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.float16 import convert_float_to_float16

import qdq_models
from test_dynamic import integers
import test_fp16
import test_rtn
from qdq_oracle import hoist
from quantize_graphs import generate

SEEDS = range(*map(int, os.environ.get("WINML_SEEDS", "0-60").split("-")))


def drawn(seed, kind, fits, **more):
    """The first model of a seed that fits."""
    models = (generate([seed, kind, i], **more) for i in range(200))
    return next(m for m in models if fits(m))


def ops(model):
    return {n.op_type for n in model.graph.node}


def ranks(model):
    return {w.name: len(w.dims) for w in model.graph.initializer}


def run(path, feeds):
    return test_fp16.judge.session(str(path)).run(None, feeds)


def same_answers(model, own, other):
    feeds = qdq_models.feeds_of(model, 1)[0]
    for a, b in zip(run(own, feeds), run(other, feeds)):
        np.testing.assert_array_equal(a, b)


STAY_FLOAT = {"Min", "Max", "CumSum", "TopK", "Celu"}


def becomes_half(m):
    """An input that nothing reads gets no Cast, and what a Cast makes is an output as it is."""
    read, cast = {i for n in m.graph.node for i in n.input}, {n.output[0] for n in m.graph.node if n.op_type == "Cast"}
    return not ops(m) & STAY_FLOAT and all(i.name in read for i in m.graph.input) and not any(o.name in cast for o in m.graph.output)


@pytest.mark.parametrize("seed", SEEDS)
def test_half_floats(winml, tmp_path, seed):
    opset = int(np.random.default_rng(seed).integers(13, 22))
    m = drawn(seed, 2, becomes_half, opset=opset)
    source, own, other = tmp_path / "m.onnx", tmp_path / "o.onnx", tmp_path / "t.onnx"
    onnx.save(m, source)
    r = winml("quantize", "-m", source, "-o", own, "-p", "fp16", "--no-accuracy")
    assert r.code == 0, r.err
    theirs = convert_float_to_float16(onnx.load(source), keep_io_types=True)
    onnx.save(theirs, other)
    ours = onnx.load(own)
    onnx.checker.check_model(ours, full_check=True)
    assert test_fp16.contents(ours.graph) == test_fp16.contents(theirs.graph)
    same_answers(m, own, other)


def has_matrix(m):
    r = ranks(m)
    products = [n for n in m.graph.node if n.op_type == "MatMul" and n.input[1] in r]
    return products and all(r[n.input[1]] < 3 for n in products) and any(r[n.input[1]] == 2 for n in products)


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_in_blocks(winml, tmp_path, seed):
    rng = np.random.default_rng(seed)
    m = hoist(drawn(seed, 3, lambda m: has_matrix(hoist(m)), opset=int(rng.integers(17, 22)), dtype="fe"[rng.integers(2)]))
    bits, block, symmetric = (4, 8)[rng.integers(2)], int(2 ** rng.integers(4, 9)), bool(rng.integers(2))
    source, own, other = tmp_path / "m.onnx", tmp_path / "o.onnx", tmp_path / "t.onnx"
    onnx.save(m, source)
    r = winml("quantize", "-m", source, "-o", own, "-p", "int4" if bits == 4 else "w8a32", "--block-size", block, "--no-accuracy",
              "--rtn-symmetric" if symmetric else "--no-rtn-symmetric")
    assert r.code == 0, r.err
    test_rtn.theirs(m, other, bits, block, symmetric)
    test_rtn.equal(own, other)
    same_answers(m, own, other)


def has_integers(m):
    """No branches, which ONNX Runtime's tool leaves float, no Gemm of activations, and no Transpose of values that are quantised for others."""
    made = {o: n.op_type for n in m.graph.node for o in n.output}
    moved = {n.input[0] for n in m.graph.node if n.op_type == "Transpose" and made.get(n.input[0]) not in ("Gather", "Transpose")}
    products = [n for n in m.graph.node if n.op_type in ("Conv", "MatMul", "Gemm")]
    others = "If" in ops(m) or any(n.input[0] in moved or (n.op_type == "Gemm" and n.input[1] not in ranks(m)) for n in products)
    return not others and any(n.op_type != "Gemm" and n.input[1] in ranks(m) for n in products)


def has_columns(m):
    return all(ranks(m).get(n.input[1], 2) == 2 for n in m.graph.node if n.op_type == "MatMul")


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamic(winml, tmp_path, seed):
    rng = np.random.default_rng(seed)
    m = hoist(drawn(seed, 4, lambda m: has_integers(hoist(m)), opset=int(rng.integers(13, 22))))
    signed, channels, reduced = bool(rng.integers(2)) and "Conv" not in ops(m), bool(rng.integers(2)) and has_columns(m), rng.random() < 0.2
    flags = ["--weight-type", "int8" if signed else "uint8"] + ["--per-channel"] * channels + ["--reduce-range"] * reduced
    source, own, other = tmp_path / "m.onnx", tmp_path / "o.onnx", tmp_path / "t.onnx"
    onnx.save(m, source)
    r = winml("quantize", "-m", source, "-o", own, "-p", "dynamic", "--no-accuracy", *flags)
    assert r.code == 0, r.err
    quantize_dynamic(source, other, weight_type=QuantType.QInt8 if signed else QuantType.QUInt8, per_channel=channels, reduce_range=reduced)
    count = [collections.Counter(n.op_type for n in onnx.load(p).graph.node) for p in (own, other)]
    assert count[0] == count[1]
    a, b = integers(own), integers(other)
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    same_answers(m, own, other)
