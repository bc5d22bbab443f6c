"""winml export of variants of families that no whole checkpoint is stored for: other activations, heads, windows, patches."""
import json
import shutil

import numpy as np
import onnx
import pytest

import exported
import variants


@pytest.mark.parametrize("open_batch", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("name", variants.ALL)
def test_outputs_are_those_of_the_original(winml, tmp_path, name, open_batch):
    v = variants.load(name)
    given, out = variants.inputs(v), tmp_path / "m.onnx"
    (tmp_path / "specs.json").write_text(json.dumps({k: {"shape": list(a.shape)} for k, a in given.items()}))
    args = ["-m", variants.write(v, tmp_path / "m"), "-o", out, "--task", v["task"], "--input-specs", tmp_path / "specs.json"]
    if "part" in v:
        args += ["--submodel", v["part"]]
    if open_batch:
        (tmp_path / "axes.json").write_text(json.dumps({k: {"0": f"batch_{a.shape[0]}"} for k, a in given.items()}))
        args += ["--dynamic-axes", tmp_path / "axes.json"]
    r = winml("export", *args)
    assert r.code == 0, r.err
    path = out if out.exists() else tmp_path / f"m_{v['part']}.onnx"
    onnx.checker.check_model(str(path), full_check=True)
    s = exported.session(path)
    got = dict(zip([o.name for o in s.get_outputs()], s.run(None, exported.feeds(s, {"in." + k: a for k, a in given.items()}))))
    wanted = {k: o for k, o in v["outputs"].items() if k in got}
    assert wanted, list(got)
    for key, o in wanted.items():
        assert list(got[key].shape) == o["shape"]
        assert np.abs(got[key].ravel()[:: o["step"]] - np.array(o["values"])).max() <= exported.TOLERANCE * o["max"], key


@pytest.mark.parametrize("name", ["dpt-gray-dinov2", "rt-detr-v2-discrete"])
def test_channels_are_those_of_the_backbone(winml, tmp_path, name):
    v = variants.load(name)
    r = winml("export", "-m", variants.write(v, tmp_path / "m"), "-o", tmp_path / "m.onnx", "--task", v["task"])
    assert r.code == 0, r.err
    assert exported.session(tmp_path / "m.onnx").get_inputs()[0].shape[1] == 1


def test_lists_that_a_config_leaves_out(winml, tmp_path):
    """They are the class's own."""
    folder = tmp_path / "m"
    shutil.copytree(f"{exported.DATA}/segformer-odd-size", folder)
    c = json.loads((folder / "config.json").read_text())
    for key, usual in {"patch_sizes": [7, 3, 3, 3], "strides": [4, 2, 2, 2], "sr_ratios": [8, 4, 2, 1]}.items():
        assert c.pop(key) == usual
    (folder / "config.json").write_text(json.dumps(c))
    r = winml("export", "-m", folder, "-o", tmp_path / "m.onnx", "--input-specs", exported.specs("segformer-odd-size", tmp_path))
    assert r.code == 0, r.err
    exported.compare(tmp_path / "m.onnx", exported.reference("segformer-odd-size"), ["logits"])
