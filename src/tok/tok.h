/* tok/tok.h - text to token ids and back, as the tokenizer of a Hugging Face folder says.
 *
 * Read are tokenizer.json (the format of the `tokenizers` library: WordPiece, BPE, Unigram, WordLevel, one file each,
 * rows in tokenizers.def) and, where it is missing, vocab.txt of old BERT models. tokenizer_config.json and
 * special_tokens_map.json beside them name the special tokens and limits. What a file asks for and is not supported is
 * refused by name when it is opened; nothing is ignored. Ids equal those of the `tokenizers` library one by one.
 *
 *     struct wml_tok *tok = NULL;
 *     struct wml_tok_ids out = {0};
 *     struct wml_tok_opts o = {.max_length = 128, .pad_to = 128, .pad_id = wml_tok_special(tok, WML_TOK_PAD)};
 *     if (!wml_tok_open("models/minilm", &tok, err)) ...
 *     if (!wml_tok_encode(tok, WML_STR("Hello"), WML_NO_STR, &o, &out, err)) ...    out.id, out.mask, out.type, out.len
 *     wml_tok_ids_release(&out);
 *     wml_tok_close(tok);
 *
 * An open tokenizer never changes: several threads may use it at once, each with its own struct wml_tok_ids. Text is
 * UTF-8; bytes that are no UTF-8 count as U+FFFD, as Python's errors="replace" has it. */
#ifndef WML_TOK_TOK_H
#define WML_TOK_TOK_H

#include "base/str.h"

struct wml_tok;

/* A folder with tokenizer.json or vocab.txt, or one of these files. WML_E_NOT_FOUND, WML_E_FORMAT, WML_E_UNSUPPORTED. */
bool wml_tok_open(const char *path, struct wml_tok **out, struct wml_err *err);
/* The text of a tokenizer.json alone. */
bool wml_tok_parse(struct wml_str json, struct wml_tok **out, struct wml_err *err);
void wml_tok_close(struct wml_tok *t);

enum wml_tok_cut { WML_TOK_LONGEST_FIRST, WML_TOK_ONLY_FIRST, WML_TOK_ONLY_SECOND };

struct wml_tok_opts { /* zero: everything, special tokens included, no padding */
    size_t max_length;    /* tokens of the result, special ones included; 0: no limit */
    enum wml_tok_cut cut; /* which of a pair is shortened; LONGEST_FIRST: to equal lengths, the longer one first */
    bool cut_left;        /* drop tokens at the start, not at the end */
    size_t pad_to;        /* fill up to this length; 0: no padding. A longer result stays */
    bool pad_left;
    int64_t pad_id, pad_type;
    bool bare; /* without the special tokens of the model's template */
};

/* What the files say: truncation and padding of tokenizer.json, model_max_length and sides of tokenizer_config.json.
 * pad_to only when tokenizer.json pads to a fixed length. pad_id is -1 when no padding token is known. */
void wml_tok_defaults(const struct wml_tok *t, struct wml_tok_opts *out);

struct wml_tok_ids { /* zero is valid and empty; reuse one for many texts: it keeps memory and remembers words */
    int64_t *id;   /* the three arrays that models take, of len elements each */
    int64_t *mask; /* 1: a token, 0: padding */
    int64_t *type; /* 0: first text, 1: second, as the model's template has it */
    size_t len;
    bool cut; /* max_length dropped tokens */
    struct wml_tok_work *work;
};
void wml_tok_ids_release(struct wml_tok_ids *ids);

/* `pair` absent: one text; empty: a pair whose second text is empty. Text of at most 16 MiB. WML_E_USAGE: max_length has no
 * room for what must stay, or pad_id is needed and negative. WML_E_UNSUPPORTED: an unknown character and no token for it. */
bool wml_tok_encode(const struct wml_tok *t, struct wml_str text, struct wml_str pair, const struct wml_tok_opts *o,
                    struct wml_tok_ids *out, struct wml_err *err);

/* Appends the text of n ids, by the file's decoder. Special tokens are left out unless wanted; ids without a token are
 * left out, as the `tokenizers` library does. */
bool wml_tok_decode(const struct wml_tok *t, const int64_t *id, size_t n, bool with_special, struct wml_buf *out,
                    struct wml_err *err);

/* Number of tokens, added ones included; ids may have gaps and reach beyond it. */
size_t wml_tok_vocab_size(const struct wml_tok *t);
/* -1, or an absent string: no such token. */
int64_t wml_tok_id(const struct wml_tok *t, struct wml_str token);
struct wml_str wml_tok_text(const struct wml_tok *t, int64_t id);

enum wml_tok_role { WML_TOK_BOS, WML_TOK_EOS, WML_TOK_UNK, WML_TOK_SEP, WML_TOK_PAD, WML_TOK_CLS, WML_TOK_MASK, WML_TOK_N_ROLES };
/* Id of a special token, -1: the model has none. */
int64_t wml_tok_special(const struct wml_tok *t, enum wml_tok_role role);
/* "WordPiece", "BPE", "Unigram" or "WordLevel". */
const char *wml_tok_algorithm(const struct wml_tok *t);

#endif
