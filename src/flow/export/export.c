/* flow/export/export.c - a folder of config and weights to ONNX files. */
#include "flow/export/internal.h"

#include "flow/checkpoint.h"
#include "flow/output.h"
#include "graph/store.h"
#include "opset/opset.h"
#include "os/file.h"
#include "os/path.h"

/* ------------------------------------------------------------------ the source */

static bool open_source(struct wml_export_run *r, struct wml_err *err)
{
    if (!wml_checkpoint_open(r->cx, r->a->model, "export", &r->checkpoint, err)) return false;
    r->source = (struct wml_export_source){.name = r->a->model, .cfg = wml_json_root(r->checkpoint.config), .pre = wml_json_root(r->checkpoint.preprocessor)};
    return true;
}

/* -------------------------------------------------------------------- one file */

static bool convert(const struct wml_export_run *r, struct wml_model *m, struct wml_err *err)
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
    return wml_arena_fmt(&r->arena, "%.*s_%s%.*s", (int)(path.len - ext.len), path.ptr, part, WML_ARG(ext)).ptr;
}

static const char *beside(struct wml_export_run *r, const char *model, const char *suffix)
{
    struct wml_buf path = {0};
    wml_output_beside(&path, model, NULL, suffix);
    const char *copy = wml_arena_cstr(&r->arena, wml_buf_view(&path));
    wml_buf_release(&path);
    return copy;
}

static double since(uint64_t from)
{
    return (double)(wml_now_ns() - from) / 1e9;
}

static void strip_tags(struct wml_model *m)
{
    for (struct wml_node *n = m->graph->first; n; n = n->next) n->metadata.len = 0; /* nothing else is in it */
}

static bool write_model(struct wml_export_part *p, struct wml_err *err)
{
    struct wml_export_run *r = p->run;
    const uint64_t start = wml_now_ns();
    if (!r->a->hierarchy) strip_tags(p->made.model);
    wml_note_progress(r->cx, "Saving", p->staged.name, 0, 0, NULL);
    if (!wml_staged_write(&p->staged, p->made.model, ".winml-export-", r->cx, err)) return false;
    p->seconds[WML_EXPORT_WRITE] = since(start);
    const uint64_t verify = wml_now_ns();
    if (r->a->verify_against && !wml_export_verify(p, p->staged.path, err)) return false;
    p->seconds[WML_EXPORT_VERIFY] = since(verify);
    return true;
}

/* Inputs that the user speaks of and the model has not. */
static void tell_unknown(const struct wml_export_part *p)
{
    const struct wml_export_run *r = p->run;
    for (size_t i = 0; i < r->given.len; i++) {
        bool there = false;
        for (size_t k = 0; k < p->made.n_inputs; k++) there |= wml_str_eq(r->given.at[i].name, p->made.input[k].name);
        for (size_t k = 0; k < p->made.model->graph->outputs.len; k++) there |= wml_str_eq(r->given.at[i].name, p->made.model->graph->outputs.at[k]->name);
        if (!there) wml_log(r->cx, WML_LOG_WARN, "the model has no input '%.*s': what was said of it is not used", WML_ARG(r->given.at[i].name));
    }
}

const char *wml_export_staged(const struct wml_export_part *p, const char *path)
{
    return wml_path_in(&p->run->arena, p->staged.stage, wml_arena_cstr(&p->run->arena, wml_path_name(wml_str(path))));
}

/* Everything but the final names. */
static bool export_part(struct wml_export_part *p, struct wml_err *err)
{
    struct wml_export_run *r = p->run;
    const uint64_t start = wml_now_ns();
    wml_note_progress(r->cx, "Building", p->name ? p->name : p->task->task, 0, 0, NULL);
    if (!wml_export_build(&r->source, &r->plan, p->task, &r->opts, &p->made, err)) return false;
    wml_checkpoint_lend(&r->checkpoint, p->made.model);
    tell_unknown(p);
    if (!convert(r, p->made.model, err)) return false;
    p->seconds[WML_EXPORT_BUILD] = since(start);
    wml_export_count(p);
    wml_model_measure(p->made.model, &p->size);
    wml_time_utc(p->timestamp);
    if (!write_model(p, err)) return false;
    p->seconds[WML_EXPORT_TOTAL] = p->seconds[WML_EXPORT_OPEN] + since(start);
    return wml_export_write_sidecar(p, err) && (!r->a->with_report || wml_export_write_markdown(p, err));
}

static bool publish_part(struct wml_export_part *p, struct wml_err *err)
{
    if (!wml_staged_publish(&p->staged, err) || !wml_file_rename(wml_export_staged(p, p->sidecar), p->sidecar, err) ||
        (p->run->a->with_report && !wml_file_rename(wml_export_staged(p, p->markdown), p->markdown, err)))
        return false;
    wml_export_report(p);
    return true;
}

/* Every name is looked at before any work. */
static bool prepare(struct wml_export_part *p, struct wml_err *err)
{
    struct wml_export_run *r = p->run;
    p->path = part_path(r, p->name);
    p->sidecar = beside(r, p->path, "_htp_metadata.json");
    p->markdown = beside(r, p->path, "_htp_export_report.md");
    return wml_staged_prepare(&p->staged, NULL, p->path, r->a->overwrite, err);
}

/* ------------------------------------------------------------------- the files */

static bool no_part(const struct wml_export_run *r, struct wml_err *err)
{
    struct wml_buf list = {.max = 200};
    const struct wml_family_composite *c = r->plan.composite;
    for (const struct wml_family_part *p = c ? c->part : NULL; p && p->name; p++) wml_buf_fmt(&list, "%s%s", list.len ? ", " : "", p->name);
    if (c) wml_fail(err, WML_E_USAGE, "no part of this model is called '%s'", r->a->submodel);
    else wml_fail(err, WML_E_USAGE, "--submodel: this model is one file");
    wml_hint(err, c ? "its parts: %s" : "leave --submodel out%s", wml_buf_text(&list));
    wml_buf_release(&list);
    return false;
}

enum { MAX_PARTS = 3 };

static bool list_parts(struct wml_export_run *r, struct wml_export_part *part, size_t *n, struct wml_err *err)
{
    *n = 0;
    if (!r->plan.composite) {
        if (r->a->submodel) return no_part(r, err);
        part[(*n)++] = (struct wml_export_part){.run = r, .task = r->plan.one};
        return true;
    }
    for (const struct wml_family_part *p = r->plan.composite->part; p->name; p++)
        if (!r->a->submodel || strcmp(r->a->submodel, p->name) == 0)
            part[(*n)++] = (struct wml_export_part){.run = r, .task = wml_family_task_of(r->plan.family, wml_str(p->task)), .name = p->name};
    return *n || no_part(r, err);
}

/* All of them appear, or none. */
static bool export_parts(struct wml_export_run *r, struct wml_export_part *part, size_t n, double open_seconds, struct wml_err *err)
{
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) ok = prepare(&part[i], err);
    for (size_t i = 0; i < n && ok; i++) {
        part[i].seconds[WML_EXPORT_OPEN] = open_seconds;
        ok = wml_check_cancel(r->cx, err) && export_part(&part[i], err);
    }
    for (size_t i = 0; i < n && ok; i++) ok = publish_part(&part[i], err);
    for (size_t i = 0; i < n; i++) {
        wml_staged_release(&part[i].staged, err);
        wml_model_free(part[i].made.model);
    }
    wml_end_progress(r->cx);
    return ok;
}

static bool run(struct wml_export_run *r, struct wml_err *err)
{
    struct wml_export_part part[MAX_PARTS];
    const uint64_t start = wml_now_ns();
    size_t n = 0;
    if (!open_source(r, err) || !wml_export_read_specs(r, err) || !wml_export_plan(&r->source, r->a->task, &r->plan, err) ||
        !list_parts(r, part, &n, err) || !wml_checkpoint_weights(&r->checkpoint, err))
        return false;
    r->source.weights = r->checkpoint.weights;
    return export_parts(r, part, n, since(start), err);
}

bool wml_flow_export(const struct wml_export_args *a, struct wml_ctx *cx, struct wml_report *report, struct wml_err *err)
{
    struct wml_export_run r = {.args = *a, .cx = cx, .r = report};
    r.a = &r.args;
    wml_report_tells_of_file(report);
    const bool ok = run(&r, err);
    wml_checkpoint_close(&r.checkpoint);
    wml_arena_release(&r.arena);
    return ok;
}
