/* A mask hides the future when it is made from a comparison j <= i + past of positions, which exporters write as
 * Ranges with axes added, LessOrEqual or its like, And with the padding's mask, Where with a number far below zero; or
 * when it is a constant that does. */
#include "passes/causal_mask.h"

#include <math.h>

#define FAR_BELOW (-1e30)
#define FAR_BELOW_HALF (-6e4) /* what half floats have for it: their lowest number */
enum { MAX_DEPTH = 12 };

struct proof {
    const struct wml_attention *a;
    struct wml_pass_run *r;
    struct wml_symbols *c;
    struct wml_sym past;
    double far;
};

static enum wml_causal seen_where(const struct proof *p, struct wml_value *v, bool wanted, unsigned depth);

static struct wml_value *through_views(struct wml_value *v)
{
    static const char *const op[] = {"Unsqueeze", "Expand", "Identity", "Cast"};
    for (bool again = true; again && v->def;) {
        again = false;
        for (size_t i = 0; i < WML_COUNT(op); i++)
            if (wml_node_is(v->def, op[i]) && wml_node_in(v->def, 0)) {
                v = v->def->in[0];
                again = true;
                break;
            }
    }
    return v;
}

/* The same for masks: what adds axes in front or repeats along them. */
static struct wml_value *through_masks(struct wml_pass_run *r, struct wml_value *v)
{
    for (const struct wml_node *n; (n = v->def) && wml_node_in(n, 0);) {
        const int64_t *axes;
        size_t len;
        int64_t rank = wml_value_rank(v);
        if (wml_node_is(n, "Unsqueeze")) {
            if (rank < 0 || !wml_axes_of(r, n, &axes, &len)) break;
            for (size_t i = 0; i < len; i++)
                if ((axes[i] < 0 ? axes[i] + rank : axes[i]) >= rank - 2) return v;
        } else if (!wml_node_is(n, "Expand") && !wml_node_is(n, "Identity") && !wml_node_is(n, "Cast")) {
            break;
        }
        v = n->in[0];
    }
    return v;
}

/* v counts up by one along an axis, from *first on. */
static bool counts(const struct proof *p, struct wml_value *v, struct wml_sym *first, unsigned depth)
{
    v = through_views(v);
    const struct wml_node *n = v->def;
    if (!n || depth == MAX_DEPTH) return false;
    if (wml_node_is(n, "Range")) {
        const struct wml_syms *start = wml_syms_of(p->c, n->in[0]), *step = wml_syms_of(p->c, n->in[2]);
        if (!start || start->n != 1 || !step || step->n != 1 || !wml_sym_is(step->at[0], 1)) return false;
        *first = start->at[0];
        return true;
    }
    if (!wml_node_is(n, "Add")) return false;
    for (size_t i = 0; i < 2; i++) {
        const struct wml_syms *more = wml_syms_of(p->c, through_views(n->in[i]));
        if (!more || more->n != 1 || !counts(p, n->in[1 - i], first, depth + 1)) continue;
        *first = wml_sym_sum(p->r->model, *first, more->at[0]);
        return true;
    }
    return false;
}

/* The one axis of v that is not 1, counted from the last: 0 the keys, 1 the queries. */
static bool lies_along(const struct wml_value *v, size_t from_last)
{
    int64_t rank = wml_value_rank(v);
    if (rank <= (int64_t)from_last) return false;
    for (int64_t i = 0; i < rank; i++)
        if (i != rank - 1 - (int64_t)from_last && wml_value_axis(v, (size_t)i).size != 1) return false;
    return true;
}

/* keys <= queries + more, in numbers of positions. */
static enum wml_causal compares(const struct proof *p, struct wml_value *keys, struct wml_value *queries, int64_t more)
{
    struct wml_sym k, q;
    if (!lies_along(keys, 0) || !lies_along(queries, 1) || !counts(p, keys, &k, 0) || !counts(p, queries, &q, 0)) return WML_CAUSAL_UNPROVEN;
    struct wml_sym ahead = wml_sym_difference(wml_sym_sum(p->r->model, q, wml_sym_number(more)), k);
    return wml_sym_eq(ahead, p->past) ? WML_CAUSAL_EXACT : WML_CAUSAL_UNPROVEN;
}

/* A constant whose last two axes are queries and keys: what is seen where it is true. */
static enum wml_causal constant_seen(const struct proof *p, const struct wml_value *v, bool (*sees)(double x))
{
    struct wml_tensor *t = wml_constant_of(v);
    double *x;
    size_t n, rank = t->dims.len;
    if (rank < 2 || p->past.kind != WML_SYM_NUMBER || !wml_tensor_doubles(p->r->model, t, &x, &n, NULL)) return WML_CAUSAL_UNPROVEN;
    int64_t rows = t->dims.at[rank - 2], columns = t->dims.at[rank - 1];
    bool exact = true;
    if (columns != rows + p->past.v || wml_value_axis(p->a->product, 2).size != rows) return WML_CAUSAL_UNPROVEN;
    for (size_t i = 0; i < n; i++) {
        int64_t column = (int64_t)i % columns, row = (int64_t)i / columns % rows;
        bool may = column <= row + p->past.v;
        if (!may && sees(x[i])) return WML_CAUSAL_UNPROVEN;
        exact = exact && may == (sees(x[i]) && x[i] <= 1);
    }
    return exact ? WML_CAUSAL_EXACT : WML_CAUSAL_HIDES;
}

static bool is_not_far(double x)
{
    return x > FAR_BELOW;
}

static bool is_not_far_half(double x)
{
    return x > FAR_BELOW_HALF;
}

static bool is_true(double x)
{
    return x != 0;
}

static bool is_false(double x)
{
    return x == 0;
}

/* Every element is true: And with it changes nothing. */
static bool all_true(const struct proof *p, const struct wml_value *v)
{
    return wml_constant_of(v) && wml_constant_is(p->r, v, 1);
}

static enum wml_causal both(const struct proof *p, const struct wml_node *n, unsigned depth)
{
    for (size_t i = 0; i < 2; i++)
        if (all_true(p, n->in[i])) return seen_where(p, n->in[1 - i], true, depth);
    for (size_t i = 0; i < 2; i++)
        if (seen_where(p, n->in[i], true, depth)) return WML_CAUSAL_HIDES;
    return WML_CAUSAL_UNPROVEN;
}

/* Keys are seen only where v is true (or false). */
static enum wml_causal seen_where(const struct proof *p, struct wml_value *v, bool wanted, unsigned depth)
{
    v = through_masks(p->r, v);
    const struct wml_node *n = v->def;
    if (wml_constant_of(v)) return constant_seen(p, v, wanted ? is_true : is_false);
    if (!n || depth == MAX_DEPTH) return WML_CAUSAL_UNPROVEN;
    if (wml_node_is(n, "Not")) return seen_where(p, n->in[0], !wanted, depth + 1);
    if (wml_node_is(n, "And") && wanted) return both(p, n, depth + 1);
    if (wml_node_is(n, "Or") && !wanted) {
        for (size_t i = 0; i < 2; i++)
            if (seen_where(p, n->in[i], false, depth + 1)) return WML_CAUSAL_HIDES;
        return WML_CAUSAL_UNPROVEN;
    }
    if (n->n_in != 2) return WML_CAUSAL_UNPROVEN;
    struct wml_value *a = n->in[0], *b = n->in[1];
    if (wml_node_is(n, "LessOrEqual")) return wanted ? compares(p, a, b, 0) : compares(p, b, a, -1);
    if (wml_node_is(n, "GreaterOrEqual")) return wanted ? compares(p, b, a, 0) : compares(p, a, b, -1);
    if (wml_node_is(n, "Less")) return wanted ? compares(p, a, b, -1) : compares(p, b, a, 0);
    if (wml_node_is(n, "Greater")) return wanted ? compares(p, b, a, -1) : compares(p, a, b, 0);
    return WML_CAUSAL_UNPROVEN;
}

/* Adding v hides the future. */
static enum wml_causal hides(const struct proof *p, struct wml_value *v)
{
    double fill[2];
    v = through_masks(p->r, v);
    const struct wml_node *n = v->def;
    if (wml_constant_of(v)) return constant_seen(p, v, p->far == FAR_BELOW ? is_not_far : is_not_far_half) ? WML_CAUSAL_HIDES : WML_CAUSAL_UNPROVEN;
    if (!n || !wml_node_is(n, "Where")) return WML_CAUSAL_UNPROVEN;
    for (size_t i = 0; i < 2; i++)
        if (!wml_constant_scalar(p->r, n->in[1 + i], &fill[i])) fill[i] = NAN;
    bool kept = fill[1] <= p->far; /* where the condition is false */
    if (!kept && !(fill[0] <= p->far)) return WML_CAUSAL_UNPROVEN;
    enum wml_causal c = seen_where(p, n->in[0], kept, 0);
    return c == WML_CAUSAL_EXACT && fill[kept ? 0 : 1] != 0 ? WML_CAUSAL_HIDES : c;
}

enum wml_causal wml_mask_is_causal(struct wml_symbols *c, const struct wml_attention *a, struct wml_sym past)
{
    struct proof p = {a, a->r, c, past, wml_value_elem(a->scores->out[0]) == WML_F16 ? FAR_BELOW_HALF : FAR_BELOW};
    if (past.kind == WML_SYM_OPEN || !a->product) return WML_CAUSAL_UNPROVEN;
    for (size_t i = 0; i < a->n_mask; i++) {
        const struct wml_mask_step *s = &a->mask[i];
        enum wml_causal is = s->kind == WML_MASK_ADD ? hides(&p, s->value) : seen_where(&p, s->value, s->kind == WML_MASK_KEEP, 0);
        if (is) return a->n_mask == 1 ? is : WML_CAUSAL_HIDES;
    }
    return WML_CAUSAL_UNPROVEN;
}
