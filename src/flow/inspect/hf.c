/* flow/inspect/hf.c - what a Hugging Face model is, and what `export` would make of it. */
#include <stdarg.h>
#include "flow/inspect/hf.h"
#include "catalog/catalog.h"

enum { MOST_TASKS = 40 };

void wml_hf_note(struct wml_hf *h, const char *fmt, ...)
{
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    WML_PUSH_IN(&h->arena, &h->notes, wml_arena_cstr(&h->arena, wml_str(text)));
}

/* -------------------------------------------------------------------- tasks */

static size_t add_task(const char **out, size_t n, size_t max, const char *task)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(out[i], task) == 0) return n;
    if (n < max && wml_task_is_known(wml_str(task))) out[n++] = task; /* others are of parts only */
    return n;
}

size_t wml_hf_tasks(const struct wml_family *f, const char **out, size_t max)
{
    size_t n = 0;
    for (const struct wml_family_task *t = f->task; t->task; t++) n = add_task(out, n, max, t->task);
    for (const struct wml_family_composite *c = f->composite; c && c->task; c++) n = add_task(out, n, max, c->task);
    return n;
}

/* Tasks of the command line that lead to the same files. */
static void put_pipelines(const struct wml_hf *h, struct wml_item *in)
{
    const struct wml_family_composite *mine = h->plan.composite;
    struct wml_item *list = wml_item_array(in, "pipeline_tasks", NULL);
    for (const struct wml_family_composite *c = h->plan.family->composite; c->task; c++) {
        bool same = *c->task != 0;
        for (size_t i = 0; same && (mine->part[i].name || c->part[i].name); i++)
            same = mine->part[i].name && c->part[i].name && strcmp(mine->part[i].task, c->part[i].task) == 0;
        if (same) wml_item_cstr(list, NULL, NULL, c->task);
    }
}

static void put_composite(struct wml_hf *h)
{
    if (!h->plan.composite) {
        wml_item_null(h->root, "pipeline_tasks", NULL);
        wml_item_null(h->root, "composite", NULL);
        return;
    }
    put_pipelines(h, h->root);
    struct wml_item *o = wml_item_object(h->root, "composite", NULL);
    put_pipelines(h, o);
    struct wml_item *parts = wml_item_object(o, "components", NULL);
    for (size_t i = 0; i < h->n_parts; i++) wml_item_cstr(parts, h->part[i].name, NULL, h->part[i].task->task);
}

/* "fill-mask (of its class)" */
static void put_task(struct wml_hf *h)
{
    const struct wml_inspect_args *a = h->a;
    const struct wml_str klass = wml_json_str(wml_json_at(wml_json_get(h->source.cfg, "architectures"), 0));
    struct wml_str task = h->plan.task;
    const char *source = a->task ? "user-task" : a->model_class ? "user-class" : h->plan.by_class ? "tasks-manager" : "hf-task-default";
    const char *why = a->task ? "as asked" : a->model_class || h->plan.by_class ? "of its class" : "the first of its family";
    if (!h->plan.family) {
        const char *known = klass.len ? wml_task_of_class(klass) : NULL;
        task = a->task ? wml_str(a->task) : wml_str(known);
        if (!a->task && known) source = a->model_class ? "user-class" : "tasks-manager", why = "of its class";
    }
    wml_item_str(h->root, "task", NULL, task);
    wml_item_cstr(h->root, "task_source", NULL, task.len ? source : NULL);
    if (task.len) wml_item_fmt(h->root, NULL, "Task", "%.*s (%s)", WML_ARG(task), why);
    struct wml_item *all = wml_item_array(h->root, "tasks", NULL);
    if (!h->plan.family) return;
    const char *names[MOST_TASKS];
    struct wml_buf others = {0};
    const size_t n = wml_hf_tasks(h->plan.family, names, MOST_TASKS);
    for (size_t i = 0; i < n; i++) {
        wml_item_cstr(all, NULL, NULL, names[i]);
        if (!wml_str_is(task, names[i])) wml_buf_fmt(&others, "%s%s", others.len ? ", " : "", names[i]);
    }
    if (others.len) wml_item_str(h->root, NULL, "Other tasks", wml_buf_view(&others));
    wml_buf_release(&others);
}

/* ------------------------------------------------------------------ support */

static bool is_in_catalog(const struct wml_hf *h)
{
    for (size_t i = 0; h->a->model && i < wml_n_catalog; i++)
        if (wml_str_ieq(wml_str(h->a->model), wml_str(wml_catalog[i].id))) return true;
    return false;
}

static const struct wml_err *refusal(const struct wml_hf *h)
{
    for (size_t i = 0; i < h->n_parts; i++)
        if (h->part[i].refusal.code) return &h->part[i].refusal;
    return NULL;
}

/* The class of the Python package that runs such a model, by its task. */
static const char *runner_of(struct wml_str task)
{
    static const struct { const char *task, *klass; } known[] = {
        {"image-classification", "WinMLModelForImageClassification"}, {"text-classification", "WinMLModelForSequenceClassification"},
        {"sequence-classification", "WinMLModelForSequenceClassification"}, {"next-sentence-prediction", "WinMLModelForSequenceClassification"},
        {"image-segmentation", "WinMLModelForImageSegmentation"}, {"semantic-segmentation", "WinMLModelForSemanticSegmentation"},
        {"object-detection", "WinMLModelForObjectDetection"}, {"depth-estimation", "WinMLModelForDepthEstimation"},
        {"token-classification", "WinMLModelForTokenClassification"}, {"question-answering", "WinMLModelForQuestionAnswering"},
        {"text-generation", "WinMLModelForCausalLM"}, {"text2text-generation", "WinMLModelForSeq2SeqLM"}, {"fill-mask", "WinMLModelForMaskedLM"},
        {"feature-extraction", "WinMLModelForFeatureExtraction"}, {"sentence-similarity", "WinMLModelForFeatureExtraction"},
        {"image-feature-extraction", "WinMLModelForFeatureExtraction"},
    };
    for (size_t i = 0; i < WML_COUNT(known); i++)
        if (wml_str_is(task, known[i].task)) return known[i].klass;
    return NULL;
}

/* Whether this build can export it: the page's most wanted line. */
static void put_support(struct wml_hf *h, const char *level, const char *runner)
{
    const struct wml_err *no = refusal(h);
    struct wml_item *notes;
    const bool can = h->plan.family && !no;
    wml_item_bool(h->root, "exportable", NULL, can);
    if (!h->plan.family) {
        const struct wml_str type = wml_json_get_str(h->source.cfg, "model_type");
        const char *near = wml_export_nearest(h->source.cfg);
        wml_item_cstr(h->root, "nearest_family", NULL, near);
        wml_item_fmt(h->root, NULL, "Export", "no: winml has no family '%.*s'%s%s%s", WML_ARG(type), near ? ", the nearest is '" : "", near ? near : "", near ? "'" : "");
    } else if (no) wml_item_fmt(h->root, NULL, "Export", "no: %s", no->msg);
    else if (h->plan.composite) wml_item_fmt(h->root, NULL, "Export", "yes, as %zu files, opset %d", h->n_parts, WML_NN_OPSET);
    else wml_item_fmt(h->root, NULL, "Export", "yes, as one file, opset %d", WML_NN_OPSET);
    wml_item_tone(h->root, can ? WML_TONE_GOOD : WML_TONE_BAD);
    wml_item_cstr(h->root, "overall_support", NULL, can ? level : "unsupported");
    if (can && strcmp(level, "supported") == 0) wml_item_cstr(h->root, NULL, "Tested", "yes: it is in the catalog (winml catalog -m ID)");
    notes = wml_item_array(h->root, "support_notes", NULL);
    if (!h->plan.family) wml_item_fmt(notes, NULL, NULL, "exporter: winml has no such family; docs/internals/adding-a-family.md says how to add one");
    else if (no) wml_item_fmt(notes, NULL, NULL, "exporter: %s%s%s", no->msg, no->hint[0] ? "; " : "", no->hint);
    else if (strcmp(level, "default") == 0) wml_item_cstr(notes, NULL, NULL, "exporter: winml builds this family; this model itself is not in the catalog of tested ones");
    if (!runner) wml_item_cstr(notes, NULL, NULL, "winml: the task has no inference class of its own");
}

static void put_stages(struct wml_hf *h, const char *level, const char *runner)
{
    const struct wml_hf_part *p = &h->part[0];
    const struct wml_str named = wml_json_str(wml_json_at(wml_json_get(h->source.cfg, "architectures"), 0));
    const bool whole = !h->plan.composite && h->n_parts && p->made.model;
    struct wml_item *o = wml_item_object(h->root, "loader", NULL);
    wml_item_str(o, "hf_model_class", NULL, whole ? p->made.class_name : named.len ? named : WML_NO_STR);
    wml_item_cstr(o, "hf_model_class_source", NULL, whole ? "families" : named.len ? "config" : NULL);
    wml_item_cstr(o, "support_level", NULL, level);
    o = wml_item_object(h->root, "exporter", NULL);
    wml_item_cstr(o, "onnx_config_class", NULL, h->plan.family ? h->plan.family->name : NULL);
    wml_item_cstr(o, "onnx_config_source", NULL, h->plan.family ? "families" : "none");
    wml_item_cstr(o, "support_level", NULL, refusal(h) ? "unsupported" : level);
    wml_item_int(o, "opset_version", NULL, WML_NN_OPSET, WML_SHOW_PLAIN);
    static const struct wml_hf_part none = {0};
    wml_hf_put_inputs(h, whole ? p : &none, o);
    wml_hf_put_outputs(h, whole ? p : &none, o);
    o = wml_item_object(h->root, "winml", NULL);
    wml_item_cstr(o, "winml_class", NULL, runner ? runner : "WinMLModelForGenericTask");
    wml_item_cstr(o, "winml_class_source", NULL, runner ? "TASK_TO_WINML_CLASS" : "Generic");
    wml_item_cstr(o, "support_level", NULL, runner ? level : "generic");
}

static void put_parts(struct wml_hf *h)
{
    struct wml_item *list = wml_item_array(h->root, "parts", NULL);
    for (size_t i = 0; i < h->n_parts; i++) {
        const struct wml_hf_part *p = &h->part[i];
        wml_hf_show_io(h, p);
        if (!p->name) continue;
        struct wml_item *o = wml_item_object(list, NULL, NULL);
        wml_item_cstr(o, "name", NULL, p->name);
        wml_item_cstr(o, "task", NULL, p->task->task);
        wml_item_str(o, "class_name", NULL, p->made.class_name);
        wml_hf_put_inputs(h, p, o);
        wml_hf_put_outputs(h, p, o);
    }
}

/* ------------------------------------------------------------------ command */

static void put_head(struct wml_hf *h)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e, *classes = wml_json_get(h->source.cfg, "architectures");
    wml_item_int(h->root, "schema_version", NULL, 1, WML_SHOW_PLAIN);
    wml_item_cstr(h->root, "kind", NULL, "hf");
    wml_item_cstr(h->root, "model_id", "Model", h->source.name);
    wml_item_str(h->root, "model_type", "Family", wml_json_get_str(h->source.cfg, "model_type"));
    struct wml_item *list = wml_item_array(h->root, "architectures", wml_json_len(classes) ? "Class" : NULL);
    while (wml_json_is_array(classes) && wml_json_next(classes, &it, &key, &e))
        if (wml_json_is_string(e)) wml_item_str(list, NULL, NULL, wml_json_str(e));
}

static void put_notes(struct wml_hf *h)
{
    struct wml_item *list = wml_item_array(h->root, "notes", NULL);
    if (h->n_parts && !h->weights && h->a->hierarchy) wml_hf_note(h, "parameters are not counted: the weights are not here");
    struct wml_item *section = h->notes.len ? wml_item_object(h->root, NULL, "Notes") : NULL;
    for (size_t i = 0; i < h->notes.len; i++) {
        wml_item_cstr(list, NULL, NULL, h->notes.at[i]);
        wml_item_line(section, WML_TONE_WARN, "%s", h->notes.at[i]);
    }
}

static void put_all(struct wml_hf *h)
{
    const char *level = !h->plan.family ? "unsupported" : is_in_catalog(h) ? "supported" : "default";
    const char *runner = h->plan.family ? runner_of(h->plan.task) : NULL;
    put_head(h);
    put_task(h);
    put_composite(h);
    put_support(h, level, runner);
    wml_hf_put_checkpoint(h);
    put_stages(h, level, runner);
    put_parts(h);
    wml_hf_put_sizes(h);
    wml_hf_put_processor(h);
    wml_hf_put_cache(h);
    wml_hf_put_tree(h);
    if (h->a->verbose) wml_hf_put_build_config(h);
    put_notes(h);
    if (h->a->model && h->plan.family && !refusal(h)) {
        wml_item_gap(h->root);
        wml_item_line(h->root, WML_TONE_DIM, "Next: winml export -m %s%s%s -o model.onnx", h->a->model, h->a->task ? " -t " : "", h->a->task ? h->a->task : "");
    }
}

/* A family that winml has not is told, and is no failure; a task that its family has not is one. */
static bool plan(struct wml_hf *h, struct wml_err *err)
{
    if (wml_export_plan(&h->source, h->a->task, &h->plan, err)) return true;
    if (!err || err->code != WML_E_UNSUPPORTED) return false;
    *err = (struct wml_err){0};
    h->plan = (struct wml_export_plan){0};
    return true;
}

bool wml_flow_inspect_hf(const struct wml_inspect_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err)
{
    struct wml_hf h = {.a = a, .cx = cx, .root = wml_report_root(r)};
    if (a->model) wml_note_progress(cx, "Inspecting", a->model, 0, 0, NULL);
    const bool ok = wml_hf_open(&h, err) && plan(&h, err);
    if (ok) {
        wml_hf_build(&h);
        put_all(&h);
    }
    wml_end_progress(cx);
    wml_hf_close(&h);
    return ok;
}

/* --------------------------------------------------------------- --list-tasks */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The tasks that are told when no model is named: those with a graph of their own. */
static size_t all_tasks(const char **out, size_t max)
{
    static const char *const others[] = {"zero-shot-classification", "summarization", "translation"};
    size_t n = 0;
    for (size_t i = 0; wml_task_name(i) && n < max; i++) {
        bool other = false;
        for (size_t k = 0; k < WML_COUNT(others); k++) other = other || strcmp(others[k], wml_task_name(i)) == 0;
        if (!other) out[n++] = wml_task_name(i);
    }
    return n;
}

bool wml_flow_inspect_tasks(const struct wml_inspect_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err)
{
    struct wml_hf h = {.a = a, .cx = cx, .root = wml_report_root(r)};
    const char *name[64];
    size_t n = 0;
    bool ok = true;
    if (!a->model && !a->model_type && !a->model_class) n = all_tasks(name, WML_COUNT(name));
    else {
        const struct wml_family_type *type;
        ok = wml_hf_open(&h, err);
        const struct wml_str t = wml_json_get_str(h.source.cfg, "model_type");
        const struct wml_family *f = ok ? wml_family_find(t, &type) : NULL;
        if (f) n = wml_hf_tasks(f, name, WML_COUNT(name));
        else if (ok) {
            const char *near = wml_export_nearest(h.source.cfg);
            ok = wml_fail(err, WML_E_UNSUPPORTED, "No exportable tasks found for model type '%.*s'.", WML_ARG(t));
            if (near) wml_hint(err, "the nearest family that winml has is '%s'", near);
            else wml_hint(err, "docs/internals/adding-a-family.md says how to add a family");
        }
    }
    if (n) qsort(name, n, sizeof *name, by_text);
    struct wml_item *list = ok ? wml_item_array(h.root, "tasks", NULL) : NULL;
    for (size_t i = 0; ok && i < n; i++) {
        wml_item_cstr(list, NULL, NULL, name[i]);
        wml_item_line(h.root, WML_TONE_PLAIN, "%s", name[i]);
    }
    wml_hf_close(&h);
    return ok;
}
