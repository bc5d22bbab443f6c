/* Job "generate": opens a bundle in onnxruntime-genai and answers prompts, untimed ones first.
 *
 * request {"bundle": folder, "eps":[{"target":{..}}], "prompt", "system", "apply_template", "template": file or absent,
 *          "max_new_tokens", "warmup", "iterations", "context_length", "whole_context", "search":{..} or absent: greedy,
 *          "monitor", "live", "stream", "chat"}
 * events  {"load":{..ms}} once; {"token": text} when streaming; {"request":{sample}} after each; in a chat {"turn":true} when
 *         it waits for a line {"prompt": text}, and {"trouble": text} instead of an answer
 * reply   {"load","eps":[{"target"}],"genai":{"path","version"},"ort_version","memory","usage"}
 *
 * EPs are registered with ORT itself, before the library is asked for a model: it finds them in the one environment of the
 * process, and one that cannot start is an error here, not the end of the process. Events are written between what is
 * timed. Nothing is released in the end: the process goes, and a driver has no occasion to crash once all is told. */
#include "worker/job.h"

#include "genai/genai.h"
#include "os/file.h"
#include "os/sys.h"
#include "worker/measure.h"

enum { MONITOR_MS = 200, NOTE_NS = 100000000, TEMPLATE_MAX = 1 << 20 };

struct generate {
    struct wml_job_io *io;
    const struct wml_json_val *request;
    struct wml_arena arena;
    struct wml_genai *g;
    struct wml_genai_model *model;
    struct wml_genai_load times;
    double register_ms;
    struct wml_buf eps, template, messages;
    struct wml_genai_request ask;
    struct wml_memory_points memory;
    struct wml_sampler *sampler;
    struct wml_usage usage;
    bool live, stream, chat;
    size_t done, n_warmup, n_timed;
    size_t tokens; /* of the request that runs */
    struct wml_genai_sample *sample; /* of it */
    uint64_t noted;
};

static void phase(void *arg, const char *name)
{
    wml_job_phase(arg, name);
}

/* An EP that cannot be had is said, and the library then says what it means for the model. */
static void register_eps(struct generate *g)
{
    const struct wml_json_val *list = wml_json_get(g->request, "eps");
    struct wml_json j = {.out = &g->eps};
    uint64_t start = wml_now_ns();
    wml_job_phase(g->io, "register");
    wml_json_begin(&j, '[');
    for (size_t i = 0; i < wml_json_len(list); i++) {
        struct wml_target_spec spec;
        struct wml_target *target = WML_NEW(&g->arena, struct wml_target); /* its library must stay registered */
        struct wml_err err = {0};
        wml_target_spec_get(wml_json_at(list, i), &g->arena, &spec);
        if (!wml_target_resolve(g->io->cx, &spec, target, &err)) {
            wml_log(g->io->cx, WML_LOG_WARN, "%s cannot be registered: %s", spec.ep ? spec.ep : "the EP", err.msg);
            continue;
        }
        wml_json_begin(&j, '{');
        wml_target_put(&j, target, g->io->cx->ort);
        wml_json_end(&j, '}');
    }
    wml_json_end(&j, ']');
    g->register_ms = (double)(wml_now_ns() - start) / 1e6;
}

static void put_ms(struct wml_json *j, const char *key, double ms)
{
    wml_json_key(j, key);
    wml_json_put_fixed(j, ms, 3);
}

static void put_load(struct wml_json *j, const struct generate *g)
{
    wml_json_key(j, "load");
    wml_json_begin(j, '{');
    put_ms(j, "ep_registration_duration_ms", g->register_ms);
    put_ms(j, "config_create_duration_ms", g->times.config_ms);
    put_ms(j, "model_create_duration_ms", g->times.model_ms);
    put_ms(j, "tokenizer_create_duration_ms", g->times.tokenizer_ms);
    wml_json_end(j, '}');
    wml_json_key(j, "eps");
    wml_json_put_raw(j, g->eps.len ? wml_buf_view(&g->eps) : WML_STR("[]"));
    wml_json_key(j, "genai");
    wml_json_begin(j, '{');
    wml_json_key(j, "path");
    wml_json_put_cstr(j, g->g ? wml_genai_path(g->g) : NULL);
    wml_json_key(j, "version");
    wml_json_put_cstr(j, g->g ? wml_genai_version(g->g) : NULL);
    wml_json_end(j, '}');
    wml_json_key(j, "ort_version");
    wml_json_put_cstr(j, g->io->cx->ort ? wml_ort_info(g->io->cx->ort).version : NULL);
}

/* An event with one member, whose value comes between. */
struct event { struct wml_buf text; struct wml_json json; };

static struct wml_json *begin_event(struct event *e, const char *key)
{
    *e = (struct event){.json.out = &e->text};
    wml_json_begin(&e->json, '{');
    wml_json_key(&e->json, key);
    return &e->json;
}

static void end_event(struct event *e, struct wml_job_io *io)
{
    wml_json_end(&e->json, '}');
    wml_job_event(io, wml_buf_view(&e->text));
    wml_buf_release(&e->text);
}

static void tell_text(struct generate *g, const char *key, struct wml_str text)
{
    struct event e;
    wml_json_put_str(begin_event(&e, key), text);
    end_event(&e, g->io);
}

static void tell_turn(struct generate *g)
{
    struct event e;
    wml_json_put_bool(begin_event(&e, "turn"), true);
    end_event(&e, g->io);
}

static void tell_load(struct generate *g)
{
    struct event e;
    struct wml_json *j = begin_event(&e, "load");
    wml_json_begin(j, '{');
    put_load(j, g);
    wml_json_end(j, '}');
    end_event(&e, g->io);
}

static bool load(struct generate *g, struct wml_err *err)
{
    const char *dir = wml_arena_cstr(&g->arena, wml_json_get_str(g->request, "bundle"));
    struct wml_ort *ort;
    bool accelerated = wml_json_len(wml_json_get(g->request, "eps")) > 0;
    wml_memory_begin(&g->memory, accelerated);
    if (!wml_ort_open(g->io->cx, &ort, err) || !wml_genai_open(g->io->cx, &g->g, err)) return false;
    register_eps(g);
    wml_note_progress(g->io->cx, "Loading", NULL, 0, 0, NULL);
    if (!wml_genai_load(g->g, dir, phase, g->io, &g->model, &g->times, err)) return false;
    wml_memory_look(&g->memory, 1);
    tell_load(g);
    return true;
}

struct turn { struct wml_str role, content; };
struct talk { WML_VEC(struct turn) turn; };

static void say(struct generate *g, struct talk *t, const char *role, struct wml_str content)
{
    struct turn turn = {wml_str(role), wml_arena_str(&g->arena, content)};
    WML_PUSH_IN(&g->arena, &t->turn, turn);
}

static void put_talk(struct generate *g, const struct talk *t)
{
    struct wml_json j = {.out = &g->messages};
    wml_buf_clear(&g->messages);
    wml_json_begin(&j, '[');
    for (size_t i = 0; i < t->turn.len; i++) {
        wml_json_begin(&j, '{');
        wml_json_key(&j, "role");
        wml_json_put_str(&j, t->turn.at[i].role);
        wml_json_key(&j, "content");
        wml_json_put_str(&j, t->turn.at[i].content);
        wml_json_end(&j, '}');
    }
    wml_json_end(&j, ']');
    g->ask.messages = wml_buf_view(&g->messages);
}

static bool note_token(void *arg, struct wml_str text, double ms)
{
    struct generate *g = arg;
    char item[WML_LIVE_TEXT];
    uint64_t now = wml_now_ns();
    if (!g->tokens++ && !g->done && g->sample->no_template)
        wml_log(g->io->cx, WML_LOG_WARN, "the chat template cannot be applied, so the prompt is used as it is: %s", g->sample->template_error);
    if (g->stream && text.len) tell_text(g, "token", text);
    if (g->stream || now - g->noted < NOTE_NS) return true;
    g->noted = now;
    bool timed = g->done >= g->n_warmup;
    if (g->live && g->sampler) wml_live_item(g->sampler, ms, item);
    else snprintf(item, sizeof item, "token %zu", g->tokens);
    wml_note_progress(g->io->cx, timed ? "Running" : "Warming up", item, timed ? g->done - g->n_warmup : g->done, timed ? g->n_timed : g->n_warmup, "requests");
    return true;
}

static bool prepare(struct generate *g, struct wml_err *err)
{
    const struct wml_json_val *r = g->request, *search = wml_json_get(r, "search");
    struct wml_str prompt = wml_json_get_str(r, "prompt"), system = wml_json_get_str(r, "system"), file = wml_json_get_str(r, "template");
    struct talk t = {0};
    g->ask = (struct wml_genai_request){
        .prompt = prompt, .max_new_tokens = (size_t)wml_json_get_int(r, "max_new_tokens", 128),
        .context_length = wml_json_get_int(r, "context_length", 0), .whole_context = wml_json_get_bool(r, "whole_context", false),
        .sample = wml_json_get_bool(search, "do_sample", false), .temperature = wml_json_get_num(search, "temperature", 1),
        .top_p = wml_json_get_num(search, "top_p", 1), .top_k = wml_json_get_int(search, "top_k", 0),
        .repetition_penalty = wml_json_get_num(search, "repetition_penalty", 1), .seed = wml_json_get_int(search, "seed", -1),
        .on_token = note_token, .arg = g};
    g->n_warmup = (size_t)wml_json_get_int(r, "warmup", 0);
    g->n_timed = (size_t)wml_json_get_int(r, "iterations", 1);
    g->live = wml_json_get_bool(r, "live", false);
    g->stream = wml_json_get_bool(r, "stream", false);
    g->chat = wml_json_get_bool(r, "chat", false);
    if (!wml_json_get_bool(r, "apply_template", true)) return true;
    if (system.len) say(g, &t, "system", system);
    say(g, &t, "user", prompt);
    put_talk(g, &t);
    if (!file.len) return true;
    if (!wml_file_read(wml_arena_cstr(&g->arena, file), TEMPLATE_MAX, &g->template, err)) return false;
    g->ask.template = wml_buf_text(&g->template);
    return true;
}

static void tell_request(struct generate *g, const struct wml_genai_sample *s, bool timed)
{
    struct event e;
    struct wml_json *j = begin_event(&e, "request");
    wml_json_begin(j, '{');
    wml_json_key(j, "kind");
    wml_json_put_cstr(j, timed ? "timed" : "warmup");
    wml_json_key(j, "prompt_tokens");
    wml_json_put_uint(j, s->prompt_tokens);
    put_ms(j, "template", s->template_ms);
    put_ms(j, "tokenize", s->tokenize_ms);
    put_ms(j, "create", s->create_ms);
    put_ms(j, "prefill", s->prefill_ms);
    put_ms(j, "first_token", s->first_token_ms);
    wml_json_key(j, "decode");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < s->decode_ms.len; i++) wml_json_put_fixed(j, s->decode_ms.at[i], 6);
    wml_json_end(j, ']');
    put_ms(j, "fetch", s->fetch_ms);
    put_ms(j, "detokenize", s->detokenize_ms);
    if (!g->done || g->chat) {
        wml_json_key(j, "tokens");
        wml_json_begin(j, '[');
        for (size_t i = 0; i < s->token.len; i++) wml_json_put_int(j, s->token.at[i]);
        wml_json_end(j, ']');
        wml_json_key(j, "text");
        wml_json_put_str(j, wml_buf_view(&s->text));
    }
    wml_json_end(j, '}');
    end_event(&e, g->io);
}

static bool run(struct generate *g, struct wml_err *err)
{
    g->sampler = wml_json_get_bool(g->request, "monitor", false) ? wml_sampler_start(MONITOR_MS) : NULL;
    bool ok = true;
    for (; ok && g->done < g->n_warmup + g->n_timed; g->done++) {
        struct wml_genai_sample s;
        bool timed = g->done >= g->n_warmup;
        if (!g->done || g->done == g->n_warmup) wml_job_phase(g->io, timed ? "timed" : "warmup");
        g->tokens = 0;
        g->sample = &s;
        ok = wml_genai_generate(g->model, &g->ask, &s, err) || wml_wrap(err, "request %zu", g->done + 1);
        if (ok) tell_request(g, &s, timed);
        wml_genai_sample_release(&s);
    }
    g->usage = wml_sampler_stop(g->sampler);
    g->sampler = NULL;
    wml_memory_look(&g->memory, 2);
    return ok;
}

/* --- chat --- */

/* A question without an answer is forgotten: it may be what is wrong. */
static void answer(struct generate *g, struct talk *t, struct wml_str prompt)
{
    struct wml_genai_sample s;
    struct wml_err err = {0};
    say(g, t, "user", prompt);
    g->ask.prompt = t->turn.at[t->turn.len - 1].content;
    if (wml_json_get_bool(g->request, "apply_template", true)) put_talk(g, t);
    g->tokens = 0;
    g->sample = &s;
    wml_job_phase(g->io, "timed");
    bool ok = wml_genai_generate(g->model, &g->ask, &s, &err);
    if (ok) {
        tell_request(g, &s, true);
        say(g, t, "assistant", wml_buf_view(&s.text));
        g->done++;
    } else {
        t->turn.len--;
        tell_text(g, "trouble", wml_str(err.msg));
    }
    wml_genai_sample_release(&s);
}

static bool chat(struct generate *g)
{
    struct talk t = {0};
    struct wml_buf line = {0};
    struct wml_str system = wml_json_get_str(g->request, "system");
    if (system.len) say(g, &t, "system", system);
    for (;;) {
        struct wml_json_doc *doc = NULL;
        struct wml_err ignored = {0};
        tell_turn(g);
        if (!wml_job_hear(g->io, &line)) break;
        if (wml_json_parse(wml_buf_view(&line), &doc, &ignored)) answer(g, &t, wml_json_get_str(wml_json_root(doc), "prompt"));
        wml_json_free(doc);
    }
    wml_memory_look(&g->memory, 2);
    wml_buf_release(&line);
    return true;
}

static bool generate(struct wml_job_io *io, const struct wml_json_doc *doc, struct wml_err *err)
{
    struct generate *g = wml_xcalloc(1, sizeof *g);
    struct wml_json j = {.out = &io->reply};
    io->state = g;
    g->io = io;
    g->request = wml_json_root(doc);
    if (!io->channel) return wml_fail(err, WML_E_INTERNAL, "this job needs a process of its own");
    bool ok = prepare(g, err) && load(g, err) && (g->chat ? chat(g) : run(g, err));
    wml_job_phase(io, "report");
    wml_json_begin(&j, '{');
    put_load(&j, g);
    wml_memory_put(&j, &g->memory);
    wml_usage_put(&j, &g->usage);
    wml_json_end(&j, '}');
    wml_memory_end(&g->memory);
    return ok;
}

const struct wml_job wml_job_generate = {
    .name = "generate", .summary = "Answer prompts with a GenAI bundle",
    .run = generate,
};
