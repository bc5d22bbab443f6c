/* Scales: of activations from their ranges, of constants from what they hold, of moved values from where they came. */
#include "quant/qdq_internal.h"

#include <inttypes.h>
#include <math.h>

#include "graph/graph.h"
#include "graph/store.h"
#include "quant/weight_search.h"

static bool is_signed(enum wml_dtype type)
{
    return wml_dtype_info((int)type)->cls == WML_CLASS_INT;
}

static struct wml_qdq_scale *new_scale(struct wml_qdq *q, const struct wml_qdq_tensor *t, enum wml_dtype type, int64_t axis, size_t n,
                                       const char *suffix)
{
    struct wml_qdq_scale *s = WML_NEW(q->arena, struct wml_qdq_scale);
    struct wml_str name = t->value->name;
    *s = (struct wml_qdq_scale){.type = type, .real = wml_value_elem(t->value), .axis = axis, .n = n};
    s->scale = WML_NEW_ARRAY(q->arena, double, n);
    s->zero = WML_NEW_ARRAY(q->arena, int32_t, n);
    s->scale_name = wml_arena_fmt(q->arena, "%.*s_scale%s", WML_ARG(name), suffix);
    s->zero_name = wml_arena_fmt(q->arena, "%.*s_zero_point%s", WML_ARG(name), suffix);
    return s;
}

static void set(struct wml_qdq_scale *s, size_t i, struct wml_qparams p)
{
    s->scale[i] = p.scale;
    s->zero[i] = p.zero;
}

static struct wml_qparams asked_params(const struct wml_qdq_scale *s, const struct wml_override *o)
{
    return (struct wml_qparams){.scale = wml_real_round(s->real, o->scale), .zero = o->zero};
}

static struct wml_range range_of(const struct wml_qdq *q, const struct wml_qdq_tensor *t)
{
    const struct wml_qdq_tensor *from = wml_qdq_ranged(q, t);
    struct wml_range r = t->range;
    if (t->unit || from->unit) return (struct wml_range){0, 1, WML_F32};
    if (from != t) return from->range;
    if (t->has_end[0]) r.low = t->end[0];
    if (t->has_end[1]) r.high = t->end[1];
    return r;
}

/* o is a part of what is asked of t, or nothing. */
static struct wml_qdq_scale *activation_scale(struct wml_qdq *q, const struct wml_qdq_tensor *t, const struct wml_override *o, const char *suffix)
{
    struct wml_qdq_scale *s = new_scale(q, t, o->type ? o->type : q->activation, -1, 1, suffix);
    struct wml_range r = range_of(q, t);
    struct wml_qform form = {.type = s->type, .symmetric = o->symmetric == WML_UNSET ? q->symmetric : o->symmetric != 0};
    double low = wml_real_round(s->real, o->has_low ? o->low : r.low), high = wml_real_round(s->real, o->has_high ? o->high : r.high);
    if (!o->has_scale && low == 0 && high == 0 && !q->n_flat++) q->flat = t->value->name;
    set(s, 0, o->has_scale ? asked_params(s, o) : wml_qparams_of(&form, s->real, low, high, q->min_range));
    return s;
}

static void activation(struct wml_qdq *q, struct wml_qdq_tensor *t)
{
    struct wml_override none = wml_override_none();
    if (!t->scale) t->scale = activation_scale(q, t, t->asked.n ? t->asked.channel : &none, "");
    if (t->asked.converts) t->converted = activation_scale(q, t, &t->asked.convert, "_convert");
}

static void leave(struct wml_qdq *q, struct wml_qdq_tensor *t, const char *why)
{
    wml_quant_note(q->run, wml_qdq_subject(q, t->value), "it stays float: %s", why);
    t->marked = false;
}

/* The form of constant t, and the axis of its channels. */
static struct wml_qform constant_form(const struct wml_qdq *q, const struct wml_qdq_tensor *t, int64_t *axis)
{
    struct wml_override none = wml_override_none();
    const struct wml_override *o = t->asked.n ? t->asked.channel : &none;
    struct wml_qform f = {.type = o->type ? o->type : t->weight ? q->weight : q->activation};
    enum wml_symmetry w = q->opts->symmetric_weight;
    enum wml_dtype usual = q->ep && q->ep->one_symmetry ? q->weight : f.type;
    bool symmetric = t->weight ? (w == WML_SYMMETRY_DEFAULT ? is_signed(usual) : w == WML_SYMMETRY_ON) : q->symmetric;
    *axis = o->has_axis ? o->axis : t->axis;
    if (o->has_axis && *axis < 0) *axis += wml_value_rank(t->value);
    /* Integer kernels take one zero point for all channels, which only symmetric ones have. */
    f.symmetric = o->symmetric != WML_UNSET ? o->symmetric != 0 : *axis >= 0 || symmetric;
    f.reduced = o->reduced != WML_UNSET ? o->reduced != 0 : q->opts->reduce_range;
    return f;
}

/* Reads constant t once. */
static bool measure(struct wml_qdq *q, struct wml_qdq_tensor *t, struct wml_err *err)
{
    struct wml_span bytes;
    size_t outer = 1, inner = 1;
    struct wml_tensor *w = t->value->init;
    t->form = constant_form(q, t, &t->axis);
    t->n_held = 1;
    if (!wml_tensor_bytes(q->model, w, &bytes, err)) return false;
    for (size_t i = 0; i < w->dims.len; i++)
        *(t->axis < 0 || (int64_t)i > t->axis ? &inner : (int64_t)i == t->axis ? &t->n_held : &outer) *= (size_t)w->dims.at[i];
    t->held = WML_NEW_ARRAY(q->arena, struct wml_weight_range, t->n_held);
    wml_weight_ranges(wml_value_elem(t->value), bytes.ptr, outer, t->n_held, inner, t->held);
    wml_model_drop(q->model, bytes);
    for (size_t i = 0; t->marked && i < t->n_held; i++)
        if (t->held[i].has_nan) leave(q, t, "it holds NaN");
    return true;
}

bool wml_qdq_measure(struct wml_qdq *q, struct wml_err *err)
{
    for (size_t i = 0; i < q->order.len; i++) {
        struct wml_qdq_tensor *t = q->order.at[i];
        if (t->marked && t->constant && !measure(q, t, err)) return false;
        if (!wml_check_cancel(q->run->cx, err)) return false;
    }
    return true;
}

static double end_of(const struct wml_qdq_tensor *t, int side, bool asked, double asked_end, double held)
{
    return asked ? asked_end : t->has_end[side] ? t->end[side] : held;
}

/* Whether every element of t comes back as it was. */
static bool is_exact(struct wml_qdq *q, const struct wml_qdq_tensor *t, struct wml_qparams p)
{
    struct wml_tensor *w = t->value->init;
    struct wml_span bytes;
    uint64_t n;
    if (!wml_tensor_bytes(q->model, w, &bytes, NULL) || !wml_tensor_count(w, &n, NULL)) return false;
    for (size_t i = 0; i < (size_t)n; i++) {
        double v = wml_dtype_load(w->dtype, bytes.ptr, i);
        if (wml_real_mul(WML_F32, rint(v / p.scale), p.scale) != v) return false;
    }
    return true;
}

/* The same range with the next power of 2 as the scale: whole numbers and halves keep their value. */
static struct wml_qparams by_power(const struct wml_qform *f, struct wml_qparams p, double low)
{
    int32_t q_low, q_high;
    wml_qform_range(f, &q_low, &q_high);
    p.scale = exp2(ceil(log2(p.scale)));
    if (!f->symmetric) p.zero = (int32_t)rint(q_low - WML_MIN(low, 0) / p.scale);
    return p;
}

/* p, or what errs less over channel i. */
static struct wml_qparams search(struct wml_qdq *q, const struct wml_qdq_tensor *t, size_t i, struct wml_qparams p)
{
    const struct wml_tensor *w = t->value->init;
    struct wml_span bytes;
    size_t outer = 1, inner = 1;
    if (t->held[i].has_inf || !wml_tensor_peek(w, &bytes)) return p;
    for (size_t k = 0; k < w->dims.len; k++)
        if ((int64_t)k != t->axis) *(t->axis < 0 || (int64_t)k > t->axis ? &inner : &outer) *= (size_t)w->dims.at[k];
    return wml_weight_search(&t->form, wml_value_elem(t->value), bytes.ptr, outer, t->n_held, inner, i, t->held[i].low, t->held[i].high, q->min_range);
}

static void constant(struct wml_qdq *q, struct wml_qdq_tensor *t)
{
    const struct wml_override none = wml_override_none(), *o;
    struct wml_qdq_scale *s = t->scale = new_scale(q, t, t->form.type, t->axis, t->n_held, "");
    bool clipped = false;
    for (size_t i = 0; i < s->n; i++) {
        const struct wml_weight_range *r = &t->held[i];
        o = !t->asked.n ? &none : &t->asked.channel[t->asked.n > 1 ? i : 0];
        double low = wml_real_round(s->real, end_of(t, 0, o->has_low, o->low, r->low));
        double high = wml_real_round(s->real, end_of(t, 1, o->has_high, o->high, r->high));
        struct wml_qparams p = o->has_scale ? asked_params(s, o) : wml_qparams_of(&t->form, s->real, low, high, q->min_range);
        if (q->opts->scale_search && !t->exact && !o->has_scale && !o->has_low && !t->has_end[0] && !t->has_end[1]) {
            double whole = p.scale;
            p = search(q, t, i, p);
            clipped = clipped || p.scale < whole;
        }
        if (t->exact && !o->has_scale && !is_exact(q, t, p)) p = by_power(&t->form, p, low);
        set(s, i, p);
    }
    q->n_clipped += clipped;
}

static void resolve(struct wml_qdq *q, struct wml_qdq_tensor *t)
{
    struct wml_qdq_tensor *p;
    if (t->scale) return;
    p = wml_qdq_provider(q, t);
    if (p) {
        resolve(q, p);
        t->scale = wml_qdq_read_scale(p, t->through);
    }
    activation(q, t);
}

bool wml_qdq_reads_converted(const struct wml_qdq_tensor *t, const struct wml_node *n)
{
    if (!t->asked.converts || !t->asked.some) return t->asked.converts;
    for (size_t i = 0; i < t->asked.reader.len; i++)
        if (t->asked.reader.at[i] == n) return true;
    return false;
}

struct wml_qdq_scale *wml_qdq_read_scale(const struct wml_qdq_tensor *t, const struct wml_node *n)
{
    return t->converted && wml_qdq_reads_converted(t, n) ? t->converted : t->scale;
}

void wml_qdq_params(struct wml_qdq *q)
{
    for (size_t i = 0; i < q->order.len; i++)
        if (q->order.at[i]->marked && q->order.at[i]->constant) constant(q, q->order.at[i]);
    for (size_t i = 0; i < q->order.len; i++) {
        struct wml_qdq_tensor *t = q->order.at[i];
        if (t->marked && !t->constant && !t->given) resolve(q, t);
    }
}

/* Scalar, or [n] for channels. */
struct wml_value *wml_qdq_add_init(struct wml_qdq *q, struct wml_str name, enum wml_dtype type, bool vector, size_t n, const double *real,
                                   const int32_t *zero, struct wml_err *err)
{
    int64_t dim = (int64_t)n;
    uint64_t size;
    if (!wml_dtype_bytes((int)type, n, &size)) return NULL;
    void *bytes = wml_arena_zalloc(q->arena, (size_t)size);
    for (size_t i = 0; i < n; i++) wml_dtype_store((int)type, bytes, i, real ? real[i] : zero[i]);
    struct wml_tensor *t = wml_tensor_copy(q->model, type, vector ? 1 : 0, &dim, bytes, (size_t)size, err);
    return t ? wml_graph_add_init(q->graph, name, t) : NULL;
}

bool wml_qdq_scale_values(struct wml_qdq *q, struct wml_qdq_scale *s, struct wml_err *err)
{
    if (s->scale_value) return true;
    s->scale_value = wml_qdq_add_init(q, s->scale_name, s->real, s->axis >= 0, s->n, s->scale, NULL, err);
    s->zero_value = wml_qdq_add_init(q, s->zero_name, s->type, s->axis >= 0, s->n, NULL, s->zero, err);
    return s->scale_value && s->zero_value;
}
