"""Cases of the command line: reading the files, running their steps, comparing. Format: README.md."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

LIMIT = 300  # seconds for one step


class Place:
    """What is there to test with."""

    def __init__(self, program, here, wine=None):
        self.program, self.wine = str(program), wine
        self.root = here.parent.parent
        self.data = here.parent / "data"
        deps = os.environ.get("WINML_DEPS") or os.path.join(
            os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "winml-build")
        self.deps = pathlib.Path(deps)
        self.models = self.deps / "models"
        self.vnpu = program.parent / "ep"

    def command(self, words):
        return ([self.wine] if self.wine else []) + [self.program, *words]

    def names(self, folder):
        return {"data": self.data, "models": self.models, "tmp": folder, "root": self.root, "deps": self.deps,
                "vnpu": self.vnpu, "python": self.deps / "venv/bin/python"}

    def lacks(self, need):
        """Why a need is not met, or None."""
        kind, _, rest = need.partition(" ")
        there = {
            "qnn": lambda: (self.deps / "ep/qnn/libonnxruntime_providers_qnn.so").exists(),
            "openvino": lambda: (self.deps / "ep/openvino/libonnxruntime_providers_openvino_plugin.so").exists()
            and "GenuineIntel" in pathlib.Path("/proc/cpuinfo").read_text(),
            "vnpu": lambda: (self.vnpu / "libwinml_virtual_npu.so").exists(),
            "model": lambda: (self.models / rest).exists(),
            "venv": lambda: (self.deps / "venv/bin/python").exists(),
            "ort": lambda: (self.deps / "ort").exists() or "WINML_ORT" in os.environ,
            "posix": lambda: os.name == "posix" and not self.wine,
            "program": lambda: shutil.which(rest) is not None,
        }.get(kind)
        if there is None:
            raise ValueError(f"unknown need '{need}'")
        if there():
            return None
        return {"model": f"the model {rest} was not fetched", "program": f"{rest} is not installed",
                "qnn": "the QNN plugin was not fetched", "vnpu": "the virtual NPU is not built",
                "openvino": "the OpenVINO plugin was not fetched, or this is no Intel CPU",
                "venv": "the Python environment was not set up",
                "ort": "ONNX Runtime was not fetched"}.get(kind, f"needs {need}")


class Step:
    def __init__(self, line, shell, number):
        self.line, self.shell, self.number = line, shell, number
        self.exit = 0
        self.checks = []  # (kind, text)


class Case:
    def __init__(self, path, here):
        self.path = path
        self.name = f"{path.parent.relative_to(here)}/{path.stem}"
        self.needs, self.env, self.files, self.steps = [], {}, [], []
        self.read(path.read_text(encoding="utf-8").splitlines())

    def read(self, lines):
        i = 0
        while i < len(lines):
            line = lines[i]
            i += 1
            if not line.strip() or line.startswith("#"):
                continue
            block = []
            while i < len(lines) and (lines[i].startswith("  ") or (not lines[i].strip() and any(
                    l.startswith("  ") for l in lines[i + 1:i + 2]))):
                block.append(lines[i][2:])
                i += 1
            self.take(line.rstrip(), "\n".join(block), i)

    def take(self, line, block, number):
        step = self.steps[-1] if self.steps else None
        if line[:2] in ("$ ", "% "):
            self.steps.append(Step(line[2:], line[0] == "%", number))
            return
        key, colon, value = line.partition(":")
        value = value.strip()
        if not colon:
            raise ValueError(f"{self.path}:{number}: cannot read '{line}'")
        if key == "needs":
            self.needs += [n.strip() for n in value.split(",")]
        elif key == "env":
            name, _, text = value.partition("=")
            self.env[name] = text
        elif key.startswith("write "):
            self.files.append((key[6:], block))
        elif step and key == "exit":
            step.exit = int(value)
        elif step and key in ("stdout", "stderr", "stdout has", "stderr has", "stdout lacks", "stderr lacks", "json",
                              "files"):
            step.checks.append((key, block if block else value))
        else:
            raise ValueError(f"{self.path}:{number}: cannot read '{line}'")

    def skip_reason(self, place):
        for need in self.needs:
            reason = place.lacks(need)
            if reason:
                return reason
        return None

    def run(self, place, folder):
        """None, or what went wrong."""
        names = place.names(folder)
        for path, text in self.files:
            file = pathlib.Path(fill(path, names))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(fill(text, names) + "\n", encoding="utf-8")
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "CI", "WINML_EP_PATH")}
        env.update(WINML_CACHE_DIR=f"{folder}/cache", WINML=place.program, TERM="xterm-256color")
        env.update({k: fill(v, names) for k, v in self.env.items()})
        for step in self.steps:
            problem = run_step(step, place, names, folder, env)
            if problem:
                return f"{self.path}\n{problem}"
        return None


def fill(text, names):
    return re.sub(r"\{(\w+)\}", lambda m: str(names.get(m[1], m[0])), text)


def run_step(step, place, names, folder, env):
    line = fill(step.line, names)
    if step.shell:
        tools = pathlib.Path(folder) / ".bin"
        tools.mkdir(exist_ok=True)
        if not (tools / "winml").exists():
            (tools / "winml").symlink_to(place.program)
        command, env = ["/bin/sh", "-c", line], {**env, "PATH": f"{tools}:{env['PATH']}"}
    else:
        words = shlex.split(line)
        if words[0] != "winml":
            raise ValueError(f"'$' runs winml only; other programs need '%': {line}")
        command = place.command(words[1:])
    try:
        done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        out, err, status = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as e:
        return f"$ {line}\nnot done after {LIMIT} s\n{(e.stderr or b'').decode(errors='replace')}"
    out, err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
    problems = list(judge(step, line, out, err, status, names, env))
    if not problems:
        return None
    return "\n".join([f"$ {line}", *problems, f"exit status {status}", "--- stdout", out.rstrip()[-4000:], "--- stderr",
                      err.rstrip()[-4000:]])


def judge(step, line, out, err, status, names, env):
    if status != step.exit:
        yield f"exit status {status} instead of {step.exit}"
    if "Sanitizer" in err or "runtime error:" in err:
        yield "a sanitizer spoke"
    if "\x1b" in out + err and "FORCE_COLOR" not in env:
        yield "escape codes although no stream is a terminal"
    if not step.shell and re.search(r"(-f|--format)[ =]?json\b", line) and "--help" not in line:
        try:
            json.loads(out, parse_constant=lambda c: (_ for _ in ()).throw(ValueError(f"{c} is no JSON")))
        except ValueError as e:
            yield f"stdout is not one JSON document: {e}"
    for kind, text in step.checks:
        text = fill(text, names)
        if kind == "files":
            yield from judge_files(text, names["tmp"])
        elif kind == "json":
            try:
                yield from differences(json.loads(text), json.loads(out), "$")
            except ValueError as e:
                yield f"no JSON: {e}"
        else:
            stream, _, how = kind.partition(" ")
            yield from judge_text(stream, how, text, out if stream == "stdout" else err)


def judge_files(text, folder):
    for line in text.splitlines():
        absent = line.startswith("!")
        path = pathlib.Path(folder) / line.lstrip("! ")
        if absent and path.exists():
            yield f"{path} is there"
        if not absent and not path.exists():
            yield f"{path} is missing"


def judge_text(stream, how, text, got):
    if how:
        for line in text.splitlines():
            if line.strip() and found(line, got) == (how == "lacks"):
                yield f"{stream} {how} not: {line}" if how == "has" else f"{stream} has: {line}"
        return
    want = [] if text == "empty" else text.splitlines()
    if not match_lines(want, got.splitlines()):
        yield f"{stream} is not as written"


def found(line, got):
    if len(line) > 1 and line[0] == line[-1] == "/":
        return re.search(line[1:-1], got, re.M) is not None
    return line in got


def match_lines(want, got):
    """Lines one by one; /regex/ matches a whole line, ... any number of lines."""
    if not want:
        return not got
    if want[0] == "...":
        return any(match_lines(want[1:], got[i:]) for i in range(len(got) + 1))
    if not got:
        return False
    w = want[0]
    same = re.fullmatch(w[1:-1], got[0]) if len(w) > 1 and w[0] == w[-1] == "/" else w == got[0]
    return bool(same) and match_lines(want[1:], got[1:])


KINDS = {"<any>": lambda v: True, "<string>": lambda v: isinstance(v, str), "<null>": lambda v: v is None,
         "<int>": lambda v: isinstance(v, int) and not isinstance(v, bool),
         "<number>": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
         "<bool>": lambda v: isinstance(v, bool), "<array>": lambda v: isinstance(v, list),
         "<object>": lambda v: isinstance(v, dict)}


def differences(want, got, where):
    """Objects may hold more than is wanted; arrays have equal length unless "..." ends the wanted one."""
    if isinstance(want, dict):
        if not isinstance(got, dict):
            yield f"{where} is no object: {got!r}"
            return
        for key, value in want.items():
            if value == "<absent>":
                if key in got:
                    yield f"{where}.{key} is there"
            elif key not in got:
                yield f"{where}.{key} is missing"
            else:
                yield from differences(value, got[key], f"{where}.{key}")
    elif isinstance(want, list):
        more = bool(want) and want[-1] == "..."
        items = want[:-1] if more else want
        if not isinstance(got, list) or len(got) < len(items) or (len(got) > len(items) and not more):
            yield f"{where} is {got!r:.200} instead of {want!r:.200}"
            return
        for i, value in enumerate(items):
            yield from differences(value, got[i], f"{where}[{i}]")
    elif isinstance(want, str) and want in KINDS:
        if not KINDS[want](got):
            yield f"{where} is {got!r:.200} instead of {want}"
    elif isinstance(want, str) and len(want) > 1 and want[0] == want[-1] == "/":
        if not isinstance(got, str) or not re.search(want[1:-1], got):
            yield f"{where} is {got!r:.200}, which does not match {want}"
    elif want != got or isinstance(want, bool) != isinstance(got, bool):
        yield f"{where} is {got!r:.200} instead of {want!r}"


if __name__ == "__main__":
    sys.exit("run tests/cli/run.py")
