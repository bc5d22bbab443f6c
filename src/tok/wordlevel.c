/* tok/wordlevel.c - WordLevel: a word is a token, or unknown. */
#include "tok/internal.h"

struct wordlevel {
    int64_t unknown; /* -1: the vocabulary has none */
};

static bool load(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wordlevel *m = t->model = wml_xcalloc(1, sizeof *m);
    struct wml_str unk = wml_json_get_str(v, "unk_token");
    if (!unk.ptr) return wml_tok_missing("the model WordLevel", "unk_token", err);
    if (!wml_tok_load_vocab(t, wml_json_get(v, "vocab"), err)) return false;
    m->unknown = t->role[WML_TOK_UNK] = wml_tok_vocab_id(&t->vocab, unk);
    return true;
}

static bool encode(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str word, struct wml_tok_list *out,
                   struct wml_err *err)
{
    const struct wordlevel *m = t->model;
    int64_t id = wml_tok_vocab_id(&t->vocab, word);
    (void)w;
    if (id < 0) id = m->unknown;
    if (id < 0) {
        wml_fail(err, WML_E_UNSUPPORTED, "'%.*s' is not in the vocabulary, which has no token for unknown words",
                 WML_ARG(wml_str_sub(word, 0, 100)));
        return wml_hint(err, "the tokenizer's files do not belong together");
    }
    WML_PUSH(&out->v, id);
    return true;
}

static void release(struct wml_tok *t)
{
    free(t->model);
}

const struct wml_tok_algo wml_tok_algo_wordlevel = {.name = "WordLevel", .load = load, .encode = encode, .free = release};
