/* graph/type.c - types of values: what a file says, with the ways exporters write "unknown" seen as such. */
#include "graph/type.h"

#include <inttypes.h>

#include "graph/edit.h"
#include "graph/tensor.h"

enum { HAS_1 = 1u << 1 };

static const struct wml_tensor_type *dense(const struct wml_type *t)
{
    return !t ? NULL : t->tensor ? t->tensor : t->sparse;
}

enum wml_dtype wml_type_elem(const struct wml_type *t)
{
    const struct wml_tensor_type *d = dense(t);
    return d ? (enum wml_dtype)d->elem : WML_UNDEFINED;
}

int64_t wml_type_rank(const struct wml_type *t)
{
    const struct wml_tensor_type *d = dense(t);
    return d && d->shape ? (int64_t)d->shape->dim.len : -1;
}

struct wml_axis wml_type_axis(const struct wml_type *t, size_t i)
{
    const struct wml_dim *d = &dense(t)->shape->dim.at[i];
    struct wml_axis a = {.size = -1};
    if (d->msg.has & HAS_1) a.size = d->value >= 0 ? d->value : -1;
    else if (d->param.len && !wml_str_is(d->param, "?") && !wml_str_is(d->param, "-1")) a.symbol = d->param;
    return a;
}

bool wml_type_count(const struct wml_type *t, int64_t *count)
{
    int64_t rank = wml_type_rank(t), n = 1;
    for (int64_t i = 0; i < rank; i++) {
        int64_t size = wml_type_axis(t, (size_t)i).size;
        if (size < 0 || (size && n > INT64_MAX / size)) return false;
        n *= size;
    }
    *count = n;
    return rank >= 0;
}

bool wml_type_is_static(const struct wml_type *t)
{
    int64_t n;
    return wml_type_count(t, &n);
}

static bool dense_eq(const struct wml_type *a, const struct wml_type *b)
{
    int64_t rank = wml_type_rank(a);
    if (wml_type_elem(a) != wml_type_elem(b) || rank != wml_type_rank(b)) return false;
    for (int64_t i = 0; i < rank; i++) {
        struct wml_axis x = wml_type_axis(a, (size_t)i), y = wml_type_axis(b, (size_t)i);
        if (x.size != y.size || x.symbol.len != y.symbol.len || (x.symbol.len && !wml_str_eq(x.symbol, y.symbol)))
            return false;
    }
    return true;
}

bool wml_type_eq(const struct wml_type *a, const struct wml_type *b)
{
    if (!a || !b) return a == b;
    if (!a->tensor != !b->tensor || !a->sparse != !b->sparse || !a->sequence != !b->sequence ||
        !a->optional != !b->optional || !a->map != !b->map || !a->opaque != !b->opaque)
        return false;
    if (a->tensor || a->sparse) return dense_eq(a, b);
    if (a->sequence) return wml_type_eq(a->sequence->elem, b->sequence->elem);
    if (a->optional) return wml_type_eq(a->optional->elem, b->optional->elem);
    if (a->map) return a->map->key == b->map->key && wml_type_eq(a->map->value, b->map->value);
    if (a->opaque) return wml_str_eq(a->opaque->domain, b->opaque->domain) && wml_str_eq(a->opaque->name, b->opaque->name);
    return true;
}

struct wml_type *wml_type_tensor(struct wml_model *m, enum wml_dtype elem, int64_t rank, const struct wml_axis *axis)
{
    struct wml_type *t = WML_NEW(&m->arena, struct wml_type);
    t->tensor = WML_NEW(&m->arena, struct wml_tensor_type);
    t->tensor->elem = (int32_t)elem;
    t->tensor->msg.has = HAS_1;
    if (rank < 0) return t;
    t->tensor->shape = WML_NEW(&m->arena, struct wml_shape);
    for (int64_t i = 0; i < rank; i++) {
        struct wml_dim d = {0};
        if (axis[i].size >= 0) {
            d.value = axis[i].size;
            d.msg.has = HAS_1;
        } else if (axis[i].symbol.len) d.param = wml_arena_str(&m->arena, axis[i].symbol);
        WML_PUSH_IN(&m->arena, &t->tensor->shape->dim, d);
    }
    return t;
}

struct wml_type *wml_type_static(struct wml_model *m, enum wml_dtype elem, size_t rank, const int64_t *sizes)
{
    struct wml_axis *axis = WML_NEW_ARRAY(&m->arena, struct wml_axis, rank + 1);
    for (size_t i = 0; i < rank; i++) axis[i].size = sizes[i];
    return wml_type_tensor(m, elem, (int64_t)rank, axis);
}

static struct wml_elem_type *elem_type(struct wml_model *m, struct wml_type *elem)
{
    struct wml_elem_type *e = WML_NEW(&m->arena, struct wml_elem_type);
    e->elem = elem;
    return e;
}

struct wml_type *wml_type_sequence(struct wml_model *m, struct wml_type *elem)
{
    struct wml_type *t = WML_NEW(&m->arena, struct wml_type);
    t->sequence = elem_type(m, elem);
    return t;
}

struct wml_type *wml_type_optional(struct wml_model *m, struct wml_type *elem)
{
    struct wml_type *t = WML_NEW(&m->arena, struct wml_type);
    t->optional = elem_type(m, elem);
    return t;
}

static struct wml_tensor_type *dense_copy(struct wml_model *m, const struct wml_tensor_type *d)
{
    struct wml_tensor_type *c = WML_NEW(&m->arena, struct wml_tensor_type);
    *c = *d;
    if (!d->shape) return c;
    c->shape = WML_NEW(&m->arena, struct wml_shape);
    c->shape->msg = d->shape->msg;
    for (size_t i = 0; i < d->shape->dim.len; i++) WML_PUSH_IN(&m->arena, &c->shape->dim, d->shape->dim.at[i]);
    return c;
}

struct wml_type *wml_type_copy(struct wml_model *m, const struct wml_type *t)
{
    if (!t) return NULL;
    struct wml_type *c = WML_NEW(&m->arena, struct wml_type);
    *c = *t;
    if (t->tensor) c->tensor = dense_copy(m, t->tensor);
    if (t->sparse) c->sparse = dense_copy(m, t->sparse);
    if (t->sequence) c->sequence = elem_type(m, wml_type_copy(m, t->sequence->elem));
    if (t->optional) c->optional = elem_type(m, wml_type_copy(m, t->optional->elem));
    if (t->map) {
        c->map = WML_NEW(&m->arena, struct wml_map_type);
        *c->map = *t->map;
        c->map->value = wml_type_copy(m, t->map->value);
    }
    return c;
}

enum wml_dtype wml_value_elem(const struct wml_value *v)
{
    if (v->type) return wml_type_elem(v->type);
    return v->init ? (enum wml_dtype)v->init->dtype : WML_UNDEFINED;
}

int64_t wml_value_rank(const struct wml_value *v)
{
    if (v->type) return wml_type_rank(v->type);
    return v->init ? (int64_t)v->init->dims.len : -1;
}

struct wml_axis wml_value_axis(const struct wml_value *v, size_t i)
{
    return v->type ? wml_type_axis(v->type, i) : (struct wml_axis){.size = v->init->dims.at[i]};
}

bool wml_value_count(const struct wml_value *v, int64_t *count)
{
    uint64_t n = 0;
    if (v->type) return wml_type_count(v->type, count);
    if (!v->init || !wml_tensor_count(v->init, &n, NULL) || n > INT64_MAX) return false;
    *count = (int64_t)n;
    return true;
}

struct wml_type *wml_value_type(struct wml_value *v)
{
    if (v->type || !v->init) return v->type;
    return wml_type_static(v->graph->model, (enum wml_dtype)v->init->dtype, v->init->dims.len, v->init->dims.at);
}

static void dense_text(const struct wml_type *t, struct wml_buf *out)
{
    int64_t rank = wml_type_rank(t);
    wml_buf_cstr(out, wml_dtype_info((int)wml_type_elem(t))->text);
    if (rank < 0) wml_buf_cstr(out, "[...]");
    if (rank <= 0) return;
    wml_buf_char(out, '[');
    for (int64_t i = 0; i < rank; i++) {
        struct wml_axis a = wml_type_axis(t, (size_t)i);
        if (i) wml_buf_char(out, ',');
        if (a.size >= 0) wml_buf_fmt(out, "%" PRId64, a.size);
        else wml_buf_str(out, a.symbol.len ? a.symbol : WML_STR("?"));
    }
    wml_buf_char(out, ']');
}

void wml_type_text(const struct wml_type *t, struct wml_buf *out)
{
    if (!t) wml_buf_char(out, '?');
    else if (t->tensor) dense_text(t, out);
    else if (t->sparse || t->sequence || t->optional) {
        wml_buf_cstr(out, t->sparse ? "sparse(" : t->sequence ? "seq(" : "optional(");
        if (t->sparse) dense_text(t, out);
        else wml_type_text(t->sequence ? t->sequence->elem : t->optional->elem, out);
        wml_buf_char(out, ')');
    } else if (t->map) {
        wml_buf_fmt(out, "map(%s,", wml_dtype_info(t->map->key)->text);
        wml_type_text(t->map->value, out);
        wml_buf_char(out, ')');
    } else wml_buf_cstr(out, t->opaque ? "opaque" : "?");
}
