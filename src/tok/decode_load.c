/* tok/decode_load.c - the decoder of tokenizer.json as the steps of decode.c. */
#include "tok/internal.h"

static struct wml_tok_dec *add(struct wml_tok *t, const struct wml_tok_dec *kind)
{
    WML_PUSH(&t->dec, *kind);
    return &t->dec.at[t->dec.len - 1];
}

#define SIMPLE(name)                                                                                                   \
    static bool load_##name(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)                     \
    {                                                                                                                  \
        (void)v;                                                                                                       \
        (void)err;                                                                                                     \
        add(t, &wml_tok_dec_##name);                                                                                   \
        return true;                                                                                                   \
    }
SIMPLE(bytes)
SIMPLE(fallback)
SIMPLE(fuse)

static bool text_of(const struct wml_json_val *v, const char *what, const char *member, struct wml_str *out, struct wml_err *err)
{
    *out = wml_json_get_str(v, member);
    return out->ptr ? true : wml_tok_missing(what, member, err);
}

static bool load_wordpiece(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_tok_dec *d = add(t, &wml_tok_dec_wordpiece);
    d->flag = wml_json_get_bool(v, "cleanup", true);
    return text_of(v, "the decoder WordPiece", "prefix", &d->text, err);
}

static bool load_metaspace(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_tok_dec *d = add(t, &wml_tok_dec_metaspace);
    d->flag = !wml_str_is(wml_json_get_str(v, "prepend_scheme"), "never") && wml_json_get_bool(v, "add_prefix_space", true);
    return text_of(v, "the decoder Metaspace", "replacement", &d->text, err);
}

static bool load_bpe(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    return text_of(v, "the decoder BPEDecoder", "suffix", &add(t, &wml_tok_dec_bpe)->text, err);
}

static bool load_replace(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_tok_dec *d = add(t, &wml_tok_dec_replace);
    static const char what[] = "the decoder Replace";
    return text_of(v, what, "content", &d->put, err) &&
           wml_tok_load_pattern(t, wml_json_get(v, "pattern"), what, &d->text, &d->regex, err);
}

static bool load_strip(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_tok_dec *d = add(t, &wml_tok_dec_strip);
    int64_t start = wml_json_get_int(v, "start", 0), stop = wml_json_get_int(v, "stop", 0);
    if (!text_of(v, "the decoder Strip", "content", &d->text, err)) return false;
    if (!d->text.len || start < 0 || stop < 0) return wml_fail(err, WML_E_FORMAT, "the decoder Strip: nothing to strip");
    d->start = (size_t)start;
    d->stop = (size_t)stop;
    return true;
}

static bool load_sequence(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    const struct wml_json_val *list = wml_json_get(v, "decoders"), *one;
    struct wml_json_iter it = {0};
    struct wml_str key;
    if (!wml_json_is_array(list)) return wml_tok_missing("the decoder Sequence", "decoders", err);
    while (wml_json_next(list, &it, &key, &one))
        if (!wml_tok_load_decoder(t, one, err)) return false;
    return true;
}

bool wml_tok_load_decoder(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    static const struct {
        const char *name;
        bool (*load)(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
    } kinds[] = {
        {"ByteLevel", load_bytes}, {"WordPiece", load_wordpiece}, {"Metaspace", load_metaspace}, {"BPEDecoder", load_bpe},
        {"Replace", load_replace}, {"ByteFallback", load_fallback}, {"Fuse", load_fuse}, {"Strip", load_strip},
        {"Sequence", load_sequence},
    };
    struct wml_str type = wml_json_get_str(v, "type");
    if (wml_json_is_null(v)) return true;
    t->has_decoder = true;
    for (size_t i = 0; i < WML_COUNT(kinds); i++) {
        if (!wml_str_is(type, kinds[i].name)) continue;
        if (t->dec.len > WML_TOK_MAX_PARTS) return wml_fail(err, WML_E_FORMAT, "more than %d decoders", WML_TOK_MAX_PARTS);
        return kinds[i].load(t, v, err);
    }
    return wml_tok_unsupported("decoder", type, err);
}
