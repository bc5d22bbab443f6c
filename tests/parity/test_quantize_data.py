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
    assert r["samples"] == 5 and sorted(reads.values())[:3] == [1, 1, 1]
    assert sorted(reads.values())[3] > 1
    assert np.isclose(scale(tmp_path), (4 + 6) / 255)


@watched
def test_pictures_are_read_once_and_told_of_once(tmp_path):
    folder = images(tmp_path / "images", *some(4))
    (folder / "bad.png").write_text("no picture")
    r, reads, said = quantize(tmp_path, picture_model(tmp_path / "m.onnx", [1, 3, 32, 32]), folder, "--method", "entropy")
    assert r["samples"] == 4 and r["accuracy"]["samples"] == 4
    assert reads == {**{f"{i:02}.png": 1 for i in range(4)}, "bad.png": 1}
    assert said.count("bad.png") == 1 and said.count("no preprocessor file") == 1


def arrays_model(path):
    return picture_model(path, [1, 3, 8, 8])


@pytest.mark.parametrize("name, content, code, wrong, hint", [
    ("rank", np.zeros((2, 3, 8), "f"), 2, "'x' has 4 dimensions, the array in the data has 3", "winml inspect"),
    ("shape", np.zeros((2, 3, 4, 8), "f"), 2, "shape.npz: input 'x': dimension 2 is 8 in the model, 4 in the data", "winml inspect"),
    ("rows", np.zeros((0, 3, 8, 8), "f"), 2, "array 'x' has 0 rows", "calibration data is"),
    ("text", np.array(["a"]), 1, "text.npz: array 'x' has the element type", "save it as numbers"),
    ("objects", np.array([{}], dtype=object), 1, "objects.npz: array 'x' has the element type", "save it as numbers")])
def test_arrays_that_do_not_fit(winml, tmp_path, name, content, code, wrong, hint):
    source, data = arrays_model(tmp_path / "m.onnx"), tmp_path / f"{name}.npz"
    np.savez(data, x=content)
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "-p", "int8", "--calibration-data", data)
    assert r.code == code and wrong in r.err and f"Hint: {hint}" in r.err.replace("`", "") and not (tmp_path / "q.onnx").exists(), r.err


def test_names_and_parts_of_arrays(winml, tmp_path):
    source, data = arrays_model(tmp_path / "m.onnx"), tmp_path / "d.npz"
    np.savez(data, y=np.zeros((2, 3, 8, 8), "f"))
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "--calibration-data", data)
    assert r.code == 2 and "missing 'x'; not an input 'y'" in r.err and "name the arrays as the model's inputs" in r.err
    np.savez(data, x=np.zeros((2, 3, 8, 8), "f"))
    whole = data.read_bytes()
    for n in 0, 1, len(whole) // 2, len(whole) - 1:
        data.write_bytes(whole[:n])
        r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "--calibration-data", data)
        assert r.code == 1 and "d.npz" in r.err and "Hint:" in r.err, r.err
    folder = tmp_path / "files"
    folder.mkdir()
    np.savez(folder / "a.npz", x=np.zeros((1, 3, 8, 8), "f"))
    np.savez(folder / "b.npz", x=np.zeros((1, 3, 4, 8), "f"))
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "--calibration-data", folder)
    assert r.code == 2 and "sample 2: " in r.err and "b.npz: input 'x'" in r.err
    assert not (tmp_path / "q.onnx").exists()


@pytest.mark.parametrize("name, content, wrong, hint", [
    ("text.jpg", b"hello", "this is no JPEG", "save it as PNG"), ("empty.png", b"", "the file is empty", "copy it again"),
    ("new.webp", b"RIFF\x10\0\0\0WEBPVP8 ", "WebP files are not read", "save it as PNG"), ("cut.png", None, "the PNG data", "")])
def test_pictures_that_are_none(winml, tmp_path, name, content, wrong, hint):
    """As the only file it is the error, among others it is named and left out."""
    source, folder = picture_model(tmp_path / "m.onnx", [1, 3, 32, 32]), tmp_path / "images"
    images(folder, *some(1))
    bad = tmp_path / name
    bad.write_bytes((folder / "00.png").read_bytes()[:200] if content is None else content)
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "-p", "int8", "--calibration-data", bad)
    assert r.code == 1 and f"Error: {bad}: " in r.err and wrong in r.err and hint in r.err and "left out" not in r.err, r.err
    assert not (tmp_path / "q.onnx").exists()
    bad.rename(folder / name)
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "-p", "int8", "--calibration-data", folder, "-f", "json")
    assert r.code == 0 and r.json["samples"] == 1 and r.err.count(f"left out: {folder / name}: ") == 1, r.err


def test_odd_pictures(winml, tmp_path):
    """One pixel; names of other alphabets; another size than the model's, in the file and in the picture."""
    source, folder = picture_model(tmp_path / "m.onnx", [1, 3, 32, 32]), tmp_path / "b\u00eflder \u732b"
    images(folder, np.full((1, 1, 3), 77, np.uint8))
    (folder / "00.png").rename(folder / "\u732b \u00df.PNG")
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "-p", "int8", "--calibration-data", folder, "-f", "json")
    assert r.code == 0 and r.json["samples"] == 1 and r.json["dataset"] == f"pictures of {folder.name}", r.err
    assert np.isclose(scale(tmp_path), np.float32(77 / 255) / 255)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(dict(image_processor_type="ViTImageProcessor", size=224)))
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "--overwrite", "-p", "int8", "--calibration-data", folder)
    assert r.code == 0 and "the model takes pictures of 32 x 32" in r.err and "224 x 224: the model's size is used" in r.err, r.err


def test_preprocessor_of_newer_models(winml, tmp_path):
    """processor_config.json keeps it as a member."""
    source, folder = picture_model(tmp_path / "m.onnx", [1, 3, 32, 32]), images(tmp_path / "images", np.full((40, 40, 3), 255, np.uint8))
    (tmp_path / "processor_config.json").write_text(json.dumps(dict(image_processor=dict(
        image_processor_type="ViTImageProcessor", size=32, image_mean=[0.5] * 3, image_std=[0.25] * 3))))
    r = winml("quantize", "-m", source, "-o", tmp_path / "q.onnx", "-p", "int8", "--calibration-data", folder)
    assert r.code == 0 and "no preprocessor file" not in r.err, r.err
    assert np.isclose(scale(tmp_path), 2 / 255)
