"""Texts as calibration data: tokenised by the model's own tokenizer; the quantised model keeps the meaning of sentences."""
import itertools
import json
import os

import numpy as np
import onnx
import onnxruntime
import pytest

import minilm
from conftest import DEPS

FOLDER = f"{DEPS}/models/minilm"
WHO = ["A man", "The old teacher", "My neighbour's dog", "Two engineers", "A group of children", "The company", "Nobody", "Our cat"]
WHAT = ["is eating an apple", "walked slowly through the park", "bought a new laptop yesterday", "does not like rainy days",
        "won the game against all odds", "repaired the broken engine", "will travel to Japan next week"]
WHERE = ["in the kitchen.", "before the meeting started.", "because it was cheap!", "while music was playing?"]
ALL = [" ".join(p) for p in itertools.product(WHO, WHAT, WHERE)]
PAIRS = list(zip(ALL[:200:2], ALL[1:200:2]))
OTHERS = ["Quantization maps floating point numbers to integers.", "The stock market fell sharply today.", "Wie spät ist es?",
          "He said: \"well, that depends\".", "Photosynthesis converts light into chemical energy.", "12 + 30 = 42",
          "Two girls are playing football on the beach.", "The recipe needs three eggs and a cup of sugar."] + ALL[201::3]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    if not os.path.exists(f"{FOLDER}/model.safetensors"):
        pytest.skip("the model minilm could not be fetched")
    path = tmp_path_factory.mktemp("minilm") / "minilm.onnx"
    onnx.save(minilm.build(FOLDER), path)
    return path


def vectors(path, sentences):
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(f"{FOLDER}/tokenizer.json")
    tok.no_padding()
    s = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    out = []
    for text in sentences:
        e = tok.encode(text)
        ids, mask = np.array([e.ids]), np.array([e.attention_mask])
        out.append(minilm.pooled(s.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0], mask)[0])
    return np.array(out)


def test_sentence_vectors_keep_their_direction(winml, tmp_path, source):
    data, out = tmp_path / "texts.txt", tmp_path / "q.onnx"
    data.write_text("\n".join(OTHERS) + "\n", encoding="utf-8")
    r = winml("quantize", "-m", source, "-o", out, "-p", "w8a16", "--per-channel", "--calibration-data", data, "--samples", "16",
              "--tokenizer", FOLDER, "-f", "json")
    assert r.code == 0, r.err
    assert r.json["dataset"] == "texts of texts.txt" and r.json["samples"] == 16 and not r.json["random_data"]
    sentences = [s for p in PAIRS for s in p]
    a, b = vectors(source, sentences), vectors(out, sentences)
    assert (a * b).sum(-1).min() >= 0.995, np.sort((a * b).sum(-1))[:8]
    similar = [(v[0::2] * v[1::2]).sum(-1) for v in (a, b)]
    assert np.abs(similar[0] - similar[1]).max() < 0.02


def test_pairs_of_a_jsonl_file(winml, tmp_path, source):
    data = tmp_path / "pairs.jsonl"
    data.write_text("".join(json.dumps({"id": i, "a": x, "b": y}) + "\n\n" for i, (x, y) in enumerate(PAIRS[:3])), encoding="utf-8")
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "-p", "int8", "--calibration-data", data, "--tokenizer", FOLDER, "-f", "json")
    assert r.code == 0, r.err
    assert r.json["samples"] == 3 and r.json["accuracy"]["samples"] >= 1


@pytest.mark.parametrize("text, wrong", [("", "holds no text"), ("not json\n", "line 1"), ("{\"a\": 1}\n", "no object with a string")])
def test_wrong_files_are_named(winml, tmp_path, source, text, wrong):
    data = tmp_path / "t.jsonl"
    data.write_text(text)
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "--calibration-data", data, "--tokenizer", FOLDER)
    assert r.code != 0 and wrong in r.err and "t.jsonl" in r.err and not (tmp_path / "q.onnx").exists()


@pytest.mark.parametrize("content, line", [(b"one\ncaf\xe9\n", 2), ("one\ntwo".encode("utf-16"), 1), ("one\ntwo".encode("utf-16-le"), 1)])
def test_other_encodings_are_refused(winml, tmp_path, source, content, line):
    data = tmp_path / "t.txt"
    data.write_bytes(content)
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "--calibration-data", data, "--tokenizer", FOLDER)
    assert r.code == 1 and f"t.txt, line {line}: this is no UTF-8 text" in r.err and "save the file as UTF-8" in r.err


def test_mark_at_the_start_and_line_ends(winml, tmp_path, source):
    """Notepad's files give the ranges of plain ones."""
    cache = []
    for i, content in enumerate([b"\xef\xbb\xbfA cat sleeps.\r\n\r\nTwo dogs bark.\r\n", b"A cat sleeps.\nTwo dogs bark."]):
        data = tmp_path / f"{i}.txt"
        data.write_bytes(content)
        cache.append(tmp_path / f"{i}.json")
        r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "--overwrite", "--no-accuracy", "--calibration-data", data, "--tokenizer", FOLDER,
                  "--calibration-cache", cache[i], "-f", "json")
        assert r.code == 0 and r.json["samples"] == 2, r.err
    assert cache[0].read_text() == cache[1].read_text()


def test_no_tokenizer_is_said(winml, tmp_path, source):
    data = tmp_path / "t.txt"
    data.write_text("Hello\n")
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "--calibration-data", data)
    assert r.code != 0 and "no tokenizer.json" in r.err
