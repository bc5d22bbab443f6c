"""Mixed precision by sensitivity: a goal that plain 8 bits miss is reached, with most of the model in 8 bits."""
import os

import numpy as np
import onnx
import pytest

import judge
import minilm
import test_text_calibration as texts


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    if not os.path.exists(f"{texts.FOLDER}/model.safetensors"):
        pytest.skip("the model minilm could not be fetched")
    path = tmp_path_factory.mktemp("minilm") / "minilm.onnx"
    onnx.save(minilm.build(texts.FOLDER), path)
    return path


def ratio(before, after, sentences):
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(f"{texts.FOLDER}/tokenizer.json")
    tok.no_padding()
    a, b = judge.session(str(before)), judge.session(str(after))
    signal = noise = 0
    for text in sentences:
        e = tok.encode(text)
        ids = np.array([e.ids])
        feed = {"input_ids": ids, "attention_mask": np.array([e.attention_mask]), "token_type_ids": np.zeros_like(ids)}
        x, y = (s.run(None, feed)[0].astype("f8") for s in (a, b))
        signal, noise = signal + (x ** 2).sum(), noise + ((x - y) ** 2).sum()
    return 10 * np.log10(signal / noise)


def test_a_goal_that_plain_integers_miss(winml, tmp_path, source):
    data, plain, out = tmp_path / "texts.txt", tmp_path / "plain.onnx", tmp_path / "mixed.onnx"
    data.write_text("\n".join(texts.OTHERS) + "\n", encoding="utf-8")
    common = ["-p", "w8a8", "--calibration-data", data, "--samples", "8", "--tokenizer", texts.FOLDER, "-f", "json"]
    assert winml("quantize", "-m", source, "-o", plain, *common).code == 0
    r = winml("quantize", "-m", source, "-o", out, "--auto-mixed", *common)
    assert r.code == 0, r.err
    m = r.json["mixed_precision"]
    judge.check(out)
    assert m["goal_db"] == 20 and m["reached"] and m["plain_sqnr_db"] < 10 and 0 < m["wide_nodes_percent"] < 90
    assert ratio(source, plain, texts.OTHERS[:8]) < 10 and ratio(source, out, texts.OTHERS[:8]) >= 20
    assert abs(ratio(source, out, texts.OTHERS[:8]) - m["sqnr_db"]) < 0.1
    assert m["raised"] == len(m["tensors"]) and m["steps"][0]["raised"] == 0
    assert min(s["raised"] for s in m["steps"] if s["sqnr_db"] >= 20) == m["raised"]
