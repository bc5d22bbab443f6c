/* flow/build/config.c - genai_config.json and the tokenizer's files. */
#include "flow/build/internal.h"

#include "genai/bundle.h"
#include "os/file.h"

static const struct wml_json_val *known(const struct wml_json_val *from, const char *key)
{
    const struct wml_json_val *v = wml_json_get(from, key);
    return wml_json_is_null(v) ? NULL : v;
}

/* What ends an answer is said better by generation_config.json, where there is one. */
static const struct wml_json_val *token(const struct wml_build_run *r, const char *key)
{
    const struct wml_json_val *v = known(wml_json_root(r->generation), key);
    return v ? v : known(r->source.cfg, key);
}

static void put(struct wml_json *w, const char *key, const struct wml_json_val *v)
{
    if (!v) return;
    wml_json_key(w, key);
    wml_json_put_val(w, v);
}

static void put_tokens(const struct wml_build_run *r, struct wml_json *w)
{
    const struct wml_json_val *bos = token(r, "bos_token_id"), *eos = token(r, "eos_token_id"), *pad = token(r, "pad_token_id");
    if (!pad) pad = bos ? bos : wml_json_is_array(eos) ? wml_json_at(eos, 0) : eos;
    put(w, "bos_token_id", bos);
    put(w, "eos_token_id", eos); /* one or a list */
    put(w, "pad_token_id", pad);
}

static void put_int(struct wml_json *w, const char *key, int64_t v)
{
    wml_json_key(w, key);
    wml_json_put_int(w, v);
}

static void put_str(struct wml_json *w, const char *key, const char *v)
{
    wml_json_key(w, key);
    wml_json_put_cstr(w, v);
}

static void put_sizes(const struct wml_build_run *r, struct wml_json *w)
{
    put_int(w, "hidden_size", r->facts.hidden);
    put_int(w, "num_attention_heads", r->facts.heads);
    put_int(w, "num_key_value_heads", r->facts.kv_heads);
    put_int(w, "num_hidden_layers", r->facts.layers);
    put_int(w, "head_size", r->facts.head);
}

static void put_names(struct wml_json *w, const char *key, const char *const (*name)[2], size_t n)
{
    wml_json_key(w, key);
    wml_json_begin(w, '{');
    for (size_t i = 0; i < n; i++) put_str(w, name[i][0], name[i][1]);
    wml_json_end(w, '}');
}

static void put_single(struct wml_json *w)
{
    static const char *const inputs[][2] = {{"input_ids", "input_ids"}, {"attention_mask", "attention_mask"},
                                            {"past_key_names", "past_key_values.%d.key"}, {"past_value_names", "past_key_values.%d.value"}};
    static const char *const outputs[][2] = {{"logits", "logits"}, {"present_key_names", "present.%d.key"}, {"present_value_names", "present.%d.value"}};
    wml_json_key(w, "session_options");
    wml_json_begin(w, '{');
    put_str(w, "log_id", "onnxruntime-genai");
    wml_json_key(w, "provider_options");
    wml_json_begin(w, '[');
    wml_json_end(w, ']');
    wml_json_end(w, '}');
    put_str(w, "filename", "model.onnx");
    put_names(w, "inputs", inputs, WML_COUNT(inputs));
    put_names(w, "outputs", outputs, WML_COUNT(outputs));
}

static bool put_staged(struct wml_build_run *r, struct wml_json *w, struct wml_err *err)
{
    static const char *const inputs[][2] = {{"input_ids", "input_ids"}, {"past_sequence_length", "past_seq_len"}, {"total_sequence_length", "total_seq_len"},
                                            {"past_key_names", "past_keys_%d"}, {"past_value_names", "past_values_%d"}};
    static const char *const outputs[][2] = {{"logits", "logits"}, {"present_key_names", "present_keys_%d"}, {"present_value_names", "present_values_%d"}};
    put_names(w, "inputs", inputs, WML_COUNT(inputs));
    put_names(w, "outputs", outputs, WML_COUNT(outputs));
    return wml_build_put_pipeline(r, w, err);
}

static bool put_decoder(struct wml_build_run *r, struct wml_json *w, struct wml_err *err)
{
    bool ok = true;
    wml_json_key(w, "decoder");
    wml_json_begin(w, '{');
    put_sizes(r, w);
    if (r->staged) ok = put_staged(r, w, err);
    else put_single(w);
    wml_json_end(w, '}');
    return ok;
}

/* What the model's makers sample with, where they say it. */
static void put_search(const struct wml_build_run *r, struct wml_json *w)
{
    const struct wml_json_val *g = r->staged ? NULL : wml_json_root(r->generation); /* pipelines are greedy unless told otherwise */
    static const char *const key[] = {"temperature", "top_k", "top_p", "repetition_penalty"};
    wml_json_key(w, "search");
    wml_json_begin(w, '{');
    put_int(w, "max_length", r->context);
    put_int(w, "min_length", 0);
    wml_json_key(w, "do_sample");
    wml_json_put_bool(w, wml_json_get_bool(g, "do_sample", false));
    for (size_t i = 0; i < WML_COUNT(key); i++) put(w, key[i], known(g, key[i]));
    wml_json_key(w, "past_present_share_buffer");
    wml_json_put_bool(w, true);
    wml_json_end(w, '}');
}

bool wml_build_write_config(struct wml_build_run *r, struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_json w = {.out = &text, .indent = 2};
    wml_json_begin(&w, '{');
    wml_json_key(&w, "model");
    wml_json_begin(&w, '{');
    put_str(&w, "type", r->staged ? "decoder-pipeline" : r->plan.type->model_type);
    put_tokens(r, &w);
    put_int(&w, "vocab_size", r->facts.vocab);
    put_int(&w, "context_length", r->context);
    bool ok = put_decoder(r, &w, err);
    wml_json_end(&w, '}');
    put_search(r, &w);
    wml_json_end(&w, '}');
    wml_buf_char(&text, '\n');
    ok = ok && wml_file_write(wml_build_out(r, WML_BUNDLE_CONFIG), wml_buf_view(&text), err);
    wml_buf_release(&text);
    return ok;
}

/* ----------------------------------------------------------------- tokenizer */

static const char *const tokenizer[] = {"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "merges.txt",
                                        "special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json"};

static bool copy_files(struct wml_build_run *r, struct wml_err *err)
{
    for (size_t i = 0; i < WML_COUNT(tokenizer); i++) {
        const char *from = wml_build_in(r, tokenizer[i]), *to = wml_build_out(r, tokenizer[i]);
        if (!wml_file_exists(from)) wml_file_remove(to); /* one of an earlier build would count */
        else if (!wml_file_same(from, to) && !wml_file_copy(from, to, err)) return false;
    }
    return true;
}

bool wml_build_copy_tokenizer(struct wml_build_run *r, struct wml_err *err)
{
    const char *there[WML_COUNT(tokenizer)];
    size_t n = 0;
    for (size_t i = 0; i < WML_COUNT(tokenizer); i++)
        if (wml_file_exists(wml_build_in(r, tokenizer[i]))) there[n++] = tokenizer[i];
    if (!wml_file_exists(wml_build_in(r, "tokenizer.json")))
        wml_log(r->cx, WML_LOG_WARN, "%s has no tokenizer.json: the bundle will take token ids only", r->a->model);
    return wml_build_do(r, "tokenizer", there, n, copy_files, err);
}
