/* perf: a timed pass, a traced pass in a process of its own, and one report of both. What was measured is
 * written down whatever happened later. */
#include "flow/perf/internal.h"

#include <inttypes.h>

#include "flow/output.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"
#include "report/render.h"

void wml_perf_warn(struct wml_perf_run *r, struct wml_str text)
{
    const char *copy = wml_arena_cstr(&r->arena, text);
    WML_PUSH(&r->warning, copy);
    wml_log(r->cx, WML_LOG_WARN, "%s", copy);
}

const struct wml_json_val *wml_perf_target(const struct wml_perf_run *r)
{
    return wml_json_get(wml_json_root(r->reply), "target");
}

static bool name_output(struct wml_perf_run *r, struct wml_err *err)
{
    struct wml_buf path = {0};
    char stamp[WML_TIME_TEXT];
    if (r->args->output) {
        wml_buf_cstr(&path, r->args->output);
    } else {
        wml_time_stamp(stamp);
        if (!r->cx->cache_dir)
            return wml_fail(err, WML_E_NOT_FOUND, "no cache folder is known for the report: name one with -o");
        wml_buf_fmt(&path, "%s/perf/%.*s/%s.json", r->cx->cache_dir, WML_ARG(wml_path_stem(wml_str(r->args->model))), stamp);
    }
    r->output = wml_arena_cstr(&r->arena, wml_buf_view(&path));
    wml_buf_release(&path);
    const struct wml_output_name taken[] = {{"the model", r->args->model}, {"the JSON report", r->output}};
    if (!wml_output_check_other("--output", r->output, taken, 1, err) ||
        (r->args->html && !wml_output_check_other("--report", r->args->html, taken, WML_COUNT(taken), err)))
        return false;
    return wml_output_check("Report", r->output, r->args->overwrite || !r->args->output, NULL, err) &&
           (!r->args->html || wml_output_check("HTML report", r->args->html, r->args->overwrite, NULL, err));
}

/* --shape-config: {"x": [1,3,224,224], "batch": 4}. */
static bool read_shapes(struct wml_perf_run *r, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    r->feed = r->args->feed;
    r->feed.range = r->ranges.range;
    r->feed.n_ranges = r->ranges.n_ranges;
    if (!r->args->shape_config) return true;
    if (!wml_json_load(r->args->shape_config, &doc, err)) return false;
    const struct wml_json_val *root = wml_json_root(doc);
    bool ok = wml_json_is_object(root) || wml_fail(err, WML_E_USAGE, "%s: the root must be an object", r->args->shape_config);
    size_t n = wml_json_len(root);
    struct wml_feed_shape *shape = WML_NEW_ARRAY(&r->arena, struct wml_feed_shape, n + r->feed.n_shapes + 1);
    struct wml_feed_dim *dim = WML_NEW_ARRAY(&r->arena, struct wml_feed_dim, n + r->feed.n_dims + 1);
    size_t n_shapes = r->feed.n_shapes, n_dims = r->feed.n_dims;
    for (size_t i = 0; i < n_shapes; i++) shape[i] = r->feed.shape[i];
    for (size_t i = 0; i < n_dims; i++) dim[i] = r->feed.dim[i];
    while (ok && wml_json_next(root, &it, &key, &v)) {
        struct wml_str name = wml_arena_str(&r->arena, key);
        int64_t size = wml_json_int(v, -1);
        if (wml_json_is_array(v)) {
            size_t rank = wml_json_len(v);
            int64_t *at = WML_NEW_ARRAY(&r->arena, int64_t, rank + 1);
            for (size_t i = 0; i < rank && ok; i++) {
                at[i] = wml_json_int(wml_json_at(v, i), -1);
                if (at[i] < 0) ok = wml_fail(err, WML_E_USAGE, "%s: dimension %zu of '%.*s' must be a whole number that is not negative",
                                             r->args->shape_config, i, WML_ARG(name));
            }
            shape[n_shapes++] = (struct wml_feed_shape){name, at, rank};
        } else if (wml_json_is_number(v) && size >= 0) dim[n_dims++] = (struct wml_feed_dim){name, size};
        else ok = wml_fail(err, WML_E_USAGE, "%s: '%.*s' must be a shape or a size", r->args->shape_config, WML_ARG(name));
    }
    r->feed.shape = shape;
    r->feed.n_shapes = n_shapes;
    r->feed.dim = dim;
    r->feed.n_dims = n_dims;
    wml_json_free(doc);
    return ok;
}

static bool write_report(struct wml_perf_run *r, struct wml_report *out, struct wml_err *err)
{
    struct wml_buf text = {0};
    struct wml_render_opts opts = {.indent = 2};
    wml_renderer_find("json")->render(out, &opts, &text);
    wml_buf_char(&text, '\n');
    bool ok = wml_file_write(r->output, wml_buf_view(&text), err);
    if (ok && r->args->html) {
        wml_buf_clear(&text);
        wml_perf_html(r, &text);
        ok = wml_file_write(r->args->html, wml_buf_view(&text), err);
    }
    wml_buf_release(&text);
    return ok;
}

static void saved_lines(struct wml_perf_run *r, struct wml_report *out)
{
    struct wml_item *root = wml_report_root(out);
    wml_item_gap(root);
    wml_item_line(root, WML_TONE_PLAIN, "Results saved to: %s", r->output);
    if (r->args->html) wml_item_line(root, WML_TONE_PLAIN, "HTML report: %s", r->args->html);
    if (r->trace.json) wml_item_line(root, WML_TONE_PLAIN, "Operator trace: %s", r->trace.json);
    if (r->trace.csv) wml_item_line(root, WML_TONE_PLAIN, "Profiling CSV: %s", r->trace.csv);
}

/* What is wrong although there are numbers, the most serious first. */
static bool judge(struct wml_perf_run *r, struct wml_err *err)
{
    if (r->interrupted) return wml_fail(err, WML_E_CANCELLED, "Aborted! %zu runs were measured", r->sample.len);
    if (r->trace.asked && r->trace.reason) {
        wml_fail(err, WML_E_TRACE, "operator tracing gave no data (%s): %s", r->trace.reason, r->trace.error ? r->trace.error : r->trace.status);
        if (r->trace.hint) wml_hint(err, "%s", r->trace.hint);
        return false;
    }
    double wanted = r->args->fail_on_fallback;
    if (wanted >= 0 && r->on_ep_percent < wanted) {
        struct wml_str ep = wml_json_get_str(wml_perf_target(r), "ep");
        if (r->on_ep_percent < 0) wml_fail(err, WML_E_FALLBACK, "this ONNX Runtime cannot tell how many nodes ran on %.*s", WML_ARG(ep));
        else wml_fail(err, WML_E_FALLBACK, "%.1f %% of the nodes ran on %.*s, at least %g %% were wanted", r->on_ep_percent, WML_ARG(ep), wanted);
        return wml_hint(err, "the placement above names the operators that fell back");
    }
    return true;
}

static void release(struct wml_perf_run *r)
{
    wml_perf_trace_release(&r->trace);
    wml_json_free(r->reply);
    WML_VEC_RELEASE(&r->sample);
    WML_VEC_RELEASE(&r->warmup);
    WML_VEC_RELEASE(&r->warning);
    wml_arena_release(&r->arena);
}

/* UTC in the form that Python's isoformat writes and every version of its parser reads. */
static void stamp(struct wml_perf_run *r)
{
    char now[WML_TIME_TEXT];
    wml_time_utc(now);
    snprintf(r->timestamp, sizeof r->timestamp, "%.19s+00:00", now);
}

/* Given inputs are taken as they are. */
static void warn_shapes(struct wml_perf_run *r)
{
    const struct wml_perf_args *a = r->args;
    if (!a->feed.data) return;
    if (a->feed.batch > 0) wml_perf_warn(r, WML_STR("--batch-size is ignored: the inputs come from --input-data"));
    if (a->shape_config || a->feed.n_shapes || a->feed.n_dims)
        wml_perf_warn(r, WML_STR("--shape-config, --input-shape and --input-dim are ignored: the inputs come from --input-data"));
}

/* "--input-shape x=1,3,224,224" for every input with an open dimension. */
static struct wml_str shapes_to_fix(struct wml_perf_run *r)
{
    const struct wml_json_val *inputs = wml_json_get(wml_json_root(r->reply), "inputs"), *fed = wml_json_get(wml_json_root(r->reply), "fed");
    struct wml_buf text = {0};
    for (size_t i = 0; i < wml_json_len(inputs); i++) {
        const struct wml_json_val *in = wml_json_at(inputs, i), *shape = wml_json_get(in, "shape"), *used = wml_json_at(fed, i);
        bool open = false;
        for (size_t k = 0; k < wml_json_len(shape); k++) open = open || wml_json_is_null(wml_json_at(shape, k));
        if (!open || wml_json_len(used) != wml_json_len(shape)) continue;
        wml_buf_fmt(&text, " --input-shape %.*s=", WML_ARG(wml_json_get_str(in, "name")));
        for (size_t k = 0; k < wml_json_len(used); k++)
            wml_buf_fmt(&text, "%s%" PRId64, k ? "," : "", wml_json_int(wml_json_at(used, k), 0));
    }
    struct wml_str copy = wml_arena_str(&r->arena, wml_buf_view(&text));
    wml_buf_release(&text);
    return copy;
}

static void warn_results(struct wml_perf_run *r)
{
    struct wml_str fix = shapes_to_fix(r);
    int64_t batch = wml_json_get_int(wml_json_root(r->reply), "batch", 1);
    struct wml_str ep = wml_json_get_str(wml_perf_target(r), "ep");
    if (r->args->feed.batch > 0 && !r->args->feed.data && r->reply && batch != r->args->feed.batch)
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "--batch-size %" PRId64 ": the model's batch is %" PRId64, r->args->feed.batch, batch));
    if (fix.len && !r->compiled && r->on_ep_percent >= 0 && r->on_ep_percent < 50)
        wml_perf_warn(r, wml_arena_fmt(&r->arena, "%.*s took %.0f %% of the nodes, and the model has open dimensions, which many NPUs "
                                       "refuse: try `winml optimize -m %s%.*s` first", WML_ARG(ep), r->on_ep_percent,
                                       r->args->model, WML_ARG(fix)));
}

/* A run that failed on made-up inputs may need real ones. */
static void hint_inputs(const struct wml_perf_run *r, struct wml_err *err)
{
    if (err->code == WML_E_RUN && !r->args->feed.data && !err->hint[0])
        wml_hint(err, "the inputs were generated (floats in [0,1), integers 0 or 1): give real ones with --input-data");
}

bool wml_flow_perf(const struct wml_perf_args *a, struct wml_ctx *cx, struct wml_report *out, struct wml_err *err)
{
    struct wml_perf_run r = {.args = a, .cx = cx, .running = a->running ? a->running : a->model,
                             .target = a->target, .on_ep_percent = -1};
    struct wml_err failed = {0};
    bool ok = false;
    r.trace.asked = a->trace != NULL;
    r.trace.status = "not_run";
    stamp(&r);
    if (!wml_target_check(&a->target, &r.ep, err) || !wml_perf_look(&r, err)) goto done;
    if (!name_output(&r, err) || !read_shapes(&r, err)) goto done;
    warn_shapes(&r);
    bool ran = wml_perf_bench(&r, &failed);
    if (!r.sample.len) {
        if (ran) wml_fail(&failed, WML_E_CANCELLED, "Aborted! Nothing was measured yet");
        hint_inputs(&r, &failed);
        *err = failed;
        goto done;
    }
    wml_stats(r.sample.at, r.sample.len, &r.stats);
    warn_results(&r);
    if (!r.ep && r.reply) r.ep = wml_ep_find(wml_json_get_str(wml_perf_target(&r), "ep"));
    if (ran && !r.interrupted && a->trace) wml_perf_trace_run(&r);
    wml_end_progress(cx);
    wml_perf_report(&r, out, ran ? NULL : &failed);
    if (!write_report(&r, out, err)) goto done;
    saved_lines(&r, out);
    if (!ran) *err = failed;
    else ok = judge(&r, err);
done:
    wml_end_progress(cx);
    release(&r);
    return ok;
}
