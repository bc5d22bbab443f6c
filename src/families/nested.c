/* families/nested.c - see nested.h. */
#include "families/nested.h"

/* Makes j a job of the part's family. */
static bool become(struct wml_family_job *j, const struct wml_json_val *cfg, const char *task)
{
    const struct wml_str type = wml_json_get_str(cfg, "model_type");
    const struct wml_family_type *t = NULL;
    const struct wml_family *f = wml_family_find(type, &t);
    const struct wml_family_task *row = f ? wml_family_task_of(f, wml_str(task)) : NULL;
    if (row) {
        j->family = f;
        j->type = t;
        j->task = row;
        j->cfg = cfg;
        return true;
    }
    wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "a part of the model is of the type '%.*s', which winml cannot export for %s", WML_ARG(type), task);
    return false;
}

struct wml_value *wml_nested(struct wml_family_job *j, const struct wml_json_val *cfg, const char *attribute, const char *task)
{
    struct wml_nn *b = j->nn;
    const struct wml_family_job outer = *j;
    const char *klass = b->klass;
    const struct wml_str base = b->base;
    if (b->failed || !become(j, cfg, task)) return NULL;
    b->klass = j->type->klass;
    b->base = WML_NO_STR;
    wml_nn_enter(b, wml_arena_fmt(&b->m->arena, "*%s", j->task->suffix).ptr, "%s", attribute);
    j->task->build(j);
    wml_nn_leave(b);
    b->klass = klass;
    b->base = base;
    j->family = outer.family;
    j->type = outer.type;
    j->task = outer.task;
    j->cfg = outer.cfg;
    if (b->failed) return NULL;
    if (b->g->outputs.len != 1) return wml_nn_fail(b, WML_E_INTERNAL, "%s gives %zu values", attribute, b->g->outputs.len);
    struct wml_value *v = b->g->outputs.at[0];
    wml_graph_remove_output(b->g, 0);
    return v;
}

struct wml_nn_shape wml_nested_shape(struct wml_family_job *j, const struct wml_json_val *cfg, const char *attribute, const char *task)
{
    struct wml_nn aside;
    struct wml_nn_shape s = {0};
    if (j->nn->failed) return s;
    wml_nn_init(&aside, j->nn->w, j->nn->opset, j->nn->err);
    aside.sketch = j->nn->sketch;
    struct wml_family_job k = *j;
    k.nn = &aside;
    k.n_given = 0;
    memset(&k.input, 0, sizeof k.input);
    wml_nn_enter(&aside, "Aside", "%s", "");
    struct wml_value *v = wml_nested(&k, cfg, attribute, task);
    if (v) s = wml_nn_shape(v);
    j->nn->failed |= aside.failed;
    wml_nn_release(&aside);
    return s;
}
