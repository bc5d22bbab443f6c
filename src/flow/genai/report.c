/* The report of a benchmark that generates: schema version 2 of the Python tool, and how the child ended. */
#include <math.h>

#include "flow/genai/internal.h"
#include "flow/machine.h"
#include "monitor/stats.h"
#include "os/path.h"
#include "text/words.h"

/* What is known of one request, in the names of the schema. */
enum metric { REQUEST, COMPUTE, MODEL_TTFT, REQUEST_TTFT, PREFILL, EVAL, TPOT, PREFILL_RATE, DECODE_RATE, EVAL_RATE, METRICS };
static const char *const metric_key[METRICS] = {
    [REQUEST] = "request_duration_ms", [COMPUTE] = "model_compute_duration_ms", [MODEL_TTFT] = "model_ttft_duration_ms",
    [REQUEST_TTFT] = "request_ttft_duration_ms", [PREFILL] = "prefill_duration_ms", [EVAL] = "response_eval_duration_ms",
    [TPOT] = "steady_state_tpot_ms", [PREFILL_RATE] = "prefill_tokens_per_second",
    [DECODE_RATE] = "steady_state_decode_tokens_per_second", [EVAL_RATE] = "response_eval_tokens_per_second"};

static double rate(double n, double ms)
{
    return ms > 0 ? n * 1000 / ms : 0;
}

static double decode_ms(const struct wml_genai_sample *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->decode_ms.len; i++) sum += s->decode_ms.at[i];
    return sum;
}

static void measure(const struct wml_genai_sample *s, double out[METRICS])
{
    double decode = decode_ms(s), n = (double)s->decode_ms.len;
    out[PREFILL] = s->prefill_ms;
    out[MODEL_TTFT] = s->prefill_ms + s->first_token_ms;
    out[REQUEST_TTFT] = s->template_ms + s->tokenize_ms + s->create_ms + out[MODEL_TTFT];
    out[EVAL] = s->first_token_ms + decode;
    out[COMPUTE] = s->prefill_ms + out[EVAL];
    out[REQUEST] = s->template_ms + s->tokenize_ms + s->create_ms + out[COMPUTE] + s->fetch_ms + s->detokenize_ms;
    out[TPOT] = n > 0 ? decode / n : 0;
    out[PREFILL_RATE] = rate((double)s->prompt_tokens, s->prefill_ms);
    out[DECODE_RATE] = rate(n, decode);
    out[EVAL_RATE] = rate(n + 1, out[EVAL]);
}

static void put(struct wml_item *i, const char *key, double v, unsigned digits)
{
    wml_item_num(i, key, NULL, v, digits, WML_SHOW_PLAIN);
}

static const struct wml_genai_sample *first_timed(const struct wml_genai_run *r)
{
    for (size_t i = 0; i < r->request.len; i++)
        if (r->request.at[i].timed) return &r->request.at[i].sample;
    return r->request.len ? &r->request.at[0].sample : NULL;
}

static struct wml_str device_of(const struct wml_genai_run *r)
{
    return wml_str(wml_bundle_device(&r->bundle));
}

static bool simulated(const struct wml_genai_run *r)
{
    bool several;
    const struct wml_json_val *t = wml_genai_target_of(r, wml_bundle_ep(&r->bundle, &several));
    return wml_json_get_bool(t, "simulated", false);
}

static void put_info(struct wml_item *root, const struct wml_genai_run *r)
{
    const struct wml_genai_args *a = r->args;
    const struct wml_genai_sample *first = first_timed(r);
    const struct wml_json_val *load = wml_json_root(r->load);
    struct wml_item *i = wml_item_object(root, "benchmark_info", NULL);
    wml_item_cstr(i, "runtime", NULL, "winml-genai");
    wml_item_str(i, "model_id", NULL, wml_genai_model_id(r));
    wml_item_cstr(i, "running_model_path", NULL, r->temp_dir ? r->dir : r->load_dir);
    wml_item_cstr(i, "bundle_dir", NULL, r->dir);
    wml_item_cstr(i, "ep", NULL, r->ep);
    wml_item_cstr(i, "device", NULL, a->target.device ? a->target.device : "config");
    wml_item_str(i, "effective_device", NULL, device_of(r));
    wml_item_bool(i, "compile", NULL, a->compile);
    wml_item_int(i, "compile_timeout", NULL, (int64_t)a->compile_timeout_s, WML_SHOW_PLAIN);
    wml_item_bool(i, "monitor", NULL, a->monitor);
    wml_item_int(i, "iterations", NULL, (int64_t)a->iterations, WML_SHOW_PLAIN);
    wml_item_int(i, "warmup", NULL, (int64_t)a->warmup, WML_SHOW_PLAIN);
    wml_item_int(i, "max_new_tokens", NULL, (int64_t)a->max_new_tokens, WML_SHOW_PLAIN);
    wml_item_bool(i, "apply_template", NULL, a->apply_template);
    wml_item_str(i, "prompt", NULL, a->prompt);
    wml_item_int(i, "prompt_tokens", NULL, first ? (int64_t)first->prompt_tokens : 0, WML_SHOW_PLAIN);
    wml_item_int(i, "generated_tokens", NULL, first ? (int64_t)first->decode_ms.len + 1 : 0, WML_SHOW_PLAIN);
    if (r->bundle.context_length > 0) wml_item_int(i, "context_length", NULL, r->bundle.context_length, WML_SHOW_PLAIN);
    else wml_item_null(i, "context_length", NULL);
    wml_item_cstr(i, "timestamp", NULL, r->timestamp);
    wml_item_bool(i, "simulated", NULL, simulated(r));
    wml_item_str(i, "genai_version", NULL, wml_json_get_str(wml_json_get(load, "genai"), "version"));
    wml_item_str(i, "genai_library", NULL, wml_json_get_str(wml_json_get(load, "genai"), "path"));
    wml_item_str(i, "ort_version", NULL, wml_json_get_str(load, "ort_version"));
    if (load) wml_item_json(i, "eps", wml_json_get(load, "eps"));
    wml_item_bool(i, "interrupted", NULL, r->interrupted);
}

static void put_load(struct wml_item *root, const struct wml_genai_run *r)
{
    const struct wml_json_val *l = wml_json_get(wml_json_root(r->load), "load");
    double config = wml_json_get_num(l, "config_create_duration_ms", NAN), model = wml_json_get_num(l, "model_create_duration_ms", NAN);
    double tokenizer = wml_json_get_num(l, "tokenizer_create_duration_ms", NAN);
    struct wml_item *i = wml_item_object(root, "load", NULL);
    put(i, "session_load_duration_ms", l ? r->prepare_ms + r->session_ms : NAN, 3);
    put(i, "ep_registration_duration_ms", wml_json_get_num(l, "ep_registration_duration_ms", NAN), 3);
    put(i, "bundle_prepare_duration_ms", r->prepare_ms, 3);
    put(i, "native_load_duration_ms", config + model + tokenizer, 3);
    put(i, "config_create_duration_ms", config, 3);
    put(i, "model_create_duration_ms", model, 3);
    put(i, "tokenizer_create_duration_ms", tokenizer, 3);
    wml_item_null(i, "weight_upload_duration_ms", NULL);
    put(i, "weight_upload_estimate_duration_ms", model, 3);
    wml_item_cstr(i, "weight_upload_estimate_source", NULL, isnan(model) ? "unavailable" : "model_create_duration");
}

void wml_genai_put_request(struct wml_item *in, const char *key, const struct wml_genai_timed *t, size_t index)
{
    const struct wml_genai_sample *s = &t->sample;
    double m[METRICS];
    struct wml_item *i = wml_item_object(in, key, NULL);
    measure(s, m);
    wml_item_cstr(i, "kind", NULL, t->timed ? "timed" : "warmup");
    wml_item_int(i, "index", NULL, (int64_t)index, WML_SHOW_PLAIN);
    wml_item_int(i, "prompt_tokens", NULL, (int64_t)s->prompt_tokens, WML_SHOW_PLAIN);
    wml_item_int(i, "generated_tokens", NULL, (int64_t)s->decode_ms.len + 1, WML_SHOW_PLAIN);
    put(i, "template_duration_ms", s->template_ms, 3);
    put(i, "tokenization_duration_ms", s->tokenize_ms, 3);
    put(i, "generator_create_duration_ms", s->create_ms, 3);
    put(i, "first_token_duration_ms", s->first_token_ms, 3);
    struct wml_item *decode = wml_item_array(i, "decode_token_durations_ms", NULL);
    for (size_t k = 0; k < s->decode_ms.len; k++) put(decode, NULL, s->decode_ms.at[k], 3);
    put(i, "sequence_fetch_duration_ms", s->fetch_ms, 3);
    put(i, "detokenization_duration_ms", s->detokenize_ms, 3);
    for (size_t k = 0; k < METRICS; k++) put(i, metric_key[k], m[k], k >= PREFILL_RATE ? 2 : 3);
}

void wml_genai_put_tokens(struct wml_item *root, const char *key, const struct wml_genai_sample *s)
{
    struct wml_item *tokens = wml_item_array(root, key, NULL);
    for (size_t i = 0; i < s->token.len; i++) wml_item_int(tokens, NULL, NULL, s->token.at[i], WML_SHOW_PLAIN);
}

void wml_genai_put_warnings(struct wml_item *root, const struct wml_genai_run *r)
{
    struct wml_item *warnings = wml_item_array(root, "warnings", NULL);
    for (size_t i = 0; i < r->warning.len; i++) wml_item_cstr(warnings, NULL, NULL, r->warning.at[i]);
}

static const struct wml_stats no_stats = {.mean = NAN, .std = NAN, .min = NAN, .max = NAN, .p50 = NAN, .p90 = NAN, .p95 = NAN, .p99 = NAN};

static void put_stats(struct wml_item *to, const char *key, const struct wml_stats *s)
{
    struct wml_item *i = wml_item_object(to, key, NULL);
    put(i, "mean", s->mean, 3);
    put(i, "std", s->std, 3);
    put(i, "min", s->min, 3);
    put(i, "max", s->max, 3);
    put(i, "p50", s->p50, 3);
    put(i, "p90", s->p90, 3);
    put(i, "p95", s->p95, 3);
    put(i, "p99", s->p99, 3);
}

struct aggregate {
    struct wml_stats stats[METRICS];
    size_t timed, warmup;
    double cold_ttft, cold_total; /* NaN: nothing ran */
    double overall;               /* tokens after the first of all requests over the time of all */
};

static void aggregate(const struct wml_genai_run *r, struct aggregate *a)
{
    double m[METRICS], tokens = 0, ms = 0;
    *a = (struct aggregate){.cold_ttft = NAN, .cold_total = NAN, .overall = NAN};
    for (size_t i = 0; i < r->request.len; i++) r->request.at[i].timed ? a->timed++ : a->warmup++;
    bool all = a->timed == 0;
    double *sample = wml_xcalloc(r->request.len + 1, sizeof *sample);
    for (size_t k = 0; k < METRICS; k++) {
        size_t n = 0;
        for (size_t i = 0; i < r->request.len; i++) {
            if (!all && !r->request.at[i].timed) continue;
            measure(&r->request.at[i].sample, m);
            sample[n++] = m[k];
            if (k) continue;
            tokens += (double)r->request.at[i].sample.decode_ms.len + 1;
            ms += m[COMPUTE];
        }
        if (n) wml_stats(sample, n, &a->stats[k]);
        else a->stats[k] = no_stats;
    }
    free(sample);
    if (!r->request.len) return;
    measure(&r->request.at[0].sample, m);
    a->cold_ttft = r->session_ms + m[REQUEST_TTFT];
    a->cold_total = r->session_ms + m[REQUEST];
    a->overall = rate(tokens, ms);
}

static void put_aggregate(struct wml_item *root, const struct aggregate *a)
{
    struct wml_item *i = wml_item_object(root, "aggregate", NULL);
    wml_item_bool(i, "warmup_excluded", NULL, true);
    wml_item_int(i, "warmup_request_count", NULL, (int64_t)a->warmup, WML_SHOW_PLAIN);
    wml_item_int(i, "timed_request_count", NULL, (int64_t)a->timed, WML_SHOW_PLAIN);
    put(i, "cold_start_ttft_duration_ms", a->cold_ttft, 3);
    put(i, "cold_start_total_duration_ms", a->cold_total, 3);
    for (size_t k = 0; k < METRICS; k++) put_stats(i, metric_key[k], &a->stats[k]);
    put(i, "tokens_per_second_overall", a->overall, 2);
}

static void put_compile(struct wml_item *root, const struct wml_genai_run *r)
{
    static const struct wml_column columns[] = {{.label = "Stage"}, {.label = "EP"}, {.label = "Compiled"}, {.label = "ms", .right = true}};
    struct wml_item *c = wml_item_object(root, "compile", NULL);
    wml_item_bool(c, "requested", NULL, r->args->compile);
    wml_item_cstr(c, "directory", NULL, r->compiled_dir);
    put(c, "duration_ms", r->compile_ms, 3);
    struct wml_item *stages = wml_item_array(c, "stages", NULL);
    struct wml_item *table = r->stage.len ? wml_item_table(root, NULL, "Stages", columns, WML_COUNT(columns)) : NULL;
    for (size_t i = 0; i < r->stage.len; i++) {
        const struct wml_genai_stage *s = &r->stage.at[i];
        struct wml_item *o = wml_item_object(stages, NULL, NULL), *row = wml_table_row(table);
        wml_item_cstr(o, "stage", NULL, r->bundle.stage[s->index].name);
        wml_item_cstr(o, "ep", NULL, s->ep);
        wml_item_cstr(o, "status", NULL, s->status);
        wml_item_bool(o, "shared", NULL, s->shared);
        wml_item_cstr(o, "source", NULL, r->bundle.stage[s->index].source);
        wml_item_cstr(o, "artifact", NULL, s->artifact);
        put(o, "duration_ms", s->ms, 3);
        wml_item_cstr(o, "exit", NULL, s->exit);
        wml_item_cstr(o, "note", NULL, s->note);
        wml_item_cstr(row, NULL, "Stage", r->bundle.stage[s->index].name);
        wml_item_cstr(row, NULL, "EP", s->ep);
        wml_item_fmt(row, NULL, "Compiled", "%s%s", s->status, s->shared ? ", shared context" : "");
        wml_item_fmt(row, NULL, "ms", "%.1f", s->ms);
    }
}

static const char *exit_kind(const struct wml_worker_reply *reply)
{
    static const char *const kinds[] = {[WML_CHILD_OK] = "exit", [WML_CHILD_EXITED] = "exit", [WML_CHILD_SIGNALLED] = "signal",
                                        [WML_CHILD_TIMED_OUT] = "timeout", [WML_CHILD_CANCELLED] = "interrupt"};
    return reply->end == WML_CHILD_SIGNALLED && strncmp(reply->name, "exception", 9) == 0 ? "exception" : kinds[reply->end];
}

static void put_process(struct wml_item *root, const struct wml_genai_run *r)
{
    enum { TAIL = 16384 };
    struct wml_str log = wml_buf_view(&r->reply.log);
    struct wml_item *p = wml_item_object(root, "process", NULL);
    wml_item_cstr(p, "exit_kind", NULL, exit_kind(&r->reply));
    wml_item_int(p, "code", NULL, r->reply.status, WML_SHOW_PLAIN);
    wml_item_cstr(p, "name", NULL, r->reply.end == WML_CHILD_OK ? NULL : r->reply.name);
    wml_item_cstr(p, "phase", NULL, r->reply.phase);
    wml_item_bool(p, "teardown_only", NULL, r->reply.salvaged && r->reply.end != WML_CHILD_OK);
    wml_item_str(p, "stderr_tail", NULL, log.len > TAIL ? wml_str_sub(log, log.len - TAIL, log.len) : log);
    put(p, "duration_ms", r->reply.wall_ms, 3);
}

static void say_table(struct wml_item *root, const struct wml_stats *s)
{
    static const struct wml_column columns[] = {
        {.label = "Avg", .right = true}, {.label = "P50", .right = true}, {.label = "P90", .right = true}, {.label = "P95", .right = true},
        {.label = "P99", .right = true}, {.label = "Min", .right = true}, {.label = "Max", .right = true}};
    const double value[] = {s->mean, s->p50, s->p90, s->p95, s->p99, s->min, s->max};
    struct wml_item *row = wml_table_row(wml_item_table(root, NULL, "Time to first token (ms)", columns, WML_COUNT(columns)));
    for (size_t i = 0; i < WML_COUNT(columns); i++) wml_item_fmt(row, NULL, columns[i].label, "%.2f", value[i]);
}

/* The beginning of the first answer, on one line: whether the numbers are those of a model that makes sense. */
static void say_answer(struct wml_item *root, struct wml_str text)
{
    enum { COLUMNS = 100 };
    struct wml_buf line = {0};
    for (size_t i = 0; i < text.len && line.len < 4 * COLUMNS; i++)
        wml_buf_char(&line, (unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f ? ' ' : text.ptr[i]);
    struct wml_str shown = wml_str_sub(wml_buf_view(&line), 0, wml_utf8_prefix(wml_buf_view(&line), COLUMNS));
    wml_item_fmt(root, NULL, "Answer", "%.*s%s", WML_ARG(shown), shown.len < text.len ? "..." : "");
    wml_buf_release(&line);
}

static void say(struct wml_item *root, const struct wml_genai_run *r, const struct aggregate *a)
{
    const struct wml_genai_sample *first = first_timed(r);
    const struct wml_json_val *l = wml_json_get(wml_json_root(r->load), "load"), *load = wml_json_root(r->load);
    struct wml_str device = device_of(r), genai = wml_json_get_str(wml_json_get(load, "genai"), "version"), ort = wml_json_get_str(load, "ort_version");
    double native = wml_json_get_num(l, "config_create_duration_ms", 0) + wml_json_get_num(l, "model_create_duration_ms", 0) +
                    wml_json_get_num(l, "tokenizer_create_duration_ms", 0);
    wml_item_fmt(root, NULL, "Runtime", "onnxruntime-genai %.*s, ONNX Runtime %.*s", WML_ARG(genai.len ? genai : WML_STR("?")), WML_ARG(ort));
    wml_item_fmt(root, NULL, "Device", "%.*s (%s)%s", WML_ARG(device.len ? device : WML_STR("several")), r->ep, simulated(r) ? ", simulated" : "");
    wml_item_cstr(root, NULL, "Bundle", r->dir);
    wml_item_fmt(root, NULL, "Tokens", "%zu of the prompt, %zu generated", first->prompt_tokens, first->decode_ms.len + 1);
    say_answer(root, wml_buf_view(&r->request.at[0].sample.text));
    wml_item_fmt(root, NULL, "Startup", "session %.1f ms, native load %.1f ms, cold TTFT %.1f ms, cold total %.1f ms", r->prepare_ms + r->session_ms,
                 native, a->cold_ttft, a->cold_total);
    say_table(root, &a->stats[MODEL_TTFT]);
    wml_item_fmt(root, NULL, "Prefill", "%.2f ms, %.1f tokens/s", a->stats[PREFILL].mean, a->stats[PREFILL_RATE].mean);
    wml_item_fmt(root, NULL, "Decode", "%.1f tokens/s, %.2f ms/token", a->stats[DECODE_RATE].mean, a->stats[TPOT].mean);
    wml_item_num(root, NULL, "Request", a->stats[REQUEST].mean, 2, WML_SHOW_MS);
    wml_item_line(root, WML_TONE_DIM, "%zu timed request%s; %zu warmup request%s left out", a->timed, a->timed == 1 ? "" : "s", a->warmup,
                  a->warmup == 1 ? "" : "s");
}

void wml_genai_report(struct wml_genai_run *r, struct wml_report *out, const struct wml_err *failure)
{
    struct wml_item *root = wml_report_root(out);
    const struct wml_json_val *reply = wml_json_root(r->reply.json);
    struct aggregate a;
    aggregate(r, &a);
    wml_item_int(root, "schema_version", NULL, 2, WML_SHOW_PLAIN);
    if (r->request.len) say(root, r, &a);
    put_info(root, r);
    put_load(root, r);
    struct wml_item *requests = wml_item_array(root, "requests", NULL);
    for (size_t i = 0; i < r->request.len; i++) wml_genai_put_request(requests, NULL, &r->request.at[i], i);
    put_aggregate(root, &a);
    if (r->args->memory && r->load) wml_machine_put_memory(root, wml_json_get(reply, "memory"));
    if (r->args->monitor) wml_machine_put_monitor(root, wml_json_get(reply, "usage"), device_of(r), simulated(r));
    if (r->args->compile) put_compile(root, r);
    put_process(root, r);
    if (r->request.len) {
        wml_item_str(root, "response_text", NULL, wml_buf_view(&r->request.at[0].sample.text));
        wml_genai_put_tokens(root, "response_tokens", &r->request.at[0].sample);
        wml_log(r->cx, WML_LOG_INFO, "%s", wml_buf_text(&r->request.at[0].sample.text));
    }
    wml_item_bool(root, "partial", NULL, r->partial);
    wml_genai_put_warnings(root, r);
    if (failure) wml_item_cstr(root, "error_message", NULL, failure->msg);
}
