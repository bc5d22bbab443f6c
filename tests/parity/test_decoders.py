"""Decoders of several forms: what becomes of them, and that prompts, continued prompts and single steps answer alike."""
from collections import Counter

import numpy as np
import onnx
import pytest

from decoders import Form, decoder, feeds
from judge import check, ops, session

FUSIONS = ("rotary-embedding-fusion", "group-query-attention-fusion", "skip-simplified-layer-norm-fusion", "quick-gelu-fusion")
ONE = ((1, 4, 0, 0), (1, 3, 5, 0), (1, 1, 4, 0), (1, 1, 6, 2), (1, 3, 5, 2)) # batch, new, past, padded
MORE = ONE + ((2, 3, 5, 2), (2, 1, 3, 0), (3, 4, 0, 0))


def optimise(winml, tmp_path, form, *flags):
    source, out = tmp_path / "decoder.onnx", tmp_path / "optimised.onnx"
    onnx.save(decoder(form), source)
    r = winml("optimize", "-m", source, "-o", out, "-f", "json", "--no-verify", *flags)
    assert r.code == 0, r.err
    check(str(out))
    return source, out


def alike(form, source, out, runs):
    a, b = session(str(source)), session(str(out))
    assert [o.name for o in a.get_outputs()] == [o.name for o in b.get_outputs()]
    for run in runs:
        f = feeds(form, *run)
        for name, x, y in zip([o.name for o in a.get_outputs()], a.run(None, f), b.run(None, f)):
            assert x.shape == y.shape, (run, name)
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=2e-5, err_msg=f"{name} of {run}")


def asked(*more):
    return [f"--enable-{f}" for f in (*FUSIONS, *more)]


@pytest.mark.parametrize("form", [Form(), Form(head_norms=True), Form(tables="gathered"), Form(padding=False), Form(rotated=4),
                                  Form(groups=4), Form(groups=1), Form(opset=18)], ids=repr)
def test_one_batch_becomes_group_query_attention(winml, tmp_path, form):
    source, out = optimise(winml, tmp_path, form, *asked())
    have = Counter(ops(out))
    assert have["GroupQueryAttention"] == form.layers and have["RotaryEmbedding"] == 2 * form.layers
    assert have["SkipSimplifiedLayerNormalization"] == 2 * form.layers and have["QuickGelu"] == form.layers
    assert not {"Softmax", "Expand", "Neg", "Slice"} & set(have), have
    uses_mask = {len(n.input) > 10 and bool(n.input[10]) for n in onnx.load(out).graph.node if n.op_type == "GroupQueryAttention"}
    assert uses_mask == {form.padding}, "the mask goes in only where it hides more than the future"
    alike(form, source, out, ONE)


@pytest.mark.parametrize("form", [Form(opset=23, batch="batch"), Form(opset=23, batch="batch", head_norms=True),
                                  Form(opset=23, batch="batch", tables="gathered"), Form(opset=23, batch="batch", rotated=4)], ids=repr)
def test_standard_operators_from_opset_23(winml, tmp_path, form):
    source, out = optimise(winml, tmp_path, form, "--enable-group-query-attention-fusion")
    have = Counter(ops(out))
    assert have["Attention"] == form.layers and have["RotaryEmbedding"] == 2 * form.layers
    assert have["RMSNormalization"] == (4 if form.head_norms else 2) * form.layers + 1
    assert {i.domain for i in onnx.load(out).opset_import} == {""}
    alike(form, source, out, MORE)


@pytest.mark.parametrize("form", [Form(batch="batch"), Form(batch="batch", head_norms=True, padding=False)], ids=repr)
def test_by_default_shapes_are_known_and_operators_standard(winml, tmp_path, form):
    source, out = optimise(winml, tmp_path, form)
    m = onnx.load(out)
    have = Counter(n.op_type for n in m.graph.node)
    assert {i.domain for i in m.opset_import} == {""} and have["Softmax"] == form.layers
    assert have["Shape"] <= 4 + 2 * form.layers and not have["Equal"], have
    alike(form, source, out, MORE)


def test_open_batch_with_a_past_is_refused_with_the_reason(winml, tmp_path):
    source = tmp_path / "decoder.onnx"
    onnx.save(decoder(Form(batch="batch")), source)
    r = winml("optimize", "-m", source, "-o", tmp_path / "o.onnx", "--no-verify", "-v", *asked())
    assert r.code == 0 and "GroupQueryAttention" not in ops(tmp_path / "o.onnx")
    assert "GroupQueryAttention takes one batch" in r.out + r.err


def test_queries_that_see_nothing_are_the_only_difference(winml, tmp_path):
    """Left padding in a prompt: GroupQueryAttention gives other answers for rows of padding, and only for those."""
    form = Form(layers=1)
    source, out = optimise(winml, tmp_path, form, *asked())
    f = feeds(form, 1, 4, 0, padded=2)
    x, y = (session(str(p)).run(["logits"], f)[0] for p in (source, out))
    np.testing.assert_allclose(x[:, 2:], y[:, 2:], rtol=1e-4, atol=2e-5)
