"""Pictures as inputs (src/task), judged by Pillow, numpy and the image processors of transformers.

Pictures are made here. The program under test is the driver of tests/task, asked line by line.
"""
import itertools
import json
import os
import random
import struct
import subprocess
import sys
import types
import zlib

import numpy as np
import pytest
from conftest import WINML

PIL = pytest.importorskip("PIL.Image", reason="Pillow is not in this Python environment")
ImageOps = pytest.importorskip("PIL.ImageOps")
FILTERS = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]
OPEN = "pixel_values:float32:-1,3,-1,-1"


class Driver:
    def __init__(self, folder):
        path = os.path.join(os.path.dirname(WINML), "tests", "task", "winml_task")
        assert os.path.exists(path), f"{path} is not built"
        self.folder = folder
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, *words):
        """ok, the answer, what was logged; or False, message and hint, what was logged."""
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().rstrip("\n").split("\t")
        if line[0] == "ok":
            return True, line[1], line[2]
        assert line[0] == "error" and line[1], f"no answer to {words}: {line}"
        return False, line[1] + " | " + line[2], line[3]

    def get(self, *words):
        ok, said, logged = self.ask(*words)
        assert ok, f"{words}: {said}"
        return said, logged

    def array(self, *words):
        out = self.folder / "out.npy"
        self.get(*words, out)
        return np.load(out)

    def make(self, picture, config, inputs=OPEN):
        """The arrays of a sample, and what was logged."""
        out = self.folder / "out.npz"
        _, logged = self.get("make", picture, config, inputs, out)
        with np.load(out) as z:
            return dict(z), logged

    def config(self, **members):
        path = self.folder / "preprocessor_config.json"
        path.write_text(json.dumps(members))
        return path

    def picture(self, array, name="in.png", **options):
        path = self.folder / name
        PIL.fromarray(array).save(path, **options)
        return path


@pytest.fixture
def task(tmp_path):
    d = Driver(tmp_path)
    yield d
    d.process.stdin.close()
    assert d.process.wait(30) == 0


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def scene(height, width):
    """Something with edges and slopes, as photographs have."""
    y, x = np.mgrid[0:height, 0:width]
    a = np.stack([(np.sin(x / 7) + np.cos(y / 9)) * 60 + 128, (x * y // 77) % 256, (x + 2 * y) % 256], -1)
    return (a + np.random.default_rng(0).normal(0, 8, a.shape)).clip(0, 255).astype(np.uint8)


# --- resize and crop ---

@pytest.mark.parametrize("how", range(6), ids=FILTERS)
def test_resize_is_pillows(task, how):
    choose = random.Random(how)
    sources = [1, 2, 3, 5, 7, 16, 17, 31, 64, 100, 133, 257, 640]
    sizes = [1, 2, 3, 8, 15, 16, 33, 224, 255, 500]
    for seed in range(40):
        w, h = choose.choice(sources), choose.choice(sources)
        a = noise(h, w, seed)
        if seed % 3 == 0: # the steepest steps, where sums leave 0..255
            a = (a > 127).astype(np.uint8) * 255
        path = task.picture(a)
        for _ in range(4):
            W, H = choose.choice(sizes + [w]), choose.choice(sizes + [h])
            got = task.array("resize", path, W, H, how)
            want = np.asarray(PIL.fromarray(a).resize((W, H), how))
            assert np.array_equal(got, want), f"{w}x{h} to {W}x{H}, {FILTERS[how]}: {(got != want).mean():.2%} differ"


def test_resize_order_of_passes(task):
    """Which pass comes first shows in the rounding; the sizes lie around the border of Pillow's rule."""
    choose = random.Random(1)
    for seed in range(60):
        w, h, H = choose.randint(20, 90), choose.randint(20, 90), choose.randint(1, 90)
        W = max(1, w - (h - H) // 2 + choose.randint(-1, 1))
        a = noise(h, w, seed)
        got = task.array("resize", task.picture(a), W, H, 1)
        assert np.array_equal(got, np.asarray(PIL.fromarray(a).resize((W, H), 1))), (w, h, W, H)


@pytest.mark.parametrize("how", [0, 2, 3], ids=["nearest", "bilinear", "bicubic"])
def test_resize_photograph_size(task, how):
    a = scene(1500, 2111)
    path = task.picture(a, "in.bmp")
    for size in ((224, 224), (640, 455), (4001, 3)):
        assert np.array_equal(task.array("resize", path, *size, how), np.asarray(PIL.fromarray(a).resize(size, how)))


def test_resize_refuses_sizes(task):
    path = task.picture(noise(4, 4))
    for size in ((0, 4), (4, 0), (20000, 20000), (2**40, 2**40)):
        ok, said, _ = task.ask("resize", path, *size, 2, task.folder / "x.npy")
        assert not ok and "at most 100000000 pixels" in said


def test_crop_is_the_processors(task):
    transforms = import_transformers("transformers.image_transforms")
    for (w, h), (W, H) in itertools.product([(7, 10), (8, 9), (20, 5)], [(4, 4), (5, 7), (7, 10), (13, 12), (3, 30), (21, 6)]):
        a = noise(h, w)
        want = transforms.center_crop(a, (H, W), input_data_format="channels_last")
        assert np.array_equal(task.array("crop", task.picture(a), W, H), want), (w, h, W, H)


# --- files ---

@pytest.mark.parametrize("ext", ["png", "bmp", "gif"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1"])
def test_decode_is_pillows(task, mode, ext):
    image = PIL.fromarray(scene(37, 51)).convert(mode)
    if mode in ("RGBA", "LA"):
        image.putalpha(PIL.fromarray(noise(37, 51)[..., 0] // 128 * 100 + 155))
    path = task.folder / f"in.{ext}"
    if (mode, ext) == ("LA", "bmp"):
        image = image.convert("L") # Pillow does not write it
    image.save(path)
    assert np.array_equal(task.array("decode", path), np.asarray(PIL.open(path).convert("RGB")))


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_decode_png_palette(task, bits):
    image = PIL.fromarray(scene(19, 23)).quantize(2**bits)
    path = task.folder / "in.png"
    image.save(path, bits=bits, transparency=1)
    assert np.array_equal(task.array("decode", path), np.asarray(PIL.open(path).convert("RGB")))


def test_decode_png_16_bits_keeps_the_upper_8(task):
    deep = np.random.default_rng(0).integers(0, 65536, (9, 14), dtype=np.uint16)
    path = task.picture(deep)
    assert np.array_equal(task.array("decode", path), np.repeat((deep >> 8)[..., None], 3, 2))


def test_decode_gif_first_frame(task):
    frames = [PIL.fromarray(noise(20, 30, i)).quantize(64) for i in range(3)]
    path = task.folder / "in.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:])
    assert np.array_equal(task.array("decode", path), np.asarray(PIL.open(path).convert("RGB")))


@pytest.mark.parametrize("mode,sampling,progressive", list(itertools.product(["RGB", "L", "CMYK"], [0, 1, 2], [False, True])))
def test_decode_jpeg_is_near_libjpegs(task, mode, sampling, progressive):
    """Decoders round differently: up to 4 of 255 in single samples and 0.25 on average. stb_image weighs the samples of the
    last colour pair of 4:2:2 (sampling 1) the wrong way round, which shows in the last two columns."""
    path = task.folder / "in.jpg"
    for quality, width in ((30, 187), (75, 188), (95, 16)):
        PIL.fromarray(scene(121, width)).convert(mode).save(path, quality=quality, subsampling=sampling, progressive=progressive)
        got = task.array("decode", path).astype(int)
        want = np.asarray(PIL.open(path).convert("RGB")).astype(int)
        assert got.shape == want.shape
        off = abs(got - want)[:, :-2] if sampling == 1 else abs(got - want)
        assert off.max() <= 4 and off.mean() < 0.25


@pytest.mark.parametrize("ext", ["jpg", "png"])
@pytest.mark.parametrize("orientation", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
def test_exif_orientation(task, orientation, ext):
    image = PIL.fromarray(scene(24, 40))
    exif = PIL.Exif()
    exif[0x10F] = "a maker" # an entry before it
    exif[0x112] = orientation
    path = task.folder / f"in.{ext}"
    image.save(path, exif=exif)
    want = np.asarray(ImageOps.exif_transpose(PIL.open(path)).convert("RGB")).astype(int)
    got = task.array("decode", path).astype(int)
    assert got.shape == want.shape and abs(got - want).max() <= (4 if ext == "jpg" else 0)


def small_files(folder):
    a = scene(8, 9)
    for ext, options in (("jpg", {}), ("png", {}), ("gif", {}), ("bmp", {})):
        path = folder / f"whole.{ext}"
        PIL.fromarray(a).save(path, **options)
        yield ext, path.read_bytes()


def test_cut_files_are_refused(task):
    """At every byte: a picture that is partly grey must not pass for a sample."""
    path = task.folder / "cut"
    for ext, whole in small_files(task.folder):
        last = len(whole) - (1 if ext == "gif" else 0) # the trailer of a GIF follows the picture
        for n in range(last):
            path.write_bytes(whole[:n])
            ok, said, _ = task.ask("decode", path, task.folder / "x.npy")
            assert not ok, f"{ext} cut to {n} of {len(whole)} bytes is taken"
        path.write_bytes(whole + b"more")
        task.get("decode", path, task.folder / "x.npy")


def test_damaged_png_is_refused(task):
    whole = dict(small_files(task.folder))["png"]
    path = task.folder / "bad.png"
    for i, bit in itertools.product(range(len(whole)), (0, 3, 7)):
        b = bytearray(whole)
        b[i] ^= 1 << bit
        path.write_bytes(b)
        assert not task.ask("decode", path, task.folder / "x.npy")[0], f"bit {bit} of byte {i} flipped"


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def test_sizes_are_checked_before_decoding(task):
    path = task.folder / "huge.png"
    head = b"\x89PNG\r\n\x1a\n"
    for w, h in ((100000, 1001), (1, 100000001), (16777216, 16777216)):
        path.write_bytes(head + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"")) +
                         chunk(b"IEND", b""))
        ok, said, _ = task.ask("decode", path, task.folder / "x.npy")
        assert not ok and "at most 100000000 pixels" in said, said


def test_zip_bomb_does_not_eat_memory(task):
    """A tiny picture whose packed data would fill 4 GB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"\x78\x9c" + (packer.compress(bytes(1 << 26)) + packer.flush(zlib.Z_FULL_FLUSH)) * 64 + packer.flush()
    path = task.folder / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) + chunk(b"IDAT", packed) +
                     chunk(b"IEND", b""))
    ok, said, _ = task.ask("decode", path, task.folder / "x.npy")
    with open(f"/proc/{task.process.pid}/status") as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    assert not ok and peak < 2.2e6, f"{said}, peak {peak} kB"


@pytest.mark.parametrize("ext,name", [("webp", "WebP"), ("tif", "TIFF"), ("ppm", "this is no JPEG"), ("jp2", "JPEG 2000")])
def test_other_formats_are_named(task, ext, name):
    path = task.picture(noise(8, 8), f"in.{ext}")
    ok, said, _ = task.ask("decode", path, task.folder / "x.npy")
    assert not ok and name in said and "save it as PNG or JPEG" in said


def test_no_file_and_no_picture(task):
    (task.folder / "empty.png").write_bytes(b"")
    (task.folder / "text.png").write_text("no picture")
    for name, why in (("empty.png", "the file is empty"), ("text.png", "no JPEG, PNG, BMP or GIF"), ("none.png", "none.png")):
        ok, said, _ = task.ask("decode", task.folder / name, task.folder / "x.npy")
        assert not ok and why in said and name in said


# --- the processors of transformers ---

CHANGES = {
    "ViT": [dict(do_rescale=False), dict(do_rescale=False, do_normalize=False), dict(do_resize=False),
            dict(image_mean=[0.1, 0.2, 0.3], image_std=0.7, resample=3)],
    "CLIP": [dict(size={"shortest_edge": 336}, crop_size=336),
             dict(size={"height": 100, "width": 50}, crop_size={"height": 120, "width": 40}, do_normalize=False)],
    "ConvNext": [dict(size={"shortest_edge": 224}), dict(size={"shortest_edge": 224}, crop_pct=0.95)],
    "PoolFormer": [dict(size={"height": 224, "width": 224}), dict(crop_pct=1.0)],
    "EfficientNet": [dict(rescale_factor=1 / 127.5, rescale_offset=True, include_top=False, resample=2, do_center_crop=True)],
    "DPT": [dict(keep_aspect_ratio=True, ensure_multiple_of=14, size={"height": 218, "width": 218}),
            dict(ensure_multiple_of=32, size={"height": 200, "width": 200}),
            dict(do_pad=True, size_divisor=14, keep_aspect_ratio=True, size={"height": 201, "width": 201})],
    "Detr": [dict(size={"shortest_edge": 200, "longest_edge": 240}), dict(size={"max_height": 300, "max_width": 200}),
             dict(size={"shortest_edge": 200, "longest_edge": 256}, pad_size={"height": 256, "width": 256})],
    "Yolos": [dict(size={"shortest_edge": 212, "longest_edge": 264}), dict(size={"height": 133, "width": 144})],
    "Mask2Former": [dict(size={"height": 190, "width": 180}), dict(size_divisor=0, size={"shortest_edge": 120, "longest_edge": 200})],
    "Sam": [dict(size={"longest_edge": 512}, pad_size={"height": 512, "width": 512})],
}
OPTIONS = {"LayoutLMv2": dict(apply_ocr=False), "LayoutLMv3": dict(apply_ocr=False)}
PROCESSORS = """ViT DeiT Beit CLIP Bit ViTHybrid Siglip Blip Flava OwlViT Pvt EfficientFormer ConvNext PoolFormer Levit MobileNetV1
    MobileNetV2 MobileViT EfficientNet Segformer MaskFormer Mask2Former Detr ConditionalDetr Deta GroundingDino Yolos RTDetr DPT
    PromptDepthAnything GLPN Sam Vilt LayoutLMv2 LayoutLMv3""".split()


def import_transformers(name="transformers"):
    """Its check of versions is left out: it asks for an older tokenizers, which image processors do not use."""
    no_check = types.ModuleType("transformers.dependency_versions_check")
    no_check.dep_version_check = lambda *_, **__: None
    sys.modules.setdefault(no_check.__name__, no_check)
    return pytest.importorskip(name, reason="transformers is not in this Python environment")


@pytest.fixture(scope="session")
def transformers():
    module = import_transformers()
    module.logging.set_verbosity_error()
    return module


@pytest.mark.parametrize("name", PROCESSORS)
def test_processor(task, transformers, name):
    """To the bit, with the defaults and with changed members."""
    kind = getattr(transformers, name + "ImageProcessor")
    for change in [{}] + CHANGES.get(name, []):
        processor = kind(**change, **OPTIONS.get(name, {}))
        processor.save_pretrained(task.folder)
        for width, height in ((250, 187), (163, 280), (227, 227)):
            picture = PIL.fromarray(noise(height, width))
            path = task.picture(noise(height, width))
            more = dict(return_image_mask=False, return_codebook_pixels=False) if name == "Flava" else {}
            want = processor(picture, return_tensors="np", **more)
            inputs = OPEN + (";pixel_mask:int64:-1,-1,-1" if "pixel_mask" in want else "")
            got, logged = task.make(path, task.folder / "preprocessor_config.json", inputs)
            assert not logged, logged
            assert got["pixel_values"].shape == want["pixel_values"].shape, change
            assert np.array_equal(got["pixel_values"], want["pixel_values"].astype(np.float32)), change
            if "pixel_mask" in want:
                assert np.array_equal(got["pixel_mask"], want["pixel_mask"]), change


def sizes_of(transformers, kind, w, h, s, l, m):
    """The members of a file and the (height, width) that the processor makes of a w x h picture."""
    from transformers.image_transforms import get_resize_output_image_size as common
    from transformers.models.detr import image_processing_detr as detr
    from transformers.models.dpt import image_processing_dpt as dpt
    from transformers.models.mask2former import image_processing_mask2former as mask
    from transformers.models.vilt import image_processing_vilt as vilt
    from transformers.models.yolos import image_processing_yolos as yolos
    last, image = "channels_last", np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (h, w, 3), (0, 0, 0))
    edges = {"size": {"shortest_edge": s, "longest_edge": l}}
    if kind == "Detr":
        return edges, detr.get_size_with_aspect_ratio((h, w), s, l)
    if kind == "Yolos":
        return edges, yolos.get_size_with_aspect_ratio((h, w), s, l)
    if kind == "RTDetr":
        return {"size": {"max_height": s, "max_width": l}}, detr.get_image_size_for_max_height_width(image, s, l, last)
    if kind in ("DPT", "PromptDepthAnything"):
        keep = kind == "DPT"
        return ({"size": {"height": s, "width": l}, "ensure_multiple_of": m, "keep_aspect_ratio": keep},
                dpt.get_resize_output_image_size(image, (s, l), keep, m, last))
    if kind == "Vilt":
        return {"size": {"shortest_edge": s}}, vilt.get_resize_output_image_size(image, s, int(1333 / 800 * s), 32, last)
    if kind == "Mask2Former":
        return {**edges, "size_divisor": m}, mask.get_mask2former_resize_output_image_size(image, s, l, m, False, last)
    if kind == "CLIP": # a bare number, as older files have it
        return {"size": s}, common(image, s, default_to_square=False, input_data_format=last)
    return {"size": {"longest_edge": l}}, transformers.SamImageProcessor()._get_preprocess_shape((h, w), l)


@pytest.mark.parametrize("kind", ["Detr", "Yolos", "RTDetr", "DPT", "PromptDepthAnything", "Vilt", "Mask2Former", "CLIP", "Sam"])
def test_sizes(task, transformers, kind):
    choose = random.Random(kind)
    for _ in range(150):
        w, h, m = choose.randint(1, 3000), choose.randint(1, 3000), choose.choice([1, 14, 16, 32])
        s, l = choose.choice([(800, 1333), (480, 640), (512, 864), (choose.randint(50, 900), choose.randint(901, 1500))])
        w, h = choose.choice([(w, h), (w, h), (s, h), (w, s)])
        members, want = sizes_of(transformers, kind, w, h, s, l, m)
        said, _ = task.get("size", task.config(image_processor_type=f"{kind}ImageProcessorFast", **members), w, h)
        assert said == f"{max(1, int(want[1]))} {max(1, int(want[0]))}", (members, w, h)


# --- a plan meets a model ---

def reference(array, size=None, how=2, crop=None, mean=None, std=None, scale=1 / 255):
    """[1, 3, H, W] by Pillow and numpy, as the processors write it down."""
    image = PIL.fromarray(array)
    if size:
        image = image.resize(size[::-1], how)
    if crop:
        left, top = (image.width - crop[1]) // 2, (image.height - crop[0]) // 2
        image = image.crop((left, top, left + crop[1], top + crop[0])) # outside: black
    x = np.asarray(image)
    x = (x.astype(np.float64) * scale).astype(np.float32) if scale else x.astype(np.float32)
    if mean is not None:
        x = (x - np.array(mean, np.float32)) / np.array(std, np.float32)
    return np.moveaxis(x, -1, 0)[None]


MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def test_model_size_wins_and_crop_keeps_its_share(task):
    a = scene(300, 400)
    path = task.picture(a)
    config = task.config(image_processor_type="BitImageProcessor", size={"shortest_edge": 256}, crop_size=224, image_mean=MEAN, image_std=STD)
    got, logged = task.make(path, config, "x:float32:1,3,224,224")
    assert not logged and np.array_equal(got["x"], reference(a, (256, 341), 3, (224, 224), MEAN, STD))
    got, logged = task.make(path, config, "x:float32:1,3,112,112")
    assert np.array_equal(got["x"], reference(a, (128, 170), 3, (112, 112), MEAN, STD))
    assert "112 x 112" in logged and "224 x 224" in logged and "in proportion" in logged
    # Another form: what covers it is cropped, no black bars.
    got, logged = task.make(path, config, "x:float32:1,3,112,224")
    assert np.array_equal(got["x"], reference(a, (192, 256), 3, (112, 224), MEAN, STD))


def test_model_size_wins_over_free_sizes(task):
    a = scene(120, 200)
    path = task.picture(a)
    config = task.config(image_processor_type="DetrImageProcessor")
    got, logged = task.make(path, config, "pixel_values:float32:1,3,96,128;pixel_mask:int64:1,96,128")
    assert np.array_equal(got["pixel_values"], reference(a, (96, 128), 2, None, MEAN, STD))
    assert got["pixel_mask"].dtype == np.int64 and got["pixel_mask"].shape == (1, 96, 128) and got["pixel_mask"].all()
    assert "sizes that vary" in logged
    config = task.config(image_processor_type="SamImageProcessor")
    got, logged = task.make(path, config, "x:float32:1,3,512,512")
    assert got["x"].shape == (1, 3, 512, 512) and not got["x"][:, :, 308:].any()
    assert np.array_equal(got["x"][:, :, :307], reference(a, (307, 512), 2, None, MEAN, STD))


def test_no_file(task):
    a = scene(60, 80)
    path = task.picture(a)
    got, logged = task.make(path, "-", "x:float32:1,3,32,48")
    assert np.array_equal(got["x"], reference(a, (32, 48))) and "no preprocessor file" in logged and "without mean" in logged
    got, logged = task.make(path, "-", "x:float32:-1,3,-1,-1")
    assert np.array_equal(got["x"], reference(a, (224, 224))) and "224 x 224 is used" in logged
    # Text lines: only the height is fixed.
    got, logged = task.make(path, "-", "x:float32:-1,3,48,-1")
    assert np.array_equal(got["x"], reference(a, (48, 64))) and "height of pictures to 48" in logged


def test_layout_and_types(task):
    a = scene(40, 50)
    path = task.picture(a)
    config = task.config(image_processor_type="ViTImageProcessor", size=32, image_mean=MEAN, image_std=STD)
    want = reference(a, (32, 32), 2, None, MEAN, STD)
    for dtype in (np.float16, np.float64):
        got = task.make(path, config, f"x:{np.dtype(dtype).name}:1,3,32,32")[0]["x"]
        assert got.dtype == dtype and np.array_equal(got, want.astype(dtype))
    got = task.make(path, config, "x:float32:1,32,32,3")[0]["x"]
    assert np.array_equal(got, np.moveaxis(want, 1, -1))
    pixels = np.asarray(PIL.fromarray(a).resize((32, 32), 2))
    got, logged = task.make(path, config, "x:uint8:1,32,32,3")
    assert got["x"].dtype == np.uint8 and np.array_equal(got["x"][0], pixels) and "not rescaled" in logged
    got, logged = task.make(path, config, "x:int8:1,3,32,32")
    assert np.array_equal(got["x"][0], np.moveaxis(pixels.astype(int) - 128, -1, 0)) and "minus 128" in logged
    got = task.make(path, config, "x:float32:1,1,32,32")[0]["x"]
    grey = np.asarray(PIL.fromarray(a).convert("L").resize((32, 32), 2))
    want = ((grey.astype(np.float64) / 255).astype(np.float32) - np.float32(MEAN[0])) / np.float32(STD[0])
    assert got.shape == (1, 1, 32, 32) and np.allclose(got[0, 0], want, atol=1e-6)


@pytest.mark.parametrize("inputs,why", [
    ("ids:int64:1,128", "no input for pictures"),
    ("x:float32:1,4,32,32", "no input for pictures"),
    ("a:float32:1,3,8,8;b:float32:1,3,8,8", "could both take pictures"),
    ("pixel_values:int64:1,3,8,8", "which no picture has"),
    ("pixel_values:float32:1,16,8,8", "pictures have 3, or 1"),
    ("x:float32:1,3,0,8", "takes pictures of 0 x 8"),
    ("x:float32:2,3,8,8", "2 pictures at a time, not 1"),
    ("pixel_values:float32:1,3,8,8;pixel_mask:int64:1,8", "[batch, height, width] is wanted"),
])
def test_models_that_do_not_fit(task, inputs, why):
    ok, said, _ = task.ask("make", task.picture(noise(8, 8)), "-", inputs, task.folder / "x.npz")
    assert not ok and why in said


@pytest.mark.parametrize("members,why", [
    (dict(size="big"), "'size'"), (dict(size={"height": 0, "width": 4}), "'size'"), (dict(size=70000), "'size'"),
    (dict(size={}), "'size'"), (dict(size=[1, 2, 3]), "'size'"), (dict(resample=9), "'resample'"), (dict(resample="best"), "'resample'"),
    (dict(do_resize="yes"), "'do_resize'"), (dict(image_mean=[1, 2]), "'image_mean'"), (dict(image_mean=["a", 1, 2]), "'image_mean'"),
    (dict(image_std=[1, 0, 1]), "'image_std'"), (dict(rescale_factor="1/255"), "'rescale_factor'"), (dict(crop_size=-1), "'crop_size'"),
    (dict(image_processor_type="ConvNextImageProcessor", crop_pct=0), "'crop_pct'"), (dict(do_center_crop=True), "'crop_size'"),
    (dict(do_resize=True), "'size'"),
])
def test_bad_files_name_the_member(task, members, why):
    members = {"image_processor_type": "UnheardOfImageProcessor", **members}
    ok, said, _ = task.ask("plan", task.config(**members), OPEN)
    assert not ok and why in said and "preprocessor_config.json" in said, said


def test_file_that_is_no_object(task):
    path = task.folder / "preprocessor_config.json"
    for text in ("[1]", "{", ""):
        path.write_text(text)
        ok, said, _ = task.ask("plan", path, OPEN)
        assert not ok and "preprocessor_config.json" in said


def test_unknown_processor_uses_the_members(task):
    a = scene(64, 80)
    config = task.config(image_processor_type="UnheardOfImageProcessor", size={"height": 30, "width": 20}, image_mean=MEAN, image_std=STD,
                         resample="PILImageResampling.BICUBIC")
    got, logged = task.make(task.picture(a), config)
    assert np.array_equal(got["pixel_values"], reference(a, (30, 20), 3, None, MEAN, STD)) and "UnheardOf" in logged


def test_other_forms_of_the_file(task):
    """The processor inside of processor_config.json, and the older name of the type."""
    a = scene(64, 80)
    want = reference(a, (48, 48), 2, None, [0.5] * 3, [0.5] * 3)
    for config in (task.config(image_processor=dict(image_processor_type="ViTImageProcessorFast", size=48), processor_class="X"),
                   task.config(feature_extractor_type="ViTFeatureExtractor", size=48)):
        assert np.array_equal(task.make(task.picture(a), config)[0]["pixel_values"], want)


def test_plan_in_words(task):
    config = task.config(image_processor_type="CLIPImageProcessor")
    assert task.get("plan", config, OPEN)[0] == "RGB, resize to 224 (shorter edge, bicubic), crop to 224 x 224, 0..1, mean and std"


# --- folders ---

def fill(folder, *names):
    for i, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        PIL.fromarray(noise(8, 8, i)).save(path, format={".jpg": "JPEG", ".gif": "GIF"}.get(path.suffix.lower(), "PNG"))


def test_list(task):
    root = task.folder / "images"
    fill(root, "b.PNG", "a.jpg", "cat/2.Jpeg", "cat/10.png", "dog/x/1.gif", ".hidden.png", ".git/1.png", "notes/readme.pngx")
    (root / "labels.csv").write_text("x")
    names = task.get("list", root, 100)[0].split("|")
    assert [os.path.relpath(n, root) for n in names] == ["a.jpg", "b.PNG", "cat/10.png", "cat/2.Jpeg", "dog/x/1.gif"]
    thin = task.get("list", root, 2)[0].split("|")
    assert [os.path.relpath(n, root) for n in thin] == ["a.jpg", "cat/10.png"]
    assert task.get("list", root / "a.jpg", 5)[0] == str(root / "a.jpg")
    for path, why in ((root / "notes", "no pictures in it"), (root / "none", "no such file or folder")):
        ok, said, _ = task.ask("list", path, 5)
        assert not ok and why in said and str(path) in said


def test_unreadable_files_are_named_and_left_out(task):
    root = task.folder / "images"
    fill(root, "a.png", "c.png", "e.png")
    (root / "b.png").write_bytes((root / "a.png").read_bytes()[:60])
    (root / "d.webp").write_bytes(b"RIFF\0\0\0\0WEBP")
    out = task.folder / "s-"
    said, logged = task.get("samples", root, "-", "x:float32:1,3,8,8", out)
    assert said == "3 samples, 2 left out" and "b.png" in logged and "d.webp: WebP" in logged
    for i, seed in enumerate((0, 1, 2)):
        with np.load(f"{out}{i}.npz") as z:
            assert np.array_equal(z["x"], reference(noise(8, 8, seed), (8, 8)))


def test_a_folder_of_which_nothing_can_be_read(task):
    root = task.folder / "images"
    root.mkdir()
    for i in range(15):
        (root / f"{i:02}.webp").write_bytes(b"RIFF\0\0\0\0WEBP")
    ok, said, logged = task.ask("samples", root, "-", "x:float32:1,3,8,8", task.folder / "s-")
    assert not ok and "none of 15 pictures" in said and "14.webp" in said and "save it as PNG" in said
    assert logged.count("left out:") == 10
