"""Files of samples: each is read once, for all passes of a calibration and for the comparison, unless they are too many to keep."""
import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from conftest import WINML
from test_image_calibration import images, model as picture_model, some
from test_quantize_faults import FAULTS

watched = pytest.mark.skipif(not os.path.exists(FAULTS), reason="tests/faults is for Linux, without sanitizers")


def vector_model(path, size):
    graph = helper.make_graph([helper.make_node("Sigmoid", ["x"], ["y"], "s")], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, size])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, size])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def quantize(tmp_path, source, data, *args):
    """The report, and how often each file of the data was opened."""
    log = tmp_path / "reads"
    log.unlink(missing_ok=True)
    env = {**os.environ, "LD_PRELOAD": FAULTS, "FAULTS_DIR": str(data), "FAULTS_READS": str(log)}
    done = subprocess.run([WINML, "quantize", "-m", source, "-o", tmp_path / "q.onnx", "--overwrite", "-p", "int8", "--calibration-data", data, "--accuracy",
                           "-f", "json", *args], capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    reads = [line.removeprefix("read ") for line in log.read_text().splitlines()]
    return json.loads(done.stdout), {os.path.relpath(p, data): reads.count(p) for p in reads}, done.stderr


def scale(tmp_path):
    return float(next(onnx.numpy_helper.to_array(w) for w in onnx.load(tmp_path / "q.onnx").graph.initializer if w.name == "x_scale"))


def arrays(folder, n, size, save=np.savez):
    folder.mkdir()
    for i in range(n):
        save(folder / f"{i}.npz", x=np.linspace(-i, 2 + i, size, dtype="f")[None])
    return folder


@watched
@pytest.mark.parametrize("method", ["minmax", "entropy"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read_once(tmp_path, method, save):
    r, reads, _ = quantize(tmp_path, vector_model(tmp_path / "m.onnx", 1000), arrays(tmp_path / "data", 5, 1000, save), "--method", method)
    assert r["samples"] == 5 and r["accuracy"]["samples"] == 5 and r["dataset"] == "files of data"
    assert reads == {f"{i}.npz": 1 for i in range(5)}


@watched
def test_one_file_is_read_once(tmp_path):
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "all.npz", x=np.linspace(-3, 4, 6000, dtype="f").reshape(6, 1, 1000))
    r, reads, _ = quantize(tmp_path, vector_model(tmp_path / "m.onnx", 1000), tmp_path / "data" / "all.npz", "--method", "percentile")
    assert r["samples"] == 6 and reads == {".": 1}


@watched
def test_more_than_is_kept_is_read_again(tmp_path):
    size = 9_000_000 # 36 MB each: three fit into 128 MiB
    r, reads, _ = quantize(tmp_path, vector_model(tmp_path / "m.onnx", size), arrays(tmp_path / "data", 5, size), "--method", "minmax")
    assert r["samples"] == 5 and [reads[f"{i}.npz"] for i in range(3)] == [1, 1, 1]
    assert reads["3.npz"] > 1 and reads["4.npz"] > 1
    assert np.isclose(scale(tmp_path), (4 + 6) / 255)


@watched
def test_pictures_are_read_once_and_told_of_once(tmp_path):
    folder = images(tmp_path / "images", *some(4))
    (folder / "bad.png").write_text("no picture")
    r, reads, said = quantize(tmp_path, picture_model(tmp_path / "m.onnx", [1, 3, 32, 32]), folder, "--method", "entropy")
    assert r["samples"] == 4 and r["accuracy"]["samples"] == 4
    assert reads == {**{f"{i:02}.png": 1 for i in range(4)}, "bad.png": 1}
    assert said.count("bad.png") == 1 and said.count("no preprocessor file") == 1
