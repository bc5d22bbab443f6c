"""generate: one answer as it comes, as JSON, from a pipe; a chat on a terminal; what ends it."""
import json
import os
import pty
import select
import subprocess
import time

import bundles
import pytest
from conftest import WINML, need_vnpu
from test_genai import N, PROMPT, library  # noqa: F401 (fixture)

PLAIN = ["--no-apply-template", "--max-new-tokens", str(N)]


@pytest.fixture
def bundle(tmp_path):
    return bundles.flat(tmp_path / "b")


def test_json(winml, bundle):
    r = winml("generate", "-m", bundle, "--prompt", PROMPT, *PLAIN, "-f", "json").json
    assert r["tokens"] == bundles.greedy(PROMPT, N) and r["request"]["generated_tokens"] == N
    assert r["prompt"] == PROMPT and r["effective_device"] == "cpu"


def test_streams(winml, bundle):
    """Tokens that are letters come out as they are, each once, and one line end."""
    want = bundles.greedy(PROMPT, 4)
    assert all(t < 128 for t in want), "the model was made so"
    r = winml("generate", "-m", bundle, "--prompt", PROMPT, "--no-apply-template", "--max-new-tokens", 4)
    assert r.code == 0 and r.out == bytes(want).decode() + "\n"


@pytest.mark.parametrize("kind", [bundles.flat, bundles.pipeline], ids=["flat", "pipeline"])
@pytest.mark.parametrize("more", [[], [bundles.EOS]], ids=["one", "list"])
def test_end_token(winml, tmp_path, kind, more):
    """An answer ends with a token that the config calls an end, and that token counts."""
    b = kind(tmp_path / "b")
    want = bundles.greedy(PROMPT, N)
    n = next(i for i in range(2, N) if want[i] not in want[:i]) + 1
    with open(f"{b}/genai_config.json") as f:
        config = json.load(f)
    config["model"]["eos_token_id"] = [*more, want[n - 1]] if more else want[n - 1]
    with open(f"{b}/genai_config.json", "w") as f:
        json.dump(config, f)
    r = winml("generate", "-m", b, "--prompt", PROMPT, *PLAIN, "-f", "json")
    assert r.code == 0 and r.json["tokens"] == want[:n] and r.json["request"]["generated_tokens"] == n, r.out
    r = winml("perf", "-m", b, "--no-apply-template", "--prompt", PROMPT, "--max-new-tokens", N, "--iterations", 2, "--warmup", 0, "-f", "json")
    assert r.code == 0 and [q["generated_tokens"] for q in r.json["requests"]] == [n, n]


def test_full_context(winml, bundle):
    """An answer that stops for want of room says so, below the text; one with all its tokens says nothing."""
    asked = ["--prompt", PROMPT, "--no-apply-template"]
    room = bundles.CONTEXT - len(PROMPT)
    r = winml("generate", "-m", bundle, *asked, "--max-new-tokens", 1000, "-f", "json")
    assert r.code == 0 and len(r.json["tokens"]) == room and f"{bundles.CONTEXT} tokens, is full" in r.json["warnings"][0]
    assert "is full" not in winml("generate", "-m", bundle, *asked, "--max-new-tokens", room).err
    with open(f"{bundle}/genai_config.json") as f:
        config = f.read()
    with open(f"{bundle}/genai_config.json", "w") as f:
        f.write(config.replace(f'"vocab_size": {bundles.VOCAB}', '"vocab_size": 20'))
    r = winml("generate", "-m", bundle, *asked)
    assert r.code == 4 and "genai_config.json" in r.err


def test_from_a_pipe(tmp_path, bundle):
    run = [WINML, "generate", "-m", bundle, "--no-apply-template", "--max-new-tokens", "4"]
    env = {**os.environ, "WINML_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(run, input=PROMPT, capture_output=True, text=True, env=env)
    assert done.returncode == 0 and done.stdout == bytes(bundles.greedy(PROMPT, 4)).decode() + "\n"
    assert subprocess.run(run, input=" \n", capture_output=True, text=True, env=env).returncode == 2
    done = subprocess.run(run, input=b"\xff\xfe", capture_output=True, env=env)
    assert done.returncode == 1 and b"standard input is not UTF-8" in done.stderr and not done.stdout


def test_template_that_is_wrong_is_said_before_the_answer(tmp_path, bundle):
    with open(f"{bundle}/chat_template.jinja", "w") as f:
        f.write("{{ x % }")
    run = [WINML, "generate", "-m", bundle, "--prompt", PROMPT, "--max-new-tokens", "4"]
    env = {**os.environ, "WINML_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    assert done.returncode == 0 and done.stdout.endswith("\n" + bytes(bundles.greedy(PROMPT, 4)).decode() + "\n")
    assert "the chat template cannot be applied" in done.stdout


def test_draws(winml, bundle):
    def drawn(*more):
        return winml("generate", "-m", bundle, "--prompt", PROMPT, *PLAIN, "-f", "json", *more).json["tokens"]
    hot = ["--temperature", 5]
    assert drawn(*hot, "--seed", 1) == drawn(*hot, "--seed", 1) != drawn(*hot, "--seed", 2)
    assert drawn(*hot, "--seed", 1, "--top-k", 1) == bundles.greedy(PROMPT, N)


def test_compile_and_faults(winml, tmp_path):
    need_vnpu()
    b = bundles.pipeline(tmp_path / "p", {"vnpu": {}})
    r = winml("generate", "-m", b, "--prompt", PROMPT, *PLAIN, "--compile", "-f", "json", WINML_VNPU_FAULT="crash@teardown")
    assert r.code == 0 and r.json["tokens"] == bundles.greedy(PROMPT, N) and os.path.isdir(f"{b}/_compiled")
    r = winml("generate", "-m", b, "--prompt", PROMPT, *PLAIN, "--ep-options", "fault=kill@run")
    assert r.code == 4 and "phase timed (SIGKILL)" in r.err


class Terminal:
    def __init__(self, tmp_path, *args):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["WINML_CACHE_DIR"] = str(tmp_path / "cache")
            os.execv(WINML, [WINML, *args])
        self.text = ""

    def wait_for(self, word, seconds=20):
        end = time.monotonic() + seconds
        while word not in self.text:
            assert time.monotonic() < end, self.text
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
        seen, self.text = self.text, ""
        return seen

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        return "still there"


def test_chat(tmp_path, bundle):
    t = Terminal(tmp_path, "generate", "-m", bundle, "--no-apply-template", "--max-new-tokens", "4")
    assert "/exit ends the chat" in t.wait_for("> ")
    for _ in range(2): # without a template a question knows nothing of the last one
        t.type(PROMPT + "\n")
        assert bytes(bundles.greedy(PROMPT, 4)).decode() in t.wait_for("\n> ")
    t.type("x" * 200 + "\n")
    assert "the question is forgotten" in t.wait_for("\n> ")
    t.type("/exit\n")
    assert t.end(5) == 0


@pytest.mark.parametrize("when", ["asking", "answering"])
def test_interrupt(tmp_path, when):
    need_vnpu()
    t = Terminal(tmp_path, "generate", "-m", bundles.pipeline(tmp_path / "b", {"vnpu": {}}), "--ep-options", "latency_us=100000")
    t.wait_for("> ")
    if when == "answering":
        t.type("hi\n")
        time.sleep(1)
    with open(f"/proc/{t.pid}/task/{t.pid}/children") as f:
        kids = f.read().split()
    t.type("\x03")
    assert t.end(1.5) == 130 and kids
    assert not any(os.path.exists(f"/proc/{k}") for k in kids)
