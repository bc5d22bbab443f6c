/* The table of tasks, and what several of them do the same way. */
#include "task/task.h"

#include <inttypes.h>

#include "task/text.h"
#include "text/words.h"

const struct wml_task *const wml_tasks[] = {
#define TASK(name) &wml_task_##name,
#include "task/tasks.def"
#undef TASK
};
const size_t wml_n_tasks = WML_COUNT(wml_tasks);

const char *wml_field_kind_name(enum wml_field_kind k)
{
    return k == WML_FIELD_TEXT ? "text" : "json";
}

const struct wml_task *wml_task_find(const char *name, struct wml_err *err)
{
    const char *names[WML_COUNT(wml_tasks)];
    struct wml_buf all = {0};
    for (size_t i = 0; i < wml_n_tasks; i++) {
        const struct wml_task *t = wml_tasks[i];
        if (wml_str_ieq(wml_str(name), wml_str(t->name)) || (t->alias && wml_str_ieq(wml_str(name), wml_str(t->alias)))) {
            wml_buf_release(&all);
            return t;
        }
        names[i] = t->name;
        wml_buf_fmt(&all, "%s%s", i ? ", " : "", t->name);
    }
    const char *near = wml_similar(wml_str(name), names, wml_n_tasks);
    wml_fail(err, WML_E_USAGE, "task '%s' is not available in this version", name);
    if (near) wml_hint(err, "did you mean %s? available: %s", near, wml_buf_text(&all));
    else wml_hint(err, "available: %s. Without --task a model takes and gives arrays", wml_buf_text(&all));
    wml_buf_release(&all);
    return NULL;
}

bool wml_task_has_text(const struct wml_task *t)
{
    for (const struct wml_task_field *f = t->field; f && f->name; f++)
        if (f->kind == WML_FIELD_TEXT) return true;
    return false;
}

const char *wml_task_value(const struct wml_task_work *w, const char *name)
{
    return wml_pair_find(w->value, w->n_values, name);
}

const char *wml_task_param(const struct wml_task_work *w, const struct wml_task *t, const char *name)
{
    const char *given = wml_pair_find(w->param, w->n_params, name);
    for (const struct wml_task_param *p = t->param; !given && p && p->name; p++)
        if (strcmp(p->name, name) == 0) given = p->fallback;
    return given;
}

bool wml_task_param_bool(const struct wml_task_work *w, const struct wml_task *t, const char *name, bool *out, struct wml_err *err)
{
    struct wml_str v = wml_str(wml_task_param(w, t, name));
    *out = wml_str_ieq(v, WML_STR("true"));
    return *out || wml_str_ieq(v, WML_STR("false")) ||
           wml_fail(err, WML_E_USAGE, "parameter '%s' is true or false, not '%.*s'", name, WML_ARG(v));
}

bool wml_task_add_text(struct wml_task_work *w, const char *first, const char *second, struct wml_err *err)
{
    struct wml_text_plan plan;
    struct wml_npys sample = {0};
    struct wml_tok_ids ids = {0};
    bool ok = wml_text_plan_aim(&plan, w->tok, w->input, w->n_inputs, err) &&
              wml_text_make(&plan, wml_str(first), wml_str(second), &ids, &sample, err);
    if (ok && ids.cut) wml_log(w->cx, WML_LOG_WARN, "the text is longer than the model takes: only its first %zu tokens are used", ids.len);
    WML_PUSH(&w->sample, sample);
    WML_PUSH(&w->ids, ids);
    return ok;
}

struct wml_item *wml_task_scores(struct wml_item *root)
{
    wml_item_gap(root);
    wml_item_line(root, WML_TONE_PLAIN, "Results:");
    return wml_item_array(root, "predictions", NULL);
}

void wml_task_put_score(struct wml_item *root, struct wml_item *list, size_t rank, struct wml_str label, double score)
{
    struct wml_item *one = wml_item_object(list, NULL, NULL);
    wml_item_str(one, "label", NULL, label);
    wml_item_num(one, "score", NULL, score, 6, WML_SHOW_PLAIN);
    wml_item_line(root, WML_TONE_VALUE, "  %zu. %-20.*s %.4f", rank, WML_ARG(label), score);
}

void wml_task_array_line(struct wml_item *in, const struct wml_npy *a)
{
    enum { SHOWN = 8 };
    struct wml_buf text = {0};
    uint64_t n = 1;
    for (size_t i = 0; i < a->rank; i++) {
        wml_buf_fmt(&text, "%s%" PRId64, i ? " x " : "", a->dim[i]);
        n *= (uint64_t)a->dim[i];
    }
    wml_buf_cstr(&text, a->rank ? ": " : "");
    for (uint64_t i = 0; i < n && i < SHOWN; i++)
        wml_buf_fmt(&text, "%s%.5g", i ? ", " : "", wml_dtype_load((int)a->dtype, a->data.ptr, (size_t)i));
    wml_item_line(in, WML_TONE_VALUE, "  %.*s  %s%s", WML_ARG(a->name), wml_buf_text(&text), n > SHOWN ? ", ..." : "");
    wml_buf_release(&text);
}

void wml_task_put_array(struct wml_item *in, const struct wml_npy *a)
{
    struct wml_item *shape = wml_item_array(in, "shape", NULL), *data = wml_item_array(in, "data", NULL);
    uint64_t n = 1;
    for (size_t i = 0; i < a->rank; i++) {
        wml_item_int(shape, NULL, NULL, a->dim[i], WML_SHOW_PLAIN);
        n *= (uint64_t)a->dim[i];
    }
    for (uint64_t i = 0; i < n; i++)
        wml_item_num(data, NULL, NULL, wml_dtype_load((int)a->dtype, a->data.ptr, (size_t)i), 8, WML_SHOW_PLAIN);
    wml_task_array_line(in, a);
}

void wml_task_work_release(struct wml_task_work *w)
{
    for (size_t i = 0; i < w->sample.len; i++) {
        if (w->answer) wml_npys_release(&w->answer[i]);
        wml_npys_release(&w->sample.at[i]);
    }
    for (size_t i = 0; i < w->ids.len; i++) wml_tok_ids_release(&w->ids.at[i]);
    WML_VEC_RELEASE(&w->sample);
    WML_VEC_RELEASE(&w->ids);
    free(w->answer);
    w->answer = NULL;
}
