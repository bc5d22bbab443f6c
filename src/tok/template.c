/* tok/template.c - post-processors: which special tokens stand around the texts, and the types of all tokens. Every kind
 * becomes two templates, for one text and for a pair. ByteLevel only moves offsets, which we do not give. */
#include "tok/internal.h"

static void put(struct wml_tok_template *to, int kind, int64_t id, int type)
{
    WML_PUSH(&to->v, ((struct wml_tok_slot){.kind = kind, .id = id, .type = type}));
}

/* ["[SEP]", 102] */
static bool token_pair(const struct wml_json_val *v, const char *what, const char *member, int64_t *id, struct wml_err *err)
{
    *id = wml_json_int(wml_json_at(wml_json_get(v, member), 1), -1);
    if (*id >= 0 && *id <= WML_TOK_MAX_ID) return true;
    return wml_tok_missing(what, member, err);
}

void wml_tok_bert_template(struct wml_tok *t, int64_t cls, int64_t sep)
{
    for (int pair = 0; pair < 2; pair++) {
        struct wml_tok_template *to = pair ? &t->pair : &t->single;
        put(to, WML_SLOT_TOKEN, cls, 0);
        put(to, WML_SLOT_FIRST, 0, -1);
        put(to, WML_SLOT_TOKEN, sep, 0);
        if (pair) put(to, WML_SLOT_SECOND, 0, -1);
        if (pair) put(to, WML_SLOT_TOKEN, sep, 1);
    }
}

static bool load_bert(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    int64_t cls, sep;
    static const char what[] = "the post-processor BertProcessing";
    if (!token_pair(v, what, "cls", &cls, err) || !token_pair(v, what, "sep", &sep, err)) return false;
    wml_tok_bert_template(t, cls, sep);
    return true;
}

static bool load_roberta(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    int64_t cls, sep;
    static const char what[] = "the post-processor RobertaProcessing";
    if (!token_pair(v, what, "cls", &cls, err) || !token_pair(v, what, "sep", &sep, err)) return false;
    for (int pair = 0; pair < 2; pair++) {
        struct wml_tok_template *to = pair ? &t->pair : &t->single;
        put(to, WML_SLOT_TOKEN, cls, 0);
        put(to, WML_SLOT_FIRST, 0, 0);
        put(to, WML_SLOT_TOKEN, sep, 0);
        if (pair) put(to, WML_SLOT_TOKEN, sep, 0);
        if (pair) put(to, WML_SLOT_SECOND, 0, 0);
        if (pair) put(to, WML_SLOT_TOKEN, sep, 0);
    }
    return true;
}

static bool load_token(struct wml_tok_template *to, const struct wml_json_val *special, struct wml_str name, int type,
                       struct wml_err *err)
{
    struct wml_json_iter it = {0}, inner = {0};
    struct wml_str key;
    const struct wml_json_val *one, *v;
    while (wml_json_next(special, &it, &key, &one)) {
        if (!wml_str_eq(key, name)) continue;
        while (wml_json_next(wml_json_get(one, "ids"), &inner, &key, &v)) {
            int64_t id = wml_json_int(v, -1);
            if (id < 0 || id > WML_TOK_MAX_ID)
                return wml_fail(err, WML_E_FORMAT, "TemplateProcessing: '%.*s' has an id out of range", WML_ARG(name));
            put(to, WML_SLOT_TOKEN, id, type);
        }
        return true;
    }
    return wml_fail(err, WML_E_FORMAT, "TemplateProcessing: '%.*s' is not among its special_tokens", WML_ARG(name));
}

static bool load_slots(struct wml_tok_template *to, const struct wml_json_val *list, const struct wml_json_val *special,
                       struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    if (!wml_json_is_array(list) || wml_json_len(list) > 64)
        return wml_fail(err, WML_E_FORMAT, "TemplateProcessing: a template is no list of at most 64 parts");
    while (wml_json_next(list, &it, &key, &v)) {
        const struct wml_json_val *text = wml_json_get(v, "Sequence"), *token = wml_json_get(v, "SpecialToken");
        int64_t type = wml_json_get_int(text ? text : token, "type_id", 0);
        struct wml_str id = wml_json_get_str(text ? text : token, "id");
        if (type < 0 || type > INT16_MAX) return wml_fail(err, WML_E_FORMAT, "TemplateProcessing: a type_id out of range");
        if (token) {
            if (!load_token(to, special, id, (int)type, err)) return false;
        } else if (text && (wml_str_is(id, "A") || wml_str_is(id, "B"))) {
            put(to, wml_str_is(id, "A") ? WML_SLOT_FIRST : WML_SLOT_SECOND, 0, (int)type);
        } else {
            return wml_fail(err, WML_E_FORMAT, "TemplateProcessing: a part that is neither A, B nor a special token");
        }
    }
    return true;
}

static bool load_template(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    const struct wml_json_val *special = wml_json_get(v, "special_tokens");
    if (!load_slots(&t->single, wml_json_get(v, "single"), special, err)) return false;
    if (!load_slots(&t->pair, wml_json_get(v, "pair"), special, err)) return false;
    for (size_t i = 0; i < t->single.v.len; i++)
        if (t->single.v.at[i].kind == WML_SLOT_SECOND)
            return wml_fail(err, WML_E_FORMAT, "TemplateProcessing: the template of one text has a second");
    return true;
}

static bool load_sequence(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    const struct wml_json_val *list = wml_json_get(v, "processors"), *one;
    struct wml_json_iter it = {0};
    struct wml_str key;
    if (!wml_json_is_array(list)) return wml_tok_missing("the post-processor Sequence", "processors", err);
    while (wml_json_next(list, &it, &key, &one))
        if (!wml_tok_load_post_processor(t, one, err)) return false;
    return true;
}

bool wml_tok_load_post_processor(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    static const struct {
        const char *name;
        bool (*load)(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err);
    } kinds[] = {{"TemplateProcessing", load_template}, {"BertProcessing", load_bert}, {"RobertaProcessing", load_roberta}};
    struct wml_str type = wml_json_get_str(v, "type");
    if (wml_json_is_null(v) || wml_str_is(type, "ByteLevel")) return true;
    if (wml_str_is(type, "Sequence")) return load_sequence(t, v, err);
    for (size_t i = 0; i < WML_COUNT(kinds); i++) {
        if (!wml_str_is(type, kinds[i].name)) continue;
        if (t->single.v.len || t->pair.v.len)
            return wml_tok_unsupported("second post-processor that adds tokens,", type, err);
        return kinds[i].load(t, v, err);
    }
    return wml_tok_unsupported("post-processor", type, err);
}
