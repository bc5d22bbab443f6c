/* Which files of a model are wanted. Everything small that says how to use it; of the weights one form: safetensors
 * before PyTorch's pickles, one file before several. Names are those that transformers reads. */
#include "hub/internal.h"

#include "os/file.h"
#include "os/path.h"
#include "text/json.h"
#include "text/words.h"

enum { INDEX_MAX = 64 << 20, MOST_NAMED = 6 };

/* Beside config.json, where the model has them. */
static const char *const small[] = {
    "generation_config.json", "preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json",
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json",
    "merges.txt", "bpe.codes", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "source.spm", "target.spm",
    "chat_template.jinja", "chat_template.json",
    "README.md", /* says the task */
    "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json",
};

/* .. and those among them that WML_HUB_FACTS is about. */
static const char *const facts[] = {
    "preprocessor_config.json", "processor_config.json", "tokenizer_config.json", "model.safetensors.index.json",
};

struct form {
    const char *file;
    bool is_index;
};
static const struct form forms[] = {
    {"model.safetensors", false}, {"model.safetensors.index.json", true},
    {"pytorch_model.bin", false}, {"pytorch_model.bin.index.json", true},
};

static int by_text(const void *a, const void *b)
{
    return wml_str_cmp(*(const struct wml_str *)a, *(const struct wml_str *)b);
}

bool wml_hub_has(const struct wml_hub_names *names, struct wml_str name)
{
    for (size_t i = 0; i < names->v.len; i++)
        if (wml_str_eq(names->v.at[i], name)) return true;
    return false;
}

void wml_hub_choice_release(struct wml_hub_choice *c)
{
    WML_VEC_RELEASE(&c->files.v);
    WML_VEC_RELEASE(&c->lack.v);
}

/* "a, b, c and 12 more" */
static void put_names(struct wml_buf *out, const struct wml_hub_names *names)
{
    size_t n = WML_MIN(names->v.len, (size_t)MOST_NAMED);
    for (size_t i = 0; i < n; i++) wml_buf_fmt(out, "%s%.*s", i ? ", " : "", WML_ARG(names->v.at[i]));
    if (n < names->v.len) wml_buf_fmt(out, " and %zu more", names->v.len - n);
}

/* Nothing of what was looked for: what there is tells more. */
static bool nothing(const struct wml_hub_names *names, const char *place, const char *lacking, struct wml_err *err)
{
    struct wml_buf there = {0};
    put_names(&there, names);
    wml_fail(err, WML_E_NOT_FOUND, "%s has no %s", place, lacking);
    if (names->v.len) wml_hint(err, "there is: %s", wml_buf_text(&there));
    wml_buf_release(&there);
    return false;
}

static bool choose_patterns(struct wml_hub *h, const struct wml_hub_names *names, const char *place, struct wml_hub_choice *out,
                            struct wml_err *err)
{
    for (const char *const *p = h->opts->patterns; *p; p++) {
        size_t before = out->files.v.len;
        for (size_t i = 0; i < names->v.len; i++)
            if (wml_glob_match(wml_str(*p), names->v.at[i])) WML_PUSH(&out->files.v, names->v.at[i]);
        bool exact = !strpbrk(*p, "*?[");
        if (exact && out->files.v.len == before) return nothing(names, place, *p, err);
    }
    return out->files.v.len || nothing(names, place, "file that was asked for", err);
}

/* Sorted, each once. */
static void tidy(struct wml_hub_names *names)
{
    size_t n = 0;
    if (names->v.len) qsort(names->v.at, names->v.len, sizeof *names->v.at, by_text);
    for (size_t i = 0; i < names->v.len; i++)
        if (!n || !wml_str_eq(names->v.at[n - 1], names->v.at[i])) names->v.at[n++] = names->v.at[i];
    names->v.len = n;
}

static bool choose_weights(const struct wml_hub_names *names, const char *place, struct wml_hub_choice *out, struct wml_err *err)
{
    size_t found = WML_COUNT(forms);
    for (size_t i = 0; i < WML_COUNT(forms); i++) {
        struct wml_str name = wml_str(forms[i].file);
        bool there = wml_hub_has(names, name);
        if (!there) WML_PUSH(&out->lack.v, name);
        if (!there || found < WML_COUNT(forms)) continue;
        found = i;
        WML_PUSH(&out->files.v, name);
        if (forms[i].is_index) out->index = name;
    }
    return found < WML_COUNT(forms) || nothing(names, place, "model.safetensors and no pytorch_model.bin", err);
}

bool wml_hub_choose(struct wml_hub *h, const struct wml_hub_names *names, const char *place, struct wml_hub_choice *out,
                    struct wml_err *err)
{
    bool ok = true;
    if (h->opts->patterns) ok = choose_patterns(h, names, place, out, err);
    else {
        if (!wml_hub_has(names, WML_STR("config.json"))) return nothing(names, place, "config.json", err);
        WML_PUSH(&out->files.v, WML_STR("config.json"));
        const bool few = h->opts->what == WML_HUB_FACTS;
        for (size_t i = 0; i < (few ? WML_COUNT(facts) : WML_COUNT(small)); i++) {
            struct wml_str name = wml_str(few ? facts[i] : small[i]);
            if (wml_hub_has(names, name)) WML_PUSH(&out->files.v, name);
            else WML_PUSH(&out->lack.v, name);
        }
        if (h->opts->what == WML_HUB_MODEL) ok = choose_weights(names, place, out, err);
    }
    tidy(&out->files);
    return ok;
}

bool wml_hub_read_index(struct wml_hub *h, const char *path, const struct wml_hub_names *names, const char *place,
                        struct wml_hub_names *out, struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_json_doc *doc = NULL;
    const struct wml_json_val *map, *value;
    struct wml_json_iter it = {0};
    struct wml_str key, last = WML_NO_STR;
    bool ok = wml_file_read(path, INDEX_MAX, &text, err) && (wml_json_parse(wml_buf_view(&text), &doc, err) || wml_wrap(err, "%s", path));
    map = wml_json_get(wml_json_root(doc), "weight_map");
    if (ok && !wml_json_len(map)) ok = wml_fail(err, WML_E_FORMAT, "%s names no weights: it has no weight_map", path);
    while (ok && wml_json_next(map, &it, &key, &value)) {
        struct wml_str name = wml_json_str(value);
        if (last.ptr && wml_str_eq(name, last)) continue; /* tensors of one file mostly follow each other */
        if (!name.ptr || !wml_hub_is_file_name(name))
            ok = wml_fail(err, WML_E_FORMAT, "%s: '%.*s' is no file of a model", path, WML_ARG(name));
        else if (!wml_hub_has(names, name)) {
            wml_fail(err, WML_E_NOT_FOUND, "%s has no %.*s, which its index of weights names", place, WML_ARG(name));
            ok = false;
        } else {
            last = wml_arena_str(&h->arena, name);
            WML_PUSH(&out->v, last);
        }
    }
    tidy(out);
    wml_json_free(doc);
    wml_buf_release(&text);
    return ok;
}
