"""Pages of docs/commands against the program: the flag table equals the rows that --help prints, and every
example is understood; those that need no execution provider are run."""
import os
import re
import shlex
import shutil
import subprocess

GENERAL = {"-f", "--format", "-v", "--verbose", "-q", "--quiet", "--no-color", "-h", "--help"}
OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")


def call(place, *words, cwd=None):
    return subprocess.run(place.command(words), capture_output=True, text=True, encoding="utf-8", errors="replace",
                          stdin=subprocess.DEVNULL, cwd=cwd, timeout=300)


def help_rows(place, command):
    """Option names of each row of --help, its default, and all names that --help knows."""
    text = call(place, command, "--help").stdout
    rows, every = [], set()
    for m in re.finditer(r"(?m)^ {2,6}(-\S.*?)(?: {2,}|$)((?:.*\n(?: {10,}.*\n)*))", text):
        names = set(OPTION.findall(re.sub(r"(--[\w-]+)[ =][^-/].*", r"\1", m[1])))
        about = " ".join(m[2].split())
        default = re.search(r"\[default: (.*?)\]", about)
        rows.append((names, default[1] if default else None))
        every |= names | set(OPTION.findall(" ".join(re.findall(r"\(also [^)]*\)", about))))
    return rows, every, text


def page_rows(text):
    """Option names and default of each row of the first table that is headed by Flag."""
    table = re.search(r"(?m)^\| Flag .*\n\|[ -|]*\n((?:\|.*\n?)*)", text)
    rows = []
    for line in (table[1] if table else "").splitlines():
        cell = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        # "`--ep NAME`, `-d`": what follows a blank inside a span is the value
        names = set()
        for span in re.findall(r"`([^`]*)`", cell[0]):
            for word in re.split(r"[ ,/]+", span):
                if OPTION.fullmatch(word):
                    names.add(word)
        rows.append((names, cell[1] if len(cell) > 1 else ""))
    return rows


def compare(place, command, text):
    rows, every, _ = help_rows(place, command)
    table = page_rows(text)
    if not table:
        yield "the page has no table headed by Flag"
        return
    named = set().union(*(names for names, _ in table))
    for name in sorted(set().union(*(names for names, _ in rows)) - named - GENERAL):
        yield f"{name} is not on the page"
    for name in sorted(named - every - GENERAL):
        if name == name.lower():  # --enable-NAME speaks of many
            yield f"{name} is on the page and not in --help"
    for names, default in rows:
        page = next((d for n, d in table if names == n), None)  # rows of several options have several defaults
        if default and page is not None and default not in page.replace("\\", "") and not names & GENERAL:
            yield f"{sorted(names)[0]}: default {default} in --help, '{page}' on the page"


def examples(text):
    """Lines that call winml below the heading Examples; a backslash continues a line."""
    part = re.search(r"(?ms)^#* ?Examples:?\n(.*?)(?=^#|\Z)", text)
    lines = re.sub(r"\\\n\s*", " ", part[1] if part else "").splitlines()
    return [line.strip().split("  # ")[0] for line in lines if line.strip().startswith("winml ")]


class Table:
    def __init__(self, command, page):
        self.command, self.page, self.name = command, page, f"page {command}: flags"

    def skip_reason(self, place):
        return None

    def run(self, place, folder):
        if not self.page.exists():
            return f"{self.page} is missing"
        return "\n".join(compare(place, self.command, self.page.read_text(encoding="utf-8"))) or None


class Example:
    """Understood: with --help behind it the line is parsed and not run."""

    def __init__(self, command, line):
        self.command, self.line, self.name = command, line, f"example: {line}"

    def skip_reason(self, place):
        return None

    def run(self, place, folder):
        words = shlex.split(self.line)[1:]
        for name in set(re.findall(r"[\w./-]+\.(?:onnx|json|npz)", self.line)):
            os.makedirs(os.path.dirname(os.path.join(folder, name)) or folder, exist_ok=True)
            shutil.copy(place.data / "ort/static.onnx", os.path.join(folder, name))
        done = call(place, *words, "--help", cwd=folder)
        if done.returncode != 0:
            return f"$ {self.line}\n{done.stderr}"
        own = {"-m", "model.onnx", "-f", "json", "--format", "text", "--list-ep", "--list-device", "--all", self.command}
        if not set(words) <= own or place.lacks("ort"):
            return None
        done = call(place, *words, cwd=folder)
        return f"$ {self.line}\nexit status {done.returncode}\n{done.stderr}" if done.returncode else None


def tests(place, folder):
    try:
        text = call(place, "--help").stdout
    except OSError:
        return
    for command in re.findall(r"(?m)^  ([a-z]+) {2,}\S", text):
        if command == "completion":
            continue
        page = folder / f"{command}.md"
        yield Table(command, page)
        lines = examples(help_rows(place, command)[2])
        lines += examples(page.read_text(encoding="utf-8")) if page.exists() else []
        for line in dict.fromkeys(lines):
            yield Example(command, line)
