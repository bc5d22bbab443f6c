"""winml export of encoder-decoders: two models, the second run token by token with a cache, against whole texts of transformers."""
import json
import os
import resource
import subprocess

import numpy as np
import onnx
import pytest

import exported
from conftest import WINML
from exported import DATA, TOLERANCE, TYPES, is_whole_text, reference, session

WHOLE = [n for n in sorted(os.listdir(DATA)) if is_whole_text(n)]


def config_of_decoder(name):
    with open(f"{DATA}/{name}/config.json") as f:
        c = json.load(f)
    c = c.get("decoder", c.get("text_config", c))
    return c, next(c[k] for k in ("num_decoder_layers", "decoder_layers", "num_hidden_layers", "n_layer") if k in c)


def axes_of(name, part, ref):
    """Open batch, and open length of the source where it is a text."""
    source = {"0": "batch", "1": "source"} if "in.input_ids" in ref else {"0": "batch"}
    if part == "encoder":
        return {k: source for k in ("input_ids", "attention_mask", "pixel_values", "input_features") if "in." + k in ref}
    batch = {"0": "batch"}
    axes = {"decoder_input_ids": batch, "encoder_hidden_states": source, "decoder_attention_mask": batch}
    if "in.attention_mask" in ref:
        axes["attention_mask"] = source
    for i in range(config_of_decoder(name)[1]):
        axes[f"past_{i}_key"] = axes[f"past_{i}_value"] = batch
    return axes


def part_of(winml, name, folder, part, ref, dynamic):
    args = []
    if "in.input_ids" in ref:
        (folder / "shape.json").write_text(json.dumps({"sequence_length": ref["in.input_ids"].shape[1]}))
        args += ["--shape-config", folder / "shape.json"]
    if dynamic:
        (folder / "axes.json").write_text(json.dumps(axes_of(name, part, ref)))
        args += ["--dynamic-axes", folder / "axes.json"]
    r = winml("export", "-m", f"{DATA}/{name}", "-o", folder / "m.onnx", "--submodel", part, *args)
    assert r.code == 0, r.err
    path = folder / f"m_{part}.onnx"
    onnx.checker.check_model(str(path), full_check=True)
    return session(path)


def noise(s, name, batch):
    value = next(i for i in s.get_inputs() if i.name == name)
    shape = [batch if i == 0 else n for i, n in enumerate(value.shape)]
    return np.random.default_rng(len(name)).normal(size=shape).astype(np.float32)


def write_text(s, states, ref):
    """Logits of every token. The cache begins as noise, which the mask must hide."""
    ids = ref["in.decoder_input_ids"]
    inputs = {i.name: TYPES[i.type] for i in s.get_inputs()}
    outputs = [o.name for o in s.get_outputs()]
    past = {k: noise(s, k, len(ids)) for k in inputs if k.startswith("past_")}
    mask = np.zeros((len(ids), past["past_0_key"].shape[2]))
    feed = {"encoder_hidden_states": states, "attention_mask": ref.get("in.attention_mask")}
    logits = []
    for t in range(ids.shape[1]):
        slides = "cache_position" not in inputs
        mask[:, -1 - t if slides else t] = 1
        feed.update(past, decoder_input_ids=ids[:, t:t + 1], decoder_attention_mask=mask, cache_position=np.array([t]))
        got = dict(zip(outputs, s.run(None, {k: feed[k].astype(to) for k, to in inputs.items()})))
        logits.append(got["logits"])
        for k in past:
            new = got[k.replace("past", "present")]
            if slides:
                past[k] = np.concatenate([past[k][:, :, 1:], new], 2)
            else:
                past[k][:, :, t:t + 1] = new
    return np.concatenate(logits, 1)


def check(a, b):
    assert a.shape == b.shape and np.abs(a - b).max() <= TOLERANCE * np.abs(b).max()


@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("name", WHOLE)
def test_token_by_token(winml, tmp_path, name, dynamic):
    ref = reference(name, dynamic)
    s = part_of(winml, name, tmp_path, "encoder", ref, dynamic)
    assert [o.name for o in s.get_outputs()] == ["encoder_hidden_states"]
    states = s.run(None, exported.feeds(s, ref))[0]
    check(states, ref["out.encoder_hidden_states"])
    check(write_text(part_of(winml, name, tmp_path, "decoder", ref, dynamic), states, ref), ref["out.logits"])


@pytest.mark.parametrize("name, wanted", [
    ("bart-decoder-step", ["attention_mask", "decoder_attention_mask", "cache_position"]),
    ("t5-decoder-step", ["attention_mask", "decoder_attention_mask"]),
    ("trocr-decoder-step", ["decoder_attention_mask", "cache_position"])])
def test_inputs_of_a_step(winml, tmp_path, name, wanted):
    r = winml("export", "-m", f"{DATA}/{name}", "-o", tmp_path / "m.onnx", "--submodel", "decoder")
    assert r.code == 0, r.err
    s = session(tmp_path / "m_decoder.onnx")
    caches = [f"{i}_{what}" for i in range(2) for what in ("key", "value")]
    assert [i.name for i in s.get_inputs()] == ["decoder_input_ids", "encoder_hidden_states"] + wanted + ["past_" + c for c in caches]
    assert [o.name for o in s.get_outputs()] == ["logits"] + ["present_" + c for c in caches]
    types = {i.name: i.type for i in s.get_inputs()}
    assert types["decoder_input_ids"] == "tensor(int32)" and all(types[w] == "tensor(int64)" for w in wanted)
    m = exported.meta(name)
    assert {i.name: i.shape for i in s.get_inputs()} == {k: v["shape"] for k, v in m["inputs"].items()}
    assert {o.name: o.shape for o in s.get_outputs()} == {k: v["shape"] for k, v in m["outputs"].items()}


def test_an_open_cache(winml, tmp_path):
    """Any number of slots up to the model's positions."""
    name, ref = "bart", reference("bart")
    axes = {f"past_{i}_{what}": {"2": "slots"} for i in range(2) for what in ("key", "value")}
    axes["decoder_attention_mask"] = {"1": "slots"}
    (tmp_path / "open.json").write_text(json.dumps(axes))
    (tmp_path / "shape.json").write_text(json.dumps({"sequence_length": 12}))
    r = winml("export", "-m", f"{DATA}/{name}", "-o", tmp_path / "m.onnx", "--submodel", "decoder", "--dynamic-axes", tmp_path / "open.json",
              "--shape-config", tmp_path / "shape.json")
    assert r.code == 0, r.err
    s = session(tmp_path / "m_decoder.onnx")
    for slots in (5, 17):
        feed = {k: np.ones([n if isinstance(n, int) else slots for n in i.shape], TYPES[i.type]) for i in s.get_inputs() for k in [i.name]}
        feed.update(decoder_input_ids=ref["in.decoder_input_ids"][:, :1].astype(np.int32), cache_position=np.array([0]),
                    encoder_hidden_states=ref["out.encoder_hidden_states"], attention_mask=ref["in.attention_mask"].astype(np.int64))
        check(s.run(["logits"], feed)[0], ref["out.logits"][:, :1])


@pytest.mark.parametrize("args, code, says", [
    (["--submodel", "head"], 2, "its parts: encoder, decoder"), (["--task", "object-detection"], 2, "tasks it can"),
    (["--submodel", "decoder", "--shape-config", {"max_cache_len": 41}], 1, "41 tokens, but the model has 40 positions"),
    (["--submodel", "decoder", "--input-specs", {"decoder_input_ids": {"shape": [1, 2]}}], 2, "one token"),
    (["--submodel", "encoder", "--shape-config", {"sequence_length": 41}], 1, "has 40")])
def test_what_cannot_be(winml, tmp_path, args, code, says):
    for i, a in enumerate(args):
        if isinstance(a, dict):
            (tmp_path / "a.json").write_text(json.dumps(a))
            args = args[:i] + [tmp_path / "a.json"]
    r = winml("export", "-m", f"{DATA}/bart", "-o", tmp_path / "m.onnx", *args)
    assert r.code == code and says in r.err, r.err


@pytest.mark.parametrize("name, task, parts", [
    ("t5", "text2text-generation", 2), ("bart", "text2text-generation", 2), ("marian", "text2text-generation", 2), ("blip", "image-to-text", 2),
    ("vision-encoder-decoder-trocr", "image-to-text", 2), ("whisper", "automatic-speech-recognition", 1)])
def test_the_task_and_its_files(winml, tmp_path, name, task, parts):
    r = winml("export", "-m", f"{DATA}/{name}", "-o", tmp_path / "m.onnx", "-f", "json")
    assert r.code == 0, r.err
    assert r.json["task"] == task and len(list(tmp_path.glob("*.onnx"))) == parts


def test_all_parts_or_none(tmp_path):
    """The decoder does not fit where the encoder does."""
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
    p = subprocess.run([WINML, "export", "-m", f"{DATA}/t5", "-o", tmp_path / "m.onnx"], preexec_fn=small, restore_signals=False,
                       capture_output=True, text=True)
    assert p.returncode == 1 and "m_decoder.onnx" in p.stderr, p.stderr
    assert os.listdir(tmp_path) == []
