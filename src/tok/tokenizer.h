/* tok/tokenizer.h - struct wml_tok, and what the files of the folder offer each other. Included by internal.h. */
#ifndef WML_TOK_TOKENIZER_H
#define WML_TOK_TOKENIZER_H

struct wml_tok {
    struct wml_arena arena;
    struct wml_json_doc *doc; /* strings of the vocabulary point into it */
    struct wml_buf file;      /* or into this: vocab.txt */
    uint64_t stamp;           /* of this opening, for caches */
    struct wml_chars *chars;
    struct wml_tok_vocab vocab; /* of the model */
    size_t n_model; /* its tokens, counting a text that is there twice twice where the format allows that */
    const struct wml_tok_algo *algo;
    void *model; /* of the algorithm */
    WML_VEC(struct wml_tok_norm) norm;
    WML_VEC(struct wml_tok_pre) pre;
    WML_VEC(struct wml_tok_dec) dec;
    bool has_decoder;
    struct wml_tok_template single, pair;
    WML_VEC(struct wml_tok_added) added;
    uint32_t *added_by_id; /* index + 1 in `added` */
    size_t n_added_ids;
    struct wml_map added_text, special; /* content -> index + 1 in `added`; texts that decoding leaves out */
    struct wml_trie raw_added, norm_added;
    WML_VEC(struct wml_regex *) regex; /* all of them, to be freed */
    struct wml_regex *word; /* one \w of the Rust regex library; NULL: not needed */
    struct wml_tok_opts defaults;
    struct wml_str role_text[WML_TOK_N_ROLES]; /* absent: not said */
    int64_t role[WML_TOK_N_ROLES];
};

#define ALGORITHM(name) extern const struct wml_tok_algo wml_tok_algo_##name;
#include "tok/tokenizers.def"
#undef ALGORITHM

/* The parts of tokenizer.json; v may be null. Errors name the part. */
bool wml_tok_load_normalizer(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
bool wml_tok_load_pre_tokenizer(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
bool wml_tok_load_post_processor(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
bool wml_tok_load_decoder(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
/* The list of tokenizer.json, then what added_tokens_decoder of tokenizer_config.json has beyond it. */
bool wml_tok_load_added(struct wml_tok *t, const struct wml_json_val *list, const struct wml_json_val *config,
                        struct wml_err *err);
bool wml_tok_load_model(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
/* {"token": id, ...} into t->vocab. */
bool wml_tok_load_vocab(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
/* tokenizer_config.json and special_tokens_map.json of a folder, where they are. `config` may come back NULL. */
bool wml_tok_load_config(struct wml_tok *t, struct wml_str folder, struct wml_json_doc **config, struct wml_err *err);
bool wml_tok_load_limits(struct wml_tok *t, const struct wml_json_val *root, const struct wml_json_val *config,
                         struct wml_err *err);
void wml_tok_bert_template(struct wml_tok *t, int64_t cls, int64_t sep);
/* t->file, the text of vocab.txt, as a BERT tokenizer. */
bool wml_tok_from_vocab(struct wml_tok *t, const struct wml_json_val *config, struct wml_err *err);

/* "the pre-tokenizer 'X' is not supported", with a hint. */
bool wml_tok_unsupported(const char *what, struct wml_str name, struct wml_err *err);
bool wml_tok_missing(const char *what, const char *member, struct wml_err *err);
/* Where `part`, not empty, is in s at or behind `from`; SIZE_MAX: nowhere. */
size_t wml_tok_find(struct wml_str s, size_t from, struct wml_str part);
/* The member "pattern": {"String": s} or {"Regex": s}, of Split and Replace; one of *text and *regex is set. */
bool wml_tok_load_pattern(struct wml_tok *t, const struct wml_json_val *v, const char *what, struct wml_str *text,
                          struct wml_regex **regex, struct wml_err *err);

/* A pattern of the file, or one of ours, that lives as long as t. */
bool wml_tok_regex(struct wml_tok *t, struct wml_str pattern, struct wml_regex **out, struct wml_err *err);
bool wml_tok_own_regex(struct wml_tok *t, const char *pattern, struct wml_regex **out, struct wml_err *err);
/* White_Space, and \w of the Rust regex library, which Whitespace and added tokens use, as insides of brackets. */
#define WML_TOK_SPACE_SET "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define WML_TOK_RUST_WORD_SET "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"
#define WML_TOK_RUST_WORD "[" WML_TOK_RUST_WORD_SET "]"

/* Steps of each kind, to be filled in. */
extern const struct wml_tok_pre wml_tok_pre_classes, wml_tok_pre_regex, wml_tok_pre_literal, wml_tok_pre_length,
    wml_tok_pre_blank, wml_tok_pre_bytes, wml_tok_pre_sign;
extern const struct wml_tok_dec wml_tok_dec_bytes, wml_tok_dec_wordpiece, wml_tok_dec_metaspace, wml_tok_dec_bpe,
    wml_tok_dec_replace, wml_tok_dec_fallback, wml_tok_dec_fuse, wml_tok_dec_strip;

/* NULL: no added token has the id. */
const struct wml_tok_added *wml_tok_added_of(const struct wml_tok *t, int64_t id);

struct wml_tok_work *wml_tok_work_new(void);
void wml_tok_work_free(struct wml_tok_work *w);

/* Calls of the steps. Pieces are in w->piece over w->text, before and after. */
bool wml_tok_extract(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str text, struct wml_err *err);
/* *s becomes its normal form, which lies in w until the next call. */
bool wml_tok_normalize(const struct wml_tok *t, struct wml_tok_work *w, struct wml_str *s, size_t *head, struct wml_err *err);
bool wml_tok_pre_tokenize(const struct wml_tok *t, struct wml_tok_work *w, struct wml_err *err);

/* The byte alphabet of GPT-2: byte -> character, character -> byte or -1. */
uint32_t wml_tok_byte_char(unsigned char byte);
int wml_tok_char_byte(uint32_t ch);
/* Appends every byte of s as its character. */
void wml_tok_put_bytes(struct wml_str s, struct wml_buf *out);

/* Words and their ids, forgotten when it is full. */
struct wml_tok_cache;
struct wml_tok_cache *wml_tok_cache_new(void);
void wml_tok_cache_free(struct wml_tok_cache *c);
void wml_tok_cache_clear(struct wml_tok_cache *c);
bool wml_tok_cache_get(struct wml_tok_cache *c, struct wml_str word, struct wml_tok_list *out);
void wml_tok_cache_put(struct wml_tok_cache *c, struct wml_str word, const int64_t *id, size_t n);

#endif
