/* What was typed, as the task's inputs. */
#include "flow/run/internal.h"

static const struct wml_task_field *field_named(const struct wml_run_call *c, const char *name)
{
    for (const struct wml_task_field *f = c->field; f->name; f++)
        if (strcmp(f->name, name) == 0) return f;
    return NULL;
}

/* "--input text_1=... --input text_2=..." */
static void forms(const struct wml_run_call *c, struct wml_buf *out)
{
    for (const struct wml_task_field *f = c->field; f->name; f++)
        wml_buf_fmt(out, "%s--input %s=%s", f == c->field ? "" : " ", f->name, f->kind == WML_FIELD_TEXT ? "TEXT" : "JSON");
}

/* The field that --text means. */
static const struct wml_task_field *text_field(const struct wml_run_call *c, struct wml_err *err)
{
    const struct wml_task_field *only = NULL;
    struct wml_buf all = {0};
    size_t n = 0;
    for (const struct wml_task_field *f = c->field; f->name; f++)
        if (f->kind == WML_FIELD_TEXT && n++ == 0) only = f;
    if (n == 1) return only;
    forms(c, &all);
    if (c->task == &wml_task_tensors) {
        wml_fail(err, WML_E_USAGE, "--text needs a task: without one the model takes arrays");
        wml_hint(err, "--task feature-extraction, or another one; or %s", wml_buf_text(&all));
    } else {
        wml_fail(err, WML_E_USAGE, n ? "--text could be any of the %zu texts that %s takes" : "there are %zu texts that %s takes", n, c->task->name);
        wml_hint(err, "%s", wml_buf_text(&all));
    }
    wml_buf_release(&all);
    return NULL;
}

static bool add(struct wml_run_call *c, struct wml_pair *to, const char *name, const char *value, struct wml_err *err)
{
    if (wml_pair_find(to, c->work.n_values, name)) return wml_fail(err, WML_E_USAGE, "input '%s' is given twice", name);
    if (wml_pair_find(c->args->param, c->args->n_params, name))
        return wml_fail(err, WML_E_USAGE, "'%s' is given both as an input and as a parameter", name);
    to[c->work.n_values++] = (struct wml_pair){name, value};
    return true;
}

static bool add_inputs(struct wml_run_call *c, struct wml_err *err)
{
    const struct wml_run_args *a = c->args;
    struct wml_pair *to = WML_NEW_ARRAY(&c->arena, struct wml_pair, a->n_inputs + 1);
    struct wml_json_doc *doc = NULL;
    struct wml_buf all = {0};
    c->work.value = to;
    forms(c, &all);
    bool ok = true;
    for (size_t i = 0; ok && i < a->n_inputs; i++) {
        const struct wml_task_field *f = field_named(c, a->input[i].key);
        if (!f) {
            wml_fail(err, WML_E_RUN, "there is no input '%s'", a->input[i].key);
            ok = wml_hint(err, "%s", wml_buf_text(&all));
        }
        if (ok && f->kind == WML_FIELD_JSON) {
            ok = wml_json_parse(wml_str(a->input[i].value), &doc, err) || wml_wrap(err, "input '%s'", f->name);
            if (!ok) err->code = WML_E_USAGE;
            wml_json_free(doc);
            doc = NULL;
        }
        ok = ok && add(c, to, a->input[i].key, a->input[i].value, err);
    }
    if (ok && a->text) {
        const struct wml_task_field *f = text_field(c, err);
        ok = f && add(c, to, f->name, a->text, err);
    }
    for (const struct wml_task_field *f = c->field; ok && !a->file && f->name; f++) {
        if (f->optional || wml_task_value(&c->work, f->name)) continue;
        wml_fail(err, WML_E_RUN, "input '%s' is missing", f->name);
        ok = wml_hint(err, "%s", wml_buf_text(&all));
    }
    wml_buf_release(&all);
    return ok;
}

static bool knows_param(const struct wml_task *t, const char *name)
{
    for (const struct wml_task_param *p = t->param; p && p->name; p++)
        if (strcmp(p->name, name) == 0) return true;
    return false;
}

bool wml_run_values(struct wml_run_call *c, struct wml_err *err)
{
    const struct wml_run_args *a = c->args;
    if (a->file && c->task != &wml_task_tensors) {
        wml_fail(err, WML_E_USAGE, "%s takes no file", c->task->name);
        return wml_hint(err, "without --task, --file takes the model's arrays: .npz or .npy");
    }
    if (a->file && a->n_inputs) return wml_fail(err, WML_E_USAGE, "--file and --input cannot be combined: the file holds all inputs");
    for (size_t i = 0; i < a->n_params; i++)
        if (!knows_param(c->task, a->param[i].key))
            wml_log(c->cx, WML_LOG_WARN, "%s has no parameter '%s': it is ignored", c->task->name ? c->task->name : "this model", a->param[i].key);
    c->work.param = a->param;
    c->work.n_params = a->n_params;
    return add_inputs(c, err);
}
