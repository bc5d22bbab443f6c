/* tok/pretok_load.c - the pre_tokenizer of tokenizer.json as the steps of pretok.c. */
#include "tok/internal.h"

static struct wml_tok_pre *add(struct wml_tok *t, const struct wml_tok_pre *kind)
{
    WML_PUSH(&t->pre, *kind);
    return &t->pre.at[t->pre.len - 1];
}

static void split_classes(struct wml_tok *t, unsigned classes, enum wml_tok_behavior behavior)
{
    struct wml_tok_pre *p = add(t, &wml_tok_pre_classes);
    p->classes = classes;
    p->behavior = behavior;
}

static bool load_bert(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    (void)v;
    (void)err;
    split_classes(t, WML_CHAR_SPACE, WML_SPLIT_REMOVED);
    split_classes(t, WML_CHAR_PUNCT, WML_SPLIT_ISOLATED);
    return true;
}

static bool load_whitespace_split(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    (void)v;
    (void)err;
    split_classes(t, WML_CHAR_SPACE, WML_SPLIT_REMOVED);
    return true;
}

static bool load_whitespace(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    (void)v;
    struct wml_tok_pre *p = add(t, &wml_tok_pre_regex);
    p->invert = true;
    return wml_tok_own_regex(t, WML_TOK_RUST_WORD "+|[^" WML_TOK_RUST_WORD_SET WML_TOK_SPACE_SET "]+", &p->regex, err);
}

static bool behavior(const struct wml_json_val *v, const char *what, enum wml_tok_behavior *out, struct wml_err *err)
{
    static const char *const names[] = {[WML_SPLIT_REMOVED] = "Removed", [WML_SPLIT_ISOLATED] = "Isolated",
        [WML_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious", [WML_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
        [WML_SPLIT_CONTIGUOUS] = "Contiguous"};
    struct wml_str name = wml_json_get_str(v, "behavior");
    if (!name.ptr) return wml_tok_missing(what, "behavior", err);
    for (size_t i = 0; i < WML_COUNT(names); i++)
        if (wml_str_is(name, names[i])) return *out = (enum wml_tok_behavior)i, true;
    return wml_tok_unsupported("behavior of a pre-tokenizer", name, err);
}

static bool load_punctuation(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    enum wml_tok_behavior b = WML_SPLIT_ISOLATED;
    if (wml_json_get(v, "behavior") && !behavior(v, "the pre-tokenizer Punctuation", &b, err)) return false;
    split_classes(t, WML_CHAR_PUNCT, b);
    return true;
}

static bool load_digits(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    (void)err;
    split_classes(t, WML_CHAR_NUMERIC,
                  wml_json_get_bool(v, "individual_digits", false) ? WML_SPLIT_ISOLATED : WML_SPLIT_CONTIGUOUS);
    return true;
}

static bool load_split(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_tok_pre p = {0};
    static const char what[] = "the pre-tokenizer Split";
    if (!behavior(v, what, &p.behavior, err)) return false;
    if (!wml_tok_load_pattern(t, wml_json_get(v, "pattern"), what, &p.text, &p.regex, err)) return false;
    p.run = p.regex ? wml_tok_pre_regex.run : wml_tok_pre_literal.run;
    p.invert = wml_json_get_bool(v, "invert", false);
    WML_PUSH(&t->pre, p);
    return true;
}

static bool load_delimiter(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_str text = wml_json_get_str(v, "delimiter");
    if (!text.len) return wml_tok_missing("the pre-tokenizer CharDelimiterSplit", "delimiter", err);
    struct wml_tok_pre *p = add(t, &wml_tok_pre_literal);
    p->text = text;
    p->behavior = WML_SPLIT_REMOVED;
    return true;
}

static bool load_length(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    int64_t n = wml_json_get_int(v, "length", 5);
    if (n < 1) return wml_fail(err, WML_E_FORMAT, "the pre-tokenizer FixedLength: a length of 0 or below");
    add(t, &wml_tok_pre_length)->length = (size_t)n;
    return true;
}

/* GPT-2's way: a blank before, its pattern, and bytes as characters. */
static bool load_bytes(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    if (wml_json_get_bool(v, "add_prefix_space", true)) add(t, &wml_tok_pre_blank);
    if (wml_json_get_bool(v, "use_regex", true)) {
        struct wml_tok_pre *p = add(t, &wml_tok_pre_regex);
        p->behavior = WML_SPLIT_ISOLATED;
        if (!wml_tok_regex(t, WML_STR("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"),
                           &p->regex, err))
            return false;
    }
    add(t, &wml_tok_pre_bytes);
    return true;
}

static bool load_metaspace(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_str sign = wml_json_get_str(v, "replacement"), scheme = wml_json_get_str(v, "prepend_scheme");
    struct wml_tok_pre *p = add(t, &wml_tok_pre_sign);
    if (!sign.len) return wml_tok_missing("the pre-tokenizer Metaspace", "replacement", err);
    p->text = sign;
    if (!scheme.ptr || wml_str_is(scheme, "always")) p->prepend = WML_PREPEND_ALWAYS;
    else if (wml_str_is(scheme, "first")) p->prepend = WML_PREPEND_FIRST;
    else if (wml_str_is(scheme, "never")) p->prepend = WML_PREPEND_NEVER;
    else return wml_tok_unsupported("prepend_scheme of Metaspace", scheme, err);
    if (!wml_json_get_bool(v, "add_prefix_space", true)) p->prepend = WML_PREPEND_NEVER; /* files from before schemes */
    if (wml_json_get_bool(v, "split", true)) {
        p = add(t, &wml_tok_pre_literal);
        p->text = sign;
        p->behavior = WML_SPLIT_MERGED_WITH_NEXT;
    }
    return true;
}

static bool load_sequence(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    const struct wml_json_val *list = wml_json_get(v, "pretokenizers"), *one;
    struct wml_json_iter it = {0};
    struct wml_str key;
    if (!wml_json_is_array(list)) return wml_tok_missing("the pre-tokenizer Sequence", "pretokenizers", err);
    while (wml_json_next(list, &it, &key, &one))
        if (!wml_tok_load_pre_tokenizer(t, one, err)) return false;
    return true;
}

bool wml_tok_load_pre_tokenizer(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    static const struct {
        const char *name;
        bool (*load)(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
    } kinds[] = {
        {"BertPreTokenizer", load_bert}, {"Whitespace", load_whitespace}, {"WhitespaceSplit", load_whitespace_split},
        {"Punctuation", load_punctuation}, {"Digits", load_digits}, {"Split", load_split}, {"ByteLevel", load_bytes},
        {"CharDelimiterSplit", load_delimiter}, {"FixedLength", load_length}, {"Metaspace", load_metaspace},
        {"Sequence", load_sequence},
    };
    struct wml_str type = wml_json_get_str(v, "type");
    if (wml_json_is_null(v)) return true;
    for (size_t i = 0; i < WML_COUNT(kinds); i++) {
        if (!wml_str_is(type, kinds[i].name)) continue;
        if (t->pre.len > WML_TOK_MAX_PARTS) return wml_fail(err, WML_E_FORMAT, "more than %d pre-tokenizers", WML_TOK_MAX_PARTS);
        return kinds[i].load(t, v, err);
    }
    return wml_tok_unsupported("pre-tokenizer", type, err);
}
