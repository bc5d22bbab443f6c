/* tok/wordpiece.c - WordPiece (Schuster and Nakajima 2012; BERT): from the left, the longest token that the word begins with;
 * later parts are looked up behind a prefix, "##". A word that cannot be taken apart whole is one unknown token. */
#include "tok/internal.h"

struct wordpiece {
    struct wml_tok_vocab later; /* tokens with the prefix, without it */
    int64_t unknown;            /* -1: the vocabulary has none */
    struct wml_str unknown_text;
    size_t max_chars;
};

static bool load_later(struct wml_tok *t, struct wordpiece *m, struct wml_str prefix, struct wml_err *err)
{
    if (!wml_tok_vocab_init(&m->later, t->vocab.len, err)) return false;
    for (size_t i = 0; i < t->vocab.len; i++) {
        const struct wml_tok_token *k = &t->vocab.token[i];
        if (k->text.len >= prefix.len && (prefix.len == 0 || memcmp(k->text.ptr, prefix.ptr, prefix.len) == 0))
            wml_tok_vocab_add(&m->later, wml_str_sub(k->text, prefix.len, k->text.len), k->id);
    }
    return true;
}

static bool load(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wordpiece *m = t->model = wml_xcalloc(1, sizeof *m);
    struct wml_str prefix = wml_json_get_str(v, "continuing_subword_prefix");
    int64_t max = wml_json_get_int(v, "max_input_chars_per_word", 100);
    m->unknown_text = wml_json_get_str(v, "unk_token");
    if (v && !m->unknown_text.ptr) return wml_tok_missing("the model WordPiece", "unk_token", err);
    if (!v) m->unknown_text = WML_STR("[UNK]"); /* vocab.txt: what BERT's own code has */
    if (!prefix.ptr) prefix = WML_STR("##");
    if (max < 0) return wml_fail(err, WML_E_FORMAT, "WordPiece: max_input_chars_per_word is negative");
    m->max_chars = (size_t)max;
    if (v && !wml_tok_load_vocab(t, wml_json_get(v, "vocab"), err)) return false;
    m->unknown = wml_tok_vocab_id(&t->vocab, m->unknown_text);
    t->role[WML_TOK_UNK] = m->unknown;
    return load_later(t, m, prefix, err);
}

static bool unknown(const struct wordpiece *m, struct wml_str word, struct wml_tok_list *out, struct wml_err *err)
{
    if (m->unknown < 0) {
        wml_fail(err, WML_E_UNSUPPORTED, "'%.*s' is not in the vocabulary, and neither is '%.*s' for unknown words",
                 WML_ARG(wml_str_sub(word, 0, 100)), WML_ARG(m->unknown_text));
        return wml_hint(err, "the tokenizer's files do not belong together");
    }
    WML_PUSH(&out->v, m->unknown);
    return true;
}

static size_t count_chars(struct wml_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return n;
}

static bool encode(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str word, struct wml_tok_list *out,
                   struct wml_err *err)
{
    const struct wordpiece *m = t->model;
    size_t before = out->v.len;
    (void)w;
    if (word.len > m->max_chars && count_chars(word) > m->max_chars) return unknown(m, word, out, err);
    for (size_t at = 0; at < word.len;) {
        const struct wml_tok_vocab *vocab = at ? &m->later : &t->vocab;
        size_t end = WML_MIN(word.len, at + vocab->longest);
        int64_t id = -1;
        for (; end > at; end--) {
            if (end < word.len && ((unsigned char)word.ptr[end] & 0xc0) == 0x80) continue; /* inside of a character */
            id = wml_tok_vocab_id(vocab, wml_str_sub(word, at, end));
            if (id >= 0) break;
        }
        if (id < 0) {
            out->v.len = before;
            return unknown(m, word, out, err);
        }
        WML_PUSH(&out->v, id);
        at = end;
    }
    return true;
}

static void release(struct wml_tok *t)
{
    struct wordpiece *m = t->model;
    if (m) wml_tok_vocab_release(&m->later);
    free(m);
}

const struct wml_tok_algo wml_tok_algo_wordpiece = {.name = "WordPiece", .load = load, .encode = encode, .free = release};
