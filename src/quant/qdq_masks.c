/* Masks: numbers near the float limits, or infinities, that are added or chosen so that a Softmax gives nothing for them;
 * constants of -1000 and below are masks where a Softmax follows. Spread over 256 integers such a range leaves one integer for all real values, and a mask that no sample showed is lost
 * altogether. So masks are followed from the constants and ranges that hold them, and every value on the way gets a range
 * whose masked end is a finite number that still does the work: after what is added or multiplied on the way, masked
 * elements lie GAP below (or above) the real ones, and e^-16 is less than any integer of a Softmax can say.
 *
 * side 0 is the low end, side 1 the high one. */
#include <math.h>

#include "graph/graph.h"
#include "ops/ops.h"
#include "quant/qdq_internal.h"

static const double GAP = 16, HUGE_F32 = 1e30, HUGE_F16 = 65000, MASK = 1000;
enum { DEPTH = 64, SMALL = 65536 /* elements of a constant that is looked at for masks alone */ };

struct end { /* one end of a value */
    bool masked;          /* masks may lie there */
    bool has_real, known; /* real: the bound of the values that are no masks; known: it was looked up */
    double real;
    bool is_set;
    double set; /* the bound that its range gets */
};

struct masks {
    struct wml_qdq *q;
    struct end (*end)[2]; /* by index of the tensor */
};

static struct end *end_of(const struct masks *m, const struct wml_value *v, int side)
{
    const struct wml_qdq_tensor *t = wml_qdq_of(m->q, v);
    return t ? &m->end[t - m->q->tensor][side] : NULL;
}

static bool is_huge(enum wml_dtype elem, double v)
{
    return fabs(v) >= (elem == WML_F16 ? HUGE_F16 : HUGE_F32);
}

/* Every element of the output is one of the inputs from `first` on, perhaps as another type. */
static bool hands_on(const struct wml_node *n, size_t *first, size_t *last)
{
    *first = *last = 0;
    if (wml_node_is(n, "Where")) *first = 1, *last = 2;
    if (wml_node_is(n, "Concat")) *last = n->n_in - 1;
    return wml_node_is(n, "Where") || wml_node_is(n, "Concat") || wml_op_has(n, WML_OP_MOVES) || wml_node_is(n, "Cast") || wml_node_is(n, "Identity");
}

/* Low values of v become low values before a Softmax. */
static bool reaches_softmax(const struct wml_value *v, unsigned depth)
{
    size_t first, last;
    for (const struct wml_use *u = v->uses; u && depth < DEPTH; u = u->next) {
        const struct wml_node *n = u->node;
        bool keeps = wml_node_is(n, "Add") || wml_node_is(n, "Mul") || (wml_node_is(n, "Sub") && u->slot == 0) ||
                     (hands_on(n, &first, &last) && u->slot >= first && u->slot <= last);
        if (wml_node_is(n, "Softmax") || wml_node_is(n, "LogSoftmax")) return true;
        if (keeps && wml_node_out(n, 0) && reaches_softmax(n->out[0], depth + 1)) return true;
    }
    return false;
}

/* Masks and real bounds of the elements of a constant; those up to `low` are masks as well. */
static void read_constant(const struct masks *m, struct end *end, struct wml_tensor *w, double low)
{
    struct wml_span bytes;
    uint64_t n;
    if (!wml_dtype_is_float(w->dtype) || !wml_tensor_bytes(m->q->model, w, &bytes, NULL) || !wml_tensor_count(w, &n, NULL)) return;
    for (size_t i = 0; i < (size_t)n; i++) {
        double v = wml_dtype_load(w->dtype, bytes.ptr, i);
        if (isnan(v)) continue;
        if (is_huge((enum wml_dtype)w->dtype, v) || v <= low) {
            end[v > 0].masked = true;
            continue;
        }
        for (int side = 0; side < 2; side++) {
            end[side].real = !end[side].has_real ? v : side ? WML_MAX(end[side].real, v) : WML_MIN(end[side].real, v);
            end[side].has_real = true;
        }
    }
    end[0].known = end[1].known = true;
}

/* What was measured tells that most constants hold no masks. */
static void look_at_constant(const struct masks *m, const struct wml_qdq_tensor *t)
{
    enum wml_dtype real = wml_value_elem(t->value);
    struct end *end = end_of(m, t->value, 0);
    uint64_t n;
    bool plain = t->n_held > 0, low;
    for (size_t i = 0; plain && i < t->n_held; i++) {
        const struct wml_weight_range *r = &t->held[i];
        plain = !r->has_inf && !is_huge(real, r->low) && !is_huge(real, r->high);
        end[0].real = i ? WML_MIN(end[0].real, r->low) : r->low;
        end[1].real = i ? WML_MAX(end[1].real, r->high) : r->high;
    }
    low = (!plain || end[0].real <= -MASK) && reaches_softmax(t->value, 0);
    if (plain && !low) {
        end[0].has_real = end[1].has_real = end[0].known = end[1].known = true;
    } else if (t->n_held || (wml_tensor_count(t->value->init, &n, NULL) && n <= SMALL)) {
        end[0] = end[1] = (struct end){0};
        read_constant(m, end, t->value->init, low ? -MASK : -INFINITY);
    }
}

/* *out is left alone when there is none. */
static bool real_bound(struct masks *m, const struct wml_value *v, int side, unsigned depth, double *out);

/* The factor's largest value, when it is never negative. One that was 0 throughout did not mask anything in the samples:
 * it will be 1 where it does. */
static bool factor(struct masks *m, const struct wml_value *v, unsigned depth, double *most)
{
    double least;
    if (!real_bound(m, v, 0, depth, &least) || least < 0 || !real_bound(m, v, 1, depth, most)) return false;
    if (*most <= 0) *most = 1;
    return true;
}

/* Whether masks may reach this end of n's output from its inputs. */
static bool brings_masks(struct masks *m, const struct wml_node *n, int side)
{
    size_t first, last;
    bool masked = false;
    double most;
    const struct end *a = end_of(m, wml_node_in(n, 0), side), *b = end_of(m, wml_node_in(n, 1), side), *other = end_of(m, wml_node_in(n, 1), !side);
    if (wml_node_is(n, "Add")) return (a && a->masked) || (b && b->masked);
    if (wml_node_is(n, "Sub")) return (a && a->masked) || (other && other->masked);
    if (wml_node_is(n, "Mul"))
        return (a && a->masked && factor(m, wml_node_in(n, 1), 0, &most)) || (b && b->masked && factor(m, wml_node_in(n, 0), 0, &most));
    if (!hands_on(n, &first, &last)) return false;
    for (size_t i = first; i <= last && i < n->n_in; i++) {
        const struct end *e = end_of(m, n->in[i], side);
        masked = masked || (e && e->masked);
    }
    return masked;
}

static bool measured(const struct masks *m, const struct wml_value *v, int side, double *out)
{
    const struct wml_qdq_tensor *t = wml_qdq_of(m->q, v);
    if (t->unit) *out = side;
    else if (t->range.dtype) *out = side ? t->range.high : t->range.low;
    return t->unit || (t->range.dtype && !is_huge(wml_value_elem(v), *out));
}

/* From the inputs, where the range itself does not tell. */
static bool derived(struct masks *m, const struct wml_node *n, int side, unsigned depth, double *out)
{
    double a, b;
    size_t first, last;
    bool any = false;
    if (!n || depth > DEPTH) return false;
    if (wml_node_is(n, "Add") || wml_node_is(n, "Sub")) {
        bool sub = wml_node_is(n, "Sub");
        if (!real_bound(m, n->in[0], side, depth, &a) || !real_bound(m, n->in[1], sub ? !side : side, depth, &b)) return false;
        *out = sub ? a - b : a + b;
        return true;
    }
    if (wml_node_is(n, "Mul")) { /* of a mask constant and a factor that switches it off */
        *out = 0;
        return true;
    }
    if (!hands_on(n, &first, &last)) return false;
    for (size_t i = first; i <= last && i < n->n_in; i++) {
        if (!real_bound(m, n->in[i], side, depth, &a)) continue;
        *out = !any ? a : side ? WML_MAX(*out, a) : WML_MIN(*out, a);
        any = true;
    }
    return any;
}

static bool real_bound(struct masks *m, const struct wml_value *v, int side, unsigned depth, double *out)
{
    struct end *e = end_of(m, v, side);
    if (!e) return false;
    if (!e->known) {
        e->known = true;
        /* what was measured may be the masks */
        e->has_real = (!e->masked && measured(m, v, side, &e->real)) || derived(m, v->def, side, depth + 1, &e->real) ||
                      (e->masked && measured(m, v, side, &e->real));
    }
    if (e->has_real) *out = e->real;
    return e->has_real;
}

static double masked_end(struct masks *m, const struct wml_value *v, int side, unsigned depth);

/* Where masked elements of v must end for what n makes of them at slot i. false: n only looks at them. */
static bool through(struct masks *m, const struct wml_node *n, size_t i, int side, unsigned depth, double *end)
{
    size_t first, last;
    double other = 0;
    const struct wml_value *out = wml_node_out(n, 0), *o = wml_node_in(n, !i);
    if (!out || depth > DEPTH) return false;
    if (wml_node_is(n, "Add")) {
        real_bound(m, o, !side, depth, &other);
        *end = masked_end(m, out, side, depth) - other;
    } else if (wml_node_is(n, "Sub")) {
        real_bound(m, o, side, depth, &other);
        *end = i ? other - masked_end(m, out, !side, depth) : masked_end(m, out, side, depth) + other;
    } else if (wml_node_is(n, "Mul") && factor(m, o, depth, &other)) {
        *end = masked_end(m, out, side, depth) / other;
    } else if (wml_node_is(n, side ? "Min" : "Max") && n->n_in == 2 && real_bound(m, o, side, depth, &other)) {
        *end = side ? WML_MAX(other, 0) + GAP : WML_MIN(other, 0) - GAP; /* the neutral element: beyond all values */
    } else if (hands_on(n, &first, &last) && i >= first && i <= last) {
        *end = masked_end(m, out, side, depth);
    } else {
        return false;
    }
    return true;
}

static double masked_end(struct masks *m, const struct wml_value *v, int side, unsigned depth)
{
    struct end *e = end_of(m, v, side);
    double real = 0, end, far;
    if (!e || e->is_set) return e ? e->set : 0;
    real_bound(m, v, side, depth, &real);
    end = side ? real + GAP : real - GAP;
    bool any = false;
    for (const struct wml_use *u = v->uses; u; u = u->next) {
        if (u->node->graph != v->graph || !through(m, u->node, u->slot, side, depth + 1, &far)) continue;
        end = !any ? far : side ? WML_MAX(end, far) : WML_MIN(end, far);
        any = true;
    }
    e->is_set = true;
    e->set = side ? WML_MAX(end, 0) : WML_MIN(end, 0);
    return e->set;
}

static void find_masks(struct masks *m)
{
    struct wml_qdq *q = m->q;
    for (size_t i = 0; i < q->n_tensors; i++) {
        const struct wml_qdq_tensor *t = &q->tensor[i];
        if (t->constant) look_at_constant(m, t);
        else if (t->range.dtype)
            for (int side = 0; side < 2; side++) m->end[i][side].masked = is_huge(wml_value_elem(t->value), side ? t->range.high : t->range.low);
    }
    for (const struct wml_node *n = q->graph->first; n; n = n->next) {
        struct wml_value *out = wml_node_out(n, 0);
        struct wml_tensor *fill = wml_node_is(n, "ConstantOfShape") ? wml_attr_tensor(n, "value") : NULL;
        if (!out || !end_of(m, out, 0)) continue;
        if (fill) read_constant(m, end_of(m, out, 0), fill, -INFINITY);
        for (int side = 0; side < 2; side++)
            if (brings_masks(m, n, side)) end_of(m, out, side)->masked = true;
    }
}

void wml_qdq_masks(struct wml_qdq *q)
{
    struct masks m = {.q = q};
    size_t n = 0;
    const struct wml_qdq_tensor *first = NULL;
    double first_end = 0;
    m.end = wml_arena_zalloc(q->arena, wml_array_size(q->n_tensors, sizeof *m.end));
    find_masks(&m);
    for (size_t i = 0; i < q->n_tensors; i++) {
        struct wml_qdq_tensor *t = &q->tensor[i];
        for (int side = 0; t->marked && side < 2; side++) {
            if (!m.end[i][side].masked) continue;
            t->has_end[side] = true;
            t->end[side] = masked_end(&m, t->value, side, 0);
            if (!n++) first = t, first_end = t->end[side];
        }
        if (!t->has_end[0] && !t->has_end[1]) continue;
        struct wml_quant_mask mask = {.value = wml_arena_str(&q->model->arena, t->value->name), .end = {t->has_end[0], t->has_end[1]}};
        WML_PUSH_IN(&q->model->arena, &q->run->result->mask, mask);
    }
    if (n)
        wml_quant_note(q->run, WML_STR("model"), "%zu value%s masks, enormous numbers or infinities (the first: '%.*s'): there they end at a number "
                       "that masks as well, such as %.4g, so that the others keep their resolution", n, n == 1 ? " holds" : "s hold",
                       WML_ARG(first->value->name), first_end);
}
