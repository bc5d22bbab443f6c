"""`run`: the real MiniLM, exported by winml, means what the original means; arrays are what onnxruntime gives."""
import json
import os

import numpy as np
import onnxruntime
import pytest

from conftest import DEPS, bug

FOLDER = f"{DEPS}/models/minilm"
LONG = ("The recipe needs three eggs, a cup of sugar, two spoons of flour, a pinch of salt, some butter for the pan, and a good deal of "
        "patience, since the dough has to rest for half an hour in a warm place before it is baked until it is golden brown and smells of "
        "Sundays at my grandmother's old house near the lake.")
# Cosines of the original: its checkpoint in transformers (BertModel in float32, the same to 1e-7 in float64), mean_pooling
# and normalize of its model card.
PAIRS = [
    ("A man is playing a guitar.", "Someone makes music on an instrument.", 0.6019156),
    ("The cat sits outside.", "A dog plays in the garden.", 0.2917495),
    ("The new movie is awesome.", "The new movie is so great.", 0.9007471),
    ("How do I reset my password?", "I forgot my login details, what should I do?", 0.6158191),
    ("The stock market fell sharply today.", "Photosynthesis converts light into chemical energy.", -0.0078240),
    ("Two girls are playing football on the beach.", "Two girls are playing football on the beach.", 1.0),
    ("Berlin is the capital of Germany.", "Paris is the capital of France.", 0.3481310),
    ("He didn't like the film at all.", "He loved every minute of the film!", 0.5854769),
    ("Wie spät ist es?", "What time is it? Naïve façades cost 12.50€ (约100元).", -0.0008442),
    ("a", LONG, -0.0161304),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if not os.path.exists(f"{FOLDER}/model.safetensors"):
        pytest.skip("the model minilm could not be fetched")
    return tmp_path_factory.mktemp("minilm")


def exported(winml, folder, kind):
    """Of a fixed length, which texts are filled up to, or of an open one."""
    path, spec = folder / f"{kind}.onnx", folder / f"{kind}.json"
    if not path.exists():
        spec.write_text(json.dumps({"sequence_length": 128} if kind == "fixed" else
                                   {k: {"1": "length"} for k in ("input_ids", "attention_mask", "token_type_ids")}))
        r = winml("export", "-m", FOLDER, "-o", path, "--shape-config" if kind == "fixed" else "--dynamic-axes", spec)
        assert r.code == 0, r.err
    return path


def run(winml, path, *args):
    r = winml("run", "-m", path, "-d", "cpu", "--format", "json", *args)
    assert r.code == 0, r.err
    return r.json


@pytest.mark.parametrize("kind", ["fixed", "open"])
@pytest.mark.parametrize("first, second, cosine", PAIRS)
def test_similarities_are_those_of_the_original(winml, folder, kind, first, second, cosine):
    path = exported(winml, folder, kind)
    r = run(winml, path, "--task", "sentence-similarity", "--tokenizer", FOLDER, "-I", f"text_1={first}", "-I", f"text_2={second}")
    [one] = r["predictions"]
    assert one["label"] == "similarity" and abs(one["score"] - cosine) < 1e-5


def test_states_and_their_mean(winml, folder):
    from tokenizers import Tokenizer
    path, text = exported(winml, folder, "fixed"), PAIRS[3][1]
    tok = Tokenizer.from_file(f"{FOLDER}/tokenizer.json")
    tok.enable_padding(length=128)
    e = tok.encode(text)
    s = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {i.name: np.array([{"input_ids": e.ids, "attention_mask": e.attention_mask, "token_type_ids": e.type_ids}[i.name]],
                              "i4" if "int32" in i.type else "i8") for i in s.get_inputs()}
    want = s.run(["last_hidden_state"], feeds)[0]
    args = ["--task", "feature-extraction", "--tokenizer", FOLDER, "-t", text]
    raw = run(winml, path, *args)["predictions"]
    assert raw["shape"] == [1, 128, 384]
    assert np.abs(np.array(raw["data"]).reshape(want.shape) - want).max() < 1e-5
    mean = want[0, :sum(e.attention_mask)].astype("f8").mean(0)
    one = run(winml, path, *args, "-P", "pooling=mean", "-P", "normalize=true")["predictions"]
    assert one["shape"] == [384] and np.abs(np.array(one["data"]) - mean / np.linalg.norm(mean)).max() < 1e-6


def test_a_text_that_is_too_long_is_cut_and_told(winml, folder):
    r = winml("run", "-m", exported(winml, folder, "fixed"), "-d", "cpu", "--task", "feature-extraction", "--tokenizer", FOLDER, "-t", LONG * 3)
    assert r.code == 0 and "only its first 128 tokens are used" in r.err


def test_arrays_are_what_onnxruntime_gives(winml, tmp_path):
    path = bug("b69_ir_3_weights_are_inputs")
    s = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).normal(size=(2, 4)).astype("f4")
    want = dict(zip((o.name for o in s.get_outputs()), s.run(None, {"x": x})))
    np.savez(tmp_path / "x.npz", x=x)
    for args in (["-I", "x=" + json.dumps(x.tolist())], ["--file", tmp_path / "x.npz"]):
        got = run(winml, path, *args)["predictions"]
        assert got.keys() == want.keys()
        for name, value in want.items():
            assert np.shape(got[name]) == value.shape and np.abs(np.array(got[name]) - value).max() < 1e-5


def test_a_folder_and_its_manifest(winml, folder, tmp_path):
    os.link(exported(winml, folder, "open"), tmp_path / "net.onnx")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        os.symlink(f"{FOLDER}/{name}", tmp_path / name)
    (tmp_path / "build_manifest.json").write_text('{"task": "feature-extraction"}')
    r = run(winml, tmp_path, "-t", "a cat")
    assert r["task"] == "feature-extraction" and r["predictions"]["shape"] == [1, 4, 384]
