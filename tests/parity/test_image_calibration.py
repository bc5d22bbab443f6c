"""Pictures as calibration data: `winml quantize` sees what Pillow and numpy make of them."""
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from test_image import PIL, noise, reference, scene

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def model(path, shape, dtype=TensorProto.FLOAT):
    """A convolution; its input has the name x."""
    w = np.random.default_rng(0).normal(0, 1, (4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", dtype, shape)],
                              [helper.make_tensor_value_info("y", dtype, None)], [onnx.numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def ranges(cache):
    """name -> (low, high) of a calibration cache."""
    def number(v):
        return float(np.ravel(v["data"])[0])
    return {name: (number(d["lowest"]), number(d["highest"])) for name, d in json.loads(cache.read_text())["data"].items()}


@pytest.fixture
def quantize(winml, tmp_path):
    def run(data, shape, *more, expect=0):
        m, cache = model(tmp_path / "m.onnx", shape), tmp_path / "cache.json"
        cache.unlink(missing_ok=True)
        r = winml("quantize", "-m", m, "-o", tmp_path / "q.onnx", "--overwrite", "-p", "int8", "--calibration-data", data,
                  "--calibration-cache", cache, "-f", "json", *more)
        assert r.code == expect, r.err + r.out
        return r, ranges(cache) if expect == 0 else None
    return run


def images(folder, *pictures):
    folder.mkdir(exist_ok=True)
    for i, a in enumerate(pictures):
        PIL.fromarray(a).save(folder / f"{i:02}.png")
    return folder


def low_high(arrays):
    return float(min(a.min() for a in arrays)), float(max(a.max() for a in arrays))


def some(n):
    """Pictures of different brightness, so that each shows in the ranges."""
    return [(scene(60 + i, 80) // (2 + i % 5) + 3 * i).astype(np.uint8) for i in range(n)]


def test_preprocessor_beside_the_model(quantize, tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(dict(
        image_processor_type="BitImageProcessor", size={"shortest_edge": 40}, crop_size=32, image_mean=MEAN, image_std=STD)))
    pictures = some(6)
    r, got = quantize(images(tmp_path / "images", *pictures), [1, 3, 32, 32])
    want = []
    for a in pictures:
        h, w = a.shape[:2]
        want.append(reference(a, (40, int(40 * w / h)) if h <= w else (int(40 * h / w), 40), 3, (32, 32), MEAN, STD))
    assert got["x"] == low_high(want)
    assert r.json["dataset"] == "pictures of images" and r.json["samples"] == 6 and not r.json["random_data"]
    assert "no preprocessor file" not in r.err


def test_without_a_preprocessor(quantize, tmp_path):
    a = scene(60, 80) // 3
    r, got = quantize(images(tmp_path / "images", a), [1, 3, 32, 32])
    assert got["x"] == low_high([reference(a, (32, 32))]) and "no preprocessor file" in r.err
    assert r.err.count("no preprocessor file") == 1


def test_preprocessor_named(quantize, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    config = other / "p.json"
    config.write_text(json.dumps(dict(image_processor_type="ViTImageProcessor", size=32)))
    a = scene(60, 80)
    _, got = quantize(images(tmp_path / "images", a), [1, 3, 32, 32], "--preprocessor", config)
    assert got["x"] == low_high([reference(a, (32, 32), 2, None, [0.5] * 3, [0.5] * 3)])


def test_batches_and_spacing(quantize, tmp_path):
    pictures = some(9)
    folder = images(tmp_path / "images", *pictures)
    r, got = quantize(folder, [2, 3, 32, 32], "--samples", "2") # 4 of the 9
    assert r.json["samples"] == 2 and got["x"] == low_high([reference(pictures[i], (32, 32)) for i in (0, 2, 4, 6)])
    r, got = quantize(folder, [2, 3, 32, 32]) # the last batch is filled up
    assert r.json["samples"] == 5 and got["x"] == low_high([reference(a, (32, 32)) for a in pictures])


def test_open_sizes_take_shapes(quantize, tmp_path):
    a = scene(60, 80)
    _, got = quantize(images(tmp_path / "images", a), [1, 3, "h", "w"], "--input-dim", "h=24", "--input-dim", "w=40")
    assert got["x"] == low_high([reference(a, (24, 40))])


def test_unreadable_pictures(quantize, tmp_path):
    a = scene(40, 40)
    folder = images(tmp_path / "images", a, noise(9, 9))
    (folder / "01.png").write_bytes((folder / "01.png").read_bytes()[:100])
    r, got = quantize(folder, [1, 3, 32, 32])
    assert got["x"] == low_high([reference(a, (32, 32))]) and r.json["samples"] == 1 and r.err.count("01.png") == 1
    (folder / "00.png").write_bytes(b"")
    r, _ = quantize(folder, [1, 3, 32, 32], expect=1)
    assert "none of 2 pictures can be read" in r.err + r.out


def test_one_picture_and_methods_of_two_passes(quantize, tmp_path):
    a = scene(40, 50)
    path = tmp_path / "one.bmp"
    PIL.fromarray(a).save(path)
    for method in ("minmax", "entropy", "mse"):
        r, got = quantize(path, [1, 3, 32, 32], "--method", method)
        low, high = low_high([reference(a, (32, 32))])
        assert low <= got["x"][0] and got["x"][1] <= high and r.json["samples"] == 1


def test_models_without_an_input_for_pictures(winml, tmp_path):
    images(tmp_path / "images", noise(9, 9))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [helper.make_tensor_value_info("x", 1, [2, 4])],
                              [helper.make_tensor_value_info("y", 1, [2, 4])], [onnx.numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    r = winml("quantize", "-m", tmp_path / "m.onnx", "-p", "int8", "--calibration-data", tmp_path / "images")
    assert r.code == 1 and "no input for pictures" in r.err and "npz" in r.err
