/* tok/open.c - tokenizer.json, or vocab.txt, and the files beside it, into a struct wml_tok. */
#include "tok/internal.h"

#include "base/hash.h"
#include "os/file.h"
#include "os/map.h"
#include "os/path.h"
#include "os/sys.h"
#include "tok/charsmap.h"

static const struct wml_tok_algo *const algos[] = {
#define ALGORITHM(name) &wml_tok_algo_##name,
#include "tok/tokenizers.def"
#undef ALGORITHM
};

bool wml_tok_unsupported(const char *what, struct wml_str name, struct wml_err *err)
{
    if (!name.ptr) return wml_fail(err, WML_E_FORMAT, "the %s has no type", what);
    wml_fail(err, WML_E_UNSUPPORTED, "the %s '%.*s' is not supported", what, WML_ARG(name));
    return wml_hint(err, "encode the texts with the model's own tokenizer and give winml the ids");
}

bool wml_tok_missing(const char *what, const char *member, struct wml_err *err)
{
    return wml_fail(err, WML_E_FORMAT, "%s has no \"%s\", or of another type", what, member);
}

bool wml_tok_regex(struct wml_tok *t, struct wml_str pattern, struct wml_regex **out, struct wml_err *err)
{
    if (!wml_regex_new(pattern, out, err)) return false;
    WML_PUSH(&t->regex, *out);
    return true;
}

bool wml_tok_own_regex(struct wml_tok *t, const char *pattern, struct wml_regex **out, struct wml_err *err)
{
    if (!wml_regex_own(pattern, out, err)) return false;
    WML_PUSH(&t->regex, *out);
    return true;
}

bool wml_tok_load_pattern(struct wml_tok *t, const struct wml_json_val *v, const char *what, struct wml_str *text,
                          struct wml_regex **regex, struct wml_err *err)
{
    struct wml_str pattern = wml_json_get_str(v, "Regex");
    *text = wml_json_get_str(v, "String");
    if (text->len) return true;
    if (text->ptr) pattern = WML_STR(""); /* which is found everywhere: leave that to the engine */
    if (!pattern.ptr) return wml_tok_missing(what, "pattern", err);
    return wml_tok_regex(t, pattern, regex, err) || wml_wrap(err, "%s", what);
}

bool wml_tok_load_vocab(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *one;
    if (!wml_json_is_object(v)) return wml_tok_missing("the model", "vocab", err);
    if (!wml_tok_vocab_init(&t->vocab, wml_json_len(v), err)) return false;
    while (wml_json_next(v, &it, &key, &one)) {
        int64_t id = wml_json_int(one, -1);
        if (id < 0 || id > WML_TOK_MAX_ID)
            return wml_fail(err, WML_E_FORMAT, "the vocabulary: '%.*s' has no id from 0 to %d", WML_ARG(key), WML_TOK_MAX_ID);
        wml_tok_vocab_add(&t->vocab, key, (uint32_t)id);
    }
    t->n_model = t->vocab.len;
    return wml_tok_vocab_finish(&t->vocab, err);
}

/* Files from before types had only BPE, WordPiece and WordLevel: told apart by what they have. */
static struct wml_str type_of(const struct wml_json_val *v)
{
    struct wml_str type = wml_json_get_str(v, "type");
    if (type.ptr || !wml_json_is_object(v)) return type;
    if (wml_json_get(v, "merges")) return WML_STR("BPE");
    if (wml_json_get(v, "max_input_chars_per_word")) return WML_STR("WordPiece");
    return wml_json_is_array(wml_json_get(v, "vocab")) ? WML_STR("Unigram") : WML_STR("WordLevel");
}

bool wml_tok_load_model(struct wml_tok *t, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_str type = type_of(v);
    for (size_t i = 0; i < WML_COUNT(algos); i++) {
        if (!wml_str_is(type, algos[i]->name)) continue;
        t->algo = algos[i];
        return t->algo->load(t, v, err);
    }
    return wml_tok_unsupported("model", type, err);
}

static bool load_json(struct wml_tok *t, const struct wml_json_val *config, struct wml_err *err)
{
    const struct wml_json_val *root = wml_json_root(t->doc);
    struct wml_str version = wml_json_get_str(root, "version");
    if (!wml_json_is_object(wml_json_get(root, "model"))) {
        wml_fail(err, WML_E_FORMAT, "it has no \"model\"");
        return wml_hint(err, "a tokenizer.json is written by the `tokenizers` library");
    }
    if (version.ptr && !wml_str_is(version, "1.0")) return wml_tok_unsupported("format version", version, err);
    return wml_tok_load_model(t, wml_json_get(root, "model"), err) &&
           wml_tok_load_normalizer(t, wml_json_get(root, "normalizer"), err) &&
           wml_tok_load_pre_tokenizer(t, wml_json_get(root, "pre_tokenizer"), err) &&
           wml_tok_load_post_processor(t, wml_json_get(root, "post_processor"), err) &&
           wml_tok_load_decoder(t, wml_json_get(root, "decoder"), err) &&
           wml_tok_load_added(t, wml_json_get(root, "added_tokens"), config, err) && wml_tok_load_limits(t, root, config, err);
}

static bool read_json(struct wml_tok *t, const char *path, const struct wml_json_val *config, struct wml_err *err)
{
    struct wml_map_file map;
    if (!wml_map_open(path, &map, err)) return false;
    bool ok = wml_json_parse((struct wml_str){(const char *)map.bytes.ptr, map.bytes.len}, &t->doc, err);
    wml_map_close(&map);
    return (ok && load_json(t, config, err)) || wml_wrap(err, "%s", path);
}

static bool read_files(struct wml_tok *t, const char *path, struct wml_str folder, struct wml_err *err)
{
    struct wml_json_doc *config = NULL;
    bool ok = wml_tok_load_config(t, folder, &config, err);
    const struct wml_json_val *root = wml_json_root(config);
    if (ok && wml_str_ends(wml_path_name(wml_str(path)), ".txt"))
        ok = wml_file_read(path, 0, &t->file, err) && (wml_tok_from_vocab(t, root, err) || wml_wrap(err, "%s", path));
    else if (ok)
        ok = read_json(t, path, root, err);
    wml_json_free(config);
    return ok;
}

/* The file that `path` means. */
static bool choose(const char *path, struct wml_buf *file, struct wml_str *folder, struct wml_err *err)
{
    static const char *const names[] = {"tokenizer.json", "vocab.txt"}, *const others[] = {"tokenizer.model", "spiece.model",
        "sentencepiece.bpe.model", "merges.txt"};
    *folder = wml_path_dir(wml_str(path));
    if (!wml_dir_exists(path)) {
        wml_buf_cstr(file, path);
        return true;
    }
    *folder = wml_str(path);
    for (size_t i = 0; i < WML_COUNT(names); i++) {
        wml_buf_clear(file);
        wml_path_join(file, *folder, wml_str(names[i]));
        if (wml_file_exists(wml_buf_text(file))) return true;
    }
    wml_fail(err, WML_E_NOT_FOUND, "%s has no tokenizer.json and no vocab.txt", path);
    for (size_t i = 0; i < WML_COUNT(others); i++) {
        wml_buf_clear(file);
        wml_path_join(file, *folder, wml_str(others[i]));
        if (wml_file_exists(wml_buf_text(file)))
            return wml_hint(err, "it has %s: save the tokenizer again with AutoTokenizer.from_pretrained(...).save_pretrained(...)",
                            others[i]);
    }
    return wml_hint(err, "copy tokenizer.json from where the model comes from");
}

static struct wml_tok *new_tok(void)
{
    struct wml_tok *t = wml_xcalloc(1, sizeof *t);
    uint64_t once[] = {wml_now_ns(), (uintptr_t)t}; /* never the same twice: what else was open then lies elsewhere */
    t->stamp = wml_hash(once, sizeof once, 0);
    t->chars = wml_chars_new();
    for (size_t i = 0; i < WML_TOK_N_ROLES; i++) t->role[i] = -1;
    return t;
}

static bool give(struct wml_tok *t, bool ok, struct wml_tok **out)
{
    *out = ok ? t : NULL;
    if (!ok) wml_tok_close(t);
    return ok;
}

bool wml_tok_open(const char *path, struct wml_tok **out, struct wml_err *err)
{
    struct wml_tok *t = new_tok();
    struct wml_buf file = {0};
    struct wml_str folder;
    bool ok = choose(path, &file, &folder, err) && read_files(t, wml_buf_text(&file), folder, err);
    wml_buf_release(&file);
    return give(t, ok, out);
}

bool wml_tok_parse(struct wml_str json, struct wml_tok **out, struct wml_err *err)
{
    struct wml_tok *t = new_tok();
    return give(t, wml_json_parse(json, &t->doc, err) && load_json(t, NULL, err), out);
}

void wml_tok_close(struct wml_tok *t)
{
    if (!t) return;
    if (t->algo) t->algo->free(t);
    for (size_t i = 0; i < t->norm.len; i++) wml_charsmap_free(t->norm.at[i].map);
    for (size_t i = 0; i < t->regex.len; i++) wml_regex_free(t->regex.at[i]);
    WML_VEC_RELEASE(&t->norm);
    WML_VEC_RELEASE(&t->pre);
    WML_VEC_RELEASE(&t->dec);
    WML_VEC_RELEASE(&t->regex);
    WML_VEC_RELEASE(&t->added);
    WML_VEC_RELEASE(&t->single.v);
    WML_VEC_RELEASE(&t->pair.v);
    wml_map_release(&t->added_text);
    wml_map_release(&t->special);
    wml_trie_release(&t->raw_added);
    wml_trie_release(&t->norm_added);
    wml_tok_vocab_release(&t->vocab);
    wml_chars_free(t->chars);
    wml_json_free(t->doc);
    wml_buf_release(&t->file);
    wml_arena_release(&t->arena);
    free(t->added_by_id);
    free(t);
}

size_t wml_tok_vocab_size(const struct wml_tok *t)
{
    size_t more = 0;
    for (size_t i = 0; i < t->added_text.len; i++) /* every added text, but those that the model has */
        more += wml_tok_vocab_id(&t->vocab, t->added_text.entry[i].key) < 0;
    return t->n_model + more;
}

int64_t wml_tok_id(const struct wml_tok *t, struct wml_str token)
{
    uintptr_t i = (uintptr_t)wml_map_get(&t->added_text, token);
    return i ? t->added.at[i - 1].id : wml_tok_vocab_id(&t->vocab, token);
}

struct wml_str wml_tok_text(const struct wml_tok *t, int64_t id)
{
    const struct wml_tok_added *a = wml_tok_added_of(t, id);
    return a ? a->content : wml_tok_vocab_text(&t->vocab, id);
}

int64_t wml_tok_special(const struct wml_tok *t, enum wml_tok_role role)
{
    return role < WML_TOK_N_ROLES ? t->role[role] : -1;
}

const char *wml_tok_algorithm(const struct wml_tok *t)
{
    return t->algo->name;
}

void wml_tok_defaults(const struct wml_tok *t, struct wml_tok_opts *out)
{
    *out = t->defaults;
}
