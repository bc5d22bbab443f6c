/* flow/build/build.c - a checkpoint to a GenAI bundle: checks, then part after part, then the config that makes it a bundle. */
#include "flow/build/internal.h"

#include <inttypes.h>

#include "genai/bundle.h"
#include "os/file.h"
#include "os/path.h"

static const struct wml_build_precision precisions[] = {
    {"fp32", NULL, WML_F32, 0}, {"fp16", NULL, WML_F16, 0}, {"int4", "w4a32", WML_F32, 4}, {"w4a16", NULL, WML_F16, 4},
    {"int8", "w8a32", WML_F32, 8},
};

static const char *join(struct wml_build_run *r, const char *folder, const char *name)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(folder), wml_str(name));
    const char *copy = wml_arena_cstr(&r->arena, wml_buf_view(&path));
    wml_buf_release(&path);
    return copy;
}

const char *wml_build_out(struct wml_build_run *r, const char *name)
{
    return join(r, r->a->output, name);
}

const char *wml_build_in(struct wml_build_run *r, const char *name)
{
    return join(r, wml_buf_text(&r->checkpoint.folder), name);
}

/* --------------------------------------------------------------------- checks */

static bool check_type(struct wml_build_run *r, struct wml_err *err)
{
    const struct wml_build_args *a = r->a;
    const char *type = a->export_type ? a->export_type : "generic", *ep = a->target.ep, *device = a->target.device;
    r->staged = strcmp(type, "optimized") == 0 ||
                (!a->export_type && ep && wml_ep_find(wml_str(ep)) == &wml_ep_qnn && (!device || strcmp(device, "gpu") != 0));
    if (r->staged) return true;
    if (strcmp(type, "plain") == 0) {
        if (!ep && !device && !a->target.n_options) return true;
        wml_fail(err, WML_E_USAGE, "a plain bundle is for every EP: --ep, --device and --ep-options are said when it is run");
        return wml_hint(err, "--export-type optimized makes a pipeline for an NPU");
    }
    wml_fail(err, WML_E_UNSUPPORTED, "build makes GenAI bundles only: --export-type %s is not there yet", type);
    return wml_hint(err, "--export-type plain makes a bundle for CPUs and GPUs, optimized one for NPUs; for one ONNX model: winml export, "
                         "then optimize, quantize, compile");
}

static bool check_precision(struct wml_build_run *r, struct wml_err *err)
{
    const struct wml_str asked = wml_str(r->a->precision ? r->a->precision : "auto");
    if (wml_str_ieq(asked, WML_STR("auto"))) r->precision = &precisions[0];
    for (size_t i = 0; i < WML_COUNT(precisions) && !r->precision; i++)
        if (wml_str_ieq(asked, wml_str(precisions[i].name)) || (precisions[i].alias && wml_str_ieq(asked, wml_str(precisions[i].alias))))
            r->precision = &precisions[i];
    if (r->precision) return true;
    wml_fail(err, WML_E_USAGE, "--precision %.*s is not supported for --export-type plain", WML_ARG(asked));
    return wml_hint(err, "supported: auto (fp32), fp32, fp16, int4 (w4a32), w4a16, int8 (w8a32)");
}

static bool no_bundle(const struct wml_build_run *r, struct wml_err *err)
{
    struct wml_buf types = {.max = 300};
    for (const struct wml_family *const *f = wml_families; *f; f++)
        for (const struct wml_family_type *t = (*f)->bundle ? (*f)->type : NULL; t && t->model_type; t++)
            wml_buf_fmt(&types, "%s%s", types.len ? ", " : "", t->model_type);
    wml_fail(err, WML_E_USAGE, "no bundle can be made of model type '%s'", r->plan.type->model_type);
    wml_hint(err, "types it can be made of: %s", wml_buf_text(&types));
    wml_buf_release(&types);
    return false;
}

static void set_sizes(struct wml_build_run *r)
{
    enum { PIPELINE_CONTEXT = 2048, PIPELINE_WINDOW = 64 };
    r->context = r->a->max_cache_len ? r->a->max_cache_len : r->facts.positions;
    if (!r->staged) return;
    if (!r->a->max_cache_len) r->context = WML_MIN(r->facts.positions, PIPELINE_CONTEXT);
    r->window = WML_MIN(r->a->window ? r->a->window : PIPELINE_WINDOW, r->context);
}

/* What the model is, before any weight is looked at. */
static bool look(struct wml_build_run *r, struct wml_err *err)
{
    if (!wml_checkpoint_open(r->cx, r->a->model, "build", &r->checkpoint, err)) return false;
    r->source = (struct wml_export_source){.name = r->a->model, .cfg = wml_json_root(r->checkpoint.config), .pre = wml_json_root(r->checkpoint.preprocessor)};
    const char *generation = wml_build_in(r, "generation_config.json");
    if (wml_file_exists(generation) && !wml_json_load(generation, &r->generation, err)) return false;
    struct wml_err why = {0};
    if (!wml_export_plan(&r->source, "text-generation", &r->plan, &why)) {
        if (r->plan.family && !r->plan.family->bundle) return no_bundle(r, err);
        *err = why;
        return false;
    }
    if (!r->plan.family->bundle) return no_bundle(r, err);
    if (!wml_export_facts(&r->source, &r->plan, &r->facts, err)) return false;
    set_sizes(r);
    return true;
}

/* --------------------------------------------------------------------- parts */

bool wml_build_do(struct wml_build_run *r, const char *name, const char *const *file, size_t n,
                  bool (*make)(struct wml_build_run *r, struct wml_err *err), struct wml_err *err)
{
    const uint64_t start = wml_now_ns();
    struct wml_build_stage s = {.name = name, .reused = wml_build_is_made(r, name, file, n)};
    wml_note_progress(r->cx, "Building", name, 0, 0, NULL);
    if (!wml_check_cancel(r->cx, err) || (!s.reused && !make(r, err))) return false;
    for (size_t i = 0; i < n; i++) {
        const struct wml_file_info info = wml_file_info(wml_build_out(r, file[i]));
        if (info.kind == WML_FILE_REGULAR) WML_PUSH_IN(&r->arena, &s.file, ((struct wml_build_file){file[i], info.size, info.modified_ns}));
    }
    s.seconds = (double)(wml_now_ns() - start) / 1e9;
    WML_PUSH_IN(&r->arena, &r->stage, s);
    return wml_build_write_manifest(r, false, err);
}

static bool make_plain(struct wml_build_run *r, struct wml_err *err)
{
    return wml_build_part(r, &(struct wml_build_graph){.part = WML_GENAI_PLAIN, .file = "model.onnx", .real = r->precision->real, .bits = r->precision->bits}, err);
}

static bool run(struct wml_build_run *r, struct wml_err *err)
{
    static const char *const model[] = {"model.onnx", "model.onnx.data"}, *const config[] = {WML_BUNDLE_CONFIG};
    if (!check_type(r, err) || !(r->staged ? wml_build_check_staged(r, err) : check_precision(r, err)) || !look(r, err) || (r->staged && r->precision->bits && !wml_build_read_prompts(r, err)) || !wml_build_resume(r, err)) return false;
    return (r->staged ? wml_build_make_staged(r, err) : wml_build_do(r, "model", model, WML_COUNT(model), make_plain, err)) && wml_build_copy_tokenizer(r, err) &&
           wml_build_do(r, "config", config, WML_COUNT(config), wml_build_write_config, err) && wml_build_write_manifest(r, true, err);
}

bool wml_flow_build(const struct wml_build_args *a, struct wml_ctx *cx, struct wml_report *out, struct wml_err *err)
{
    struct wml_build_run r = {.a = a, .cx = cx, .start = wml_now_ns()};
    wml_report_tells_of_file(out);
    const bool ok = run(&r, err);
    wml_end_progress(cx);
    if (ok) wml_build_report(&r, out);
    wml_buf_release(&r.prompts);
    wml_json_free(r.before);
    wml_json_free(r.generation);
    wml_checkpoint_close(&r.checkpoint);
    wml_arena_release(&r.arena);
    return ok;
}
