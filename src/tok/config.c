/* tok/config.c - what stands beside the tokenizer: roles of special tokens, limits and sides; and vocab.txt alone. */
#include "tok/internal.h"

#include "os/file.h"
#include "os/path.h"
#include "text/words.h"

static const char *const role_name[] = {[WML_TOK_BOS] = "bos_token", [WML_TOK_EOS] = "eos_token", [WML_TOK_UNK] = "unk_token",
    [WML_TOK_SEP] = "sep_token", [WML_TOK_PAD] = "pad_token", [WML_TOK_CLS] = "cls_token", [WML_TOK_MASK] = "mask_token"};

/* The document, or NULL where the file is not there. */
static bool load_beside(struct wml_str folder, const char *name, struct wml_json_doc **out, struct wml_err *err)
{
    struct wml_buf path = {0};
    *out = NULL;
    wml_path_join(&path, folder, wml_str(name));
    bool ok = !wml_file_exists(wml_buf_text(&path)) || wml_json_load(wml_buf_text(&path), out, err);
    wml_buf_release(&path);
    return ok;
}

/* "[PAD]" or {"content": "[PAD]", ...}. */
static struct wml_str token_of(const struct wml_json_val *v)
{
    struct wml_str s = wml_json_str(v);
    return s.ptr ? s : wml_json_get_str(v, "content");
}

bool wml_tok_load_config(struct wml_tok *t, struct wml_str folder, struct wml_json_doc **config, struct wml_err *err)
{
    struct wml_json_doc *special = NULL;
    bool ok = load_beside(folder, "special_tokens_map.json", &special, err) &&
              load_beside(folder, "tokenizer_config.json", config, err);
    for (size_t i = 0; ok && i < WML_TOK_N_ROLES; i++) {
        struct wml_str s = token_of(wml_json_get(wml_json_root(*config), role_name[i]));
        if (!s.ptr) s = token_of(wml_json_get(wml_json_root(special), role_name[i]));
        t->role_text[i] = wml_arena_str(&t->arena, s);
    }
    wml_json_free(special);
    return ok;
}

static bool load_cut(const struct wml_json_val *v, struct wml_tok_opts *o, struct wml_err *err)
{
    static const char *const names[] = {[WML_TOK_LONGEST_FIRST] = "LongestFirst", [WML_TOK_ONLY_FIRST] = "OnlyFirst",
                                        [WML_TOK_ONLY_SECOND] = "OnlySecond"};
    struct wml_str strategy = wml_json_get_str(v, "strategy");
    int64_t max = wml_json_get_int(v, "max_length", -1);
    size_t i = 0;
    if (wml_json_is_null(v)) return true;
    while (i < WML_COUNT(names) && !wml_str_is(strategy, names[i])) i++;
    if (i == WML_COUNT(names)) return wml_tok_unsupported("truncation strategy", strategy, err);
    if (max < 0) return wml_tok_missing("truncation", "max_length", err);
    o->cut = (enum wml_tok_cut)i;
    o->max_length = (size_t)max;
    o->cut_left = wml_str_is(wml_json_get_str(v, "direction"), "Left");
    return true;
}

static bool load_pad(struct wml_tok *t, const struct wml_json_val *v, struct wml_tok_opts *o, struct wml_err *err)
{
    int64_t fixed = wml_json_get_int(wml_json_get(v, "strategy"), "Fixed", 0);
    int64_t multiple = wml_json_get_int(v, "pad_to_multiple_of", 0);
    if (wml_json_is_null(v)) return true;
    if (fixed < 0 || fixed > WML_TOK_MAX_TEXT || multiple < 0 || multiple > WML_TOK_MAX_TEXT)
        return wml_fail(err, WML_E_FORMAT, "padding: a length out of range");
    if (multiple && fixed % multiple) fixed += multiple - fixed % multiple;
    o->pad_to = (size_t)fixed;
    o->pad_left = wml_str_is(wml_json_get_str(v, "direction"), "Left");
    o->pad_id = wml_json_get_int(v, "pad_id", 0);
    o->pad_type = wml_json_get_int(v, "pad_type_id", 0);
    if (o->pad_id < 0 || o->pad_id > WML_TOK_MAX_ID) return wml_fail(err, WML_E_FORMAT, "padding: pad_id is out of range");
    if (t->role[WML_TOK_PAD] < 0) t->role[WML_TOK_PAD] = o->pad_id;
    return true;
}

bool wml_tok_load_limits(struct wml_tok *t, const struct wml_json_val *root, const struct wml_json_val *config,
                         struct wml_err *err)
{
    struct wml_tok_opts *o = &t->defaults;
    double most = wml_json_get_num(config, "model_max_length", 0);
    for (size_t i = 0; i < WML_TOK_N_ROLES; i++)
        if (t->role_text[i].ptr) t->role[i] = wml_tok_id(t, t->role_text[i]);
    o->pad_id = t->role[WML_TOK_PAD];
    o->cut_left = wml_str_is(wml_json_get_str(config, "truncation_side"), "left");
    o->pad_left = wml_str_is(wml_json_get_str(config, "padding_side"), "left");
    if (most >= 1 && most < 1e9) o->max_length = (size_t)most; /* "no limit" is written as 1e30 */
    return load_cut(wml_json_get(root, "truncation"), o, err) && load_pad(t, wml_json_get(root, "padding"), o, err);
}

static size_t count_lines(struct wml_str text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++) n += text.ptr[i] == '\n';
    return n;
}

static bool load_lines(struct wml_tok *t, struct wml_err *err)
{
    struct wml_str text = wml_buf_view(&t->file), line;
    if (!wml_utf8_valid(text)) return wml_fail(err, WML_E_FORMAT, "it is no UTF-8");
    size_t n = count_lines(text);
    if (n > WML_TOK_MAX_ID) return wml_fail(err, WML_E_FORMAT, "it has %zu lines: no vocabulary is so large", n);
    if (!wml_tok_vocab_init(&t->vocab, n, err)) return false;
    if (text.len && text.ptr[text.len - 1] == '\n') text.len--;
    for (uint32_t i = 0; wml_str_split(&text, '\n', &line); i++) {
        while (line.len && strchr(" \t\r\v\f", line.ptr[line.len - 1])) line.len--;
        wml_tok_vocab_add(&t->vocab, line, i);
    }
    t->n_model = t->vocab.len;
    return wml_tok_vocab_finish(&t->vocab, err);
}

/* BERT's special tokens, where the configuration names no others. */
static void default_roles(struct wml_tok *t)
{
    static const char *const text[WML_TOK_N_ROLES] = {[WML_TOK_UNK] = "[UNK]", [WML_TOK_SEP] = "[SEP]", [WML_TOK_PAD] = "[PAD]",
                                                      [WML_TOK_CLS] = "[CLS]", [WML_TOK_MASK] = "[MASK]"};
    for (size_t i = 0; i < WML_TOK_N_ROLES; i++)
        if (!t->role_text[i].ptr && text[i]) t->role_text[i] = wml_str(text[i]);
}

/* The parts that BERT's own code has, as a tokenizer.json would say them. */
static void write_parts(const struct wml_tok *t, const struct wml_json_val *config, struct wml_buf *out)
{
    struct wml_json j = {.out = out};
    bool lower = wml_json_get_bool(config, "do_lower_case", true);
    wml_json_begin(&j, '{');
    wml_json_key(&j, "normalizer");
    wml_json_begin(&j, '{');
    wml_json_key(&j, "type");
    wml_json_put_cstr(&j, "BertNormalizer");
    wml_json_key(&j, "lowercase");
    wml_json_put_bool(&j, lower);
    wml_json_key(&j, "handle_chinese_chars");
    wml_json_put_bool(&j, wml_json_get_bool(config, "tokenize_chinese_chars", true));
    wml_json_key(&j, "strip_accents");
    wml_json_put_bool(&j, wml_json_get_bool(config, "strip_accents", lower));
    wml_json_end(&j, '}');
    wml_json_key(&j, "pre_tokenizer");
    wml_json_put_raw(&j, WML_STR("{\"type\":\"BertPreTokenizer\"}"));
    wml_json_key(&j, "decoder");
    wml_json_put_raw(&j, WML_STR("{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}"));
    wml_json_key(&j, "added_tokens");
    wml_json_begin(&j, '[');
    for (size_t i = 0; i < WML_TOK_N_ROLES; i++) {
        if (!t->role_text[i].ptr) continue;
        wml_json_begin(&j, '{');
        wml_json_key(&j, "content");
        wml_json_put_str(&j, t->role_text[i]);
        wml_json_key(&j, "special");
        wml_json_put_bool(&j, true);
        wml_json_end(&j, '}');
    }
    wml_json_end(&j, ']');
    wml_json_end(&j, '}');
}

static bool bert_template(struct wml_tok *t, struct wml_err *err)
{
    int64_t cls = wml_tok_vocab_id(&t->vocab, t->role_text[WML_TOK_CLS]), sep = wml_tok_vocab_id(&t->vocab, t->role_text[WML_TOK_SEP]);
    if (cls < 0 || sep < 0) {
        wml_fail(err, WML_E_FORMAT, "it has no '%.*s' or no '%.*s', so it is no vocabulary of BERT", WML_ARG(t->role_text[WML_TOK_CLS]),
                 WML_ARG(t->role_text[WML_TOK_SEP]));
        return wml_hint(err, "give the folder of a model with tokenizer.json");
    }
    wml_tok_bert_template(t, cls, sep);
    return true;
}

bool wml_tok_from_vocab(struct wml_tok *t, const struct wml_json_val *config, struct wml_err *err)
{
    struct wml_buf text = {0};
    default_roles(t);
    write_parts(t, config, &text);
    bool ok = wml_json_parse(wml_buf_view(&text), &t->doc, err);
    const struct wml_json_val *root = wml_json_root(t->doc);
    wml_buf_release(&text);
    t->algo = &wml_tok_algo_wordpiece;
    return ok && load_lines(t, err) && t->algo->load(t, NULL, err) && bert_template(t, err) &&
           wml_tok_load_normalizer(t, wml_json_get(root, "normalizer"), err) &&
           wml_tok_load_pre_tokenizer(t, wml_json_get(root, "pre_tokenizer"), err) &&
           wml_tok_load_decoder(t, wml_json_get(root, "decoder"), err) &&
           wml_tok_load_added(t, wml_json_get(root, "added_tokens"), config, err) && wml_tok_load_limits(t, root, config, err);
}
