/* Finds softmax(scale * Q K^T + mask) V around a Softmax. What is between the product and Softmax may come in any
 * order exporters know, as long as nothing scales the mask; of two operands of an Add the one that leads to a MatMul
 * is the product, the first one if both do. */
#include "passes/attention_form.h"

#include <math.h>

/* Fills below this swallow any finite product of float32. */
#define FAR_BELOW (-1e30)

static bool note(struct wml_attention *a, struct wml_value *v)
{
    if (a->n_inner == WML_ATTENTION_INNER) return false;
    a->inner[a->n_inner++] = v;
    return true;
}

static bool keeps_last_two(const struct wml_node *n)
{
    const struct wml_value *in = wml_node_in(n, 0), *out = wml_node_out(n, 0);
    int64_t a = in ? wml_value_rank(in) : -1, b = wml_value_rank(out);
    if (!wml_node_is(n, "Reshape") || a < 3 || b < 3 || a + b != 7) return false;
    return wml_same_axis(in, (size_t)a - 2, out, (size_t)b - 2) && wml_same_axis(in, (size_t)a - 1, out, (size_t)b - 1);
}

static bool climb(struct wml_attention *a, struct wml_value *v, bool scaled);

/* On through one operand; what was noted on a way that leads nowhere is forgotten. */
static bool climb_through(struct wml_attention *a, struct wml_value *v, double factor, const struct wml_mask_step *step, bool scaled)
{
    size_t n_inner = a->n_inner, n_mask = a->n_mask;
    double scale = a->scale;
    struct wml_value *product = a->product;
    if (step) {
        /* A mask inside a product that is scaled would be scaled too. */
        if (scaled || a->n_mask == WML_MASK_STEPS) return false;
        a->mask[a->n_mask++] = *step;
    }
    a->scale *= factor;
    if (climb(a, v, scaled || factor != 1)) return true;
    a->n_inner = n_inner;
    a->n_mask = n_mask;
    a->scale = scale;
    a->product = product;
    return false;
}

/* Exporters expand masks to the shape of the product before they use them, which broadcasting does as well. */
static bool take_mask(struct wml_mask_step *step, struct wml_value *v)
{
    step->value = v;
    if (!v) return false;
    struct wml_node *n = v->def;
    const struct wml_node *shape = n && wml_node_is(n, "Expand") ? wml_node_producer(n, 1) : NULL;
    if (!shape || !wml_node_is(shape, "Shape") || wml_value_only_user(shape->out[0]) != n || !wml_value_only_user(v)) return true;
    if (wml_attr_int(shape, "start", 0) || wml_attr_find(shape, "end") || !wml_node_in(n, 0)) return true;
    step->value = n->in[0];
    step->expand = n;
    return true;
}

static bool climb_add(struct wml_attention *a, const struct wml_node *n, bool scaled)
{
    for (size_t i = 0; i < 2; i++) {
        struct wml_mask_step step = {.kind = WML_MASK_ADD};
        if (take_mask(&step, wml_node_in(n, 1 - i)) && climb_through(a, wml_node_in(n, i), 1, &step, scaled)) return true;
    }
    return false;
}

static bool climb_where(struct wml_attention *a, const struct wml_node *n, bool scaled)
{
    for (size_t i = 1; i < 3; i++) {
        struct wml_mask_step step = {.kind = i == 1 ? WML_MASK_KEEP : WML_MASK_DROP, .fill = wml_node_in(n, 3 - i)};
        if (!take_mask(&step, wml_node_in(n, 0)) || !step.fill || !wml_constant_scalar(a->r, step.fill, &step.number)) continue;
        if (climb_through(a, wml_node_in(n, i), 1, &step, scaled)) return true;
    }
    return false;
}

/* From v up to the MatMul of Q and K. */
static bool climb(struct wml_attention *a, struct wml_value *v, bool scaled)
{
    struct wml_node *n = v ? v->def : NULL;
    double factor = 1;
    if (!n || n->graph != a->softmax->graph || !note(a, v)) return false;
    if (wml_value_rank(v) == 4) a->product = v; /* the one nearest to the MatMul stays */
    if (wml_node_is(n, "MatMul")) {
        int64_t rank = wml_value_rank(v);
        a->scores = n;
        return n->n_in == 2 && (rank == 3 || rank == 4) && rank == wml_value_rank(n->in[0]) && rank == wml_value_rank(n->in[1]);
    }
    struct wml_value *other = wml_scaled_from(a->r, v, &factor);
    if (other) return climb_through(a, other, factor, NULL, true);
    if (wml_node_is(n, "Add")) return climb_add(a, n, scaled);
    if (wml_node_is(n, "Where")) return climb_where(a, n, scaled);
    return keeps_last_two(n) && climb(a, n->in[0], scaled);
}

/* The only reader of v; v is noted. */
static struct wml_node *follow(struct wml_attention *a, struct wml_value *v)
{
    return note(a, v) ? wml_value_only_user(v) : NULL;
}

static bool is_cast(const struct wml_node *n, enum wml_dtype from, enum wml_dtype to)
{
    return n && wml_node_is(n, "Cast") && wml_node_in(n, 0) && wml_value_elem(n->in[0]) == from && wml_attr_int(n, "to", 0) == to;
}

/* The target shape has no 0 beyond the axes that joining the heads keeps. */
static bool takes_joined(struct wml_pass_run *r, const struct wml_node *reshape)
{
    int64_t *dim;
    size_t n;
    if (!wml_constant_of(wml_node_in(reshape, 1)) || !wml_constant_ints(r, reshape->in[1], &dim, &n)) return false;
    for (size_t i = 2; i < n; i++)
        if (dim[i] == 0) return false;
    return !wml_attr_int(reshape, "allowzero", 0);
}

/* Down from Softmax to the MatMul with V and the joining of the heads. */
static bool descend(struct wml_attention *a)
{
    struct wml_node *n = follow(a, a->softmax->out[0]);
    if (n && a->widened) {
        if (!is_cast(n, WML_F32, WML_F16)) return false;
        n = follow(a, n->out[0]);
    }
    if (n && wml_node_is(n, "Reshape") && keeps_last_two(n)) n = follow(a, n->out[0]);
    if (!n || !wml_node_is(n, "MatMul") || n->n_in != 2 || n->graph != a->softmax->graph || n->in[0] == n->in[1]) return false;
    if (a->n_inner == 0 || n->in[0] != a->inner[a->n_inner - 1]) return false; /* P is the second operand */
    a->context = n;
    a->out = n->out[0];
    if (wml_value_rank(a->out) == 3) {
        n = follow(a, a->out);
        if (!n || !keeps_last_two(n)) return false;
        a->out = n->out[0];
    }
    return wml_value_rank(a->out) == 4;
}

static struct wml_node *next_of(const struct wml_attention *a, const struct wml_value *v)
{
    struct wml_node *n = v->pinned ? NULL : wml_value_only_user(v);
    return n && n->graph == a->softmax->graph ? n : NULL;
}

static void find_tail(struct wml_attention *a)
{
    struct wml_node *n = next_of(a, a->out);
    if (!n || !wml_is_transpose(n, 0, 2, 1, 3)) return;
    a->join = n;
    n = next_of(a, n->out[0]);
    if (!n || !wml_node_is(n, "Reshape") || n->in[0] != a->join->out[0]) return;
    if (wml_reshape_keeps_two(a->r, n, a->q.flat) && wml_value_rank(n->out[0]) == 3) a->tail = n;
    else if (takes_joined(a->r, n)) a->tail = n, a->tail_stays = true;
}

static bool is_over_last_axis(const struct wml_pass_run *r, const struct wml_node *softmax)
{
    int64_t rank = wml_value_rank(softmax->in[0]);
    int64_t axis = wml_attr_int(softmax, "axis", wml_model_opset(r->model, "") < 13 ? 1 : -1);
    return rank > 0 && (axis == -1 || axis == rank - 1);
}

/* The reader is the Shape that a mask was expanded to. */
static bool is_shape_of_mask(const struct wml_attention *a, const struct wml_node *n)
{
    for (size_t i = 0; i < a->n_mask; i++)
        if (a->mask[i].expand && wml_node_producer(a->mask[i].expand, 1) == n) return true;
    return false;
}

/* Nothing else reads what would go away. */
static bool is_closed(const struct wml_attention *a)
{
    for (size_t i = 0; i < a->n_inner; i++) {
        const struct wml_value *v = a->inner[i];
        size_t readers = 0;
        for (const struct wml_use *u = v->uses; u; u = u->next) readers += !is_shape_of_mask(a, u->node);
        if (readers != 1 || v->n_outputs || v->pinned) return false;
    }
    return true;
}

/* A mask was expanded to the shape of an inner value, and not to another. */
static bool expands_are_own(const struct wml_attention *a)
{
    for (size_t i = 0; i < a->n_mask; i++) {
        const struct wml_node *e = a->mask[i].expand;
        bool own = !e;
        for (size_t k = 0; k < a->n_inner && !own; k++) own = e->in[1]->def->in[0] == a->inner[k] && wml_value_rank(a->inner[k]) == 4;
        if (!own) return false;
    }
    return true;
}

/* K^T: one of its Transposes swaps the last two axes, alone or together with the splitting. */
static bool key_of(struct wml_attention *a)
{
    static const int64_t swap3[] = {0, 2, 1};
    struct wml_value *v = a->scores->in[1], *up;
    while ((up = wml_scaled_from(a->r, v, &a->scale))) v = up;
    if (v->def && wml_value_rank(v) <= 4 && keeps_last_two(v->def)) v = v->def->in[0];
    size_t n_perm = 0;
    const struct wml_node *t = v->def;
    const int64_t *perm = t && wml_node_is(t, "Transpose") && wml_node_in(t, 0) ? wml_attr_ints(t, "perm", &n_perm) : NULL;
    if (!perm) return false;
    if (n_perm == 3 && !memcmp(perm, swap3, sizeof swap3)) return wml_heads_of(a->r, t->in[0], true, &a->k);
    if (wml_is_transpose(t, 0, 1, 3, 2)) return wml_heads_of(a->r, t->in[0], true, &a->k);
    return wml_is_transpose(t, 0, 2, 3, 1) && wml_heads_from_split(a->r, t->in[0], 1, true, &a->k);
}

static bool masks_are_sound(const struct wml_attention *a, const char **why)
{
    for (size_t i = 0; i < a->n_mask; i++) {
        const struct wml_mask_step *s = &a->mask[i];
        enum wml_dtype dtype = wml_value_elem(a->scores->out[0]);
        double far = dtype == WML_F16 ? -INFINITY : FAR_BELOW;
        if (s->kind == WML_MASK_ADD && wml_value_elem(s->value) != dtype) {
            *why = "the mask has another type than the product";
            return false;
        }
        if (s->kind != WML_MASK_ADD && !(s->number <= far)) {
            *why = "the value that Where fills in is not far below every product";
            return false;
        }
    }
    return true;
}

static void reverse(struct wml_attention *a)
{
    for (size_t i = 0; i < a->n_mask / 2; i++) {
        struct wml_mask_step t = a->mask[i];
        a->mask[i] = a->mask[a->n_mask - 1 - i];
        a->mask[a->n_mask - 1 - i] = t;
    }
}

/* The NaN guard reads Softmax twice. */
static bool is_guarded(const struct wml_node *softmax)
{
    for (const struct wml_use *u = softmax->out[0]->uses; u; u = u->next)
        if (wml_node_is(u->node, "IsNaN")) return true;
    return false;
}

static bool heads_agree(const struct wml_attention *a)
{
    return wml_value_axis(a->out, 1).size == a->q.heads && (!a->product || wml_value_axis(a->product, 1).size == a->q.heads);
}

bool wml_attention_find(struct wml_pass_run *r, struct wml_node *softmax, struct wml_attention *out)
{
    struct wml_attention a = {.r = r, .softmax = softmax, .scale = 1};
    const char *why = NULL;
    if (!wml_node_is(softmax, "Softmax") || !wml_node_in(softmax, 0) || !wml_node_out(softmax, 0)) return false;
    struct wml_value *v = softmax->in[0];
    if (is_cast(v->def, WML_F16, WML_F32)) {
        a.widened = true;
        if (!note(&a, v)) return false;
        v = v->def->in[0];
    }
    if (!climb(&a, v, false)) return false;
    reverse(&a);
    if (!descend(&a)) {
        if (is_guarded(softmax)) why = "a NaN guard stands behind Softmax; remove-isnan-in-attention-mask removes it";
        goto no;
    }
    if (!is_over_last_axis(r, softmax)) why = "Softmax is not over the last axis";
    else if (!expands_are_own(&a)) why = "a mask is expanded to the shape of something else";
    else if (!is_closed(&a)) why = "an inner value has other readers or is an output";
    else if (!wml_heads_of(r, a.scores->in[0], true, &a.q)) why = "the heads of Q are not known";
    else if (!key_of(&a)) why = "K is not transposed before the product, or its heads are not known";
    else if (!wml_heads_of(r, a.context->in[1], false, &a.v)) why = "the heads of V are not known";
    else if (a.q.size != a.k.size) why = "the heads of Q and K have different sizes";
    else if (!heads_agree(&a)) why = "the product or the result is split into other heads than Q";
    else if (masks_are_sound(&a, &why)) {
        find_tail(&a);
        *out = a;
        return true;
    }
no:
    if (why) wml_pass_refuse(r, softmax, "%s", why);
    return false;
}

void wml_attention_set_scale(struct wml_node *n, double scale, int64_t size)
{
    double usual = 1 / sqrt((double)size);
    if (fabs(scale - usual) > 1e-6 * usual) wml_attr_set_float(n, "scale", (float)scale);
}

bool wml_attention_is_even(const struct wml_attention *a)
{
    const struct wml_heads *q = &a->q, *other[] = {&a->k, &a->v};
    struct wml_value *x = q->flat ? q->flat : q->bsnh ? q->bsnh : q->bnsh;
    for (size_t i = 0; i < 2; i++) {
        const struct wml_heads *h = other[i];
        struct wml_value *y = h->flat ? h->flat : h->bsnh ? h->bsnh : h->bnsh;
        if (h->heads != q->heads) {
            wml_pass_refuse(a->r, a->softmax, "K or V has other heads than Q");
            return false;
        }
        if (wml_same_axis(x, 0, y, 0) || wml_leads_of(x) == wml_leads_of(y)) continue;
        wml_pass_refuse(a->r, a->softmax, "the batches of Q, K and V are not known to be equal");
        return false;
    }
    return true;
}

static struct wml_type *joined_type(const struct wml_attention *a)
{
    const struct wml_value *from = a->join->out[0];
    struct wml_axis axis[3] = {wml_value_axis(from, 0), wml_value_axis(from, 1), {a->v.heads * a->v.size, WML_NO_STR}};
    return wml_type_tensor(a->r->model, wml_value_elem(from), 3, axis);
}

void wml_attention_finish(struct wml_attention *a, struct wml_node *n, bool joined)
{
    n->name = a->scores->name;
    a->scores->name = WML_STR("");
    n->metadata = a->scores->metadata;
    wml_pass_applied(a->r, a->softmax->op_type, a->softmax->name);
    struct wml_node *last = joined ? a->tail : a->out->def;
    if (joined && a->tail_stays) {
        struct wml_value *flat = wml_node_add_output(n, a->join->out[0]->name);
        wml_node_take_output(n, 0, flat); /* others may be there already */
        wml_value_set_type(flat, joined_type(a));
        wml_node_set_input(a->tail, 0, flat);
        last = a->join;
    } else {
        wml_node_take_output(n, 0, last->out[0]);
    }
    wml_prune(last);
}

bool wml_leads_only_to(const struct wml_value *v, const struct wml_node *end)
{
    for (size_t i = 0; i < 12; i++) {
        const struct wml_node *user = v->pinned ? NULL : wml_value_only_user(v);
        if (user == end) return true;
        if (!user || user->n_out != 1 || !user->out[0]) return false;
        v = user->out[0];
    }
    return false;
}
