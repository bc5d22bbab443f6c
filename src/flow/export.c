/* flow/export.c - a folder of config and weights to ONNX files. */
#include "flow/export_internal.h"

#include "flow/output.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "opset/opset.h"
#include "os/file.h"
#include "os/path.h"

/* config.json of the folder (required), or another file (optional). */
static bool load_json(struct wml_export_run *r, const char *name, bool required, struct wml_json_doc **out, struct wml_err *err)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(r->a->model), wml_str(name));
    bool there = wml_file_exists(wml_buf_text(&path)), ok = !there || wml_json_load(wml_buf_text(&path), out, err);
    if (!there && required) {
        ok = wml_fail(err, WML_E_NOT_FOUND, "%s has no %s", r->a->model, name);
        wml_hint(err, "give the folder of a Hugging Face model: config.json and *.safetensors");
    }
    wml_buf_release(&path);
    return ok;
}

static bool open_source(struct wml_export_run *r, struct wml_err *err)
{
    if (!wml_dir_exists(r->a->model)) {
        wml_fail(err, WML_E_NOT_FOUND, "'%s' is no folder", r->a->model);
        return wml_hint(err, "give the folder of a Hugging Face model: config.json and *.safetensors");
    }
    if (!load_json(r, "config.json", true, &r->config, err) || !load_json(r, "preprocessor_config.json", false, &r->preprocessor, err))
        return false;
    r->source = (struct wml_export_source){.name = r->a->model, .cfg = wml_json_root(r->config), .pre = wml_json_root(r->preprocessor)};
    return true;
}

static void close_weights(void *handle)
{
    wml_weights_close(handle);
}

/* The model borrows from the maps of the weights: it holds them, and the saver can copy out of the files. */
static void hold_weights(struct wml_model *m, struct wml_weights *w)
{
    for (size_t i = 0; i < wml_weights_n_files(w); i++) {
        const struct wml_weights_file *f = wml_weights_file(w, i);
        wml_model_add_source(m, &(struct wml_source){.path = f->path, .bytes = f->map.bytes, .file = f->map.file,
                                                     .handle = wml_weights_hold(w), .close = close_weights, .drop = wml_map_drop});
    }
}

static bool convert(struct wml_export_run *r, struct wml_model *m, struct wml_err *err)
{
    size_t unsure = 0;
    const int64_t built = r->a->opset > WML_NN_OPSET ? r->a->opset : WML_NN_OPSET;
    if (r->a->opset < built) return wml_opset_convert(m, r->a->opset, &unsure, err);
    wml_model_raise_ir(m, wml_opset_ir(built));
    return true;
}

/* "net.onnx", "encoder" -> "net_encoder.onnx" */
static const char *part_path(struct wml_export_run *r, const char *part)
{
    if (!part) return r->a->output;
    const struct wml_str path = wml_str(r->a->output), ext = wml_path_ext(path);
    const struct wml_str front = wml_str_sub(path, 0, path.len - ext.len);
    return wml_arena_fmt(&r->arena, "%.*s_%s%.*s", WML_ARG(front), part, WML_ARG(ext)).ptr;
}

static bool export_one(struct wml_export_run *r, const struct wml_family_task *task, const char *part, struct wml_err *err)
{
    struct wml_export_result made = {0};
    struct wml_staged s = {0};
    const char *path = part_path(r, part);
    bool ok = wml_export_build(&r->source, &r->plan, task, &r->opts, &made, err);
    if (ok) hold_weights(made.model, r->weights);
    ok = ok && convert(r, made.model, err) && wml_staged_prepare(&s, NULL, path, r->a->overwrite, err) &&
         wml_staged_write(&s, made.model, ".winml-export-", r->cx, err) && wml_staged_publish(&s, err);
    if (ok) {
        struct wml_item *o = wml_report_root(r->r);
        wml_item_cstr(o, "output", "Output", path);
        wml_item_int(o, "nodes", "Nodes", (int64_t)wml_model_count_nodes(made.model), WML_SHOW_COUNT);
        wml_item_int(o, "bytes", "Size", (int64_t)s.bytes_after, WML_SHOW_BYTES);
    }
    wml_staged_release(&s, err);
    wml_model_free(made.model);
    return ok;
}

static const struct wml_family_task *part_task(const struct wml_family *f, const char *name)
{
    for (const struct wml_family_task *t = f->task; t->task; t++)
        if (strcmp(t->task, name) == 0) return t;
    return NULL;
}

static bool run(struct wml_export_run *r, struct wml_err *err)
{
    if (!open_source(r, err) || !wml_export_read_specs(r, err) || !wml_export_plan(&r->source, r->a->task, &r->plan, err)) return false;
    if (!wml_weights_open(r->a->model, &r->weights, err)) return false;
    r->source.weights = r->weights;
    if (!r->plan.composite) return export_one(r, r->plan.one, NULL, err);
    bool any = false;
    for (const struct wml_family_part *p = r->plan.composite->part; p->name; p++) {
        if (r->a->submodel && strcmp(r->a->submodel, p->name) != 0) continue;
        any = true;
        if (!export_one(r, part_task(r->plan.family, p->task), p->name, err)) return false;
    }
    return any || wml_fail(err, WML_E_USAGE, "no part is called '%s'", r->a->submodel);
}

bool wml_flow_export(const struct wml_export_args *a, struct wml_ctx *cx, struct wml_report *report, struct wml_err *err)
{
    struct wml_export_run r = {.a = a, .cx = cx, .r = report,
                               .opts = {.batch = a->batch, .opset = a->opset, .no_hierarchy = !a->hierarchy}};
    const bool ok = run(&r, err);
    wml_weights_close(r.weights);
    wml_json_free(r.config);
    wml_json_free(r.preprocessor);
    wml_arena_release(&r.arena);
    return ok;
}
