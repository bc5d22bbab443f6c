"""Tokenizers against the `tokenizers` library: ids one by one, types, masks and decoded text."""
import json
import os
import random
import subprocess

import pytest

tokenizers = pytest.importorskip("tokenizers", reason="the Python package tokenizers is not there")
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

from conftest import DEPS, ROOT, WINML  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(WINML), "tests", "tok", "winml_tok")
DATA = f"{ROOT}/tests/data/tok"
MINILM = f"{DEPS}/models/minilm"
ROLES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]

TEXTS = [
    "", " ", "  ", "\n", "a", "Hello, World!", "hello world", "  two  spaces and\ttab\nnewline  ", "\u00a0nbsp\u3000wide\u2003em",
    "It's 3.14, isn't it? We'll see; they've 2,500. I'M HERE", "naïve café résumé ÅNGSTRÖM İstanbul ẞ ǅ", "Über den Wolken, Straße",
    "Die Würde des Menschen ist unantastbar.", "日本語のテキスト and English", "你好，世界！我爱北京天安门。", "한국어 문장 가각힣",
    "مرحبا بالعالم ١٢٣ الكتابُ", "שלום עולם", "Привет, мир! ЁЖИК", "नमस्ते दुनिया क्षि", "ไทยภาษา", "Ελληνικά ΑΣ ς", "tiếng Việt ộ ể",
    "emoji 😀👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 end", "e\u0301 combining vs é a\u0323\u0307 a\u0307\u0323 o\u0308\u0302", "q\u0345\u0300x \u0300\u0301start",
    "control \x00\x01\x07\x1f\x7f\x80\x9f chars", "zero\u200bwidth\u200c\u200d\u2060\ufeff marks \u00ad soft", "ﬁ ligature ½ ² ① ㎏ ﷺ ﾊﾝｶｸ ｶﾞ",
    "\u1100\u1161\u11a8 \uac00\u11a8 jamo", "[MASK] <mask> </s> <s> [SEP]", "<|im_start|>user\nhi<|im_end|>\n", "a<mask>b <mask> c[MASK]d",
    "<|endoftext|><|endoftext|> x", "<unk>[UNK]<pad>[PAD]", "12345678901 v1.2.3-rc4 1,000,000 ३४५ Ⅻ ½", "a-b_c d/e\\f (g) [h] {i} <j>",
    "#!/bin/sh && echo $PATH | wc -l", "if (x==1) {\n    return y->z;\n}\t// done\r\n\r\n\r\nnext", "supercalifragilisticexpialidocious",
    "x" * 40, "ab" * 60, "é" * 101, "日" * 120, "don't DON'T Don’t 'tis 'S", "   leading", "trailing   ", "a  b   c    d", "_under_score __dunder__",
    "\U0001d54f\U0001d552 math \U00020000 rare \U000e0041 tag", "\u2581already\u2581signed ▁ ▁▁x", "\ufffd replacement", "line\u2028sep\u2029para\x85nel",
    "... --- !!! ??? ,,, ;;;", "https://example.org/a?b=c&d=%20#frag user@mail.net", "CamelCaseAndSNAKE_CASE mixedUP iPhone 3D",
    "a\u0300\u0301\u0302\u0303\u0304\u0305" * 10, "\u0e33\u0eb3 \u0f43 \u212b \u2126 \ufb1d \ufb2a", "ﬃ ﬆ ŉ ǰ ΐ և",
]
PAIRS = [("the cat", "sat on the mat"), ("", "two"), ("one", ""), ("a photo of a dog", "Über 3.14 emoji 😀"),
         ("what is it? " * 30, "a long answer " * 5), ("short", "long one here " * 40)]


class Peer:
    """One winml_tok process."""

    def __init__(self, path):
        self.p = subprocess.Popen([PROGRAM, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.stdin.close()
        self.p.wait(timeout=20)
        self.p.stdout.close()

    def ask(self, **request):
        self.p.stdin.write(json.dumps(request) + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())


def load(path):
    t = Tokenizer.from_file(str(path))
    t.no_padding()
    t.no_truncation()
    return t


def show(text):
    return repr(text if len(text) < 200 else text[:200] + "...")


def compare(path, texts=TEXTS, pairs=PAIRS, decode=True):
    want_of = load(path)
    with Peer(path) as peer:
        for text in texts:
            want, got = want_of.encode(text), peer.ask(text=text)
            assert got.get("ids") == want.ids, f"{show(text)}: {got.get('error') or names(want_of, got['ids'])} is not {want.tokens}"
            assert got["types"] == want.type_ids and got["mask"] == want.attention_mask, show(text)
            assert peer.ask(text=text, bare=True)["ids"] == want_of.encode(text, add_special_tokens=False).ids, show(text)
            for special in (False, True) if decode and want.ids else ():
                back = peer.ask(decode=want.ids, special=special)
                assert back.get("text") == want_of.decode(want.ids, skip_special_tokens=not special), f"{show(text)} {want.tokens}"
        for a, b in pairs:
            want, got = want_of.encode(a, b), peer.ask(text=a, pair=b)
            assert (got.get("ids"), got.get("types")) == (want.ids, want.type_ids), f"{show(a)} + {show(b)}: {got.get('error')}"
            want, got = want_of.encode(a, b, add_special_tokens=False), peer.ask(text=a, pair=b, bare=True)
            assert (got.get("ids"), got.get("types")) == (want.ids, want.type_ids), f"bare {show(a)} + {show(b)}"
        about = peer.ask(about=True)
        assert about["vocab_size"] == want_of.get_vocab_size()


def names(t, ids):
    return [t.id_to_token(i) for i in ids]


def corpus(seed, lines=300):
    """Text of many scripts, made of the test texts' words and of random characters."""
    rng = random.Random(seed)
    words = [w for t in TEXTS for w in t.split(" ") if w]
    blocks = [(0x20, 0x7e), (0xa0, 0x24f), (0x370, 0x4ff), (0x590, 0x6ff), (0x900, 0x97f), (0x1e00, 0x1fff), (0x3040, 0x30ff),
              (0x4e00, 0x4e80), (0xac00, 0xac80), (0x300, 0x36f), (0x1f600, 0x1f64f), (0xff00, 0xffef), (0x2000, 0x206f)]

    def word():
        if rng.random() < 0.8:
            return rng.choice(words)
        lo, hi = rng.choice(blocks)
        return "".join(chr(rng.randint(lo, hi)) for _ in range(rng.randint(1, 8)))
    return [rng.choice([" ", " ", " ", "  ", "", "\n"]).join(word() for _ in range(rng.randint(1, 25))) for _ in range(lines)]


def fixtures():
    return sorted(f[:-5] for f in os.listdir(DATA) if f.endswith(".json"))


@pytest.mark.parametrize("name", fixtures())
def test_fixture(name):
    compare(f"{DATA}/{name}.json", TEXTS + corpus(name, 60))


def need_minilm():
    if not os.path.exists(f"{MINILM}/tokenizer.json"):
        pytest.skip("the model minilm could not be fetched")


def test_minilm():
    need_minilm()
    compare(f"{MINILM}/tokenizer.json", TEXTS + corpus("minilm", 400))


def test_folder_and_defaults():
    """The folder of a model: limits of tokenizer.json, roles of tokenizer_config.json."""
    need_minilm()
    want_of = Tokenizer.from_file(f"{MINILM}/tokenizer.json")
    with open(f"{MINILM}/tokenizer_config.json") as f:
        config = json.load(f)
    with Peer(MINILM) as peer:
        about = peer.ask(about=True)
        for role, got in zip(ROLES, about["special"]):
            token = config.get(role)
            token = token["content"] if isinstance(token, dict) else token
            assert got == (want_of.token_to_id(token) if token else -1), role
        for text in ["short", "long " * 500]:
            want, got = want_of.encode(text), peer.ask(text=text, defaults=True)
            assert (got["ids"], got["mask"], got["types"]) == (want.ids, want.attention_mask, want.type_ids)
            assert got["cut"] == (len(want.overflowing) > 0)


def test_vocab_alone(tmp_path):
    """vocab.txt of an old BERT, as BertWordPieceTokenizer builds it."""
    with open(f"{DATA}/vocab_only/vocab.txt", encoding="utf-8") as f:
        vocab = {w.rstrip("\n"): i for i, w in enumerate(f)}
    for lower in (True, False):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))
        (tmp_path / "vocab.txt").write_text("".join(w + "\n" for w in vocab), encoding="utf-8")
        t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=lower)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.decoder = decoders.WordPiece()
        t.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
        t.add_special_tokens(["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"])
        with Peer(tmp_path) as peer:
            for text in TEXTS:
                want, got = t.encode(text), peer.ask(text=text)
                assert got.get("ids") == want.ids, f"{show(text)}: {got.get('error') or names(t, got['ids'])} is not {want.tokens}"
                assert peer.ask(decode=want.ids)["text"] == t.decode(want.ids), show(text)


@pytest.mark.parametrize("name", ["bert", "bart", "t5", "gpt2"])
def test_lengths(name):
    """Truncation and padding, both sides, all strategies, one text and pairs."""
    path = f"{DATA}/{name}.json"
    with Peer(path) as peer:
        for strategy in ("longest_first", "only_first", "only_second"):
            for side in ("right", "left"):
                for length in (4, 5, 7, 8, 16, 40):
                    t = load(path)
                    t.enable_truncation(length, strategy=strategy, direction=side)
                    t.enable_padding(length=16, direction=side, pad_id=3, pad_type_id=0)
                    for a, b in [(x, None) for x in TEXTS[5:12]] + PAIRS:
                        if strategy == "only_second" and b is None:
                            continue
                        ask = {"text": a, "max": length, "cut": strategy, "cut_left": side == "left", "pad_to": 16,
                               "pad_left": side == "left", "pad_id": 3} | ({"pair": b} if b is not None else {})
                        got = peer.ask(**ask)
                        try:
                            want = t.encode(a, b)
                        except Exception as e:  # too short to be cut
                            assert "error" in got, f"{ask}: {e}"
                            continue
                        assert (got.get("ids"), got.get("mask"), got.get("types")) == \
                            (want.ids, want.attention_mask, want.type_ids), f"{ask} {got}"


def save(t, tmp_path):
    path = tmp_path / "tokenizer.json"
    t.save(str(path))
    return path


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
         r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PATTERNS = {
    "gpt2": GPT2, "cl100k": CL100K, "qwen2": CL100K.replace("{1,3}", ""), "o200k": O200K,
    "clip": r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "possessive": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "deepseek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cjk": r"[一-龥぀-ゟ゠-ヿ]+", "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+", "digits": r"[0-9][0-9][0-9]",
    "words": r"\w+|[^\w\s]+", "spaces": r"\s+", "not space": r"\S+", "lines": r"^.*$", "dot all": r"(?m:a.b)|\d+|\D", "hex": r"\h+|\H",
    "and": r"[\p{L}&&[^a-z]]+", "empty": r"x*", "optional": r"(?=a)", "ignore case": r"(?i)straße|K|s", "bounds": r"\bt\w*|\Bd\b",
    "punct": r"[\p{P}]|[^\P{S}]", "escapes": r"[\n\r\t \x41-\x43\u0044]+|\x{45}|\-|[a\-z]|[-x]|[x-]", "nested": r"([ab]{2}(c|d)?)+?", "after": r"(?<=a)b|(?<! )c",
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("behavior", ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"])
def test_pattern(name, behavior, tmp_path):
    """Split by patterns, those of known models and what their syntax allows: the pieces show as ids of whole words."""
    invert = behavior in ("removed", "contiguous")
    pre = pre_tokenizers.Split(Regex(PATTERNS[name]), behavior, invert)
    texts = TEXTS + corpus(name, 60)
    words = {w for t in texts for w, _ in pre.pre_tokenize_str(t)}
    t = Tokenizer(models.WordLevel({w: i for i, w in enumerate(sorted(words | {"<unk>"}))}, unk_token="<unk>"))
    t.pre_tokenizer = pre
    compare(save(t, tmp_path), texts, [], decode=False)
