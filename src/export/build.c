/* export/build.c - runs a family's function and finishes its model. */
#include "export/export.h"

/* winml.io.inputs and winml.io.outputs: what tools that make sample data read. */
static void describe_io(struct wml_family_job *j)
{
    struct wml_model *m = j->nn->m;
    struct wml_buf text = {0};
    struct wml_json w = {.out = &text};
    wml_json_begin(&w, '[');
    for (size_t i = 0; i < j->input.len; i++) {
        const struct wml_family_input *in = &j->input.at[i];
        wml_json_begin(&w, '{');
        wml_json_key(&w, "name");
        wml_json_put_str(&w, in->name);
        wml_json_key(&w, "dtype");
        wml_json_put_cstr(&w, wml_dtype_name(in->dtype));
        wml_json_key(&w, "shape");
        wml_json_begin(&w, '[');
        for (size_t k = 0; k < in->rank; k++) {
            if (in->axis[k].size >= 0) wml_json_put_int(&w, in->axis[k].size);
            else wml_json_put_str(&w, in->axis[k].symbol);
        }
        wml_json_end(&w, ']');
        if (in->has_range) {
            wml_json_key(&w, "value_range");
            wml_json_begin(&w, '[');
            for (size_t k = 0; k < 2; k++) {
                const double v = k ? in->high : in->low;
                if (in->dtype == WML_F32) wml_json_put_num(&w, v);
                else wml_json_put_int(&w, (int64_t)v);
            }
            wml_json_end(&w, ']');
        }
        wml_json_end(&w, '}');
    }
    wml_json_end(&w, ']');
    wml_entries_set(m, &m->metadata, "winml.io.inputs", wml_arena_str(&m->arena, wml_buf_view(&text)));
    wml_buf_clear(&text);
    w = (struct wml_json){.out = &text};
    wml_json_begin(&w, '[');
    for (size_t i = 0; i < m->graph->outputs.len; i++) {
        wml_json_begin(&w, '{');
        wml_json_key(&w, "name");
        wml_json_put_str(&w, m->graph->outputs.at[i]->name);
        wml_json_end(&w, '}');
    }
    wml_json_end(&w, ']');
    wml_entries_set(m, &m->metadata, "winml.io.outputs", wml_arena_str(&m->arena, wml_buf_view(&text)));
    wml_buf_release(&text);
}

static void family_runs(struct wml_family_job *j)
{
    struct wml_nn *b = j->nn;
    const char *suffix = j->task->suffix;
    if (j->type->base) b->base = wml_str(j->type->base);
    b->klass = j->type->klass;
    if (*suffix == '=') wml_nn_enter(b, suffix + 1, "%s", "");
    else wml_nn_enter(b, wml_arena_fmt(&b->m->arena, "*%s", suffix).ptr, "%s", "");
    j->task->build(j);
    wml_nn_leave(b);
}

/* What a family made and nothing reads. */
static void drop_dead_nodes(struct wml_graph *g)
{
    for (struct wml_node *n = g->last, *before; n; n = before) {
        bool dead = true;
        before = n->prev;
        for (size_t i = 0; i < n->n_out && dead; i++) dead = !n->out[i] || wml_value_is_unused(n->out[i]);
        if (dead) wml_node_remove(n);
    }
}

bool wml_export_build(const struct wml_export_source *s, const struct wml_export_plan *p, const struct wml_family_task *task,
                      const struct wml_export_opts *o, struct wml_export_result *out, struct wml_err *err)
{
    struct wml_nn b;
    wml_nn_init(&b, s->weights, o->opset, err);
    b.sketch = !s->weights;
    if (b.sketch) b.left = (struct wml_nn_limits){.nodes = 1 << 15, .room = 1 << 28}; /* no weights end where an absurd config does not */
    if (o->real) b.real = o->real;
    if (o->limits.nodes) b.left.nodes = o->limits.nodes;
    if (o->limits.room) b.left.room = o->limits.room;
    struct wml_family_job j = {.nn = &b, .genai = &o->genai, .family = p->family, .type = p->type, .task = task, .cfg = p->cfg, .root = s->cfg,
                               .pre = s->pre, .batch = o->batch, .given = o->given, .n_given = o->n_given};
    memcpy(j.size, o->size, sizeof j.size);
    family_runs(&j);
    bool ok = wml_nn_ok(&b);
    if (ok) {
        describe_io(&j);
        drop_dead_nodes(b.g);
        wml_model_drop_unused(b.m);
        b.m->producer_name = WML_STR("winml");
        b.m->graph->name = WML_STR("main_graph");
        *out = (struct wml_export_result){.model = b.m, .class_name = wml_str(b.module.at[0].class_name), .input = j.input.at,
                                          .n_inputs = j.input.len, .module = b.module.at, .n_modules = b.module.len};
        b.m = NULL;
    }
    wml_nn_release(&b);
    return ok;
}

bool wml_export_facts(const struct wml_export_source *s, const struct wml_export_plan *p, struct wml_genai_facts *out, struct wml_err *err)
{
    struct wml_nn b;
    wml_nn_init(&b, NULL, WML_NN_OPSET, err);
    struct wml_family_job j = {.nn = &b, .family = p->family, .type = p->type, .cfg = p->cfg, .root = s->cfg};
    *out = p->family->bundle->facts(&j);
    const bool ok = wml_nn_ok(&b);
    wml_nn_release(&b);
    return ok;
}
