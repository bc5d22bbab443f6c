/* tok/vocab.h - the tokens of a model: text to id and back. Texts are not copied: they must outlive the table. */
#ifndef WML_TOK_VOCAB_H
#define WML_TOK_VOCAB_H

#include "base/str.h"

struct wml_tok_token {
    struct wml_str text;
    uint32_t id;
};

struct wml_tok_vocab_slot {
    uint32_t hash;  /* kept here, so that another token is told apart without a look at it */
    uint32_t index; /* + 1; 0: empty */
};

struct wml_tok_vocab {
    struct wml_tok_token *token; /* in the order of the file */
    size_t len, cap;
    struct wml_tok_vocab_slot *slot;
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
/* Many at once, n at most WML_TOK_BATCH: what memory they need is asked for ahead, since none of it is in a cache. */
enum { WML_TOK_BATCH = 96 };
void wml_tok_vocab_ids(const struct wml_tok_vocab *v, const struct wml_str *text, size_t n, int64_t *id);
struct wml_str wml_tok_vocab_text(const struct wml_tok_vocab *v, int64_t id); /* absent: none */

#endif
