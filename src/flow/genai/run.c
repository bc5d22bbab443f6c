/* The child that generates: its request, what it tells while it runs, how it ended. */
#include "flow/genai/internal.h"

#include <inttypes.h>

#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"
#include "worker/target.h"

static void put_search(struct wml_json *j, const struct wml_genai_search *s)
{
    wml_json_key(j, "search");
    wml_json_begin(j, '{');
    wml_json_key(j, "do_sample");
    wml_json_put_bool(j, s->sample);
    wml_json_key(j, "temperature");
    wml_json_put_num(j, s->temperature);
    wml_json_key(j, "top_p");
    wml_json_put_num(j, s->top_p);
    wml_json_key(j, "top_k");
    wml_json_put_int(j, s->top_k);
    wml_json_key(j, "repetition_penalty");
    wml_json_put_num(j, s->repetition_penalty);
    wml_json_key(j, "seed");
    wml_json_put_int(j, s->seed);
    wml_json_end(j, '}');
}

/* Only EPs that some stage still names, and that are to be had: one that was looked at for the choice alone must not be loaded. */
static void put_eps(struct wml_json *j, const struct wml_genai_run *r)
{
    wml_json_key(j, "eps");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < r->target.len; i++) {
        bool used = false;
        for (size_t s = 0; s < r->bundle.n_stages; s++)
            for (size_t k = 0; k < r->bundle.stage[s].n_providers; k++)
                used = used || strcmp(r->bundle.stage[s].provider[k].name, r->target.at[i].name) == 0;
        if (!used || !r->target.at[i].doc) continue;
        wml_json_begin(j, '{');
        wml_target_spec_put(j, &r->target.at[i].spec);
        wml_json_end(j, '}');
    }
    wml_json_end(j, ']');
}

static void write_request(const struct wml_genai_run *r, struct wml_buf *out)
{
    const struct wml_genai_args *a = r->args;
    struct wml_json j = {.out = out};
    struct wml_buf file = {0};
    wml_json_begin(&j, '{');
    wml_json_key(&j, "bundle");
    wml_json_put_path(&j, r->load_dir);
    put_eps(&j, r);
    wml_json_key(&j, "prompt");
    wml_json_put_str(&j, a->prompt);
    wml_json_key(&j, "system");
    wml_json_put_str(&j, a->system);
    wml_json_key(&j, "apply_template");
    wml_json_put_bool(&j, a->apply_template);
    wml_path_join(&file, wml_str(r->dir), WML_STR("chat_template.jinja"));
    if (wml_file_exists(wml_buf_text(&file))) {
        wml_json_key(&j, "template");
        wml_json_put_path(&j, wml_buf_text(&file));
    }
    wml_buf_release(&file);
    wml_json_key(&j, "max_new_tokens");
    wml_json_put_uint(&j, a->max_new_tokens);
    wml_json_key(&j, "warmup");
    wml_json_put_uint(&j, a->warmup);
    wml_json_key(&j, "iterations");
    wml_json_put_uint(&j, a->iterations);
    wml_json_key(&j, "context_length");
    wml_json_put_int(&j, r->bundle.context_length);
    wml_json_key(&j, "whole_context");
    wml_json_put_bool(&j, r->bundle.pipeline);
    put_search(&j, &a->search);
    wml_json_key(&j, "monitor");
    wml_json_put_bool(&j, a->monitor);
    wml_json_key(&j, "live");
    wml_json_put_bool(&j, a->live);
    wml_json_key(&j, "stream");
    wml_json_put_bool(&j, a->on_text != NULL);
    wml_json_key(&j, "chat");
    wml_json_put_bool(&j, a->ask != NULL);
    wml_json_end(&j, '}');
}

/* What did not come token by token: bytes that are no whole letter, or all of it where the library cannot stream. */
static void tell_rest(struct wml_genai_run *r, struct wml_str text)
{
    const struct wml_genai_args *a = r->args;
    if (!a->on_text) return;
    if (text.len > r->told.len && (!r->told.len || memcmp(text.ptr, r->told.ptr, r->told.len) == 0))
        a->on_text(a->arg, wml_str_sub(text, r->told.len, text.len));
    wml_buf_clear(&r->told);
    if (a->answered) a->answered(a->arg, NULL);
}

static void tell_token(struct wml_genai_run *r, struct wml_str text)
{
    if (!r->args->on_text) return;
    wml_buf_str(&r->told, text);
    r->args->on_text(r->args->arg, text);
}

/* The child waits meanwhile: so may we. */
static void ask(struct wml_genai_run *r)
{
    struct wml_buf text = {0};
    struct wml_json j = {.out = &r->question};
    wml_end_progress(r->cx);
    wml_buf_clear(&r->question);
    r->no_more = !r->args->ask(r->args->arg, &text);
    wml_json_begin(&j, '{');
    wml_json_key(&j, "prompt");
    wml_json_put_str(&j, wml_buf_view(&text));
    wml_json_end(&j, '}');
    wml_buf_char(&r->question, '\n');
    wml_buf_release(&text);
}

static bool is_end(const struct wml_json_val *end, int32_t token)
{
    bool is = !wml_json_is_array(end) && wml_json_int(end, -1) == token;
    for (size_t i = 0; wml_json_is_array(end) && i < wml_json_len(end); i++) is = is || wml_json_int(wml_json_at(end, i), -1) == token;
    return is;
}

/* Fewer tokens than were asked for, and no end: the user would not know why. */
static void check_end(struct wml_genai_run *r, const struct wml_genai_sample *s)
{
    const struct wml_json_val *model = wml_json_get(wml_json_root(r->bundle.doc), "model");
    const size_t n = s->token.len;
    if (!n || n >= r->args->max_new_tokens || is_end(wml_json_get(model, "eos_token_id"), s->token.at[n - 1])) return;
    wml_genai_warn(r, "the answer stops at %zu tokens: the context of the model, %" PRId64 " tokens, is full", n, r->bundle.context_length);
}

static bool more(void *arg, struct wml_buf *out)
{
    struct wml_genai_run *r = arg;
    if (r->no_more) return false;
    wml_buf_str(out, wml_buf_view(&r->question));
    wml_buf_clear(&r->question);
    return true;
}

static void take_request(struct wml_genai_run *r, const struct wml_json_val *v)
{
    struct wml_genai_timed t = {.timed = wml_str_is(wml_json_get_str(v, "kind"), "timed")};
    struct wml_genai_sample *s = &t.sample;
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    s->prompt_tokens = (size_t)wml_json_get_int(v, "prompt_tokens", 0);
    s->template_ms = wml_json_get_num(v, "template", 0);
    s->tokenize_ms = wml_json_get_num(v, "tokenize", 0);
    s->create_ms = wml_json_get_num(v, "create", 0);
    s->prefill_ms = wml_json_get_num(v, "prefill", 0);
    s->first_token_ms = wml_json_get_num(v, "first_token", 0);
    s->fetch_ms = wml_json_get_num(v, "fetch", 0);
    s->detokenize_ms = wml_json_get_num(v, "detokenize", 0);
    while (wml_json_next(wml_json_get(v, "decode"), &it, &key, &e)) WML_PUSH(&s->decode_ms, wml_json_num(e, 0));
    it = (struct wml_json_iter){0};
    while (wml_json_next(wml_json_get(v, "tokens"), &it, &key, &e)) WML_PUSH(&s->token, (int32_t)wml_json_int(e, 0));
    wml_buf_str(&s->text, wml_json_get_str(v, "text"));
    WML_PUSH(&r->request, t);
    s = &r->request.at[r->request.len - 1].sample;
    tell_rest(r, wml_buf_view(&s->text));
    check_end(r, s);
}

static void hear(void *arg, const struct wml_json_val *event)
{
    struct wml_genai_run *r = arg;
    const struct wml_json_val *request = wml_json_get(event, "request"), *load = wml_json_get(event, "load"), *token = wml_json_get(event, "token");
    if (request) take_request(r, request);
    if (wml_json_is_string(token)) tell_token(r, wml_json_str(token));
    if (wml_json_get_bool(event, "turn", false) && r->args->ask) ask(r);
    if (wml_json_is_string(wml_json_get(event, "trouble")) && r->args->answered) {
        const char *text = wml_arena_cstr(&r->arena, wml_json_get_str(event, "trouble"));
        wml_buf_clear(&r->told);
        r->args->answered(r->args->arg, text);
    }
    if (load && !r->load) {
        struct wml_buf text = {0};
        struct wml_err ignored = {0};
        r->session_ms = (double)(wml_now_ns() - r->begin_ns) / 1e6;
        wml_json_print(load, &text);
        wml_json_parse(wml_buf_view(&text), &r->load, &ignored);
        wml_buf_release(&text);
    }
}

static void show_tail(struct wml_genai_run *r)
{
    struct wml_str rest = wml_str_trim(wml_buf_view(&r->reply.log)), line;
    if (rest.len > 2000) rest = wml_str_sub(rest, rest.len - 2000, rest.len);
    while (!r->cx->show_native && wml_str_split(&rest, '\n', &line))
        if (wml_str_trim(line).len) wml_log(r->cx, WML_LOG_WARN, "  %.*s", WML_ARG(wml_str_trim(line)));
}

/* A child that left no reply: the phase and the way it ended are what is known. */
static void explain(struct wml_genai_run *r, struct wml_err *err)
{
    const struct wml_worker_reply *reply = &r->reply;
    bool loading = err->code == WML_E_LOAD, accelerated = r->target.len > 0;
    enum wml_code code = err->code == WML_E_CHILD ? WML_E_LOAD : err->code;
    show_tail(r);
    if (reply->end == WML_CHILD_TIMED_OUT) {
        wml_fail(err, WML_E_TIMEOUT, "generation took longer than %g s and was stopped in phase %s", r->args->generation_timeout_s, reply->phase);
        wml_hint(err, "give it more time with --generation-timeout SECONDS, 0 for no limit");
        return;
    }
    wml_fail(err, code, "generation process died in phase %s (%s)", reply->phase[0] ? reply->phase : "start", reply->name);
    if (loading && accelerated && !r->args->compile) wml_hint(err, "try --compile, which compiles each stage in a process of its own; --device cpu runs all on the CPU");
    else if (accelerated) wml_hint(err, "--device cpu runs all stages on the CPU; -v shows what the EP said");
}

bool wml_genai_generate_in_child(struct wml_genai_run *r, struct wml_err *err)
{
    enum { QUIET_MS = 60000 };
    struct wml_buf request = {0};
    write_request(r, &request);
    struct wml_worker_call call = {.job = "generate", .request = wml_buf_view(&request), .on_event = hear,
                                   .more = r->args->ask ? more : NULL, .arg = r, .quiet_ms = QUIET_MS,
                                   .timeout_ms = r->args->ask ? 0 : (uint64_t)(r->args->generation_timeout_s * 1000)};
    r->begin_ns = wml_now_ns();
    r->ran = true;
    bool ok = wml_worker_call(r->cx, &call, &r->reply, err);
    r->interrupted = r->reply.end == WML_CHILD_CANCELLED || err->code == WML_E_CANCELLED;
    r->partial = !ok;
    if (!ok && !r->interrupted && !r->reply.json && err->code != WML_E_INTERNAL) explain(r, err);
    for (size_t i = 0; !ok && err->code == WML_E_LOAD && i < r->target.len; i++)
        if (!r->target.at[i].doc) wml_hint(err, "%s cannot be had here: --device cpu runs all stages on the CPU", r->target.at[i].name);
    if (!ok && !r->interrupted && !err->hint[0] && err->code == WML_E_LOAD && r->target.len)
        wml_hint(err, "--device cpu runs all stages on the CPU: when that works, it is the EP or its options");
    else if (!ok && !r->interrupted && !err->hint[0] && err->code == WML_E_LOAD)
        wml_hint(err, "a file of the bundle may be damaged or of another build: winml inspect -m %s shows them", r->args->bundle);
    if (!ok && !r->interrupted && !err->hint[0] && err->code == WML_E_RUN && !r->target.len)
        wml_hint(err, "sizes or names in " WML_BUNDLE_CONFIG " may not be those of the models: build the bundle again");
    if (ok && r->reply.salvaged) wml_genai_warn(r, "the generation process %s; all results were there before", r->reply.ended);
    wml_buf_release(&request);
    return ok;
}
