"""winml export: every family against outputs of transformers, with fixed and with open axes; configs, files, refusals."""
import json
import os
import shutil
import time

import ml_dtypes
import numpy as np
import onnx
import pytest
from safetensors.numpy import load_file, save_file

import exported
from conftest import no_leftovers
from exported import DATA, compare, export, is_whole_text, meta, open_axes, reference, specs

ALL = sorted(os.listdir(DATA))
PLAIN = [n for n in ALL if not is_whole_text(n) or meta(n)["task"] == "automatic-speech-recognition"]
OPEN = [n for n in PLAIN if os.path.exists(f"{DATA}/{n}/reference-dynamic.safetensors")]


@pytest.mark.parametrize("name", PLAIN)
def test_outputs_are_those_of_the_original(winml, tmp_path, name):
    m = meta(name)
    compare(export(winml, name, tmp_path, "--input-specs", specs(name, tmp_path)), reference(name), m["outputs"], m.get("compare_rows"))
    no_leftovers(tmp_path)


@pytest.mark.parametrize("name", OPEN)
def test_with_open_axes(winml, tmp_path, name):
    m = meta(name)
    path = export(winml, name, tmp_path, "--input-specs", specs(name, tmp_path), "--dynamic-axes", open_axes(name, tmp_path))
    compare(path, reference(name, dynamic=True), m["outputs"], m.get("compare_rows"))


@pytest.mark.parametrize("name", ["bert-fill-mask", "resnet-bottleneck", "vit", "swin", "llama", "sam-prompt-decoder", "convnext"])
@pytest.mark.parametrize("opset", [11, 13, 16, 18, 20, 21, 23, 25])
def test_every_opset_gives_the_same(winml, tmp_path, name, opset):
    path = export(winml, name, tmp_path, "--input-specs", specs(name, tmp_path), "--opset", opset)
    assert next(o.version for o in onnx.load(path).opset_import if o.domain == "") == opset
    compare(path, reference(name), meta(name)["outputs"])


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "sharded"])
@pytest.mark.parametrize("name", ["bert-text-classification", "resnet-basic", "llama", "gpt2"])
def test_how_weights_are_stored(winml, tmp_path, name, kind):
    """Half floats are widened; shards are one set. Against the same numbers in float32."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(f"{DATA}/{name}", folder)
    weights = load_file(folder / "model.safetensors")
    if kind == "sharded":
        os.remove(folder / "model.safetensors")
        half = sorted(weights)[: len(weights) // 2]
        parts = {"a.safetensors": {k: weights[k] for k in half}, "b.safetensors": {k: v for k, v in weights.items() if k not in half}}
        for file, part in parts.items():
            save_file(part, folder / file)
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {}, "weight_map": {k: f for f, part in parts.items() for k in part}}))
        wide = weights
    else:
        to = ml_dtypes.bfloat16 if kind == "bfloat16" else np.float16
        low = {k: v.astype(to) if v.dtype == np.float32 else v for k, v in weights.items()}
        wide = {k: v.astype(np.float32) if v.dtype == to else v for k, v in low.items()}
        save_file(low, folder / "model.safetensors")
    plain = tmp_path / "plain"
    shutil.copytree(f"{DATA}/{name}", plain)
    save_file(wide, plain / "model.safetensors")
    made = []
    for source in (folder, plain):
        out = tmp_path / f"{source.name}.onnx"
        assert winml("export", "-m", source, "-o", out, "--task", meta(name)["task"], "--input-specs", specs(name, tmp_path)).code == 0
        s = exported.session(out)
        made.append(s.run(None, exported.feeds(s, reference(name))))
    assert all(np.array_equal(a, b) for a, b in zip(*made))


def test_names_and_metadata(winml, tmp_path):
    path = export(winml, "bert-fill-mask", tmp_path, "--with-report")
    m = onnx.load(path)
    tags = {n.name: {p.key: p.value for p in n.metadata_props} for n in m.graph.node}
    assert tags["/bert/encoder/layer.0/attention/self/query/MatMul"] == {
        "winml.hierarchy.tag": "/BertForMaskedLM/BertModel/BertEncoder/BertLayer.0/BertAttention/BertSelfAttention",
        "winml.hierarchy.depth": "6"}
    assert all(t["winml.hierarchy.tag"].startswith("/BertForMaskedLM") for t in tags.values())
    assert {i.name for i in m.graph.value_info} >= {o for n in m.graph.node for o in n.output} - {"logits"}
    props = {p.key: json.loads(p.value) for p in m.metadata_props}
    assert props["winml.io.inputs"][0] == {"name": "input_ids", "dtype": "int32", "shape": [1, 40], "value_range": [0, 99]}
    assert props["winml.io.outputs"] == [{"name": "logits"}]
    with open(tmp_path / "model_htp_metadata.json") as f:
        side = json.load(f)
    assert set(side) == {"export_context", "model", "tracing", "modules", "nodes", "outputs", "report", "statistics"}
    assert side["nodes"] == {n: t["winml.hierarchy.tag"] for n, t in tags.items()}
    assert side["modules"]["children"]["BertModel"]["children"]["BertEncoder"]["children"]["BertLayer.1"]["scope"] == "bert.encoder.layer.1"
    report = (tmp_path / "model_htp_export_report.md").read_text()
    assert "# HTP ONNX Export Report" in report and "| input_ids | [1, 40] | int32 |" in report
    bare = tmp_path / "bare.onnx"
    assert winml("export", "-m", f"{DATA}/bert-fill-mask", "-o", bare, "--no-hierarchy").code == 0
    b = onnx.load(bare)
    assert not any(n.metadata_props for n in b.graph.node) and {p.key for p in b.metadata_props} == set(props)


@pytest.mark.parametrize("name, task", [
    ("bert-fill-mask", "fill-mask"), ("bert-feature-extraction", "feature-extraction"), ("roberta-text-classification", "text-classification"),
    ("resnet-features", "image-feature-extraction"), ("vit", "image-classification"), ("segformer-segmentation", "image-segmentation"),
    ("detr-timm", "object-detection"), ("llama", "text-generation"), ("clip-vision", "image-feature-extraction"),
    ("clip", "feature-extraction"), ("sam", "mask-generation"), ("electra-question-answering", "question-answering")])
def test_the_task_is_what_the_config_says(winml, tmp_path, name, task):
    r = winml("export", "-m", f"{DATA}/{name}", "-o", tmp_path / "m.onnx", "-f", "json")
    assert r.code == 0, r.err
    assert r.json["task"] == task


def test_a_model_in_two_files(winml, tmp_path):
    r = winml("export", "-m", f"{DATA}/clip", "-t", "zero-shot-image-classification", "-o", tmp_path / "c.onnx", "-f", "json")
    assert r.code == 0, r.err
    assert [p["name"] for p in r.json["parts"]] == ["image-encoder", "text-encoder"]
    for part in ("image-encoder", "text-encoder"):
        onnx.checker.check_model(str(tmp_path / f"c_{part}.onnx"), full_check=True)
    (tmp_path / "c_image-encoder.onnx").unlink()
    again = winml("export", "-m", f"{DATA}/clip", "-t", "zero-shot-image-classification", "-o", tmp_path / "c.onnx")
    assert again.code == 1 and "already exists" in again.err and not (tmp_path / "c_image-encoder.onnx").exists()
    wrong = winml("export", "-m", f"{DATA}/clip", "-t", "zero-shot-image-classification", "--submodel", "encoder", "-o", tmp_path / "d.onnx")
    assert wrong.code == 2 and "image-encoder, text-encoder" in wrong.err


def test_outputs_are_compared_before_they_appear(winml, tmp_path):
    name, out = "bert-fill-mask", tmp_path / "m.onnx"
    args = ["export", "-m", f"{DATA}/{name}", "-o", out, "--input-specs", specs(name, tmp_path)]
    good = winml(*args, "--verify-against", f"{DATA}/{name}/reference.safetensors", "-f", "json")
    assert good.code == 0 and good.json["verified"][0]["output"] == "logits"
    ref = reference(name)
    ref["out.logits"] = ref["out.logits"] + 0.01
    save_file(ref, tmp_path / "wrong.safetensors")
    before = out.read_bytes()
    bad = winml(*args, "--overwrite", "--verify-against", tmp_path / "wrong.safetensors")
    assert bad.code == 1 and "output 'logits' differs" in bad.err and out.read_bytes() == before
    no_leftovers(tmp_path)


def test_configs(winml, tmp_path):
    config, build = tmp_path / "e.json", tmp_path / "b.json"
    config.write_text(json.dumps({"opset_version": 18, "batch_size": 3, "enable_hierarchy_tags": False, "dynamic_axes": {"input_ids": {"1": "n"}}}))
    build.write_text(json.dumps({"loader": {"task": "feature-extraction"}, "export": {"opset_version": 15, "batch_size": 5}}))
    out = tmp_path / "m.onnx"
    r = winml("export", "-m", f"{DATA}/bert-fill-mask", "-o", out, "-c", build, "--export-config", config, "--batch-size", 2)
    assert r.code == 0, r.err
    m = onnx.load(out)
    assert m.opset_import[0].version == 18 and m.graph.output[0].name == "last_hidden_state" and not m.graph.node[0].metadata_props
    dims = m.graph.input[0].type.tensor_type.shape.dim
    assert dims[0].dim_value == 2 and dims[1].dim_param == "n"


def edited(tmp_path, name, **change):
    folder = tmp_path / "edited"
    shutil.copytree(f"{DATA}/{name}", folder)
    config = json.loads((folder / "config.json").read_text())
    for key, value in change.items():
        if value is None:
            config.pop(key, None)
        else:
            config[key] = value
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("change, says", [
    ({"hidden_size": 0}, "hidden_size is 0"), ({"hidden_size": -4}, "hidden_size"), ({"hidden_size": "big"}, "hidden_size"),
    ({"hidden_size": 1e30}, "hidden_size"), ({"num_attention_heads": 5}, "does not divide"), ({"num_attention_heads": 0}, "num_attention_heads"),
    ({"num_hidden_layers": 3}, "layer.2"), ({"vocab_size": 98}, "but the config makes it [98,32]"), ({"hidden_act": "swoosh"}, "swoosh"),
    ({"model_type": "bertt"}, "'bert'"), ({"model_type": None}, "model_type"), ({"max_position_embeddings": 20}, "position_embeddings")])
def test_absurd_configs_are_told(winml, tmp_path, change, says):
    r = winml("export", "-m", edited(tmp_path, "bert-fill-mask", **change), "-o", tmp_path / "m.onnx")
    assert r.code == 1 and says in r.err and not (tmp_path / "m.onnx").exists(), r.err
    no_leftovers(tmp_path)


@pytest.mark.parametrize("name, change, sizes, says", [
    ("albert-fill-mask", {"num_hidden_layers": 1 << 24}, {}, "too many operators"),  # layers that share their weights
    ("mobilevit", {"expand_ratio": 1e30}, {}, "but the config makes it"), ("swin", {"mlp_ratio": -1e30}, {}, "but the config makes it"),
    ("bert-fill-mask", {}, {"sequence_length": 1 << 24}, "positions"), ("t5", {"relative_attention_num_buckets": 1 << 24}, {}, "relative"),
    ("qwen3", {}, {"max_cache_len": 1 << 23, "seq_len": 1 << 20}, "more than is computed"), ("swin", {"window_size": 1 << 20}, {}, "")])
def test_a_small_checkpoint_does_not_ask_for_much(winml, tmp_path, name, change, sizes, says):
    (tmp_path / "shape.json").write_text(json.dumps(sizes))
    start = time.monotonic()
    r = winml("export", "-m", edited(tmp_path, name, **change), "-o", tmp_path / "m.onnx", "--shape-config", tmp_path / "shape.json")
    assert r.code in (1, 2) and says in r.err and time.monotonic() - start < 20, r.err
    no_leftovers(tmp_path)


def test_usage(winml, tmp_path):
    for args, says in [(["-t", "object-detection"], "tasks it can"), (["-t", "nonsense"], "no task is called"), (["--submodel", "encoder"], "one file")]:
        r = winml("export", "-m", f"{DATA}/bert-fill-mask", "-o", tmp_path / "m.onnx", *args)
        assert r.code == 2 and says in r.err, r.err
    (tmp_path / "specs.json").write_text(json.dumps({"input_ids": {"shape": [1, 0]}}))
    r = winml("export", "-m", f"{DATA}/bert-fill-mask", "-o", tmp_path / "m.onnx", "--input-specs", tmp_path / "specs.json")
    assert r.code == 2 and "input_ids" in r.err
    for what, code in [("", 2), ("x.onnx", 2), ("./nowhere", 2), (str(tmp_path), 1)]:
        r = winml("export", "-m", what, "-o", tmp_path / "m.onnx", HF_HUB_OFFLINE="1")
        assert r.code == code, (what, r.err)


def test_unknown_shapes_are_told(winml, tmp_path):
    (tmp_path / "shape.json").write_text(json.dumps({"sequence_length": 7, "batch_size": 2, "colour": 1}))
    r = winml("export", "-m", f"{DATA}/bert-fill-mask", "-o", tmp_path / "m.onnx", "--shape-config", tmp_path / "shape.json")
    assert r.code == 0 and "batch_size" in r.err and "colour" in r.err
    dims = onnx.load(tmp_path / "m.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_value for d in dims] == [1, 7]


def test_a_text_that_fills_up_is_found_nowhere(winml, tmp_path):
    """OWL-ViT: a text whose first id is 0 gets the lowest score at every place, and the others keep theirs."""
    s = exported.session(export(winml, "owlvit", tmp_path, "--input-specs", specs("owlvit", tmp_path)))
    feed = exported.feeds(s, reference("owlvit"))
    full = s.run(["logits"], feed)[0]
    feed["input_ids"] = feed["input_ids"].copy()
    feed["input_ids"][1, 0] = 0
    filled = s.run(["logits"], feed)[0]
    assert np.all(filled[..., 1] == np.finfo(np.float32).min) and np.array_equal(filled[..., 0], full[..., 0])


def test_norms_of_several_sizes_are_refused(winml, tmp_path):
    """Where only the weights tell how wide a layer is, they must agree."""
    folder, name = tmp_path / "checkpoint", "model.backbone.conv_encoder.model.bn1.running_var"
    shutil.copytree(f"{DATA}/detr-timm", folder)
    weights = load_file(folder / "model.safetensors")
    weights[name] = weights[name][:1].copy()
    save_file(weights, folder / "model.safetensors")
    r = winml("export", "-m", folder, "-o", tmp_path / "m.onnx")
    assert r.code == 1 and "bn1.running_var' is [1], but the config makes it [64]" in r.err, r.err
    assert os.listdir(tmp_path) == ["checkpoint"]
