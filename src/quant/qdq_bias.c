/* Biases as 32-bit integers of scale input * weight, which is the scale of the sums that kernels add them to.
 *
 * Where that scale is so small that a bias does not fit, the weight's scale is raised until it does: the weights are then
 * so small beside the bias that their lost digits do not show. ONNX Runtime does so for symmetric signed weights only and
 * cuts the bias off everywhere else. A bias whose scale cannot be told stays float, and a note says why. */
#include "quant/qdq_internal.h"

#include <math.h>

#include "graph/graph.h"

struct layout { /* which of the weight's channels each element of a bias belongs to */
    int64_t axis;       /* of the bias; -1: one scale */
    size_t n, inner;    /* scales along the axis; elements per step of it */
    size_t channels;    /* of the weight; they repeat along the axis (groups of ConvTranspose) */
    bool expand;        /* one number for all channels: becomes [n] */
};

struct wml_qdq_sums { /* a bias that becomes integers */
    struct wml_qdq_tensor *value, *weight;
    struct wml_qdq_scale *in, *w;
    struct layout layout;
    enum wml_dtype real; /* of its scale */
    double *v;           /* elements, times beta */
    double *scale;       /* layout.n */
    size_t n;
};

static bool stays(struct wml_qdq *q, const struct wml_qdq_bias *b, const char *why)
{
    wml_quant_note(q->run, wml_str(wml_node_label(b->node)), "its bias '%.*s' stays float: %s", WML_ARG(b->node->in[2]->name), why);
    return false;
}

/* The axis of the weight along which the node's outputs lie. */
static int64_t output_axis(const struct wml_node *n)
{
    if (wml_node_is(n, "Gemm")) return wml_attr_int(n, "transB", 0) ? 0 : 1;
    return wml_node_is(n, "ConvTranspose") ? 1 : 0;
}

static bool lay_out_norm(const struct wml_qdq_sums *s, struct layout *l)
{
    const struct wml_value *v = s->value->value;
    int64_t rank = wml_value_rank(v);
    l->axis = s->w->axis;
    l->n = s->w->n;
    if (rank != wml_value_rank(s->weight->value) || wml_value_axis(v, (size_t)l->axis).size != (int64_t)l->n) return false;
    for (int64_t i = l->axis + 1; i < rank; i++) l->inner *= (size_t)wml_value_axis(v, (size_t)i).size;
    return true;
}

static bool lay_out(const struct wml_node *n, const struct wml_qdq_sums *s, struct layout *l)
{
    const struct wml_value *v = s->value->value;
    int64_t rank = wml_value_rank(v);
    *l = (struct layout){.axis = -1, .n = 1, .inner = 1, .channels = s->w->n};
    if (s->w->n == 1) return true;
    if (wml_str_ends(n->op_type, "Normalization")) return lay_out_norm(s, l);
    if (s->w->axis != output_axis(n)) return false;
    l->expand = s->n == 1;
    l->axis = rank && !l->expand ? rank - 1 : 0;
    l->n = l->expand ? s->w->n : (size_t)wml_value_axis(v, (size_t)l->axis).size;
    return l->n == s->w->n || (wml_node_is(n, "ConvTranspose") && l->n % s->w->n == 0);
}

/* Of element i of the bias that is written. */
static size_t step_of(const struct layout *l, size_t i)
{
    return l->axis < 0 ? 0 : i / l->inner % l->n;
}

static size_t elements(const struct wml_qdq_sums *s)
{
    return s->layout.expand ? s->layout.n : s->n;
}

static double element(const struct wml_qdq_sums *s, size_t i)
{
    return s->v[s->layout.expand ? 0 : i];
}

static bool load(struct wml_qdq *q, const struct wml_qdq_bias *b, struct wml_qdq_sums *s, bool *usable, struct wml_err *err)
{
    struct wml_span bytes;
    struct wml_tensor *t = s->value->value->init;
    uint64_t count;
    if (!wml_tensor_bytes(q->model, t, &bytes, err) || !wml_tensor_count(t, &count, err)) return false;
    s->n = (size_t)count;
    s->v = WML_NEW_ARRAY(q->arena, double, s->n);
    *usable = s->n > 0;
    for (size_t i = 0; i < s->n; i++) {
        s->v[i] = wml_dtype_load(t->dtype, bytes.ptr, i);
        if (b->beta != 1) s->v[i] = b->beta == 0 ? 0 : wml_real_mul(s->real, s->v[i], (double)b->beta);
        *usable = *usable && isfinite(s->v[i]);
    }
    return *usable || stays(q, b, "it holds NaN or infinities") || true;
}

/* b->sums stays NULL where the bias stays float. */
static bool open_bias(struct wml_qdq *q, struct wml_qdq_bias *b, struct wml_err *err)
{
    struct wml_qdq_sums *s = WML_NEW(q->arena, struct wml_qdq_sums);
    struct wml_qdq_tensor *in = wml_qdq_of(q, wml_node_in(b->node, 0));
    bool usable;
    s->value = wml_qdq_of(q, b->node->in[2]);
    s->weight = wml_qdq_of(q, wml_node_in(b->node, 1));
    s->in = in && in->marked ? wml_qdq_read_scale(in, b->node) : NULL;
    s->w = s->weight && s->weight->marked ? wml_qdq_read_scale(s->weight, b->node) : NULL;
    s->real = wml_value_elem(s->value->value);
    if (!s->in || s->in->n != 1) return stays(q, b, "its node's input has no scale") || true;
    if (!s->w) return stays(q, b, "its node's weight has no scale") || true;
    if (!load(q, b, s, &usable, err)) return false;
    if (!usable) return true;
    if (!lay_out(b->node, s, &s->layout)) return stays(q, b, "its elements are not those of the weight's channels") || true;
    b->sums = s;
    return true;
}

/* The smallest scale at which a magnitude fits, as ORT computes it: for channels in the float type. */
static double least_scale(const struct wml_qdq_sums *s, double magnitude)
{
    const double span = 4294967294.0; /* from the lowest to the highest integer but one */
    if (s->w->axis < 0) return 1.0001 * (2 * magnitude) / span;
    if (s->real == WML_F16) return 2 * magnitude / span;
    return wml_real_mul(WML_F32, wml_real_round(WML_F32, 1.0001), 2 * magnitude) / span;
}

static void raise_scales(struct wml_qdq *q, const struct wml_qdq_sums *s)
{
    double *largest = WML_NEW_ARRAY(q->arena, double, s->w->n), most = 1;
    for (size_t i = 0; i < elements(s); i++) {
        double *l = &largest[step_of(&s->layout, i) % s->layout.channels];
        *l = WML_MAX(*l, fabs(element(s, i)));
    }
    for (size_t c = 0; c < s->w->n; c++) {
        double least = least_scale(s, largest[c]), now = s->in->scale[0] * s->w->scale[c];
        if (!(now < least) || !(now > 0)) continue;
        double wanted = s->w->scale[c] * (least / now), rounded = wml_real_round(s->w->real, wanted);
        if (s->w->real == WML_F16 && rounded < wanted) rounded = wml_real_above(WML_F16, rounded);
        if (!isfinite(rounded)) continue;
        most = WML_MAX(most, rounded / s->w->scale[c]);
        s->w->scale[c] = rounded;
    }
    if (most > 1)
        wml_quant_note(q->run, wml_qdq_subject(q, s->weight->value), "its scale was raised by up to %.4g so that the bias '%.*s' fits 32 bits", most,
                       WML_ARG(s->value->value->name));
}

static bool fits(const struct wml_qdq_sums *s)
{
    for (size_t i = 0; i < elements(s); i++)
        if (s->scale[step_of(&s->layout, i)] == 0 || fabs(element(s, i)) > INT32_MAX * s->scale[step_of(&s->layout, i)]) return false;
    return true;
}

/* A scale of its own, in float, where the product is too small for the float type. */
static void own_scales(struct wml_qdq_sums *s)
{
    s->real = WML_F32;
    for (size_t i = 0; i < s->layout.n; i++)
        s->scale[i] = wml_real_mul(WML_F32, s->in->scale[0], s->w->scale[i % s->layout.channels]);
    for (size_t i = 0; i < elements(s); i++) {
        double *scale = &s->scale[step_of(&s->layout, i)];
        *scale = WML_MAX(*scale, wml_real_round(WML_F32, fabs(element(s, i)) / INT32_MAX * 1.0001));
    }
    for (size_t i = 0; i < s->layout.n; i++)
        if (s->scale[i] == 0) s->scale[i] = 1;
}

static void set_scales(struct wml_qdq *q, struct wml_qdq_bias *b)
{
    struct wml_qdq_sums *s = b->sums;
    s->scale = WML_NEW_ARRAY(q->arena, double, s->layout.n);
    for (size_t i = 0; i < s->layout.n; i++) s->scale[i] = wml_real_mul(s->real, s->in->scale[0], s->w->scale[i % s->layout.channels]);
    if (!fits(s)) own_scales(s);
}

bool wml_qdq_fit_biases(struct wml_qdq *q, struct wml_err *err)
{
    for (size_t i = 0; i < q->bias.len; i++) {
        struct wml_qdq_bias *b = &q->bias.at[i];
        if (!open_bias(q, b, err)) return false;
        if (b->sums && b->sums->weight->constant && !b->sums->weight->given) raise_scales(q, b->sums);
    }
    for (size_t i = 0; i < q->bias.len; i++)
        if (q->bias.at[i].sums) set_scales(q, &q->bias.at[i]);
    return true;
}

static struct wml_value *add_integers(struct wml_qdq *q, const struct wml_qdq_sums *s, struct wml_str name, struct wml_err *err)
{
    const struct wml_tensor *t = s->value->value->init;
    size_t n = elements(s), rank = s->layout.expand ? 1 : t->dims.len;
    int64_t expanded = (int64_t)n;
    int32_t *v = WML_NEW_ARRAY(q->arena, int32_t, n);
    for (size_t i = 0; i < n; i++) {
        double x = rint(element(s, i) / s->scale[step_of(&s->layout, i)]);
        v[i] = (int32_t)WML_MAX(WML_MIN(x, INT32_MAX), INT32_MIN);
    }
    struct wml_tensor *w = wml_tensor_copy(q->model, WML_I32, rank, s->layout.expand ? &expanded : t->dims.at, v, n * sizeof *v, err);
    return w ? wml_graph_add_init(q->graph, name, w) : NULL;
}

static struct wml_value *insert(struct wml_qdq *q, const struct wml_qdq_bias *b, struct wml_err *err)
{
    const struct wml_qdq_sums *s = b->sums;
    struct wml_value *v = s->value->value, *out;
    struct wml_str base = wml_qdq_name(q, b->name, "_quantized");
    bool vector = s->layout.n > 1;
    int32_t *zeros = WML_NEW_ARRAY(q->arena, int32_t, s->layout.n);
    struct wml_qdq_scale scale = {.type = WML_I32, .real = s->real, .axis = vector ? s->layout.axis : -1};
    scale.scale_value = wml_qdq_add_init(q, wml_qdq_name(q, base, "_scale"), s->real, true, s->layout.n, s->scale, NULL, err);
    scale.zero_value = wml_qdq_add_init(q, wml_qdq_name(q, base, "_zero_point"), WML_I32, vector, s->layout.n, NULL, zeros, err);
    struct wml_value *ints = add_integers(q, s, base, err);
    if (!scale.scale_value || !scale.zero_value || !ints) return NULL;
    out = wml_qdq_node(q, b->node, "DequantizeLinear", &scale, ints, ints, b->name, wml_qdq_name(q, b->name, "_DequantizeLinear_Output"));
    if (s->real == wml_value_elem(v)) return out;
    struct wml_node *cast = wml_node_new(b->node, "", "Cast");
    cast->name = wml_model_unique(q->model, wml_qdq_name(q, b->name, "_Cast"));
    wml_attr_set_int(cast, "to", wml_value_elem(v));
    wml_node_add_input(cast, out);
    out = wml_node_add_output(cast, wml_qdq_name(q, b->name, "_Cast_Output"));
    wml_value_set_type(out, wml_value_type(v));
    return out;
}

bool wml_qdq_insert_biases(struct wml_qdq *q, struct wml_err *err)
{
    struct wml_value **made = WML_NEW_ARRAY(q->arena, struct wml_value *, q->bias.len);
    struct wml_value **was = WML_NEW_ARRAY(q->arena, struct wml_value *, q->bias.len);
    for (size_t i = 0; i < q->bias.len; i++) {
        struct wml_qdq_bias *b = &q->bias.at[i];
        if (!b->sums) continue;
        if (!(made[i] = insert(q, b, err))) return false;
        was[i] = b->node->in[2];
        wml_node_set_input(b->node, 2, made[i]);
        if (b->beta != 1) wml_attr_set_float(b->node, "beta", 1);
        q->run->result->weights++;
    }
    /* The dequantised bias has the bias's name, once that is free. */
    for (size_t i = 0; i < q->bias.len; i++) {
        if (!made[i]) continue;
        if (was[i]->init && wml_value_is_unused(was[i]) && !was[i]->n_inputs && wml_graph_find(q->graph, was[i]->name) == was[i])
            wml_value_remove(was[i]);
        wml_value_rename(made[i], q->bias.at[i].name);
    }
    return true;
}
