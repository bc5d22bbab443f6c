"""Exports with an open batch: what they compute from shapes is read from the input once, and answers are those of any size."""
import os
import subprocess
from collections import Counter

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from conftest import WINML

MAKE = os.path.join(os.path.dirname(WINML), "bench", "bench_make_model")
FORMS = {  # arguments of bench_make_model: most nodes of a kind that are left, 0 where not named
    "bert": (["--layers", "2", "--hidden", "48"], {"Shape": 1, "Unsqueeze": 2}),
    "bert2": (["--layers", "2", "--hidden", "48", "--torch", "2"], {"Shape": 1, "Unsqueeze": 2, "Concat": 1, "Expand": 1}),
    "vit": (["--layers", "2", "--hidden", "48"], {"Shape": 1, "Expand": 1, "Concat": 2}),
    "vit2": (["--layers", "2", "--hidden", "48", "--torch", "2"], {"Shape": 1, "Expand": 1, "Concat": 2}),
    "resnet50": (["--dynamic"], {}),
}
OF_SHAPES = ["Shape", "Unsqueeze", "Equal", "Concat", "Expand"]


def feeds(session, batch, tokens):
    rng = np.random.default_rng(batch)
    made = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else batch if d == "batch" else tokens for d in i.shape]
        made[i.name] = rng.standard_normal(shape).astype("f") if i.type == "tensor(float)" else rng.integers(0, 2, shape)
        if "mask" in i.name:
            made[i.name][:, 0] = 1
    return made


@pytest.mark.parametrize("name", FORMS)
def test_open_batch(winml, tmp_path, name):
    if not os.path.exists(MAKE):
        pytest.skip("bench_make_model is not built")
    args, most = FORMS[name]
    source, out = str(tmp_path / "model.onnx"), str(tmp_path / "out.onnx")
    subprocess.run([MAKE, name.rstrip("2"), source, *args], check=True)
    r = winml("optimize", "-m", source, "-o", out, "--no-verify")
    assert r.code == 0, r.err
    onnx.checker.check_model(out, full_check=True)
    left = Counter(n.op_type for n in onnx.load(out).graph.node)
    assert {k: left[k] for k in OF_SHAPES if left[k] > most.get(k, 0)} == {}
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    before, after = (ort.InferenceSession(p, options, providers=["CPUExecutionProvider"]) for p in (source, out))
    for batch, tokens in ((1, 1), (1, 9), (3, 4), (2, 3)):
        for x, y in zip(before.run(None, feeds(before, batch, tokens)), after.run(None, feeds(before, batch, tokens))):
            assert x.shape == y.shape
            np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-5)
