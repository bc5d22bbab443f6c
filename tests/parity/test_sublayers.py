"""Layers of transformers as exporters write them: the fusions find them, and answers stay the same."""
import onnx
import pytest
from onnx import TensorProto

import sublayers as form
from judge import check, ops, same_answers

SHAPES = {"x": [2, 7, 32], "z": [2, 5, 32], "mask": [2, 7], "qkv": [2, 7, 96], "position_bias": [1, 4, 7, 7], "ids": [2, 7], "segments": [2, 7], "positions": [1, 7]}


def optimise(winml, tmp_path, model, *flags):
    source, out = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(model, source)
    r = winml("optimize", "-m", source, "-o", out, "--overwrite", "--no-verify", "-v", *flags)
    assert r.code == 0, r.err
    check(str(out))
    shapes = {i.name: [d.dim_value or SHAPES[i.name][k] for k, d in enumerate(i.type.tensor_type.shape.dim)] for i in model.graph.input}
    if "z" in shapes:
        shapes["mask"] = [2, 5]
    same_answers(str(source), str(out), shapes, rtol=1e-4, atol=1e-5)
    return ops(str(out)), r


ATTENTION = {
    "bert": (form.bert, "Attention"),
    "bert, fixed sizes": (lambda: form.bert(2, 7), "Attention"),
    "bert, three layers": (lambda: form.bert(layers=3), "Attention"),
    "bert, constant shapes": (lambda: form.bert(dynamic=False, scale="query"), "Attention"),
    "bert, opset 14": (lambda: form.bert(opset=14), "Attention"),
    "distilbert": (form.distilbert, "Attention"),
    "vit": (form.vit, "Attention"),
    "timm": (form.timm, "Attention"),
    "timm, projected elsewhere": (lambda: form.timm(constant=False), "MultiHeadAttention"),
    "sdpa": (form.sdpa, "Attention"),
    "sdpa, written out as a function": (form.sdpa_function, "Attention"),
    "sdpa, open length": (lambda: form.sdpa_function(length="length"), "Attention"),
    "gpt2": (form.gpt2, "Attention"),
    "clip": (form.clip, "Attention"),
    "t5": (form.t5, "Attention"),
    "cross": (form.cross, "MultiHeadAttention"),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(winml, tmp_path, name):
    make, op = ATTENTION[name]
    model = make()
    got, r = optimise(winml, tmp_path, model, "--enable-attention-fusion")
    softmax = sum(n.op_type == "Softmax" for n in model.graph.node)
    assert got.count(op) == softmax and "Softmax" not in got, (got, r.out, r.err)


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_of_onnx(winml, tmp_path, name):
    model = ATTENTION[name][0]()
    model.opset_import[0].version = 23
    onnx.checker.check_model(model, full_check=True)
    got, r = optimise(winml, tmp_path, model, "--enable-attention-onnx-fusion")
    softmax = sum(n.op_type == "Softmax" for n in model.graph.node)
    assert got.count("Attention") == softmax and "Softmax" not in got, (got, r.out, r.err)


EMBEDDINGS = {
    "bert": ({}, 0),
    "bert, fixed sizes": ({"batch": 2, "length": 7}, 0),
    "bert, 32 bits": ({"dtype": TensorProto.INT32}, 0),
    "bert, its sum is read": ({"summed": True}, 0),
    "distilbert": ({"segments": False}, 0),
    "distilbert, fixed sizes": ({"segments": False, "length": 7}, 0),
    "roberta": ({"positions": "counted"}, 1),
    "positions given": ({"positions": [1, "length"]}, 1),
}


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings(winml, tmp_path, name):
    how, explicit = EMBEDDINGS[name]
    optimise(winml, tmp_path, form.embeddings(**how), "--enable-embed-layer-norm-fusion")
    nodes = onnx.load(tmp_path / "after.onnx").graph.node
    fused = [n for n in nodes if n.op_type == "EmbedLayerNormalization"]
    assert len(fused) == 1 and "LayerNormalization" not in [n.op_type for n in nodes] and (len(fused[0].input) > 8) == explicit, nodes
