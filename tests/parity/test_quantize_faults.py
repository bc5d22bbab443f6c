"""A run of quantize that is killed, interrupted, or out of disk space at any of its file operations: the old output stays whole
or there is none, never a part of one or a model beside weights of another. So do calibration cache and report."""
import hashlib
import os
import random
import re
import signal
import subprocess
import time

import onnx
import pytest

from conftest import WINML
from qdq_models import Maker

FAULTS = os.path.join(os.path.dirname(WINML), "tests", "faults", "libwinml_faults.so")
STATIC = ["-p", "int8", "--samples", "2"]
WAYS = {"static": STATIC, "dynamic": ["-p", "dynamic"], "fp16": ["-p", "fp16"], "rtn": ["-p", "int4"], "chain": ["-p", "dynamic", "-p", "fp16"],
        "two": ["-p", "w4a16"], "cache": [*STATIC, "--calibration-cache", "{out}/c.json"], "report": [*STATIC, "--report", "{out}/r.html"]}
MODEL = ("q.onnx", "q.onnx.data") # replaced together; every other file for itself
pytestmark = pytest.mark.skipif(not os.path.exists(FAULTS), reason="tests/faults is for Linux, without sanitizers")


def model(path, rows, outside=False):
    m = Maker(50)
    y = m.node("Relu", [m.node("MatMul", [m.input("x", [4, 512]), m.weight("w", 512, rows)])])
    onnx.save(m.build(m.node("MatMul", [y, m.weight("v", rows, 8)])), path, save_as_external_data=outside, location=f"{path.name}.data", size_threshold=0)
    return path


def settings(folder, at=0, how="", log=""):
    return {**os.environ, "LD_PRELOAD": FAULTS, "FAULTS_DIR": str(folder), "FAULTS_AT": str(at), "FAULTS_HOW": how, "FAULTS_LOG": str(log)}


def run(source, out, *args, **fault):
    return subprocess.run([WINML, "quantize", "-m", source, "-o", out, "--overwrite", *args], env=settings(out.parent, **fault), capture_output=True,
                          text=True, timeout=60)


def files(folder):
    return {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() if (folder / n).is_file() else "folder" for n in sorted(os.listdir(folder))}


def seen(folder):
    """What users see: a killed run cannot remove its hidden files and folders."""
    return {n: h for n, h in files(folder).items() if not n.startswith(".")}


def of_model(state):
    return {n: h for n, h in state.items() if n in MODEL}


def others(state):
    return {n: h for n, h in state.items() if n not in MODEL}


class Case:
    """What the folder holds before and after a run without faults, and its file operations."""

    def __init__(self, tmp, way, outside, old_outside):
        (tmp / "in").mkdir()
        self.folder = tmp / "out"
        self.args = [a.format(out=self.folder) for a in (*WAYS[way], "--no-accuracy")]
        self.source = model(tmp / "in" / "m.onnx", 64, outside)
        other = None if old_outside is None else model(tmp / "in" / "other.onnx", 32, old_outside)
        self.folder.mkdir()
        self.out = self.folder / "q.onnx"
        if other:
            assert run(other, self.out, *self.args).returncode == 0
            (self.folder / "c.json").unlink(missing_ok=True) # it would be read
        self.old = {n: (self.folder / n).read_bytes() for n in os.listdir(self.folder)}
        self.before = files(self.folder)
        done = run(self.source, self.out, *self.args, log=tmp / "log")
        assert done.returncode == 0, done.stderr
        self.after, self.operations = files(self.folder), (tmp / "log").read_text().splitlines()

    def reset(self):
        for n in os.listdir(self.folder):
            path = self.folder / n
            subprocess.run(["rm", "-r", path]) if path.is_dir() else path.unlink()
        for n, content in self.old.items():
            (self.folder / n).write_bytes(content)

    def no_mix(self, left):
        """Of the other files each is whole: the old one, the new one, or not there yet."""
        return all(h in (self.before.get(n), self.after.get(n)) for n, h in others(left).items()) and set(others(self.before)) <= set(left)

    def is_old(self, left):
        return self.no_mix(left) and of_model(left) == of_model(self.before)

    def is_new(self, left):
        return self.no_mix(left) and of_model(left) == of_model(self.after)

    def may_be_killed(self, left):
        return self.is_old(left) or self.is_new(left) or "q.onnx" not in left and self.no_mix(left)

    def run(self, at, how):
        self.reset()
        return run(self.source, self.out, *self.args, at=at, how=how)


@pytest.fixture(scope="module", params=[("static", False, None), ("static", True, True), ("static", False, True), ("static", True, False), ("dynamic", True, None),
                                        ("dynamic", False, False), ("fp16", True, True), ("fp16", False, None), ("rtn", False, True), ("rtn", True, False),
                                        ("chain", True, True), ("two", False, True), ("cache", False, True), ("report", True, True)], ids=lambda p: "-".join(map(str, p)))
def case(request, tmp_path_factory):
    return Case(tmp_path_factory.mktemp("faults"), *request.param)


def test_full_disk(case):
    """From some operation on nothing can be written; or that one operation fails."""
    for how in "full", "once":
        for at in range(1, len(case.operations) + 1):
            done = case.run(at, how)
            where = f"{how} at {at}: {case.operations[at - 1]}"
            if done.returncode == 0:
                assert files(case.folder) == case.after, where
            else:
                assert done.returncode == 1 and "disk space" in done.stderr and "Traceback" not in done.stderr, (where, done.stderr)
                came = "the model is written, its report is not" in done.stderr
                assert (case.is_new if came else case.is_old)(files(case.folder)), (where, done.stderr)


def test_killed(case):
    for at in range(1, len(case.operations) + 1):
        done = case.run(at, "kill")
        where = f"killed at {at}: {case.operations[at - 1]}"
        assert done.returncode == -signal.SIGKILL, where
        left = seen(case.folder)
        assert case.may_be_killed(left), (where, left)
        assert run(case.source, case.out, *case.args).returncode == 0
        assert files(case.folder) == case.after, where # what the killed run left is gone as well


def test_interrupted(case):
    for how in "int", "twice":
        for at in range(1, len(case.operations) + 1, 1 if how == "int" else 4):
            done = case.run(at, how)
            where = f"{how} at {at}: {case.operations[at - 1]}"
            assert done.returncode in ((0, 1) if how == "int" else (130,)), (where, done.stderr)
            left = files(case.folder)
            if done.returncode == 0:
                assert left == case.after, where
            elif how == "int":
                assert case.is_old(left) and "Aborted!" in done.stderr, (where, done.stderr)
            else:
                assert case.may_be_killed(left), (where, left)


def test_any_moment(tmp_path):
    """Signals while it computes and writes, not only between file operations."""
    source, out = model(tmp_path / "m.onnx", 6000), tmp_path / "out" / "q.onnx"
    args = ["-p", "int8", "--samples", "4"]
    begin = time.monotonic()
    assert run(source, out, *args).returncode == 0
    whole, wanted, rng = time.monotonic() - begin, files(out.parent), random.Random(6)
    for i in range(24):
        number = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[i % 3]
        p = subprocess.Popen([WINML, "quantize", "-m", source, "-o", out, "--overwrite", *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(rng.uniform(0.01, whole))
        p.send_signal(number)
        _, said = p.communicate(timeout=20)
        assert seen(out.parent) == wanted
        if number != signal.SIGKILL:
            assert p.returncode in (0, 1, -number) and (p.returncode != 1 or "Aborted!" in said), said
    assert run(source, out, *args).returncode == 0 and files(out.parent) == wanted


def on_a_terminal(wanted, *args, env):
    """Runs until that is on display, then presses Ctrl-C; what was shown."""
    import pty
    fd, terminal = pty.openpty()
    env = {**env, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "120"}
    env.pop("CI", None)
    p = subprocess.Popen([WINML, "quantize", *args], stdin=terminal, stdout=terminal, stderr=terminal, env=env)
    os.close(terminal)
    text, shown = "", False
    while True:
        try:
            part = os.read(fd, 65536).decode(errors="replace")
        except OSError: # the program has ended
            break
        text += part
        if not shown and re.search(wanted, text):
            p.send_signal(signal.SIGINT)
            shown = True
    os.close(fd)
    assert p.wait(30) == 1 and shown and "Aborted!" in text, text[-2000:]
    return text


def test_progress(tmp_path):
    """How far, how fast, how long still: on a terminal, of calibration and of writing, both of which Ctrl-C ends. Elsewhere one line a stage."""
    source, out = model(tmp_path / "m.onnx", 64), tmp_path / "out" / "q.onnx"
    text = on_a_terminal(r"Calibrating .* \d+% .*/1,000,000 samples  \d+ samples/s  .* left", "-m", source, "-o", out, "-p", "int8", "--samples", "1000000",
                         env=os.environ)
    assert "\r" in text and os.listdir(out.parent) == []
    large = model(tmp_path / "large.onnx", 60_000)
    on_a_terminal(r"Saving .* \d+% .*\d/3\d MB  [\d.]+ MB/s  \d+ s left", "-m", large, "-o", out, "-p", "dynamic", env=settings(out.parent, at=1, how="slow"))
    assert os.listdir(out.parent) == []
    done = run(source, out, "-p", "int8", "--no-accuracy")
    assert done.returncode == 0 and [line.split()[0] for line in done.stderr.splitlines()] == ["Reading", "Calibrating", "Quantization", "Saving"]
    assert not re.search(r"\r|\x1b|%|left", done.stderr)
