/* safetensors: the length of the header (8 bytes, little endian), the header as JSON, then the tensors' bytes.
 *
 *     {"__metadata__": {"format": "pt"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *
 * Offsets count from the end of the header. As the format's own reader does, this one wants the tensors, in whatever
 * order the header names them, to cover the rest of the file: without holes, overlaps or bytes behind the last. */
#include <inttypes.h>

#include "text/json.h"
#include "weights/internal.h"

static const uint64_t MAX_HEADER = 100000000; /* that of the format's own reader */

struct entry {
    struct wml_str name;
    const struct wml_json_val *info;
    uint64_t from, to;
    size_t place; /* in the header */
};

struct entries {
    WML_VEC(struct entry) v;
};

static const struct type {
    const char *name;
    enum wml_dtype dtype;
    unsigned bits;
} types[] = {
    {"F32", WML_F32, 32},        {"F16", WML_F16, 16},        {"BF16", WML_BF16, 16},
    {"F64", WML_F64, 64},        {"I64", WML_I64, 64},        {"I32", WML_I32, 32},
    {"I16", WML_I16, 16},        {"I8", WML_I8, 8},           {"U64", WML_U64, 64},
    {"U32", WML_U32, 32},        {"U16", WML_U16, 16},        {"U8", WML_U8, 8},
    {"BOOL", WML_BOOL, 8},       {"C64", WML_C64, 64},        {"F8_E4M3", WML_F8E4M3FN, 8},
    {"F8_E5M2", WML_F8E5M2, 8},  {"F8_E8M0", WML_F8E8M0, 8},  {"F8_E4M3FNUZ", WML_F8E4M3FNUZ, 8},
    {"F4", WML_F4E2M1, 4},       {"F6_E2M3", WML_UNDEFINED, 6}, {"F8_E5M2FNUZ", WML_F8E5M2FNUZ, 8},
    {"F6_E3M2", WML_UNDEFINED, 6},
};

static const struct type *find_type(struct wml_str name)
{
    for (size_t i = 0; i < WML_COUNT(types); i++)
        if (wml_str_is(name, types[i].name)) return &types[i];
    return NULL;
}

static bool hint_damaged(struct wml_err *err)
{
    return wml_hint(err, "the file is cut or damaged: fetch it again");
}

/* Two whole numbers, the second not the smaller. */
static bool read_offsets(struct entry *e, struct wml_err *err)
{
    const struct wml_json_val *offsets = wml_json_get(e->info, "data_offsets");
    int64_t from = wml_json_int(wml_json_at(offsets, 0), -1), to = wml_json_int(wml_json_at(offsets, 1), -1);
    if (!wml_json_is_array(offsets) || wml_json_len(offsets) != 2 || from < 0 || to < from)
        return wml_fail(err, WML_E_FORMAT, "tensor '%.*s': data_offsets are not two ascending numbers", WML_ARG(e->name));
    e->from = (uint64_t)from;
    e->to = (uint64_t)to;
    return true;
}

static bool read_shape(const struct entry *e, int64_t *dims, size_t *rank, struct wml_err *err)
{
    const struct wml_json_val *shape = wml_json_get(e->info, "shape"), *dim;
    struct wml_json_iter it = {0};
    struct wml_str key;
    *rank = wml_json_len(shape);
    if (!wml_json_is_array(shape)) return wml_fail(err, WML_E_FORMAT, "tensor '%.*s': there is no shape", WML_ARG(e->name));
    if (*rank > WML_WEIGHT_MAX_RANK)
        return wml_fail(err, WML_E_UNSUPPORTED, "tensor '%.*s' has %zu dimensions, at most %d are read", WML_ARG(e->name), *rank,
                        WML_WEIGHT_MAX_RANK);
    for (size_t i = 0; wml_json_next(shape, &it, &key, &dim); i++)
        if ((dims[i] = wml_json_int(dim, -1)) < 0)
            return wml_fail(err, WML_E_FORMAT, "tensor '%.*s': dimension %zu is not a size", WML_ARG(e->name), i);
    return true;
}

static bool add_tensor(struct wml_weights *w, const struct entry *e, struct wml_span data, struct wml_err *err)
{
    int64_t dims[WML_WEIGHT_MAX_RANK];
    struct wml_weight t = {.name = e->name, .dims = dims};
    struct wml_str dtype = wml_json_get_str(e->info, "dtype");
    const struct type *type = find_type(dtype);
    uint64_t size;
    if (!type) {
        wml_fail(err, WML_E_UNSUPPORTED, "tensor '%.*s' has the unknown type '%.*s'", WML_ARG(e->name), WML_ARG(dtype));
        return wml_hint(err, "the file is newer than this program, or damaged");
    }
    if (!read_shape(e, dims, &t.rank, err)) return false;
    if (!wml_weights_size(dims, t.rank, type->bits, &size))
        return wml_fail(err, WML_E_FORMAT, "tensor '%.*s': its shape is too large, or ends within a byte", WML_ARG(e->name));
    if (size != e->to - e->from)
        return wml_fail(err, WML_E_FORMAT, "tensor '%.*s' needs %" PRIu64 " bytes by its shape and has %" PRIu64, WML_ARG(e->name),
                        size, e->to - e->from);
    t.dtype = type->dtype;
    t.bytes = (struct wml_span){data.ptr + e->from, (size_t)size};
    return wml_weights_add(w, &t, err);
}

static int by_offset(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Layouts of convolutions and names are others there. */
static bool check_metadata(const struct wml_json_val *metadata, struct wml_err *err)
{
    struct wml_str format = wml_json_get_str(metadata, "format");
    if (!wml_json_is_object(metadata)) return wml_fail(err, WML_E_FORMAT, "__metadata__ is not an object");
    if (!wml_str_is(format, "tf") && !wml_str_is(format, "flax")) return true;
    wml_fail(err, WML_E_UNSUPPORTED, "the weights were saved by %s: their names and layouts are not those of PyTorch",
             wml_str_is(format, "tf") ? "TensorFlow" : "Flax");
    return wml_hint(err, "load the model with transformers' from_tf or from_flax, and save_pretrained it");
}

static bool gather(const struct wml_json_val *header, struct entries *out, struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct entry e = {0};
    if (!wml_json_is_object(header)) return wml_fail(err, WML_E_FORMAT, "the header is not a JSON object");
    while (wml_json_next(header, &it, &e.name, &e.info)) {
        if (wml_str_is(e.name, "__metadata__")) {
            if (!check_metadata(e.info, err)) return false;
            continue;
        }
        e.place = it.i;
        if (!wml_json_is_object(e.info)) return wml_fail(err, WML_E_FORMAT, "'%.*s' is not an object", WML_ARG(e.name));
        if (!read_offsets(&e, err)) return false;
        WML_PUSH(&out->v, e);
    }
    if (out->v.len) qsort(out->v.at, out->v.len, sizeof *out->v.at, by_offset);
    return true;
}

static bool check_cover(const struct entries *all, uint64_t n_data, struct wml_err *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < all->v.len; at = all->v.at[i++].to) {
        const struct entry *e = &all->v.at[i];
        if (e->to > n_data) {
            wml_fail(err, WML_E_FORMAT, "tensor '%.*s' ends at byte %" PRIu64 " of the data, the file has %" PRIu64, WML_ARG(e->name),
                     e->to, n_data);
            return hint_damaged(err);
        }
        if (e->from < at)
            return wml_fail(err, WML_E_FORMAT, "tensors '%.*s' and '%.*s' overlap", WML_ARG(all->v.at[i - 1].name), WML_ARG(e->name));
        if (e->from > at)
            return wml_fail(err, WML_E_FORMAT, "%" PRIu64 " bytes before tensor '%.*s' belong to none", e->from - at, WML_ARG(e->name));
    }
    if (at == n_data) return true;
    wml_fail(err, WML_E_FORMAT, "%" PRIu64 " bytes behind the last tensor belong to none", n_data - at);
    return hint_damaged(err);
}

bool wml_weights_read_safetensors(struct wml_weights *w, struct wml_span bytes, struct wml_err *err)
{
    struct wml_rd r = wml_rd(bytes.ptr, bytes.len);
    struct wml_span header, data;
    struct wml_json_doc *doc = NULL;
    struct entries all = {0};
    uint64_t n;
    if (!wml_rd_u64(&r, &n, err)) return hint_damaged(err);
    if (n > MAX_HEADER || n > wml_rd_left(&r)) {
        wml_fail(err, WML_E_FORMAT, "the safetensors header claims %" PRIu64 " bytes, %s %" PRIu64, n,
                 n > MAX_HEADER ? "the format allows" : "the file has", n > MAX_HEADER ? MAX_HEADER : (uint64_t)wml_rd_left(&r));
        return hint_damaged(err);
    }
    bool ok = wml_rd_bytes(&r, n, &header, err) && wml_rd_bytes(&r, wml_rd_left(&r), &data, err);
    if (ok && !wml_json_parse((struct wml_str){(const char *)header.ptr, header.len}, &doc, err)) {
        ok = wml_wrap(err, "the safetensors header");
        hint_damaged(err);
    }
    ok = ok && gather(wml_json_root(doc), &all, err) && check_cover(&all, data.len, err);
    for (size_t i = 0; ok && i < all.v.len; i++) ok = add_tensor(w, &all.v.at[i], data, err);
    w->format = "safetensors";
    WML_VEC_RELEASE(&all.v);
    wml_json_free(doc);
    return ok;
}
