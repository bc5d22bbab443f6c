/* Hard swish written out, from opset 14: (x * clip(x + 3, 0, 6)) / 6 -> HardSwish(x). "/ 6" may be a product with
 * 1/6. Inner values must have no other reader. Below opset 14 the pattern stays: its other standard form, a
 * product with HardSigmoid, is both slow and coarse on some NPUs. */
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

static bool visit(void *arg, struct wml_node *n)
{
    struct wml_pass_run *r = arg;
    size_t slot = sixth(r, n);
    if (slot == SIZE_MAX || !wml_node_out(n, 0)) return true;
    struct wml_value *v = wml_node_in(n, slot), *x;
    struct wml_node *mul = v ? v->def : NULL;
    if (!mul || !wml_node_is(mul, "Mul") || wml_value_only_user(v) != n || v->pinned) return true;
    for (size_t k = 0; k < 2; k++) {
        x = shifted_clip(r, wml_node_in(mul, k), mul);
        if (!x || x != wml_node_in(mul, 1 - k)) continue;
        wml_node_set_op(n, "", "HardSwish");
        wml_node_set_input(n, 0, x);
        wml_node_remove_input(n, 1);
        r->applied++;
        break;
    }
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    if (wml_model_opset(r->model, "") < 14) return wml_pass_skip(r, "HardSwish exists from opset 14");
    return wml_pass_each(r, visit);
}

const struct wml_pass wml_pass_hard_swish_fusion = {
    .name = "hard-swish-fusion", .category = "activation", .on = true, .run = run,
    .summary = "Turn a written-out hard swish into HardSwish (from opset 14)",
};
