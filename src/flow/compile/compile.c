/* compile: an EP's compiler, run in a child process into a private folder beside the output. What comes
 * out is checked, validated against the CPU's answer for the source, and only then renamed into place:
 * context binaries first, the model last. A failure leaves nothing behind under a final name. */
#include "flow/compile_steps.h"

#include "flow/output.h"
#include "flow/ranges.h"
#include "flow/target.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"
#include "text/json.h"

static void warn(struct wml_compile_run *r, struct wml_str text)
{
    WML_PUSH(&r->warning, wml_arena_cstr(&r->arena, text));
    wml_log(r->cx, WML_LOG_WARN, "%.*s", WML_ARG(text));
}

/* --- the source --- */

static bool count_qlinear(void *arg, struct wml_node *n)
{
    size_t *counts = arg; /* QLinear*, Q/DQ */
    if (wml_str_starts(n->op_type, "QLinear")) counts[0]++;
    if (wml_node_is(n, "QuantizeLinear") || wml_node_is(n, "DequantizeLinear")) counts[1]++;
    return true;
}

static bool check_source(struct wml_compile_run *r, const char *path, struct wml_err *err)
{
    struct wml_model *m = NULL;
    struct wml_epctx_list contexts = {0};
    size_t counts[2] = {0};
    if (!wml_onnx_load(path, &m, err)) return false;
    wml_epctx_find(m, &contexts);
    bool ok = contexts.v.len == 0;
    if (!ok) {
        struct wml_str source = contexts.v.at[0].source;
        if (!source.len) source = WML_STR("an EP");
        wml_fail(err, WML_E_UNSUPPORTED, "%s is already compiled for %.*s (%zu EPContext node%s)", path,
                 WML_ARG(source), contexts.v.len, contexts.v.len == 1 ? "" : "s");
        wml_hint(err, "compile the original ONNX model instead");
    }
    if (ok && r->ep && strcmp(r->ep->name, "QNNExecutionProvider") == 0) {
        wml_graph_walk(m->graph, count_qlinear, counts);
        if (counts[0] && !counts[1])
            warn(r, wml_arena_fmt(&r->arena, "%s holds %zu QLinear* nodes, which QNN cannot take: give it the "
                                  "Q/DQ form of the model", path, counts[0]));
    }
    if (ok && !r->ranges.range) wml_model_ranges(m, &r->arena, &r->ranges);
    wml_epctx_list_release(&contexts);
    wml_model_free(m);
    return ok;
}

/* --- names --- */

static const char *provider_token(const struct wml_compile_run *r)
{
    return r->ep && r->ep->provider_token ? r->ep->provider_token : "ep";
}

static void name_unit(struct wml_compile_run *r, size_t i)
{
    const struct wml_compile_args *a = r->args;
    struct wml_compile_unit *u = &r->unit[i];
    struct wml_buf path = {0};
    u->model = a->model[i];
    if (a->output) {
        wml_buf_cstr(&path, a->output);
    } else {
        bool plain = r->n > 1 || strcmp(a->compiler, "ort_session") == 0;
        struct wml_str suffix = plain ? WML_STR("_ctx.onnx")
                                      : wml_arena_fmt(&r->arena, "_%s_ctx.onnx", provider_token(r));
        size_t same = 0;
        for (size_t k = 0; k < i; k++)
            if (wml_str_eq(wml_path_stem(wml_str(a->model[k])), wml_path_stem(wml_str(a->model[i])))) same++;
        if (same) suffix = wml_arena_fmt(&r->arena, "_%zu%.*s", same, WML_ARG(suffix));
        wml_output_beside(&path, a->model[i], a->output_dir, wml_arena_cstr(&r->arena, suffix));
        if (same) warn(r, wml_arena_fmt(&r->arena, "%s: another model has the same name; this one becomes %s",
                                        a->model[i], wml_buf_text(&path)));
    }
    u->output = wml_arena_cstr(&r->arena, wml_buf_view(&path));
    u->name = wml_arena_cstr(&r->arena, wml_path_name(wml_str(u->output)));
    wml_buf_release(&path);
}

static bool prepare(struct wml_compile_run *r, struct wml_err *err)
{
    const struct wml_compile_args *a = r->args;
    r->n = a->n_models;
    r->unit = WML_NEW_ARRAY(&r->arena, struct wml_compile_unit, r->n + 1);
    for (size_t i = 0; i < r->n; i++) {
        name_unit(r, i);
        if (!wml_output_check_model(r->unit[i].output, a->overwrite, a->model[i], err)) return false;
        if (wml_file_same(r->unit[i].output, a->model[i]))
            return wml_fail(err, WML_E_EXISTS, "Output file '%s' is the input: give another name with -o", a->model[i]);
    }
    r->dir = wml_arena_cstr(&r->arena, wml_path_dir(wml_str(r->unit[0].output)));
    return true;
}

/* --- the target --- */

static bool resolve(struct wml_compile_run *r, struct wml_err *err)
{
    wml_note_progress(r->cx, "Finding the target", NULL, 0, 0, NULL);
    r->target = wml_target_ask(r->cx, &r->args->target, r->args->timeout_ms, !r->args->isolate, err);
    if (!r->target) return false;
    r->ep = wml_ep_find(wml_json_get_str(wml_json_get(wml_json_root(r->target), "target"), "ep"));
    if (!r->ep || r->ep->compiles) return true;
    wml_fail(err, WML_E_UNSUPPORTED, "%s does not support EPContext compilation%s%s", r->ep->name,
             r->ep->no_compile_reason ? ": " : "", r->ep->no_compile_reason ? r->ep->no_compile_reason : "");
    return wml_hint(err, "use the model as it is, or name an EP that compiles: qnn, openvino, vitisai, nvtensorrtrtx");
}

/* --- the report --- */

/* JSON: all of it under the model; text: rows and a table of their own. */
static void put_validation(struct wml_item *root, struct wml_item *model, const struct wml_compile_unit *u)
{
    static const struct wml_column columns[] = {
        {.label = "Output", .max_width = 40}, {.label = "Cosine", .right = true},
        {.label = "Max abs", .right = true}, {.label = "SQNR dB", .right = true}};
    const struct wml_json_val *rows = u->validation ? wml_json_root(u->validation) : NULL;
    wml_item_bool(model, "validation_passed", NULL, u->validated);
    wml_item_cstr(model, "validation_note", NULL, u->validation_note);
    if (u->cpu_cosine > 0) wml_item_num(model, "cpu_cosine", NULL, u->cpu_cosine, 6, WML_SHOW_PLAIN);
    else wml_item_null(model, "cpu_cosine", NULL);
    wml_item_cstr(root, NULL, u->validation_note ? "Validation" : NULL, u->validation_note);
    if (rows) wml_item_json(model, "validation", rows);
    if (!wml_json_len(rows)) return;
    struct wml_item *table = wml_item_table(root, NULL, "Against the CPU result of the source", columns,
                                            WML_COUNT(columns));
    for (size_t i = 0; i < wml_json_len(rows); i++) {
        const struct wml_json_val *v = wml_json_at(rows, i);
        struct wml_item *row = wml_table_row(table);
        wml_item_str(row, NULL, "Output", wml_json_get_str(v, "name"));
        wml_item_num(row, NULL, "Cosine", wml_json_get_num(v, "cosine", 0), 6, WML_SHOW_PLAIN);
        wml_item_num(row, NULL, "Max abs", wml_json_get_num(v, "max_abs", 0), 9, WML_SHOW_SCIENCE);
        if (wml_json_is_number(wml_json_get(v, "sqnr_db")))
            wml_item_num(row, NULL, "SQNR dB", wml_json_get_num(v, "sqnr_db", 0), 1, WML_SHOW_PLAIN);
        else wml_item_cstr(row, NULL, "SQNR dB", "equal");
    }
}

static void put_unit(struct wml_item *root, struct wml_item *models, const struct wml_compile_run *r,
                     const struct wml_compile_unit *u)
{
    struct wml_item *m = wml_item_object(models, NULL, NULL);
    wml_item_cstr(m, "input", NULL, u->model);
    wml_item_cstr(m, "output_path", NULL, u->output);
    wml_item_cstr(m, "context_binary_path", NULL, u->sidecar);
    wml_item_int(m, "bytes", NULL, (int64_t)u->bytes, WML_SHOW_BYTES);
    wml_item_num(m, "compile_time", NULL, u->compile_ms / 1000, 3, WML_SHOW_PLAIN);
    wml_item_bool(m, "cached", NULL, r->cached);
    wml_item_cstr(root, NULL, "Output", u->output);
    if (u->sidecar) wml_item_cstr(root, NULL, "Context", u->sidecar);
    wml_item_int(root, NULL, "Size", (int64_t)u->bytes, WML_SHOW_BYTES);
    if (r->cached) wml_item_cstr(root, NULL, "Compile time", "none: the same compilation is in the cache");
    else wml_item_num(root, NULL, "Compile time", u->compile_ms, 1, WML_SHOW_MS);
    put_validation(root, m, u);
}

static void report(struct wml_report *out, const struct wml_compile_run *r, double total_ms)
{
    struct wml_item *root = wml_report_root(out);
    wml_report_tells_of_file(out);
    const struct wml_json_val *target = wml_json_get(wml_json_root(r->target), "target");
    struct wml_str ep = wml_json_get_str(target, "ep"), device = wml_json_get_str(target, "device");
    struct wml_str version = wml_json_get_str(target, "ep_version");
    bool simulated = wml_json_get_bool(target, "simulated", false);
    wml_item_int(root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_bool(root, "success", NULL, true);
    for (size_t i = 0; i < r->n; i++) wml_item_cstr(root, NULL, "Input", r->unit[i].model);
    wml_item_fmt(root, NULL, "Target", "%.*s%s%.*s on %.*s%s", WML_ARG(ep), version.len ? " " : "",
                 WML_ARG(version), WML_ARG(device), simulated ? " (simulated here)" : "");
    wml_item_cstr(root, "compiler", "Compiler", r->args->compiler);
    wml_item_json(root, "target", target);
    struct wml_item *models = wml_item_array(root, "models", NULL);
    wml_item_num(root, "total_time", NULL, total_ms / 1000, 3, WML_SHOW_PLAIN);
    wml_item_num(root, NULL, "Total time", total_ms, 1, WML_SHOW_MS);
    for (size_t i = 0; i < r->n; i++) put_unit(root, models, r, &r->unit[i]);
    wml_item_cstr(root, "salvaged", r->salvaged ? "Salvaged" : NULL, r->salvaged);
    struct wml_item *warnings = wml_item_array(root, "warnings", NULL);
    for (size_t i = 0; i < r->warning.len; i++) wml_item_cstr(warnings, NULL, NULL, r->warning.at[i]);
}

/* --- all of it --- */

static bool check_args(const struct wml_compile_args *a, struct wml_err *err)
{
    if (a->n_models > 1 && (a->output || !a->output_dir))
        return wml_fail(err, WML_E_USAGE, "several models need --output-dir, and no -o");
    if (strcmp(a->compiler, "qairt") == 0) {
        wml_fail(err, WML_E_UNSUPPORTED, "the compiler 'qairt' (the vendor's SDK) is not available in this version");
        return wml_hint(err, "use --compiler ort: the QNN EP compiles for the same devices");
    }
    return true;
}

static void release(struct wml_compile_run *r)
{
    if (r->stage) wml_dir_remove(r->stage);
    for (size_t i = 0; i < r->n; i++) wml_json_free(r->unit[i].validation);
    wml_json_free(r->target);
    WML_VEC_RELEASE(&r->warning);
    wml_arena_release(&r->arena);
}

bool wml_flow_compile(const struct wml_compile_args *a, struct wml_ctx *cx, struct wml_report *out,
                      struct wml_err *err)
{
    struct wml_compile_run r = {.args = a, .cx = cx};
    struct wml_target_spec spec = a->target;
    uint64_t start = wml_now_ns();
    bool ok = false;
    struct wml_err missing = {0};
    spec.for_compile = true;
    if (!check_args(a, err) || !wml_target_check(&spec, &r.ep, err)) goto done;
    for (size_t i = 0; i < a->n_models; i++)
        if (!check_source(&r, a->model[i], err)) goto done;
    if (!resolve(&r, err) || !prepare(&r, err)) goto done;
    if (!wml_compile_identify(&r, err)) goto done;
    r.cached = a->cache && wml_compile_cache_get(&r, &missing) && wml_compile_finish(&r, &missing);
    if (!r.cached && !wml_compile_stage(&r, err)) goto done;
    for (size_t i = 0; a->validate && i < r.n; i++)
        if (!wml_compile_validate(&r, &r.unit[i], err)) goto done;
    if (a->cache && !r.cached) wml_compile_cache_put(&r);
    if (!wml_compile_publish(&r, err)) goto done;
    wml_end_progress(cx);
    report(out, &r, (double)(wml_now_ns() - start) / 1e6);
    ok = true;
done:
    wml_end_progress(cx);
    if (!ok) wml_output_unstage(err, r.stage, r.dir);
    release(&r);
    return ok;
}
