/* Exp(x + b) * s = Exp(x + (b + ln s)) for positive s: the product goes into the bias. Views may stand between. */
#include "passes/match.h"

#include <math.h>

enum { MAX_DEPTH = 64 };

static bool is_view(const struct wml_node *n)
{
    return wml_node_is(n, "Reshape") || wml_node_is(n, "Squeeze") || wml_node_is(n, "Unsqueeze") || wml_node_is(n, "Flatten") ||
           wml_node_is(n, "Identity");
}

/* Through views that only the next node reads, up to a node that is none. */
static struct wml_node *above(struct wml_node *n, size_t slot)
{
    struct wml_node *p = wml_node_producer(n, slot), *reader = n;
    for (size_t depth = 0; p && p->graph == n->graph && depth < MAX_DEPTH; depth++) {
        if (wml_value_only_user(p->out[0]) != reader || p->out[0]->pinned) return NULL;
        if (!is_view(p)) return p;
        reader = p;
        p = wml_node_producer(p, 0);
    }
    return NULL;
}

/* ln of one positive factor. */
static bool log_of(struct wml_pass_run *r, const struct wml_value *v, int dtype, double *out)
{
    double s;
    const struct wml_tensor *t = wml_constant_of(v);
    if (!t || t->dtype != dtype || !wml_constant_scalar(r, v, &s) || !isfinite(s) || s <= 0) return false;
    *out = log(s);
    return true;
}

/* The Add's constant, every element plus `more`; NULL when it would lose precision. */
static struct wml_value *shifted(struct wml_pass_run *r, struct wml_value *v, double more)
{
    struct wml_tensor *t = wml_constant_of(v);
    double *x;
    size_t n, width;
    if (!t || !wml_dtype_is_float(t->dtype) || !wml_tensor_doubles(r->model, t, &x, &n, NULL)) return NULL;
    width = wml_dtype_info(t->dtype)->bits / 8;
    unsigned char *bytes = wml_arena_alloc(r->scratch, n * width + 1);
    for (size_t i = 0; i < n; i++) {
        if (fabs(x[i] + more) > fmax(fabs(x[i]), fabs(more)) + 1e-12 && fabs(x[i]) > 16) return NULL;
        wml_dtype_store(t->dtype, bytes, i, x[i] + more);
    }
    return wml_graph_add_init(v->graph, WML_STR("algebraic_exp_log_bias"),
                              wml_tensor_copy(r->model, (enum wml_dtype)t->dtype, t->dims.len, t->dims.at, bytes, n * width, NULL));
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    double more;
    if (!wml_node_is(n, "Mul") || !wml_node_out(n, 0)) return true;
    for (size_t slot = 0; slot < 2; slot++) {
        struct wml_value *x = wml_node_in(n, slot), *s = wml_node_in(n, 1 - slot), *bias = NULL;
        struct wml_node *exp = x ? above(n, slot) : NULL;
        if (!exp || !wml_node_is(exp, "Exp") || !wml_same_type(x, n->out[0]) || !wml_can_bypass(n, x) || !log_of(r, s, (int)wml_value_elem(x), &more)) continue;
        struct wml_node *add = above(exp, 0);
        if (add && wml_node_is(add, "Add"))
            for (size_t k = 0; k < 2 && !bias; k++) {
                if (!wml_constant_of(add->in[k])) continue;
                bias = shifted(r, add->in[k], more);
                if (bias) wml_node_set_input(add, k, bias);
            }
        if (!bias) {
            struct wml_node *before = wml_node_new(exp, "", "Add");
            unsigned char one[16] = {0};
            int dtype = (int)wml_value_elem(x);
            wml_dtype_store(dtype, one, 0, more);
            before->name = wml_model_unique(r->model, WML_STR("algebraic_exp_add"));
            wml_node_set_input(before, 0, exp->in[0]);
            wml_node_set_input(before, 1, wml_graph_add_init(n->graph, WML_STR("algebraic_exp_log_scale"),
                                                             wml_tensor_copy(r->model, (enum wml_dtype)dtype, 0, NULL, one,
                                                                             wml_dtype_info(dtype)->bits / 8, NULL)));
            wml_node_set_input(exp, 0, wml_node_add_output(before, WML_STR("algebraic_exp_in")));
        }
        struct wml_str op = n->op_type, name = n->name;
        if (wml_bypass(n, x)) wml_pass_applied(r, op, name);
        return true;
    }
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < 7) return wml_pass_skip(r, "operands broadcast by an attribute below opset 7");
    return wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_exp_positive_scale_folding = {
    .name = "exp-positive-scale-folding", .category = "rewrite", .pipe = "algebraic_rewrite", .run = run,
    .summary = "Fold a positive factor behind Exp into the sum before it",
};
