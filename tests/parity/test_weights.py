"""Checkpoints as src/weights reads them: against the safetensors library, against Python's pickle, and damaged ones."""
import glob
import json
import os
import pickle
import random
import shutil
import struct
import subprocess
import zipfile
from collections import OrderedDict

import pytest

safetensors = pytest.importorskip("safetensors", reason="the Python package safetensors is not there")

import checkpoints as cp  # noqa: E402
from conftest import DEPS, ROOT, WINML  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(WINML), "tests", "weights", "winml_weights")
SHARDED = f"{ROOT}/tests/data/weights/sharded"


def ask(*paths):
    done = subprocess.run([PROGRAM, *map(str, paths)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr}"
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(paths)
    return lines


def compare(path, want, ordered=True):
    got = ask(path)[0]
    assert "error" not in got, f"{got['error']} ({got['hint']})"
    have = {t["name"]: {k: t[k] for k in ("dtype", "shape", "sha256")} for t in got["tensors"]}
    assert have == want
    if ordered:
        assert list(have) == list(want)
    return got


def refuse(path, *words, code=None):
    got = ask(path)[0]
    assert "error" in got, f"accepted: {got}"
    for w in words:
        assert w in got["error"] + " | " + got["hint"], got
    assert code is None or got["code"] == code, got
    return got


# --- safetensors ---

def test_minilm():
    path = f"{DEPS}/models/minilm"
    if not os.path.exists(path):
        pytest.skip("minilm could not be fetched")
    compare(path, cp.read_safetensors(f"{path}/model.safetensors"), ordered=False)


def test_every_type(tmp_path):
    tensors = {}
    for i, (name, (_, bits)) in enumerate(cp.SAFE_TYPES.items()):
        tensors[name] = {"dtype": name, "shape": [4, 2 + i], "data": random.Random(i).randbytes((8 + 4 * i) * bits // 8)}
    data, header, at = b"", {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": t["dtype"], "shape": t["shape"], "data_offsets": [at, at + len(t["data"])]}
        data += t["data"]
        at = len(data)
    cp.write_safetensors(tmp_path / "model.safetensors", header, data)
    compare(tmp_path, cp.read_safetensors(tmp_path / "model.safetensors"), ordered=False)


def test_forms(tmp_path):
    """Scalars, nothing at all, names of any text, a header in another order than the bytes, one padded, one of 640 bytes."""
    path = tmp_path / "model.safetensors"
    header = {"z": {"dtype": "U8", "shape": [3], "data_offsets": [4, 7]}, "": {"dtype": "F32", "shape": [0, 5], "data_offsets": [4, 4]},
              "naïve \u0001 \"q\"": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}, "__metadata__": {"format": "pt"}}
    for size in (0, 640, 2000):
        text = json.dumps(header).encode()
        cp.write_safetensors(path, text + b" " * max(0, size - len(text)), b"\0\0\x80?abc")
        want = cp.read_safetensors(path)
        got = compare(path, want, ordered=False)
        assert [t["name"] for t in got["tensors"]] == ["naïve \u0001 \"q\"", "", "z"]
    cp.write_safetensors(path, {}, b"")
    assert compare(path, {})["bytes"] == 0


def mutants(rng, good):
    n = struct.unpack("<Q", good[:8])[0]
    while True:
        b = bytearray(good)
        how = rng.randrange(7)
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            if how == 0:
                b[rng.randrange(8 + n)] = rng.randrange(256)
            elif how == 1:
                i = rng.randrange(8, 8 + n)
                b[i] = ord(rng.choice('0123456789[]{}",:- '))
            elif how == 2:
                del b[rng.randrange(len(b)):]
                b = b or bytearray(b"\0")
            elif how == 3:
                b += rng.randbytes(rng.randrange(1, 9))
            elif how == 4: # a digit for a digit: other offsets, other shapes
                digits = [i for i in range(8, 8 + n) if 48 <= b[i] < 58]
                b[rng.choice(digits)] = rng.randrange(48, 58)
            elif how == 6: # a name, a space, the data
                b[rng.choice([10, 12, 8 + n - 1, 8 + n - 3, rng.randrange(8 + n, len(b))])] = rng.choice([rng.randrange(256), rng.randrange(32, 127)])
            else:
                b[:8] = struct.pack("<Q", rng.choice((0, 1, n - 1, n + 1, len(b), len(b) - 8, 2**32, 2**63, 2**64 - 1)))
            if how in (2, 3, 5):
                break
        yield bytes(b)


def test_accepts_what_the_library_accepts(tmp_path):
    """Mutated files: the same verdict as that of the format's own reader, and the same tensors."""
    rng = random.Random(1)
    header = {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "b": {"dtype": "I16", "shape": [5], "data_offsets": [24, 34]},
              "c": {"dtype": "U8", "shape": [0], "data_offsets": [34, 34]}, "d": {"dtype": "BOOL", "shape": [1, 2], "data_offsets": [34, 36]}}
    cp.write_safetensors(tmp_path / "good", json.dumps(header).encode() + b"    ", bytes(range(36)))
    good = (tmp_path / "good").read_bytes()
    made = mutants(rng, good)
    paths, verdicts = [], []
    for i in range(4000):
        path, b = tmp_path / f"{i}.safetensors", next(made)
        path.write_bytes(b)
        try:
            verdicts.append(cp.read_safetensors(path))
        except (safetensors.SafetensorError, KeyError):
            verdicts.append(None)
        paths.append(path)
    accepted = 0
    for path, want, got in zip(paths, verdicts, ask(*paths)):
        have = None if "error" in got else {t["name"]: {k: t[k] for k in ("dtype", "shape", "sha256")} for t in got["tensors"]}
        assert have == want, f"{path.read_bytes()!r}: {got.get('error')}"
        accepted += want is not None
        assert want is not None or (got["error"] and got["hint"] is not None)
    assert 100 < accepted < 3000, accepted


@pytest.mark.parametrize("length", [2**32, 2**63, 2**64 - 1, 100000001, 10**6])
def test_header_length(tmp_path, length):
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + b"{}" + b" " * 100)
    refuse(path, str(length), str(path), "fetch it again", code="format")


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize("header, data, words", [
    ({"a": ONE, "b": {**ONE, "data_offsets": [2, 6]}}, 6, ["'a' and 'b' overlap"]),
    ({"a": ONE, "b": {**ONE, "data_offsets": [0, 4]}}, 4, ["'a' and 'b' overlap"]),
    ({"a": ONE, "b": {**ONE, "data_offsets": [8, 12]}}, 12, ["4 bytes before tensor 'b'"]),
    ({"a": ONE}, 9, ["5 bytes behind"]),
    ({"a": ONE}, 3, ["'a' ends at byte 4", "has 3"]),
    ({"a": {**ONE, "shape": [2]}}, 4, ["'a' needs 8 bytes", "has 4"]),
    ({"a": {**ONE, "shape": [2**62, 2**62, 2**62]}}, 4, ["'a'", "too large"]),
    ({"a": {**ONE, "shape": [2**62]}}, 4, ["'a'", "too large"]),
    ({"a": {**ONE, "shape": [-1]}}, 4, ["'a'", "dimension 0"]),
    ({"a": {**ONE, "shape": "x"}}, 4, ["'a'", "shape"]),
    ({"a": {**ONE, "shape": [1] * 33}}, 4, ["'a'", "33 dimensions"]),
    ({"a": {**ONE, "dtype": "F99"}}, 4, ["'a'", "'F99'"]),
    ({"a": {**ONE, "data_offsets": [4, 0]}}, 4, ["'a'", "ascending"]),
    ({"a": {**ONE, "data_offsets": [0]}}, 4, ["'a'"]),
    ({"a": {**ONE, "data_offsets": [0, 2**64]}}, 4, ["'a'"]),
    ({"a": 3}, 4, ["'a'"]),
    (b'{"a": {"dtype":"U8","shape":[2],"data_offsets":[0,2]}, "a": {"dtype":"U8","shape":[2],"data_offsets":[2,4]}}', 4, ["two tensors 'a'"]),
    (b'{"a": ', 4, ["header", "line 1"]),
    (b'{"a": ' + b"[" * 100000 + b"]" * 100000 + b"}", 4, ["nested deeper"]),
    (b"{\"\xff\": 1}", 4, ["header"]),
    ({"a": {**ONE, "dtype": "F4"}}, 4, ["'a'", "within a byte"]),
    ({"a": ONE, "__metadata__": {"format": "tf"}}, 4, ["TensorFlow", "from_tf"]),
    ({"a": ONE, "__metadata__": {"format": "flax"}}, 4, ["Flax"]),
])
def test_damaged_safetensors(tmp_path, header, data, words):
    cp.write_safetensors(tmp_path / "model.safetensors", header, bytes(data))
    refuse(tmp_path, *words)


# --- PyTorch ---

def test_real_checkpoint():
    want = {}
    for path in sorted(glob.glob(f"{SHARDED}/*.bin")):
        one = cp.read_torch(path)
        compare(path, one)
        want.update(one)
    got = compare(SHARDED, want)
    assert got["format"] == "PyTorch" and len(got["files"]) == 3
    assert not any(t["copied"] for t in got["tensors"])


def floats(n, seed=0):
    return cp.Storage("FloatStorage", random.Random(seed).randbytes(4 * n))


def state_dict():
    """Everything that state dictionaries have."""
    shared, wide = floats(24), floats(120, 1)
    d = OrderedDict()
    d["plain"] = cp.Tensor(floats(6, 2), (2, 3))
    d["scalar"] = cp.Tensor(floats(1, 3), ())
    d["empty"] = cp.Tensor(floats(0, 4), (0, 7))
    d["parameter"] = cp.Tensor(floats(4, 5), (4,), parameter=True)
    d["first of shared"] = cp.Tensor(shared, (24,))
    d["second of shared"] = cp.Tensor(shared, (3, 4), offset=12)
    d["transposed"] = cp.Tensor(shared, (4, 6), (1, 4))
    d["every other"] = cp.Tensor(wide, (5, 3, 4), (24, 2, 6))
    d["one by one"] = cp.Tensor(wide, (1, 5, 1), (77, 1, 99), offset=3)
    d["channels last"] = cp.Tensor(wide, (2, 3, 4, 5), (60, 1, 15, 3))
    d["repeated"] = cp.Tensor(floats(3, 6), (4, 3), (0, 1))
    for i, (cls, (_, width)) in enumerate(cp.TORCH_STORAGES.items()):
        d[cls] = cp.Tensor(cp.Storage(cls, random.Random(i).randbytes(6 * width)), (2, 3))
    for i, (dtype, (_, width)) in enumerate(cp.TORCH_TYPES.items()):
        d[dtype] = cp.Tensor(cp.Storage("UntypedStorage", random.Random(i).randbytes(6 * width)), (2, 3), dtype=dtype)
    return d


def rows(d):
    return {k: v.expected() for k, v in d.items() if isinstance(v, cp.Tensor)}


COPIED = {"transposed", "every other", "channels last", "repeated"}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("form", ["zip", "zip64", "deflated", "flat", "old"])
def test_state_dict(tmp_path, form, protocol):
    path, d = tmp_path / "pytorch_model.bin", state_dict()
    if form == "old":
        cp.save_old(path, d, protocol)
    else:
        cp.save_zip(path, d, protocol, zip64=form == "zip64", folder="" if form == "flat" else "archive/",
                    method=zipfile.ZIP_DEFLATED if form == "deflated" else zipfile.ZIP_STORED)
    got = compare(tmp_path, rows(d))
    copied = {t["name"] for t in got["tensors"] if t["copied"]}
    assert copied == COPIED if form != "deflated" else copied >= COPIED


def test_other_dictionaries(tmp_path):
    path, t = tmp_path / "x.pt", cp.Tensor(floats(6), (2, 3))
    d = {"w": t, "note": "text", 3: cp.Tensor(floats(1), (1,)), "n": -7, "big": 2**80, "list": [1, 2.5, None, True, (), (1,), {"a": "c"}]}
    for save in (cp.save_zip, cp.save_old):
        save(path, d)
        compare(path, {"w": t.expected()})
        for key in ("state_dict", "model_state_dict", "model", "module"):
            save(path, {"epoch": 3, "loss": cp.Tensor(floats(1, 9), ()), key: d, "optimizer": {"w": cp.Tensor(floats(6, 8), (6,))}})
            compare(path, {"w": t.expected()})
        save(path, {"w": cp.Tensor(floats(6), (2, 3), version=1)})
        compare(path, {"w": t.expected()})
        save(path, {"epoch": 3, "nothing": {}})
        refuse(path, "without tensors", "epoch, nothing", "state_dict()")
        save(path, [t])
        refuse(path, "no dictionary")
        save(path, t)
        refuse(path, "no dictionary")


def test_state_of_an_ordered_dict(tmp_path):
    """Module.state_dict() has attributes: versions of the modules."""
    d = OrderedDict(w=cp.Tensor(floats(2), (2,)))
    d._metadata = OrderedDict({"": {"version": 1}, "layer": {"version": 2}})
    cp.save_zip(tmp_path / "pytorch_model.bin", d)
    compare(tmp_path, rows(d))


def test_python_2(tmp_path):
    """Its strings are bytes, its OrderedDict is made from pairs, and the memo of its C pickler begins at 1."""
    text = (b"\x80\x02ccollections\nOrderedDict\nq\x01]q\x02(]q\x03(U\x01wq\x04ctorch._utils\n_rebuild_tensor_v2\nq\x05((U\x07storageq\x06"
            b"ctorch\nFloatStorage\nq\x07U\x010q\x08U\x03cpuq\x09K\x02tQK\x00K\x02\x85K\x01\x85\x89Ntq\x0aRq\x0beea\x85Rq\x0c.")
    text = text.replace(b"eea\x85", b"ee\x85")
    pickle_ok = cp.Tensor(cp.Storage("FloatStorage", b"abcdefgh"), (2,))
    cp.raw_zip(tmp_path / "x.bin", text, [("data/0", b"abcdefgh")])
    compare(tmp_path / "x.bin", {"w": pickle_ok.expected()})


class Call:
    def __init__(self, fn, *args):
        self.fn, self.args = fn, args

    def __reduce__(self):
        return self.fn, self.args


@pytest.mark.parametrize("protocol", [2, 4])
def test_calls_are_refused_by_name(tmp_path, protocol):
    path, mark = tmp_path / "pytorch_model.bin", tmp_path / "was_here"
    for fn, args, name in ((os.system, (f"touch {mark}",), "posix.system"), (eval, ("1",), "eval"), (shutil.rmtree, (str(mark),), "shutil.rmtree"),
                           (pickle.loads, (b"",), "loads"), (getattr, (1, "x"), "getattr")):
        for save in (cp.save_zip, cp.save_old):
            save(path, {"w": cp.Tensor(floats(2), (2,)), "x": Call(fn, *args)}, protocol)
            refuse(path, name, "refused", "safetensors", code="unsupported")
    assert not mark.exists()


HEAD = b"\x80\x02}"
STORAGE = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x04tQ"


def tensor(offset=b"K\0", size=b"K\x04\x85", stride=b"K\x01\x85", storage=STORAGE):
    return HEAD + b"X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + size + stride + b"\x89NtRs."


def long8(v):
    return b"\x8a\x08" + struct.pack("<q", v)


@pytest.mark.parametrize("text, words", [
    (b"(iposix\nsystem\n.", ["posix.system"]),
    (b"(icollections\nOrderedDict\n.", ["object"]),
    (b"(cos\nsystem\nX\x02\0\0\0lsoq\0.", ["os.system"]),
    (b"X\x02\0\0\0osX\x06\0\0\0system\x93.", ["os.system"]),
    (b"c" + b"a" * 5000, ["name without an end"]),
    (b"c" + b"\n" * 2 + b".", ["refused"]),
    (b"h\x05.", ["recalls value 5"]),
    (b"j\xff\xff\xff\xff.", ["recalls value 4294967295"]),
    (b"Nr\xff\xff\xff\xff.", ["number 4294967295"]),
    (b"Nq\xff.", ["number 255"]),
    (b".", ["not there"]), (b"0.", ["not there"]), (b"(.", ["not there"]), (b"t.", ["mark"]), (b"u.", ["mark"]), (b"e.", ["mark"]),
    (b"1.", ["mark"]), (b"2.", ["not there"]), (b"\x86.", ["more values"]), (b"N(\x86.", ["mark as a value"]), (b"Q.", ["not there"]),
    (b"R.", ["not there"]), (b"NNR.", ["no name"]), (b"NQ.", ["no storage"]), (b"NNb.", ["state of an object"]), (b"Na.", ["no list"]),
    (b"NNa.", ["no list"]), (b"}(Nu.", ["key without"]), (b"}NNs0K\x05.", ["no dictionary"]), (b"NNNs.", ["no dictionary"]), (b"(NNu.", ["no dictionary"]),
    (b"(Nd.", ["key without"]), (b"}X\xff\xff\xff\xffabc.", ["need 4294967295 bytes"]), (b"\x8d" + b"\xff" * 8, ["need 18446744073709551615"]),
    (b"\x95" + b"\xff" * 8 + b"N.", ["frame"]), (b"\x80\x09N.", ["protocol 9"]), (b"\x82\x01.", ["0x82"]), (b"\x97.", ["0x97"]), (b"\xff", ["0xff"]),
    (b"", ["cut"]), (b"NNNN", ["cut"]), (b"I1\n.", ["0x49"]), (b"ctorch\nfloat32\n)R.", ["torch.float32"]),
    (b"ctorch\nSize\n)R.", ["tuple"]), (b"ctorch.nn.parameter\nParameter\n)R.", ["no tensor"]), (b"ctorch._utils\n_rebuild_tensor_v2\n)R.", ["unknown way"]),
    (b"ccollections\nOrderedDict\n(]Nat\x85R.", []), (b"ccollections\nOrderedDict\n(]NatR.", ["no pairs"]),
    (tensor(size=b"K\x05\x85"), ["'w'", "element 5 of a storage of 4"]),
    (tensor(offset=b"K\x01"), ["'w'", "element 5 of a storage of 4"]),
    (tensor(offset=long8(2**63 - 1)), ["'w'", "absurd"]),
    (tensor(offset=long8(-1)), ["unknown way"]),
    (tensor(size=long8(-4) + b"\x85"), ["no sizes"]),
    (tensor(size=long8(2**62) + long8(2**62) + b"\x86", stride=b"K\0K\0\x86"), ["'w'", "absurd"]),
    (tensor(size=long8(2**40) + b"\x85", stride=b"K\0\x85"), ["'w'", "many times"]),
    (tensor(size=long8(2**40) + b"\x85", stride=long8(2**40) + b"\x85"), ["'w'", "absurd"]),
    (tensor(size=b"K\x02\x85", stride=long8(2**62) + b"\x85"), ["'w'", "element"]),
    (tensor(offset=b"K\x03", size=b"K\x04\x85", stride=long8(-1) + b"\x85"), ["'w'", "absurd"]),
    (tensor(size=b"K\x02K\x02\x86"), ["unknown way"]),
    (tensor(size=b"(" + b"K\x01" * 40 + b"t", stride=b"(" + b"K\x01" * 40 + b"t"), ["40 dimensions"]),
    (tensor(size=b"N\x85"), ["no sizes"]),
    (tensor(storage=STORAGE.replace(b"K\x04t", long8(2**61) + b"t")), ["'w'", "storage of 2305843009213693952"]),
    (tensor(storage=STORAGE.replace(b"K\x04t", long8(-1) + b"t")), ["no storage"]),
    (tensor(storage=STORAGE.replace(b"X\x01\0\0\x000", b"X\x01\0\0\x009")), ["'w'", "no member data/9"]),
    (tensor(storage=STORAGE.replace(b"X\x01\0\0\x000", b"X\x0c\0\0\x00../../secret")), ["no member data/../../secret"]),
    (tensor(storage=STORAGE.replace(b"FloatStorage", b"QInt8Storage")), ["torch.QInt8Storage", "refused"]),
    (tensor(storage=b"N"), ["unknown way"]),
    (HEAD + b"X\x01\0\0\0act\nx\ns.", ["t.x"]),
])
def test_damaged_pickles(tmp_path, text, words):
    cp.raw_zip(tmp_path / "x.bin", text, [("data/0", bytes(16))])
    refuse(tmp_path / "x.bin", *words)


def test_the_damaged_are_near_misses(tmp_path):
    cp.raw_zip(tmp_path / "x.bin", tensor(), [("data/0", bytes(16))])
    compare(tmp_path / "x.bin", {"w": cp.Tensor(cp.Storage("FloatStorage", bytes(16)), (4,)).expected()})


def bombs():
    yield "marks", b"(" * 5_000_000 + b"."
    yield "endless", b"N" * 20_000_000 + b"."
    yield "nested tuples", b")" + b"\x85" * 5_000_000 + b"."
    yield "nested lists", b"]" * 1_000_000 + b"a" * 999_999 + b"."
    yield "a list in itself", b"]q\0" + b"h\0a" * 100_000 + b"."
    yield "laughs", b"]q\0" + b"".join(b"](" + b"h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(200)) + b"."
    yield "a dictionary of itself", b"}q\0X\x0a\0\0\0state_dicth\0s."
    yield "memo", b"N" + b"".join(b"r" + struct.pack("<I", i * 17) for i in range(100_000)) + b"."
    yield "one mark for many", b"(" + b"(l" * 1_000_000 + b"l" + b"."
    large = tensor(size=b"K\x80K\x80\x86", stride=b"K\x01K\x80\x86", storage=STORAGE.replace(b"K\x04t", b"M\x00\x40t"))[9:-2]
    yield "many copies", HEAD + b"(" + b"".join(b"X\x04\0\0\0%04d" % i + large for i in range(9999)) + b"u."


@pytest.mark.parametrize("name, text", list(bombs()), ids=[n for n, _ in bombs()])
def test_bombs(tmp_path, name, text):
    """Neither time nor memory nor the stack: at most a second and some hundred MB."""
    cp.raw_zip(tmp_path / "x.bin", text, [("data/0", bytes(65536))])
    limited = f"ulimit -v 1500000; ulimit -t 10; exec {PROGRAM} {tmp_path / 'x.bin'}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{name}: exit status {done.returncode}"
    assert "error" in json.loads(done.stdout)


def test_cut_everywhere(tmp_path):
    d = {"a": cp.Tensor(floats(6), (2, 3)), "b": cp.Tensor(floats(4, 1), (2, 2), (1, 2)), "c": cp.Tensor(floats(1, 2), ())}
    cp.save_zip(tmp_path / "zip", d)
    cp.save_old(tmp_path / "old", d)
    for form in ("zip", "old"):
        whole, paths = (tmp_path / form).read_bytes(), []
        for n in range(len(whole)):
            paths.append(tmp_path / f"{form}.{n}")
            paths[-1].write_bytes(whole[:n])
        for path, got in zip(paths, ask(*paths)):
            assert got.get("error"), path
            assert str(path) in got["error"]


def test_flipped(tmp_path):
    """Any byte may be another one: an error or tensors, never a crash."""
    rng, d = random.Random(3), {"a": cp.Tensor(floats(6), (2, 3)), "b": cp.Tensor(floats(4, 1), (2, 2), (1, 2))}
    for form, save in (("zip", cp.save_zip), ("old", cp.save_old)):
        save(tmp_path / form, d)
        whole, paths = (tmp_path / form).read_bytes(), []
        for n in range(3000):
            b = bytearray(whole)
            for _ in range(rng.choice((1, 1, 2, 4))):
                b[rng.randrange(len(b))] = rng.randrange(256)
            paths.append(tmp_path / f"{form}.{n}")
            paths[-1].write_bytes(b)
        for path, got in zip(paths, ask(*paths)):
            assert got.get("error") or got["tensors"], path


def test_archives_of_others(tmp_path):
    path, d = tmp_path / "x.pt", {"w": cp.Tensor(floats(2), (2,))}
    cp.save_zip(path, d, order=b"big")
    refuse(path, "byte order", code="unsupported")
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("model/constants.pkl", b"")
        z.writestr("model/code/__torch__.py", b"")
    refuse(path, "TorchScript", "state_dict()")
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("notes.txt", b"")
    refuse(path, "without data.pkl")
    path.write_bytes(pickle.dumps({"w": [1, 2]}, 2))
    refuse(path, "torch.save did not write")
    cp.save_old(path, d)
    path.write_bytes(path.read_bytes().replace(b"little_endian", b"little_endiaN").replace(b"\x8a\x0al", b"\x8a\x0am"))
    refuse(path, "torch.save did not write")
    text = path.read_bytes()
    cp.save_old(path, d)
    text = path.read_bytes()
    at = text.index(b"little_endian")
    path.write_bytes(text[:at] + text[at:].replace(b"\x88", b"\x89", 1))
    refuse(path, "byte order")
    for magic, word in ((b"GGUF" + bytes(60), "GGUF"), (b"\x89HDF\r\n\x1a\n" + bytes(60), "HDF5"), (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
                        (b"<!DOCTYPE html><html>", "web page"), (b"hello, world, this is no model", "unknown kind"), (b"", "empty"),
                        (bytes(257) + b"ustar" + bytes(300), "tar archive")):
        path.write_bytes(magic)
        refuse(path, word)


# --- folders and shards ---

def shard(folder, name, *tensors):
    header = {t: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, t in enumerate(tensors)}
    cp.write_safetensors(folder / name, header, bytes(ord(t[0]) for t in tensors))


def index(folder, where, name="model.safetensors.index.json"):
    (folder / name).write_text(json.dumps({"metadata": {"total_size": 3}, "weight_map": where}))


def test_shards(tmp_path):
    shard(tmp_path, "b.safetensors", "x", "w", "beside")
    shard(tmp_path, "a.safetensors", "y", "x")
    index(tmp_path, {"x": "b.safetensors", "y": "a.safetensors", "w": "b.safetensors"})
    for path in (tmp_path, tmp_path / "model.safetensors.index.json"):
        got = ask(path)[0]
        assert [t["name"] for t in got["tensors"]] == ["y", "x", "w", "beside"] and got["bytes"] == 4
        assert [os.path.basename(f) for f in got["files"]] == ["a.safetensors", "b.safetensors"]
    (tmp_path / "sub").mkdir()
    os.rename(tmp_path / "a.safetensors", tmp_path / "sub" / "a.safetensors")
    refuse(tmp_path, "1 of 2 files are not there: a.safetensors", "download", code="not_found")
    index(tmp_path, {"x": "b.safetensors", "y": "sub/a.safetensors"})
    assert len(ask(tmp_path)[0]["tensors"]) == 4


def test_bad_shards(tmp_path):
    shard(tmp_path, "a.safetensors", "x")
    shard(tmp_path, "b.safetensors", "y")
    index(tmp_path, {"x": "a.safetensors", "z": "b.safetensors"})
    refuse(tmp_path, "'z' is not in b.safetensors", "different checkpoints")
    index(tmp_path, {f"t{i}": f"{i}.safetensors" for i in range(9)})
    refuse(tmp_path, "9 of 9", "0.safetensors, 1.safetensors", "...")
    for bad in ("../x/a.safetensors", "/etc/passwd", "sub/../../a.safetensors", "C:\\a.safetensors", "..\\a.safetensors"):
        index(tmp_path, {"x": bad})
        refuse(tmp_path, "'x'", "outside of the folder")
    for where in ({}, {"x": 3}, {"x": ""}, [], None):
        index(tmp_path, where)
        assert refuse(tmp_path)["code"] == "format"
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"x": "a.safetensors", "x": "b.safetensors"}}')
    refuse(tmp_path, "'x' is named twice")
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": ')
    refuse(tmp_path, "line 1")
    shard(tmp_path, "b.safetensors", "y", "u")
    shard(tmp_path, "a.safetensors", "x", "u")
    index(tmp_path, {"x": "a.safetensors", "y": "b.safetensors"})
    refuse(tmp_path, "two tensors 'u'", "b.safetensors")
    index(tmp_path, {"x": "model.safetensors.index.json"})
    refuse(tmp_path, "JSON")


def test_which_file(tmp_path):
    """The order in which transformers looks."""
    cp.save_zip(tmp_path / "pytorch_model.bin", {"from bin": cp.Tensor(floats(1), (1,))})
    assert ask(tmp_path)[0]["format"] == "PyTorch"
    shard(tmp_path, "a.safetensors", "x")
    index(tmp_path, {"x": "a.safetensors"})
    assert ask(tmp_path)[0]["tensors"][0]["name"] == "x"
    shard(tmp_path, "model.safetensors", "one file")
    assert ask(tmp_path)[0]["tensors"][0]["name"] == "one file"


@pytest.mark.parametrize("names, words", [
    ([], ["it is empty", "save_pretrained"]),
    (["config.json"], ["holds no weights", "save_pretrained"]),
    (["tf_model.h5"], ["tf_model.h5 (TensorFlow)", "from_tf"]),
    (["flax_model.msgpack", "config.json"], ["flax_model.msgpack (Flax)", "from_flax"]),
    (["q4.gguf"], ["q4.gguf (GGUF)", "llama.cpp"]),
    (["model.onnx", "tf_model.h5"], ["model.onnx (an ONNX model)", "tf_model.h5", "optimize"]),
    (["adapter_model.safetensors", "adapter_config.json"], ["an adapter", "merge"]),
    (["model-00001-of-00002.safetensors"], ["a shard", "model.safetensors.index.json belongs"]),
    (["reference.safetensors", "training_args.bin"], ["reference.safetensors", "name the file model.safetensors"]),
    (["best.pt"], ["best.pt", "pytorch_model.bin"]),
    ([f"{i}.onnx" for i in range(20)], ["..."]),
])
def test_nothing_to_read(tmp_path, names, words):
    for n in names:
        (tmp_path / n).write_bytes(b"x")
    got = refuse(tmp_path, str(tmp_path), *words, code="not_found")
    assert "training_args" not in got["error"]


def test_no_such_path(tmp_path):
    refuse(tmp_path / "absent", "absent", code="not_found")
