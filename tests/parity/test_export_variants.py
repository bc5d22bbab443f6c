"""winml export of variants of families that no whole checkpoint is stored for: other activations, heads, windows, patches."""
import json

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
