"""Checkpoints of tests/data/export: exported, run, and compared with what transformers gave (reference.safetensors)."""
import json
import os
import shutil

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import load_file

from conftest import ROOT

DATA = f"{ROOT}/tests/data/export"
TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32}
TOLERANCE = 1e-4  # of the largest value of an output
STATES = {"last_hidden_state", "encoder_hidden_states", "encoder_last_hidden_state"}  # references of an encoder say one tensor's several names


def meta(name):
    with open(f"{DATA}/{name}/meta.json") as f:
        return json.load(f)


def reference(name, dynamic=False):
    return load_file(f"{DATA}/{name}/reference{'-dynamic' if dynamic else ''}.safetensors")


def is_whole_text(name):
    """A reference of an encoder-decoder over whole texts, which is exported as two models: test_export_seq2seq.py."""
    return "decoder_input_ids" in meta(name)["inputs"] and not meta(name).get("component")


def specs(name, folder):
    """The shapes of the reference's inputs, as --input-specs takes them."""
    path = folder / "specs.json"
    path.write_text(json.dumps(meta(name)["inputs"]))
    return path


def open_axes(name, folder):
    """Names for every axis in which the two references differ, as --dynamic-axes takes them."""
    other, axes = reference(name, dynamic=True), {}
    batch = min(other["in." + key].shape[0] for key in meta(name)["inputs"])  # OWL-ViT has several texts for each picture
    for key, value in meta(name)["inputs"].items():
        wide = other["in." + key].shape
        names = {str(i): ("batch" if n == batch else f"batch_{n}") if i == 0 else "length" if n == wide[-1] else f"{key}_{i}"
                 for i, n in enumerate(wide) if n != value["shape"][i]}
        if names:
            axes[key] = names
    path = folder / "axes.json"
    path.write_text(json.dumps(axes))
    return path


def export(winml, name, folder, *args):
    """The file that became of the checkpoint; of a part, that part's."""
    m, out = meta(name), folder / "model.onnx"
    part = ["--submodel", m["component"]] if m.get("component") else []
    r = winml("export", "-m", f"{DATA}/{name}", "-o", out, "--task", m["task"], *part, *args)
    assert r.code == 0, r.err
    path = out if out.exists() else folder / f"model_{m.get('component')}.onnx"
    onnx.checker.check_model(str(path), full_check=True)
    return path


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds(s, ref):
    """Positions that the reference counted itself are counted here."""
    out = {}
    for i in s.get_inputs():
        value = ref.get("in." + i.name)
        if value is None and i.name == "position_ids":
            value = np.broadcast_to(np.arange(ref["in.input_ids"].shape[1]), ref["in.input_ids"].shape)
        out[i.name] = value.astype(TYPES[i.type])
    return out


def compare(path, ref, wanted, rows=None):
    """Worst difference of all outputs, relative to the largest value of each. rows: of a mask, only these are looked at."""
    s = session(path)
    names, worst = [o.name for o in s.get_outputs()], 0
    missing = [w for w in wanted if w not in names and w != "pooler_output"]  # features have no pooled one
    if STATES & set(names):
        missing = [w for w in missing if w not in STATES]
    assert not missing, missing
    keep = None if rows is None else ref["in." + rows].astype(bool)
    for name, a in zip(names, s.run(None, feeds(s, ref))):
        b = ref.get("out." + name)
        if b is None:
            continue
        assert a.shape == b.shape, name
        if keep is not None and a.shape[:2] == keep.shape:
            a, b = a[keep], b[keep]
        worst = max(worst, float(np.abs(a - b).max() / np.abs(b).max()))
    assert worst <= TOLERANCE, worst
    return worst


def widened(name, folder):
    """A checkpoint of tests/data/export whose heads are seen as half as many of twice the size: the operator wants 16."""
    folder.mkdir()
    shutil.copy(f"{DATA}/{name}/model.safetensors", folder)
    c = json.load(open(f"{DATA}/{name}/config.json"))
    size = c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
    times = max(1, 16 // size)
    c["head_dim"] = size * times
    for key in ("num_attention_heads", "num_key_value_heads"):
        c[key] //= times
    scaling = c.get("rope_scaling") or {}
    for key in ("long_factor", "short_factor"):
        if key in scaling:
            scaling[key] = [f for f in scaling[key] for _ in range(times)]
    (folder / "config.json").write_text(json.dumps(c))
    return folder
