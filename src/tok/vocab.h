/* tok/vocab.h - the tokens of a model: text to id and back. Texts are not copied: they must outlive the table. */
#ifndef WML_TOK_VOCAB_H
#define WML_TOK_VOCAB_H

#include "base/str.h"

struct wml_tok_token {
    struct wml_str text;
    uint32_t id;
    uint32_t hash;
};

struct wml_tok_vocab {
    struct wml_tok_token *token; /* in the order of the file */
    size_t len, cap;
    uint32_t *slot; /* index + 1; 0: empty */
    size_t n_slots; /* a power of two */
    uint32_t *by_id; /* index + 1 of the token with an id */
    size_t n_ids;
    size_t longest; /* bytes of a text */
};

/* Room for n tokens; the count comes from a file. */
bool wml_tok_vocab_init(struct wml_tok_vocab *v, size_t n, struct wml_err *err);
void wml_tok_vocab_release(struct wml_tok_vocab *v);
/* A text that is there already gets the new id, as in a JSON object read by others. At most n of init. */
void wml_tok_vocab_add(struct wml_tok_vocab *v, struct wml_str text, uint32_t id);
/* After the last add. */
bool wml_tok_vocab_finish(struct wml_tok_vocab *v, struct wml_err *err);
int64_t wml_tok_vocab_id(const struct wml_tok_vocab *v, struct wml_str text); /* -1: none */
struct wml_str wml_tok_vocab_text(const struct wml_tok_vocab *v, int64_t id); /* absent: none */

#endif
