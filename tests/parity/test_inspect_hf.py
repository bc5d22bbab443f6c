"""winml inspect of Hugging Face folders says what winml export then writes: with the weights, and of the configs alone."""
import glob
import os
import shutil

import onnx
import pytest
from safetensors import safe_open

from exported import DATA, meta

ALL = sorted(os.listdir(DATA))
DTYPES = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.INT64: "int64", onnx.TensorProto.INT32: "int32",
          onnx.TensorProto.BOOL: "bool", onnx.TensorProto.FLOAT16: "float16"}


def tensors(values):
    dims = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in values]
    return [(v.name, DTYPES[v.type.tensor_type.elem_type], d) for v, d in zip(values, dims)]


def told(part):
    rows = [(t["name"], t["dtype"], t["shape"]) for t in part["input_tensors"]]
    return rows, [(t["name"], t["dtype"], t["shape"]) for t in part["output_tensors"]]


def config_only(folder, to):
    os.mkdir(to)
    for f in glob.glob(f"{folder}/*.json"):
        if not f.endswith(".index.json"):
            shutil.copy(f, to)
    return to


def exported_as(winml, folder, tmp_path, *args):
    r = winml("export", "-m", folder, "-o", tmp_path / "m.onnx", *args)
    assert r.code == 0, r.err
    made = sorted(glob.glob(f"{tmp_path}/*.onnx"))
    return [onnx.load(p, load_external_data=False).graph for p in made]


@pytest.mark.parametrize("name", ALL)
def test_says_what_export_writes(winml, tmp_path, name):
    of = ["--task", meta(name)["task"]] if name == "sam2-encoder" else []  # the checkpoint holds no more
    graphs = exported_as(winml, f"{DATA}/{name}", tmp_path, *of)
    want = sorted((tensors(g.input), tensors(g.output)) for g in graphs)
    r = winml("inspect", "-m", f"{DATA}/{name}", "-f", "json", *of).json
    parts = r["parts"] or [r["exporter"]]
    assert sorted(told(p) for p in parts) == want
    if "timm" in name:  # whose configs do not tell it
        return
    sketch = winml("inspect", "-m", config_only(f"{DATA}/{name}", tmp_path / "config"), "-f", "json", *of).json
    parts = sketch["parts"] or [sketch["exporter"]]
    assert sorted(told(p) for p in parts) == want


@pytest.mark.parametrize("name", ["electra-question-answering", "vit", "resnet-basic", "gpt2", "convnext"])
def test_counts_parameters(winml, name):
    """Of these every tensor of the file is a parameter of the model that is exported."""
    with safe_open(f"{DATA}/{name}/model.safetensors", "np") as f:
        n = sum(f.get_tensor(k).size for k in f.keys() if not k.endswith(("running_mean", "running_var", "num_batches_tracked")))
    assert winml("inspect", "-m", f"{DATA}/{name}", "-f", "json").json["checkpoint"]["parameters"] == n
