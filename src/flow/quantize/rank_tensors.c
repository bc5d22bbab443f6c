/* What a model quantises: pairs of QuantizeLinear and DequantizeLinear, and constants behind a DequantizeLinear alone. Names
 * of the float model are found by the endings that quantizers add. */
#include "flow/quantize/rank_internal.h"

#include <math.h>

#include "graph/edit.h"
#include "graph/tensor.h"

enum { BLOCK = 1 << 12 }; /* elements of a constant that are looked at at a time */

struct finder {
    struct wml_ctx *cx;
    struct wml_model *before, *after;
    struct wml_rank *out;
    struct wml_rank_pairs *pairs;
    const struct wml_quant_mask *mask;
    struct wml_map masks; /* number + 1, by the value's name */
};

struct linear { /* how integers become reals */
    const double *scale;
    const int64_t *zero; /* NULL: 0 */
    size_t n, inner;     /* n > 1: channels, of so many elements in a row */
};

static struct wml_str without(struct wml_str name, const char *ending)
{
    return wml_str_ends(name, ending) ? wml_str_sub(name, 0, name.len - strlen(ending)) : name;
}

struct wml_str wml_rank_name(const struct wml_node *dq)
{
    const struct wml_value *in = dq->in[0];
    return in->init ? without(in->name, "_quantized") : without(dq->out[0]->name, "_DequantizeLinear_Output");
}

static const char *keep(struct finder *f, struct wml_str s)
{
    return wml_arena_cstr(&f->out->arena, s.ptr ? s : WML_STR(""));
}

static void add_row(struct finder *f, struct wml_rank_row row, struct wml_str name, const struct wml_node *n)
{
    row.name = keep(f, name);
    row.node = keep(f, n ? n->name : WML_NO_STR);
    row.op_type = keep(f, n ? n->op_type : WML_NO_STR);
    row.own.equal = row.total.equal = true;
    WML_PUSH(&f->out->row, row);
}

static bool read_linear(struct finder *f, const struct wml_node *dq, size_t *n, struct linear *out, struct wml_err *err)
{
    struct wml_value *scale = wml_node_in(dq, 1), *zero = wml_node_in(dq, 2);
    struct wml_tensor *s = scale ? wml_value_tensor(scale) : NULL, *z = zero ? wml_value_tensor(zero) : NULL;
    double *reals;
    int64_t *ints = NULL;
    size_t n_zero = 0;
    *n = 0;
    if (!s || (zero && !z)) return true;
    if (!wml_tensor_doubles(f->after, s, &reals, n, err) || (z && !wml_tensor_ints(f->after, z, &ints, &n_zero, err))) return false;
    if (z && n_zero != *n) *n = 0;
    *out = (struct linear){.scale = reals, .zero = ints, .n = *n, .inner = 1};
    return true;
}

static const struct wml_quant_mask *mask_of(const struct finder *f, struct wml_str name)
{
    size_t at = (size_t)(uintptr_t)wml_map_get(&f->masks, name);
    return at ? &f->mask[at - 1] : NULL;
}

struct ends { double low, high; };

/* The reals of the lowest and of the highest integer. */
static struct ends ends_of(const struct linear *l, size_t c, int type)
{
    const struct wml_dtype_info *info = wml_dtype_info(type);
    double steps = (double)(UINT64_C(1) << info->bits), least = info->cls == WML_CLASS_INT ? -steps / 2 : 0, zero = l->zero ? (double)l->zero[c] : 0;
    return (struct ends){(least - zero) * l->scale[c], (least + steps - 1 - zero) * l->scale[c]};
}

static double within(const struct wml_quant_mask *m, struct ends e, double v)
{
    if (isnan(v)) return v;
    if (m->end[0]) v = fmax(v, e.low);
    return m->end[1] ? fmin(v, e.high) : v;
}

/* The float constant behind the integers, of the same sizes; NULL: there is none. */
static struct wml_tensor *float_constant(const struct finder *f, const struct wml_tensor *ints, struct wml_str name)
{
    struct wml_value *v = wml_graph_find(f->before->graph, name);
    struct wml_tensor *t = v ? wml_value_tensor(v) : NULL;
    if (!t || !wml_dtype_is_float(t->dtype) || t->dims.len != ints->dims.len) return NULL;
    for (size_t i = 0; i < t->dims.len; i++)
        if (t->dims.at[i] != ints->dims.at[i]) return NULL;
    return t;
}

/* Axis and sizes of channels. false: the sizes do not fit (no file of ours). */
static bool fit_channels(const struct wml_node *dq, const struct wml_tensor *t, struct linear *l)
{
    int64_t rank = (int64_t)t->dims.len, axis = wml_attr_int(dq, "axis", 1);
    if (l->n == 1) return true;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || t->dims.at[axis] != (int64_t)l->n || wml_attr_int(dq, "block_size", 0)) return false;
    for (int64_t i = axis + 1; i < rank; i++) l->inner *= (size_t)t->dims.at[i];
    return true;
}

static void compare_constant(const struct wml_tensor *real, const void *a, int dtype, const void *q, const struct linear *l, size_t count,
                             const struct wml_quant_mask *mask, struct wml_compare *out)
{
    float back[BLOCK];
    double orig[BLOCK];
    for (size_t from = 0; from < count; from += BLOCK) {
        size_t n = WML_MIN(count - from, (size_t)BLOCK);
        for (size_t i = 0; i < n; i++) {
            size_t at = from + i, c = l->n == 1 ? 0 : at / l->inner % l->n;
            double steps = wml_dtype_load(dtype, q, at) - (l->zero ? (double)l->zero[c] : 0);
            back[i] = (float)steps * (float)l->scale[c];
            orig[i] = wml_dtype_load(real->dtype, a, at);
            if (mask) orig[i] = within(mask, ends_of(l, c, dtype), orig[i]);
        }
        wml_compare_more(WML_F64, orig, WML_F32, back, n, out);
    }
}

static bool add_constant(struct finder *f, const struct wml_node *dq, struct wml_err *err)
{
    struct wml_value *ints = dq->in[0], *out = wml_node_out(dq, 0);
    struct wml_tensor *q = ints->init, *real;
    struct wml_str name;
    struct linear l;
    struct wml_span a, b;
    size_t n;
    uint64_t count;
    if (!out || !q) return true;
    name = wml_rank_name(dq);
    if (!(real = float_constant(f, q, name))) return true;
    if (!read_linear(f, dq, &n, &l, err)) return false;
    if (!n || !fit_channels(dq, q, &l)) return true;
    if (!wml_tensor_count(q, &count, err) || !wml_tensor_bytes(f->before, real, &a, err) || !wml_tensor_bytes(f->after, q, &b, err)) return false;
    add_row(f, (struct wml_rank_row){.kind = q->dtype == WML_I32 ? "bias" : "weight", .type = wml_dtype_name(q->dtype)}, name,
            out->uses ? out->uses->node : NULL);
    struct wml_rank_row *row = &f->out->row.at[f->out->row.len - 1];
    compare_constant(real, a.ptr, q->dtype, b.ptr, &l, (size_t)count, mask_of(f, name), &row->own);
    return wml_check_cancel(f->cx, err);
}

static bool is_cut(const struct wml_node *n)
{
    return wml_node_is(n, "Relu") || wml_node_is(n, "Clip");
}

static bool note_cut(struct finder *f, const struct wml_node *dq, int type, const struct wml_quant_mask *mask, struct wml_rank_pair *p, struct wml_err *err)
{
    struct linear l;
    size_t n;
    bool cut = p->real && is_cut(p->real->def) && p->pre->def && !wml_str_eq(p->pre->def->op_type, p->real->def->op_type);
    if (!cut && !mask) return true;
    if (!read_linear(f, dq, &n, &l, err)) return false;
    if (n != 1 || !wml_dtype_info(type)->bits) return true;
    struct ends e = ends_of(&l, 0, type);
    p->cuts = true;
    p->masks = mask != NULL;
    p->low = cut || mask->end[0] ? e.low : -INFINITY;
    p->high = cut || mask->end[1] ? e.high : INFINITY;
    return true;
}

/* ONNX Runtime shows no sparse constant as an output. */
static bool is_shown(const struct wml_value *v)
{
    return !v->sparse && !(wml_node_is(v->def, "Constant") && wml_attr_find(v->def, "sparse_value"));
}

static bool add_activation(struct finder *f, const struct wml_node *dq, struct wml_err *err)
{
    const struct wml_node *q = dq->in[0]->def;
    struct wml_value *post = wml_node_out(dq, 0), *pre = wml_node_in(q, 0), *zero = wml_node_in(q, 2);
    struct wml_tensor *z = zero ? wml_value_tensor(zero) : NULL;
    if (!post || !pre || pre->init || !is_shown(pre) || (q->out[0]->uses && q->out[0]->uses->node != dq)) return true; /* of several, the first */
    struct wml_str name = wml_rank_name(dq), plain = without(name, "_convert");
    struct wml_value *real = wml_graph_find(f->before->graph, name);
    if (!real) real = wml_graph_find(f->before->graph, plain);
    struct wml_rank_pair p = {.row = f->out->row.len, .pre = pre, .post = post, .real = real};
    int type = z ? z->dtype : WML_U8;
    if (!note_cut(f, dq, type, mask_of(f, real ? real->name : name), &p, err)) return false;
    const struct wml_node *maker = real && real->def ? real->def : pre->def;
    add_row(f, (struct wml_rank_row){.kind = "activation", .type = wml_dtype_name(type), .has_total = real != NULL}, name, maker);
    WML_PUSH_IN(&f->out->arena, &f->pairs->v, p);
    return true;
}

bool wml_rank_find(struct wml_ctx *cx, struct wml_model *before, struct wml_model *after, const struct wml_quant_mask *mask, size_t n_masks,
                   struct wml_rank *out, struct wml_rank_pairs *pairs, struct wml_err *err)
{
    struct finder f = {.cx = cx, .before = before, .after = after, .out = out, .pairs = pairs, .mask = mask};
    bool ok = true;
    for (size_t i = 0; i < n_masks; i++) wml_map_put(&f.masks, mask[i].value, (void *)(uintptr_t)(i + 1));
    for (struct wml_node *n = after->graph->first; ok && n; n = n->next) {
        const struct wml_value *in = wml_node_in(n, 0);
        if (!wml_str_is(n->op_type, "DequantizeLinear") || !in) continue;
        if (in->init) ok = add_constant(&f, n, err);
        else if (in->def && wml_str_is(in->def->op_type, "QuantizeLinear")) ok = add_activation(&f, n, err);
    }
    wml_map_release(&f.masks);
    return ok;
}
