/* Hard sigmoid and hard swish written out:
 *
 *     clip(x + 3, 0, 6) / 6          -> HardSigmoid(x; 1/6, 1/2)
 *     (x * clip(x + 3, 0, 6)) / 6    -> x * HardSigmoid(x; 1/6, 1/2)
 *     x * HardSigmoid(x; 1/6, 1/2)   -> HardSwish(x)                  from opset 14
 *
 * "/ 6" may be a product with 1/6. Inner values must have no other reader. */
#include "passes/match.h"

#include <math.h>

static bool is_scalar(struct wml_pass_run *r, const struct wml_value *v, double want)
{
    struct wml_tensor *t = wml_constant_of(v);
    uint64_t n = 0;
    double *x;
    size_t len;
    if (!t || !wml_dtype_is_float(t->dtype) || !wml_tensor_count(t, &n, NULL) || n != 1) return false;
    if (!wml_tensor_doubles(r->model, t, &x, &len, NULL)) return false;
    return fabs(x[0] - want) <= 1e-6 * fabs(want);
}

/* The bounds of a Clip: inputs from opset 11, attributes before. */
static bool clips_0_6(struct wml_pass_run *r, const struct wml_node *n)
{
    if (n->n_in > 1) {
        const struct wml_value *low = wml_node_in(n, 1), *high = wml_node_in(n, 2);
        return low && high && wml_constant_is(r, low, 0) && wml_constant_is(r, high, 6);
    }
    return wml_attr_float(n, "min", -1) == 0 && wml_attr_float(n, "max", -1) == 6;
}

/* v is clip(x + 3, 0, 6) and only `reader` uses it: x, or NULL. */
static struct wml_value *shifted_clip(struct wml_pass_run *r, struct wml_value *v, const struct wml_node *reader)
{
    struct wml_node *clip = v ? v->def : NULL, *add;
    if (!clip || !wml_node_is(clip, "Clip") || wml_value_only_user(v) != reader || v->pinned || !clips_0_6(r, clip)) return NULL;
    struct wml_value *sum = wml_node_in(clip, 0);
    add = sum ? sum->def : NULL;
    if (!add || !wml_node_is(add, "Add") || wml_value_only_user(sum) != clip || sum->pinned) return NULL;
    if (is_scalar(r, wml_node_in(add, 1), 3)) return wml_node_in(add, 0);
    if (is_scalar(r, wml_node_in(add, 0), 3)) return wml_node_in(add, 1);
    return NULL;
}

/* n divides its operand by 6: the slot of the operand, or SIZE_MAX. */
static size_t sixth(struct wml_pass_run *r, const struct wml_node *n)
{
    if (wml_node_is(n, "Div") && is_scalar(r, wml_node_in(n, 1), 6)) return 0;
    if (wml_node_is(n, "Mul") && is_scalar(r, wml_node_in(n, 1), 1.0 / 6)) return 0;
    if (wml_node_is(n, "Mul") && is_scalar(r, wml_node_in(n, 0), 1.0 / 6)) return 1;
    return SIZE_MAX;
}

static struct wml_value *hard_sigmoid(struct wml_node *before, struct wml_value *x)
{
    struct wml_node *h = wml_node_new(before, "", "HardSigmoid");
    wml_node_add_input(h, x);
    wml_attr_set_float(h, "alpha", 1.0f / 6);
    wml_attr_set_float(h, "beta", 0.5f);
    struct wml_value *out = wml_node_add_output(h, WML_STR("hard_sigmoid"));
    if (x->type && x->type->tensor) wml_value_set_type(out, wml_type_copy(before->graph->model, x->type));
    return out;
}

static void turn_into(struct wml_node *n, const char *op, struct wml_value *a, struct wml_value *b)
{
    wml_node_set_op(n, "", op);
    wml_node_set_input(n, 0, a);
    while (n->n_in > (b ? 2u : 1u)) wml_node_remove_input(n, n->n_in - 1);
    if (b) wml_node_set_input(n, 1, b);
}

static bool visit(void *arg, struct wml_node *n)
{
    struct wml_pass_run *r = arg;
    size_t slot = sixth(r, n);
    if (slot == SIZE_MAX || !wml_node_out(n, 0)) return true;
    struct wml_value *v = wml_node_in(n, slot), *x;
    if (!v || !v->def) return true;
    if ((x = shifted_clip(r, v, n))) {
        turn_into(n, "HardSigmoid", x, NULL);
        wml_attr_set_float(n, "alpha", 1.0f / 6);
        wml_attr_set_float(n, "beta", 0.5f);
        r->applied++;
        return true;
    }
    struct wml_node *mul = v->def;
    if (!wml_node_is(mul, "Mul") || wml_value_only_user(v) != n || v->pinned) return true;
    for (size_t k = 0; k < 2; k++) {
        x = shifted_clip(r, wml_node_in(mul, k), mul);
        if (!x || x != wml_node_in(mul, 1 - k)) continue;
        turn_into(n, "Mul", x, hard_sigmoid(n, x));
        r->applied++;
        break;
    }
    return true;
}

static bool is_sixth_sigmoid(const struct wml_node *n, const struct wml_value *x)
{
    return n && wml_node_is(n, "HardSigmoid") && wml_node_in(n, 0) == x &&
           fabsf(wml_attr_float(n, "alpha", 0.2f) - 1.0f / 6) < 1e-6f && wml_attr_float(n, "beta", 0.5f) == 0.5f;
}

static bool join(void *arg, struct wml_node *n)
{
    struct wml_pass_run *r = arg;
    if (!wml_node_is(n, "Mul") || wml_model_opset(r->model, "") < 14) return true;
    for (size_t k = 0; k < 2; k++) {
        struct wml_value *h = wml_node_in(n, k), *x = wml_node_in(n, 1 - k);
        if (!h || !x || !is_sixth_sigmoid(h->def, x) || wml_value_only_user(h) != n || h->pinned) continue;
        turn_into(n, "HardSwish", x, NULL);
        r->applied++;
        break;
    }
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_pass_each(r, visit) && wml_pass_each(r, join);
}

const struct wml_pass wml_pass_hard_swish_fusion = {
    .name = "hard-swish-fusion", .category = "activation", .on = true, .run = run,
    .summary = "Turn a written-out hard sigmoid or hard swish into HardSigmoid, HardSwish",
};
