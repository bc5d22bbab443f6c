/* Weights of several layers as those of one: row by row from every source, in chunks. */
#include "passes/weights_concat.h"
#include "base/num.h"

struct joining { /* argument of a DERIVED tensor; in the model's arena */
    size_t n;
    const struct wml_tensor *part[WML_CONCAT_MAX];
    uint64_t bytes[WML_CONCAT_MAX]; /* of one row */
    uint64_t row;                   /* their sum */
};

static bool join(const void *arg, struct wml_span src, uint64_t offset, unsigned char *out, size_t n, struct wml_err *err)
{
    const struct joining *j = arg;
    struct wml_span part[WML_CONCAT_MAX];
    (void)src;
    for (size_t i = 0; i < j->n; i++)
        if (!wml_tensor_peek(j->part[i], &part[i]))
            return wml_fail(err, WML_E_INTERNAL, "tensor '%.*s': its bytes are not at hand", WML_ARG(j->part[i]->name));
    uint64_t row = offset / j->row, at = offset % j->row;
    for (size_t done = 0; done < n; row++, at = 0) {
        uint64_t start = 0;
        for (size_t i = 0; i < j->n && done < n; start += j->bytes[i++]) {
            if (at >= start + j->bytes[i]) continue;
            uint64_t from = at > start ? at - start : 0;
            size_t len = (size_t)WML_MIN((uint64_t)(n - done), j->bytes[i] - from);
            memcpy(out + done, part[i].ptr + row * j->bytes[i] + from, len);
            done += len;
        }
    }
    return true;
}

static uint64_t rows_of(const struct wml_tensor *t)
{
    uint64_t rows;
    wml_dims_count(t->dims.at, t->dims.len ? t->dims.len - 1 : 0, &rows);
    return rows;
}

struct wml_tensor *wml_weights_side_by_side(struct wml_pass_run *r, size_t n, struct wml_tensor *const *part)
{
    struct wml_model *m = r->model;
    struct joining j = {.n = n};
    struct wml_span bytes;
    size_t rank = part[0]->dims.len, width = wml_dtype_info(part[0]->dtype)->bits / 8;
    int64_t dims[8], last = 0;
    if (!rank || rank > WML_COUNT(dims) || !width) return NULL;
    for (size_t i = 0; i < n; i++) {
        const struct wml_tensor *t = part[i];
        if (t->dims.len != rank || t->dtype != part[0]->dtype) return NULL;
        for (size_t k = 0; k + 1 < rank; k++)
            if (t->dims.at[k] != part[0]->dims.at[k]) return NULL;
        if (!wml_tensor_bytes(m, part[i], &bytes, NULL)) return NULL;
        last += t->dims.at[rank - 1];
        j.part[i] = t;
        j.bytes[i] = (uint64_t)t->dims.at[rank - 1] * width;
        j.row += j.bytes[i];
    }
    if (!j.row) return NULL;
    for (size_t k = 0; k + 1 < rank; k++) dims[k] = part[0]->dims.at[k];
    dims[rank - 1] = last;
    struct joining *kept = WML_NEW(&m->arena, struct joining);
    *kept = j;
    struct wml_derived how = {.also = kept->part, .n_also = n, .size = rows_of(part[0]) * j.row, .produce = join, .arg = kept};
    return wml_tensor_derive(m, (enum wml_dtype)part[0]->dtype, rank, dims, &how);
}

struct wml_tensor *wml_rows_joined(struct wml_pass_run *r, enum wml_dtype dtype, size_t n, struct wml_tensor *const *part,
                                   const int64_t *length)
{
    size_t width = wml_dtype_info((int)dtype)->bits / 8, at = 0;
    int64_t whole = 0;
    for (size_t i = 0; i < n; i++) whole += length[i];
    unsigned char *bytes = WML_NEW_ARRAY(r->scratch, unsigned char, (size_t)whole * width + 1);
    for (size_t i = 0; i < n; at += (size_t)length[i++] * width) {
        struct wml_span s;
        if (!part[i]) continue;
        if (part[i]->dtype != (int32_t)dtype || !wml_tensor_bytes(r->model, part[i], &s, NULL) || s.len != (size_t)length[i] * width) return NULL;
        memcpy(bytes + at, s.ptr, s.len);
    }
    return wml_tensor_copy(r->model, dtype, 1, &whole, bytes, (size_t)whole * width, NULL);
}
