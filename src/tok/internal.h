/* tok/internal.h - an open tokenizer in memory, and the way of a text through it:
 *
 *     text -> added tokens -> normalizers -> added tokens -> pre-tokenizers -> model -> cut, template, padding
 *
 * A piece is a part of the text at work, or already a token. Each step makes new pieces, and new text where it changes
 * some. `head` is how many bytes of a piece stem from the first character of the caller's text: what "prepend to the first
 * word only" means, whatever the steps before did. */
#ifndef WML_TOK_INTERNAL_H
#define WML_TOK_INTERNAL_H

#include "base/map.h"
#include "base/vec.h"
#include "text/json.h"
#include "tok/regex.h"
#include "tok/tok.h"
#include "tok/trie.h"
#include "tok/unicode.h"
#include "tok/vocab.h"

enum { WML_TOK_MAX_TEXT = 16 << 20, WML_TOK_MAX_WORK = 256 << 20, WML_TOK_MAX_ID = 1 << 24, WML_TOK_MAX_PARTS = 64 };

struct wml_tok_piece {
    uint32_t at, len; /* in the text at work */
    uint32_t head;
    int32_t id; /* of a token; -1: text */
};
struct wml_tok_pieces { WML_VEC(struct wml_tok_piece) v; };
struct wml_tok_list { WML_VEC(int64_t) v; };

struct wml_tok_text { /* what normalizers make of one part */
    struct wml_buf s;
    size_t head;
};

struct wml_tok_symbol { /* models' scratch: of BPE, in a chain */
    uint32_t id;
    int32_t prev, next;
    bool live;
};
struct wml_tok_merge { uint32_t rank, pos, id; };
struct wml_tok_best { double score; uint32_t from, id; }; /* of Unigram: the best way to a byte */

struct wml_tok_work { /* of one caller; see struct wml_tok_ids */
    uint64_t stamp; /* which tokenizer the cache is of */
    struct wml_buf repaired, text, other, word;
    struct wml_tok_text norm[2];
    struct wml_tok_pieces piece, next;
    struct wml_tok_list part[2]; /* ids of the two texts */
    size_t room;                 /* elements of each array of the result */
    struct wml_tok_cache *cache;
    struct wml_regex_match *match;
    WML_VEC(struct wml_tok_symbol) symbol;
    WML_VEC(struct wml_tok_merge) merge;
    WML_VEC(struct wml_tok_best) best;
};

struct wml_tok_norm { /* a normalizer: `run` appends the form of `in` to out->s and sets out->head */
    bool (*run)(const struct wml_tok *t, const struct wml_tok_norm *n, struct wml_tok_work *w, struct wml_str in, size_t head,
                struct wml_tok_text *out, struct wml_err *err);
    struct wml_str find, put;
    struct wml_regex *regex;
    struct wml_charsmap *map;
    enum wml_form form;
    bool flag[4];
};

enum wml_tok_behavior { WML_SPLIT_REMOVED, WML_SPLIT_ISOLATED, WML_SPLIT_MERGED_WITH_PREVIOUS, WML_SPLIT_MERGED_WITH_NEXT, WML_SPLIT_CONTIGUOUS };

struct wml_tok_pre { /* a pre-tokenizer: from w->piece over w->text to w->next over w->other; see pretok.c */
    bool (*run)(const struct wml_tok *t, const struct wml_tok_pre *p, struct wml_tok_work *w, struct wml_err *err);
    enum wml_tok_behavior behavior;
    bool invert, split;
    unsigned classes; /* of characters that split */
    struct wml_regex *regex;
    struct wml_str text; /* pattern, or replacement */
    enum { WML_PREPEND_NEVER, WML_PREPEND_FIRST, WML_PREPEND_ALWAYS } prepend;
    size_t length;
};

struct wml_tok_strings { /* what decoders work on */
    struct wml_buf bytes;
    WML_VEC(size_t) end; /* of each string in bytes */
};

struct wml_tok_dec {
    bool (*run)(const struct wml_tok_dec *d, struct wml_tok_strings *in, struct wml_tok_strings *out, struct wml_err *err);
    struct wml_str text, put;
    struct wml_regex *regex;
    size_t start, stop;
    bool flag;
};

struct wml_tok_added {
    struct wml_str content, shown; /* shown: normalized, where the file wants that */
    int64_t id;
    bool single_word, lstrip, rstrip, normalized, special;
};

struct wml_tok_slot { /* of a template */
    enum { WML_SLOT_FIRST, WML_SLOT_SECOND, WML_SLOT_TOKEN } kind;
    int64_t id;
    int type; /* -1: 0 for the first text, 1 for the second */
};
struct wml_tok_template { WML_VEC(struct wml_tok_slot) v; };

struct wml_tok_algo {
    const char *name;
    bool (*load)(struct wml_tok *t, const struct wml_json_val *model, struct wml_err *err);
    /* Appends the ids of one piece, which is not empty. */
    bool (*encode)(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str piece, struct wml_tok_list *out,
                   struct wml_err *err);
    void (*free)(struct wml_tok *t);
};

#include "tok/tokenizer.h"

#endif
