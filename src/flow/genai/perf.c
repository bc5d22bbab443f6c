/* perf over a bundle, and generate: the same steps, two reports. */
#include "flow/genai/internal.h"

#include <stdarg.h>

#include "flow/checkpoint.h"
#include "flow/output.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"
#include "report/render.h"

void wml_genai_warn(struct wml_genai_run *r, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *copy = wml_arena_cstr(&r->arena, wml_str(text));
    WML_PUSH(&r->warning, copy);
    wml_log(r->cx, WML_LOG_WARN, "%s", copy);
}

struct wml_str wml_genai_model_id(const struct wml_genai_run *r)
{
    return r->args->model_id ? wml_str(r->args->model_id) : wml_path_name(wml_str(r->dir));
}

bool wml_flow_is_bundle(const char *folder)
{
    return wml_bundle_is(folder);
}

/* Said here by stage and name, rather than by the library after a part of the models is loaded. */
static bool check_files(struct wml_genai_run *r, struct wml_err *err)
{
    for (size_t i = 0; i < r->bundle.n_stages; i++) {
        const struct wml_bundle_stage *s = &r->bundle.stage[i];
        if (!s->source || !*s->source || wml_file_exists(wml_path_in(&r->arena, r->dir, s->source))) continue;
        wml_fail(err, WML_E_LOAD, "the model %s of stage '%s' is not in %s", s->source, s->name, r->args->bundle);
        return wml_hint(err, "copy the whole bundle, or build it again");
    }
    return true;
}

static bool begin(struct wml_genai_run *r, struct wml_err *err)
{
    struct wml_buf dir = {0};
    char now[WML_TIME_TEXT];
    wml_time_utc(now);
    snprintf(r->timestamp, sizeof r->timestamp, "%.19s+00:00", now);
    /* What is wrong with it is said in the words that were typed. */
    bool ok = wml_bundle_open(r->args->bundle, &r->bundle, err) && wml_path_absolute(&dir, wml_str(r->args->bundle), err);
    r->dir = wml_arena_cstr(&r->arena, wml_buf_view(&dir));
    wml_buf_release(&dir);
    return ok && check_files(r, err);
}

static bool name_output(struct wml_genai_run *r, struct wml_err *err)
{
    char stamp[WML_TIME_TEXT];
    r->output = r->args->output;
    if (!r->output) {
        if (!r->cx->cache_dir) return wml_fail(err, WML_E_NOT_FOUND, "no cache folder is known for the report: name one with -o");
        const char *slug = wml_model_slug(wml_arena_cstr(&r->arena, wml_genai_model_id(r)), &r->arena);
        wml_time_stamp(stamp);
        r->output = wml_arena_fmt(&r->arena, "%s/perf/%s/%s.json", r->cx->cache_dir, slug, stamp).ptr;
    }
    return wml_output_check("Report", r->output, r->args->overwrite || !r->args->output, NULL, err);
}

/* Up to the folder that is loaded. */
static bool prepare(struct wml_genai_run *r, struct wml_err *err)
{
    if (!wml_genai_route(r, err)) return false;
    uint64_t start = wml_now_ns();
    bool ok = !r->args->compile || wml_genai_compile(r, false, err);
    if (ok && !r->load_dir) ok = wml_genai_derive(r, err);
    r->prepare_ms = (double)(wml_now_ns() - start) / 1e6;
    return ok;
}

static bool shares(const struct wml_genai_run *r)
{
    for (size_t i = 0; i < r->stage.len; i++)
        if (r->stage.at[i].artifact && r->stage.at[i].shared) return true;
    return false;
}

static bool again(struct wml_genai_run *r, struct wml_err *err)
{
    *err = (struct wml_err){0};
    wml_worker_reply_release(&r->reply);
    r->load_dir = NULL;
    return wml_genai_compile(r, true, err) && (r->load_dir || wml_genai_derive(r, err)) && wml_genai_generate_in_child(r, err);
}

static bool may_try_again(const struct wml_genai_run *r, const struct wml_err *err)
{
    return err->code == WML_E_LOAD && !r->interrupted && r->compiled_dir;
}

/* Stages that an earlier run compiled may be damaged, or made by a driver that has changed since: they get one more try, made
 * anew. Some EPs compile into a shared context what they cannot load from one: then each stage gets its own. Anything else
 * is not tried again, and all of it is said. */
static bool generate(struct wml_genai_run *r, struct wml_err *err)
{
    if (wml_genai_generate_in_child(r, err)) return true;
    if (may_try_again(r, err) && r->reused) {
        wml_genai_warn(r, "%s; stages that an earlier run compiled are dropped and compiled anew", err->msg);
        if (again(r, err)) return true;
    }
    if (may_try_again(r, err) && shares(r)) {
        wml_genai_warn(r, "%s; the stages share a context: each is compiled alone now", err->msg);
        r->apart = true;
        if (again(r, err)) return true;
    }
    if (may_try_again(r, err)) wml_genai_blame(r, err);
    return false;
}

static bool write_report(struct wml_genai_run *r, struct wml_report *out, struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_render_opts opts = {.indent = 2};
    wml_renderer_find("json")->render(out, &opts, &text);
    wml_buf_char(&text, '\n');
    bool ok = wml_file_write(r->output, wml_buf_view(&text), err);
    wml_buf_release(&text);
    return ok;
}

static size_t count_timed(const struct wml_genai_run *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->request.len; i++) n += r->request.at[i].timed;
    return n;
}

static void release(struct wml_genai_run *r)
{
    if (r->temp_dir) wml_dir_remove(r->temp_dir);
    for (size_t i = 0; i < r->target.len; i++) wml_json_free(r->target.at[i].doc);
    for (size_t i = 0; i < r->request.len; i++) wml_genai_sample_release(&r->request.at[i].sample);
    WML_VEC_RELEASE(&r->target);
    WML_VEC_RELEASE(&r->stage);
    wml_buf_release(&r->told);
    wml_buf_release(&r->question);
    WML_VEC_RELEASE(&r->request);
    WML_VEC_RELEASE(&r->warning);
    wml_json_free(r->load);
    wml_worker_reply_release(&r->reply);
    wml_bundle_close(&r->bundle);
    wml_arena_release(&r->arena);
}

bool wml_flow_genai_perf(const struct wml_genai_args *a, struct wml_ctx *cx, struct wml_report *out, struct wml_err *err)
{
    struct wml_genai_run r = {.args = a, .cx = cx};
    struct wml_err failed = {0};
    bool ok = begin(&r, err) && name_output(&r, err) && prepare(&r, err);
    if (!ok) goto done;
    ok = generate(&r, &failed);
    wml_end_progress(cx);
    size_t timed = count_timed(&r);
    /* What came of nothing does not replace what came of something. */
    if (ok || timed || !wml_file_exists(r.output)) {
        wml_genai_report(&r, out, ok ? NULL : &failed);
        if (!write_report(&r, out, err)) ok = false;
        else wml_item_line(wml_report_root(out), WML_TONE_PLAIN, "Results saved to: %s", r.output);
    }
    wml_output_unstage(&failed, r.temp_dir, r.dir);
    if (!ok && err->code == WML_OK) *err = failed;
    if (!ok && r.interrupted) wml_fail(err, WML_E_INTERRUPTED, "Aborted! %zu requests were measured", timed);
done:
    if (!ok && err->code == WML_E_CANCELLED) wml_fail(err, WML_E_INTERRUPTED, "Aborted!");
    wml_end_progress(cx);
    release(&r);
    return ok;
}

static void report_answer(struct wml_genai_run *r, struct wml_report *out)
{
    struct wml_item *root = wml_report_root(out);
    const struct wml_genai_timed *t = &r->request.at[r->request.len - 1];
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(root, "bundle", NULL, r->dir);
    wml_item_cstr(root, "ep", NULL, r->ep);
    wml_item_str(root, "effective_device", NULL, wml_str(wml_bundle_device(&r->bundle)));
    wml_item_str(root, "prompt", NULL, r->args->prompt);
    wml_item_str(root, "text", NULL, wml_buf_view(&t->sample.text));
    wml_genai_put_tokens(root, "tokens", &t->sample);
    wml_genai_put_request(root, "request", t, 0);
    wml_genai_put_warnings(root, r);
}

static void log_rate(struct wml_genai_run *r)
{
    double ms = 0;
    size_t n = 0;
    for (size_t i = 0; i < r->request.len; i++)
        for (size_t k = 0; k < r->request.at[i].sample.decode_ms.len; k++, n++) ms += r->request.at[i].sample.decode_ms.at[k];
    const struct wml_genai_sample *first = &r->request.at[0].sample;
    wml_log(r->cx, WML_LOG_INFO, "%zu tokens of the prompt, first token after %.1f ms, then %.1f tokens/s", first->prompt_tokens,
            first->prefill_ms + first->first_token_ms, ms > 0 ? (double)n * 1000 / ms : 0);
}

bool wml_flow_generate(const struct wml_genai_args *a, struct wml_ctx *cx, struct wml_report *out, struct wml_err *err)
{
    struct wml_genai_run r = {.args = a, .cx = cx};
    bool ok = begin(&r, err) && prepare(&r, err) && generate(&r, err);
    wml_end_progress(cx);
    if (r.request.len) log_rate(&r);
    if (ok && r.request.len && !a->ask) report_answer(&r, out);
    if (!ok) {
        wml_output_unstage(err, r.temp_dir, r.dir);
        if (r.interrupted || err->code == WML_E_CANCELLED) wml_fail(err, WML_E_INTERRUPTED, "Aborted!");
    }
    release(&r);
    return ok;
}
