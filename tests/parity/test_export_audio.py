"""winml export of encoders of sound: how the convolution over places is stored, what classes say of tasks, heads, refusals."""
import json
import shutil

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import exported
from exported import DATA, meta, reference, specs

CONV = "wav2vec2.encoder.pos_conv_embed.conv."
LENGTH, DIRECTION = CONV + "parametrizations.weight.original0", CONV + "parametrizations.weight.original1"


def changed(tmp_path, name, weights=lambda w: w, **config):
    folder = tmp_path / "checkpoint"
    shutil.copytree(f"{DATA}/{name}", folder)
    save_file(weights(load_file(folder / "model.safetensors")), folder / "model.safetensors")
    cfg = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**cfg, **config}))
    return folder


def outputs(winml, folder, name, tmp_path, *args):
    out = tmp_path / "m.onnx"
    r = winml("export", "-m", folder, "-o", out, "--overwrite", "--input-specs", specs(name, tmp_path), *args)
    assert r.code == 0, r.err
    s = exported.session(out)
    return dict(zip([o.name for o in s.get_outputs()], s.run(None, exported.feeds(s, reference(name)))))


def folded(w):
    v = w.pop(DIRECTION).astype(np.float64)
    w[CONV + "weight"] = (w.pop(LENGTH) * v / np.sqrt((v * v).sum((0, 1), keepdims=True))).astype(np.float32)
    return w


def old_names(w):
    w[CONV + "weight_g"], w[CONV + "weight_v"] = w.pop(LENGTH), w.pop(DIRECTION)
    return w


@pytest.mark.parametrize("store", [old_names, folded])
def test_weight_norm_by_its_names(winml, tmp_path, store):
    got = outputs(winml, changed(tmp_path, "wav2vec2", store), "wav2vec2", tmp_path)["logits"]
    want = reference("wav2vec2")["out.logits"]
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


def test_weight_norm_of_bfloat16(winml, tmp_path):
    def low(w):
        return {k: v.astype(ml_dtypes.bfloat16) for k, v in w.items()}

    def low_then_folded(w):
        return folded({k: v.astype(np.float32) for k, v in low(w).items()})

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    a = outputs(winml, changed(tmp_path / "a", "wav2vec2", low), "wav2vec2", tmp_path / "a")["logits"]
    b = outputs(winml, changed(tmp_path / "b", "wav2vec2", low_then_folded), "wav2vec2", tmp_path / "b")["logits"]
    assert np.abs(a - b).max() <= 1e-5 * np.abs(b).max()


def test_no_node_for_what_is_known(winml, tmp_path):
    """The norm of all channels is one node, padding is the convolution's, and nothing computes a shape."""
    import onnx
    assert winml("export", "-m", f"{DATA}/wav2vec2", "-o", tmp_path / "m.onnx").code == 0
    ops = [n.op_type for n in onnx.load(tmp_path / "m.onnx").graph.node]
    assert ops.count("InstanceNormalization") == 1 and not {"Shape", "Slice", "Pad", "ReduceL2"} & set(ops)


@pytest.mark.parametrize("name", ["wav2vec2", "wav2vec2-classes", "wav2vec2-xvector", "wavlm-frames", "hubert-bn", "ast"])
def test_the_task_is_what_the_class_says(winml, tmp_path, name):
    r = winml("export", "-m", f"{DATA}/{name}", "-o", tmp_path / "m.onnx", "-f", "json")
    assert r.code == 0, r.err
    assert r.json["task"] == meta(name)["task"]


def test_feelings_as_numbers(winml, tmp_path):
    rng = np.random.default_rng(0)
    head = {"classifier.dense.weight": (24, 24), "classifier.dense.bias": (24,), "classifier.out_proj.weight": (3, 24), "classifier.out_proj.bias": (3,)}
    head = {k: rng.normal(size=s).astype(np.float32) for k, s in head.items()}
    folder = changed(tmp_path, "wav2vec2-stable-layer", lambda w: {**{k: v for k, v in w.items() if "lm_head" not in k}, **head},
                     architectures=["Wav2Vec2ForSpeechClassification"], id2label={str(i): str(i) for i in range(3)})
    got = outputs(winml, folder, "wav2vec2-stable-layer", tmp_path)
    mean = outputs(winml, folder, "wav2vec2-stable-layer", tmp_path, "-t", "feature-extraction")["last_hidden_state"].mean(1)
    want = np.tanh(mean @ head["classifier.dense.weight"].T + head["classifier.dense.bias"]) @ head["classifier.out_proj.weight"].T
    assert np.allclose(got["hidden_states"], mean, atol=1e-5)
    assert np.allclose(got["logits"], want + head["classifier.out_proj.bias"], atol=1e-4)


@pytest.mark.parametrize("name, config, words", [
    ("wav2vec2", {"num_conv_pos_embeddings": 9}, "kernel of 8, but the config makes it 9"),
    ("wav2vec2", {"num_attention_heads": 5}, "does not divide into 5 attention heads"),
    ("wav2vec2", {"conv_stride": [5, 2]}, "conv_dim has 3 convolutions, conv_stride 2"),
    ("wav2vec2", {"feat_extract_norm": "batch"}, "feat_extract_norm is 'batch'"),
    ("wav2vec2-xvector", {"tdnn_kernel": [5]}, "tdnn_dim has 3 layers, tdnn_kernel 1"),
    ("sew", {"squeeze_factor": 100}, "too small for squeeze_factor 100"),
    ("ast", {"max_length": 2}, "the input is too small")])
def test_configs_that_cannot_be(winml, tmp_path, name, config, words):
    r = winml("export", "-m", changed(tmp_path, name, **config), "-o", tmp_path / "m.onnx")
    assert r.code == 1 and words in r.err and not (tmp_path / "m.onnx").exists()


def test_a_sound_that_is_too_short(winml, tmp_path):
    sizes = tmp_path / "s.json"
    sizes.write_text('{"audio_sequence_length": 12}')
    r = winml("export", "-m", f"{DATA}/wav2vec2", "-o", tmp_path / "m.onnx", "--shape-config", sizes)
    assert r.code == 1 and "the input is too small" in r.err
