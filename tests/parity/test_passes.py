"""Cases of single passes: tests/passes/*.case, format in tests/passes/README.md."""
import glob
import json
import os
import re

import numpy as np
import onnx
import onnx.parser
import onnx.printer
import pytest
from onnx import numpy_helper

from conftest import ROOT, WINML
from graphs import same
from judge import check, same_answers, session

FOLDER = f"{ROOT}/tests/passes"
KEYS = ("pass", "with", "opset", "ir", "applied", "status", "reason", "run", "before", "after", "random", "rtol", "atol", "names",
        "opset after", "ir after")


class Case:
    def __init__(self, file, title, line):
        self.file, self.title, self.line = file, title, line
        self.said = {}
        self.random = []

    @property
    def name(self):
        return f"{self.file}: {self.title}"

    def get(self, key, default=None):
        return self.said.get(key, default)

    @property
    def applies(self):
        return self.get("after") != "same"


def read(path):
    """Cases of a file. Blocks are what follows `before:` and `after:` on indented lines."""
    file, cases, block = os.path.basename(path)[:-5], [], None
    for i, line in enumerate(open(path, encoding="utf-8").read().splitlines(), 1):
        if line.startswith("  ") and block:
            cases[-1].said[block] += line + "\n"
            continue
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, value = line.partition(":")
        value = value.strip()
        block = None
        if key == "case":
            cases.append(Case(file, value, i))
            continue
        assert colon and cases and key in KEYS, f"{path}:{i}: cannot read '{line}'"
        if key == "random":
            cases[-1].random.append(value)
            continue
        assert key not in cases[-1].said, f"{path}:{i}: {key} is said twice"
        cases[-1].said[key] = value
        if key in ("before", "after") and not value:
            block = key
    for c in cases:
        assert c.get("before") and c.get("after"), f"{path}:{c.line}: a case has before and after"
    return cases


ALL = [c for path in sorted(glob.glob(f"{FOLDER}/*.case")) for c in read(path)]


def constants(said):
    """NAME = type[2,3]: seeded numbers, the same before and after."""
    for text in said:
        m = re.fullmatch(r"(\S+) *= *(\w+)\[([\d, ]*)\]", text)
        assert m, f"random: NAME = type[2,3], not '{text}'"
        dims = [int(d) for d in m[3].split(",") if d.strip()]
        rng = np.random.default_rng(sum(m[1].encode()))
        a = rng.integers(-100, 100, dims) if "int" in m[2] else rng.standard_normal(dims)
        numpy_name = {"float": "float32", "double": "float64"}.get(m[2], m[2])
        yield numpy_helper.from_array(a.astype(numpy_name), m[1])


def parse(case, text, when=""):
    opsets = {"": "17"}
    for part in (case.get("opset" + when) or case.get("opset", "")).replace(",", " ").split():
        domain, _, version = part.rpartition(":")
        opsets[domain] = version
    imports = ", ".join(f'"{d}" : {v}' for d, v in opsets.items())
    m = onnx.parser.parse_model(f"<ir_version: {case.get('ir' + when) or case.get('ir', '8')}, opset_import: [{imports}]> g {text}")
    used = {i for n in m.graph.node for i in n.input} | {o.name for o in m.graph.output}

    def look(g):
        for n in g.node:
            used.update(n.input)
            for a in n.attribute:
                if a.type == onnx.AttributeProto.GRAPH:
                    look(a.g)
    look(m.graph)
    m.graph.initializer.extend(t for t in constants(case.random) if t.name in used)
    return m


def capabilities():
    import subprocess
    """Name of each, and the names of those it needs."""
    return {c["name"]: c["depends_on"] for c in json.loads(subprocess.run(
        [WINML, "optimize", "-l", "-f", "json"], capture_output=True, check=True).stdout)["capabilities"]}


@pytest.fixture(scope="module")
def names():
    return capabilities()


def choose(case, names):
    """Only the pass of the case, those it needs, the types it may need, and the removal of what it leaves behind."""
    asked = case.get("pass", case.file.replace("_", "-"))
    assert asked in names, f"no capability is called {asked}"
    wanted = {asked, "shape-inference", "dead-code-elimination", *case.get("with", "").split()}
    assert wanted <= set(names), wanted - set(names)
    todo = (names[asked] or "").split()
    while todo:
        wanted.add(todo[-1])
        todo += (names[todo.pop()] or "").split()
    return asked, {n: n in wanted for n in names}


def node_names(g):
    for n in g.node:
        yield n.name
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from node_names(a.g)


@pytest.mark.parametrize("case", ALL, ids=[c.name for c in ALL])
def test_case(winml, tmp_path, names, case):
    before = parse(case, case.get("before"))
    after = parse(case, case.get("before") if not case.applies else case.get("after"), " after")
    source, out, config = tmp_path / "before.onnx", tmp_path / "after.onnx", tmp_path / "config.json"
    onnx.save(before, source)
    asked, choice = choose(case, names)
    config.write_text(json.dumps(choice))
    r = winml("optimize", "-m", source, "-o", out, "-c", config, "--no-verify", "--allow-unsafe", "-f", "json")
    assert r.code == 0, r.err
    said = next(p for p in r.json["passes"] if p["name"] == asked)
    got = onnx.load(out)
    del got.graph.value_info[:]
    differs = same(got, after)
    assert not differs, f"{differs} of\n{onnx.printer.to_text(got)}\nare not those of\n{onnx.printer.to_text(after)}\n{said}"
    status = case.get("status") or ("applied" if case.applies else said["status"])
    assert said["status"] == status and (case.applies or said["status"] != "applied"), said
    if case.get("applied"):
        assert said["applied"] == int(case.get("applied")), said
    if case.get("reason"):
        assert re.search(case.get("reason"), said["reason"] or ""), said
    if case.get("names"):
        assert sorted(node_names(got.graph)) == sorted(case.get("names").split())
    if case.get("run") == "after":
        check(str(out))
        session(str(out))
    elif case.get("run") != "no":
        check(str(out))
        same_answers(str(source), str(out), rtol=float(case.get("rtol", 1e-5)), atol=float(case.get("atol", 1e-6)))
    again = tmp_path / "again.onnx"
    assert winml("optimize", "-m", out, "-o", again, "-c", config, "--no-verify", "--allow-unsafe").code == 0
    assert again.read_bytes() == out.read_bytes(), "a second run changes nothing"


def test_every_pass_has_cases():
    """One where it does its work, and one that looks alike and is left alone. Without: rows that are refused by
    name, and what scripts/lint-allow lists."""
    rows = re.findall(r'^PASS\((\w+),', open(f"{ROOT}/src/passes/passes.def", encoding="utf-8").read(), re.M)
    refused = set(re.findall(r"^ROW\((\w+),", open(f"{ROOT}/src/passes/layout_level3.c", encoding="utf-8").read(), re.M))
    refused |= set(re.findall(r"^case (\w+)", open(f"{ROOT}/scripts/lint-allow", encoding="utf-8").read(), re.M))
    lacking = [r for r in rows if r not in refused and {c.applies for c in ALL if c.file == r} != {True, False}]
    assert not lacking, f"tests/passes/<name>.case with a match and a near miss is missing for {lacking}"


def test_the_comparison_sees_differences():
    """The judge itself: each of these differs from the first in one thing."""
    def model(text):
        return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) {text}')
    base = model("<float[2] k = {1.0, 2.0}> { a = Add(x, k)  y = Mul(a, a) }")
    assert same(base, model("<float[2] q = {1.0, 2.0}> { b = Add(x, q)  y = Mul(b, b) }")) is None
    for text in ("<float[2] k = {1.0, 2.5}> { a = Add(x, k)  y = Mul(a, a) }", "<float[2] k = {1.0, 2.0}> { a = Add(k, x)  y = Mul(a, a) }",
                 "<float[2] k = {1.0, 2.0}> { a = Add(x, k)  y = Mul(a, x) }", "<float[2] k = {1.0, 2.0}> { a = Sub(x, k)  y = Mul(a, a) }",
                 "<float[2] k = {1.0, 2.0}> { a = Add(x, k)  b = Add(x, k)  y = Mul(a, b) }",
                 "<float[2] k = {1.0, 2.0}, float[2] u = {1.0, 2.0}> { a = Add(x, k)  y = Mul(a, a) }"):
        assert same(base, model(text)), text
