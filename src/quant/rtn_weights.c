/* The weights of the method "rtn": scales and zero points are found at once, by one walk over the floats, the integers are
 * DERIVED tensors. Each weight is made once, whoever reads it. */
#include <inttypes.h>

#include "base/num.h"
#include "graph/store.h"
#include "quant/kernel_block.h"
#include "quant/kernel_table.h"
#include "quant/rtn_internal.h"

struct params { /* of every block; the model owns the arrays */
    size_t rows, blocks; /* scale[rows][blocks] */
    float *scale;
    uint8_t *zero;
};
struct matrix { struct wml_blocks b; struct params p; };
struct table { struct wml_table t; struct params p; bool is_signed; };

static bool produce_matrix(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    const struct matrix *w = arg;
    (void)err;
    wml_kernel_block_pack(&w->b, src.ptr, w->p.scale, w->b.symmetric ? NULL : w->p.zero, (size_t)offset, n, out);
    return true;
}

static bool produce_table(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    const struct table *w = arg;
    const size_t per = 8 / w->t.bits, first = (size_t)offset * per, all = w->t.rows * w->t.columns;
    (void)err;
    wml_kernel_table_pack(&w->t, src.ptr, w->p.scale, w->p.zero, w->is_signed, first, WML_MIN(n * per, all - first), out);
    return true;
}

static bool room(struct wml_rtn *t, struct params *p)
{
    size_t n;
    if (!wml_mul_size(p->rows, p->blocks, &n) || n > SIZE_MAX / sizeof *p->scale) return wml_fail(t->err, WML_E_MEMORY, "too many blocks");
    p->scale = wml_big_alloc(n * sizeof *p->scale + 1, t->err);
    if (!p->scale) return false;
    wml_model_own(t->r->model, p->scale);
    p->zero = wml_big_alloc(n + 1, t->err);
    if (p->zero) wml_model_own(t->r->model, p->zero);
    return p->zero != NULL;
}

/* Scales in the type of the weight; the float32 ones are used where they are. */
static struct wml_tensor *scales(struct wml_rtn *t, const struct params *p, enum wml_dtype type)
{
    struct wml_model *m = t->r->model;
    const int64_t dims[2] = {(int64_t)p->rows, (int64_t)p->blocks};
    const size_t n = p->rows * p->blocks;
    if (type == WML_F32)
        return wml_tensor_borrow(m, WML_F32, 2, dims, (struct wml_span){(const unsigned char *)p->scale, n * sizeof *p->scale}, t->err);
    uint16_t *half = wml_big_alloc(n * sizeof *half + 1, t->err);
    if (!half) return NULL;
    for (size_t i = 0; i < n; i++) half[i] = type == WML_F16 ? wml_float_to_half(p->scale[i]) : wml_float_to_bf16(p->scale[i]);
    return wml_tensor_own(m, type, 2, dims, half, n * sizeof *half, t->err);
}

/* Pairs of each row in one byte, the low half first; the spare half of the last is `fill`. Or, `flat`, of the whole. */
static unsigned char *paired(const struct params *p, bool flat, unsigned fill, size_t *size, struct wml_err *err)
{
    const size_t rows = flat ? 1 : p->rows, n = flat ? p->rows * p->blocks : p->blocks, bytes = n / 2 + n % 2;
    unsigned char *out = wml_big_alloc(*size = rows * bytes, err);
    if (!out) return NULL;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i += 2) {
            unsigned high = i + 1 < n ? p->zero[r * n + i + 1] : fill;
            out[r * bytes + i / 2] = (unsigned char)(p->zero[r * n + i] | high << 4);
        }
    return out;
}

/* Zero points: of a table in its own type, of a matrix as packed bytes [rows, bytes]. */
static struct wml_tensor *zeros(struct wml_rtn *t, const struct params *p, bool is_table)
{
    struct wml_model *m = t->r->model;
    int64_t dims[2] = {(int64_t)p->rows, (int64_t)p->blocks};
    size_t size;
    if (t->bits == 8) return wml_tensor_borrow(m, WML_U8, 2, dims, (struct wml_span){p->zero, p->rows * p->blocks}, t->err);
    unsigned char *bytes = paired(p, is_table, is_table ? 0 : 8, &size, t->err);
    if (!bytes) return NULL;
    if (!is_table) dims[1] = (dims[1] + 1) / 2;
    return wml_tensor_own(m, is_table ? WML_U4 : WML_U8, 2, dims, bytes, size, t->err);
}

static struct wml_value *add(struct wml_value *v, const char *suffix, struct wml_tensor *t)
{
    return t ? wml_graph_add_init(v->graph, wml_arena_fmt(&v->graph->model->arena, "%.*s%s", WML_ARG(v->name), suffix), t) : NULL;
}

/* Puts the three tensors beside v. */
static bool place(struct wml_rtn *t, struct wml_value *v, const struct params *p, struct wml_tensor *q, bool is_table, struct wml_rtn_weight *out)
{
    const bool symmetric = !t->r->opts->asymmetric;
    struct wml_tensor *scale = q ? scales(t, p, (enum wml_dtype)wml_value_tensor(v)->dtype) : NULL;
    struct wml_tensor *zero = scale && !symmetric ? zeros(t, p, is_table) : NULL;
    if (!scale || (!zero && !symmetric)) return false;
    out->q = add(v, t->bits == 4 ? "_Q4" : "_Q8", q);
    out->scale = add(v, "_scales", scale);
    out->zero = add(v, "_zero_points", zero);
    t->r->result->weights++;
    return true;
}

static bool not_finite(struct wml_rtn *t, const struct wml_value *v)
{
    wml_quant_note(t->r, v->name, "stays float: it holds NaN or infinities, or numbers too far apart for a scale");
    return true;
}

/* Of a tall matrix WML_CHUNK holds few columns, and a row is read in pieces as short: more at once, while memory allows. */
static size_t chunk_of(uint64_t column, uint64_t size)
{
    enum { COLUMNS = 256, MOST = 1 << 23 };
    const uint64_t n = WML_MIN((uint64_t)COLUMNS, MOST / column) * column;
    return n > WML_CHUNK ? (size_t)WML_MIN(n, size) : 0;
}

/* A matrix that is to be made of a turned one is quantised from that one: it never exists as floats. */
static struct wml_tensor *turned_source(const struct wml_tensor *from)
{
    const struct wml_tensor *of = from->payload == WML_PAYLOAD_DERIVED && from->derived->turned && !from->view.ptr ? from->derived->source : NULL;
    const bool known = of && (of->dtype == WML_F32 || of->dtype == WML_F16 || of->dtype == WML_BF16);
    return known ? (struct wml_tensor *)(uintptr_t)of : NULL;
}

static bool make_matrix(struct wml_rtn *t, struct wml_value *v, struct wml_rtn_weight *out)
{
    struct wml_model *m = t->r->model;
    struct wml_tensor *from = wml_value_tensor(v), *turned = turned_source(from), *source = turned ? turned : from;
    struct matrix *w = WML_NEW(&m->arena, struct matrix);
    struct wml_derived how = {.source = source, .produce = produce_matrix, .arg = w};
    struct wml_span bytes;
    if (!wml_tensor_bytes(m, source, &bytes, t->err)) return false;
    w->b = (struct wml_blocks){.from = (enum wml_dtype)from->dtype, .stored = turned ? (enum wml_dtype)turned->dtype : WML_UNDEFINED, .k = (size_t)from->dims.at[from->dims.len - 2],
                               .n = (size_t)from->dims.at[from->dims.len - 1], .size = t->block_size, .bits = t->bits,
                               .symmetric = !t->r->opts->asymmetric};
    w->p.rows = w->b.n;
    w->p.blocks = wml_blocks_down(&w->b);
    if (!room(t, &w->p)) return false;
    bool finite = wml_kernel_block_scales(&w->b, bytes.ptr, w->p.scale, w->p.zero);
    wml_model_drop(m, bytes);
    if (!finite) return not_finite(t, v);
    const int64_t dims[3] = {(int64_t)w->b.n, (int64_t)w->p.blocks, (int64_t)(t->block_size * t->bits / 8)};
    how.size = (uint64_t)w->b.n * w->p.blocks * (uint64_t)dims[2];
    how.chunk = chunk_of(w->p.blocks * (uint64_t)dims[2], how.size);
    return place(t, v, &w->p, wml_tensor_derive(m, WML_U8, 3, dims, &how), false, out);
}

static bool make_table(struct wml_rtn *t, struct wml_value *v, struct wml_rtn_weight *out)
{
    struct wml_model *m = t->r->model;
    struct wml_tensor *from = wml_value_tensor(v);
    struct table *w = WML_NEW(&m->arena, struct table);
    struct wml_derived how = {.source = from, .produce = produce_table, .arg = w};
    struct wml_span bytes;
    if (!wml_tensor_bytes(m, from, &bytes, t->err)) return false;
    w->t = (struct wml_table){.from = (enum wml_dtype)from->dtype, .rows = (size_t)from->dims.at[0], .columns = (size_t)from->dims.at[1],
                              .size = t->block_size, .bits = t->bits, .symmetric = !t->r->opts->asymmetric};
    w->is_signed = t->bits == 4 && w->t.symmetric;
    w->p.rows = w->t.rows;
    w->p.blocks = wml_table_blocks(&w->t);
    if (!room(t, &w->p)) return false;
    bool finite = wml_kernel_table_scales(&w->t, bytes.ptr, w->p.scale, w->p.zero);
    wml_model_drop(m, bytes);
    if (!finite) return not_finite(t, v);
    enum wml_dtype type = t->bits == 8 ? WML_U8 : w->is_signed ? WML_I4 : WML_U4;
    t->has_int4 = t->has_int4 || t->bits == 4;
    if (!wml_dtype_bytes((int)type, (uint64_t)w->t.rows * w->t.columns, &how.size)) return wml_fail(t->err, WML_E_MEMORY, "it is too large");
    return place(t, v, &w->p, wml_tensor_derive(m, type, 2, from->dims.at, &how), true, out);
}

static bool once(struct wml_rtn *t, struct wml_value *v, bool (*make)(struct wml_rtn *t, struct wml_value *v, struct wml_rtn_weight *out),
                 char form, struct wml_rtn_weight *out)
{
    struct wml_str key = wml_arena_fmt(&t->r->model->arena, "%p%c", (void *)v, form);
    struct wml_rtn_weight *known = wml_map_get(&t->made, key);
    if (!known) {
        known = WML_NEW(&t->r->model->arena, struct wml_rtn_weight);
        if (!make(t, v, known)) return wml_wrap(t->err, "weight '%.*s'", WML_ARG(v->name));
        wml_map_put(&t->made, key, known);
    }
    *out = *known;
    return true;
}

bool wml_rtn_matrix(struct wml_rtn *t, struct wml_value *v, struct wml_rtn_weight *out)
{
    return once(t, v, make_matrix, 'm', out);
}

bool wml_rtn_table(struct wml_rtn *t, struct wml_value *v, struct wml_rtn_weight *out)
{
    return once(t, v, make_table, 't', out);
}
