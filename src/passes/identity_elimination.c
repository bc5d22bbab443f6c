/* Operators that hand their input on unchanged: Identity, Dropout at inference, Cast to the same type or back from a
 * wider one, one operand of Concat or Sum, neutral constants, Tile and Pad that change nothing. */
#include "passes/match.h"

static bool same_elem(const struct wml_value *a, const struct wml_value *b)
{
    return a && b && wml_value_elem(a) == wml_value_elem(b) && wml_value_elem(a) != WML_UNDEFINED;
}

static bool dropout_is_noop(struct wml_pass_run *r, const struct wml_node *n)
{
    int64_t *v;
    size_t count;
    const struct wml_value *training = wml_node_in(n, 2);
    if (n->n_out > 1 && n->out[1] && !wml_value_is_unused(n->out[1])) return false; /* the mask */
    if (wml_model_opset(r->model, "") < 7) return wml_attr_int(n, "is_test", 0) == 1;
    return !training || (wml_constant_of(training) && wml_constant_ints(r, training, &v, &count) && count == 1 && v[0] == 0);
}

static bool all_equal(struct wml_pass_run *r, const struct wml_value *v, int64_t want)
{
    int64_t *at;
    size_t n;
    if (!v || !wml_constant_ints(r, v, &at, &n)) return false;
    for (size_t i = 0; i < n; i++)
        if (at[i] != want) return false;
    return true;
}

/* The operand that comes out unchanged when the other is neutral; NULL: none. */
static struct wml_value *neutral(struct wml_pass_run *r, const struct wml_node *n)
{
    struct wml_value *a = wml_node_in(n, 0), *b = wml_node_in(n, 1), *out = wml_node_out(n, 0);
    bool add = wml_node_is(n, "Add"), sub = wml_node_is(n, "Sub"), mul = wml_node_is(n, "Mul"), div = wml_node_is(n, "Div");
    double unit = add || sub ? 0 : 1;
    if (!(add || sub || mul || div || wml_node_is(n, "Pow")) || !a || !b) return NULL;
    if (wml_constant_is(r, b, unit) && wml_same_type(a, out)) return a;
    if ((add || mul) && wml_constant_is(r, a, unit) && wml_same_type(b, out)) return b;
    return NULL;
}

/* Every value of the type is a value of the wider one. */
static bool holds(enum wml_dtype wide, enum wml_dtype narrow)
{
    const struct wml_dtype_info *w = wml_dtype_info(wide), *n = wml_dtype_info(narrow);
    if (!w || !n || narrow == WML_STRING || wide == WML_STRING) return false;
    if (wide == WML_F32 && (narrow == WML_F16 || narrow == WML_BF16)) return true;
    if (wide == WML_F64 && (narrow == WML_F16 || narrow == WML_BF16 || narrow == WML_F32)) return true;
    if (!wml_dtype_is_integer(narrow) || n->bits < 8) return false;
    if (wide == WML_F32 || wide == WML_F64) return n->bits < (wide == WML_F32 ? 24 : 53);
    bool from_sign = narrow == WML_I8 || narrow == WML_I16 || narrow == WML_I32 || narrow == WML_I64;
    bool to_sign = wide == WML_I8 || wide == WML_I16 || wide == WML_I32 || wide == WML_I64;
    return wml_dtype_is_integer(wide) && w->bits > n->bits && (to_sign || !from_sign);
}

/* x, when n casts back to its type what was widened from it. */
static struct wml_value *cast_back(const struct wml_node *n)
{
    const struct wml_node *up = wml_node_is(n, "Cast") ? wml_node_producer(n, 0) : NULL;
    struct wml_value *x = up && wml_node_is(up, "Cast") ? wml_node_in(up, 0) : NULL;
    if (!x || !same_elem(x, n->out[0])) return NULL;
    return holds(wml_value_elem(up->out[0]), wml_value_elem(x)) ? x : NULL;
}

static bool changes_nothing(struct wml_pass_run *r, const struct wml_node *n)
{
    const struct wml_value *x = wml_node_in(n, 0);
    if (wml_node_is(n, "Identity")) return true;
    if (wml_node_is(n, "Dropout")) return dropout_is_noop(r, n);
    if (wml_node_is(n, "Cast")) return (int64_t)wml_value_elem(x) == wml_attr_int(n, "to", -1);
    if (wml_node_is(n, "CastLike")) return same_elem(x, wml_node_in(n, 1));
    if (wml_node_is(n, "Concat") || wml_node_is(n, "Sum") || wml_node_is(n, "Max") || wml_node_is(n, "Min") ||
        wml_node_is(n, "Mean"))
        return n->n_in == 1;
    if (wml_node_is(n, "Tile")) return all_equal(r, wml_node_in(n, 1), 1);
    if (wml_node_is(n, "Pad")) return wml_node_in(n, 1) && all_equal(r, wml_node_in(n, 1), 0);
    return false;
}

static bool visit(struct wml_pass_run *r, struct wml_node *n)
{
    if (!wml_node_in(n, 0) || !wml_node_out(n, 0)) return true;
    struct wml_value *v = changes_nothing(r, n) ? n->in[0] : wml_node_is(n, "Cast") ? cast_back(n) : neutral(r, n);
    /* A sequence or optional keeps its Identity: its type is the node's business. */
    if (v && v->type && !v->type->tensor && !wml_node_is(n, "Identity")) return true;
    if (v && wml_bypass(n, v)) wml_pass_applied(r, n->op_type, n->name);
    return true;
}

const struct wml_pass wml_pass_identity_elimination = {
    .name = "identity-elimination", .category = "elimination", .on = true, .reference_on = true, .visit = visit,
    .summary = "Remove operators that change nothing: Identity, Dropout, no-op Cast, Tile, Pad, + 0, * 1",
};
