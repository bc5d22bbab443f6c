/* Operator sets imported twice ("" and "ai.onnx"), or that no node and no function uses. */
#include "passes/match.h"

#include "graph/parts.h"

struct usage {
    struct wml_str domain;
    bool used;
};

static bool is_onnx(struct wml_str d)
{
    return !d.len || wml_str_is(d, "ai.onnx");
}

static bool look(void *arg, struct wml_node *n)
{
    struct usage *u = arg;
    u->used = u->used || wml_str_eq(n->domain, u->domain);
    return !u->used;
}

static bool is_used(struct wml_model *m, struct wml_str domain)
{
    struct usage u = {domain, is_onnx(domain)};
    wml_graph_walk(m->graph, look, &u);
    for (size_t i = 0; i < m->function.len && !u.used; i++) {
        const struct wml_function *f = m->function.at[i];
        u.used = wml_str_eq(f->domain, domain);
        for (size_t k = 0; k < f->opset.len; k++) u.used = u.used || wml_str_eq(f->opset.at[k].domain, domain);
    }
    return u.used || m->training.len;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    r->applied = wml_model_merge_opsets(r->model);
    for (size_t i = r->model->opset.len; i-- > 0;) {
        if (is_used(r->model, r->model->opset.at[i].domain)) continue;
        WML_REMOVE(&r->model->opset, i);
        r->applied++;
    }
    return true;
}

const struct wml_pass wml_pass_opset_imports = {
    .name = "opset-imports", .category = "graph", .on = true, .run = run,
    .summary = "Drop operator sets that are imported twice or that nothing uses",
};
