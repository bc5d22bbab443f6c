/* PyTorch tensors: the dictionary that is the model's, views of storages as tensors in C order. A view that is in C order
 * already is a span of the file. Every element that a view can touch is compared with the storage's end first. */
#include "weights/torch.h"

#include <inttypes.h>
#include "base/num.h"

bool wml_torch_storage_size(const struct wml_pickle_storage *s, uint64_t *bytes)
{
    return wml_dtype_bytes((int)s->dtype, s->n, bytes);
}

/* --- which dictionary --- */

static bool holds_tensors(const struct wml_pickle *v)
{
    if (v->kind != WML_PICKLE_DICT) return false;
    for (size_t i = 1; i < v->item.len; i += 2)
        if (v->item.at[i]->kind == WML_PICKLE_TENSOR) return true;
    return false;
}

/* The last value under a key: Python's dictionaries keep that one. */
static const struct wml_pickle *value_of(const struct wml_pickle *dict, const char *key)
{
    for (size_t i = dict->item.len; i >= 2; i -= 2)
        if (dict->item.at[i - 2]->kind == WML_PICKLE_STR && wml_str_is(dict->item.at[i - 2]->text, key)) return dict->item.at[i - 1];
    return NULL;
}

static bool say_no_dictionary(const struct wml_pickle *root, struct wml_err *err)
{
    enum { SHOWN = 6 };
    struct wml_buf keys = {0};
    size_t n = 0;
    if (root->kind != WML_PICKLE_DICT) wml_fail(err, WML_E_UNSUPPORTED, "the file holds no dictionary of tensors");
    else {
        for (size_t i = 0; i < root->item.len && n < SHOWN; i += 2)
            if (root->item.at[i]->kind == WML_PICKLE_STR)
                wml_buf_fmt(&keys, "%s%.*s", n++ ? ", " : "", WML_ARG(root->item.at[i]->text));
        wml_fail(err, WML_E_UNSUPPORTED, "the file holds a dictionary without tensors (%s)", n ? wml_buf_text(&keys) : "it is empty");
    }
    wml_buf_release(&keys);
    return wml_hint(err, "save the model's state_dict()");
}

/* Training checkpoints keep it beside the optimizer's state, which has tensors too. */
static bool choose(const struct wml_pickle *root, const struct wml_pickle **dict, struct wml_err *err)
{
    static const char *const keys[] = {"state_dict", "model_state_dict", "model", "module"};
    *dict = root;
    for (size_t i = 0; root->kind == WML_PICKLE_DICT && i < WML_COUNT(keys); i++) {
        const struct wml_pickle *inner = value_of(root, keys[i]);
        if (!inner || !holds_tensors(inner)) continue;
        *dict = inner;
        return true;
    }
    return holds_tensors(root) || say_no_dictionary(root, err);
}

/* --- views --- */

static bool in_c_order(const struct wml_pickle_tensor *t, uint64_t n)
{
    uint64_t step = 1;
    for (size_t i = t->rank; n && i-- > 0;) {
        if (t->dims[i] == 1) continue;
        if (t->strides[i] < 0 || (uint64_t)t->strides[i] != step) return false;
        step *= (uint64_t)t->dims[i]; /* at most n */
    }
    return true;
}

/* One behind the last element that the view touches, 0 for none. */
static bool reach(const struct wml_pickle_tensor *t, uint64_t n, int64_t *end)
{
    int64_t last = t->offset, far;
    *end = 0;
    if (!n) return true;
    for (size_t i = 0; i < t->rank; i++) {
        if (t->strides[i] < 0 || !wml_mul_i64(t->dims[i] - 1, t->strides[i], &far) || far > INT64_MAX - last) return false;
        last += far;
    }
    if (last == INT64_MAX) return false;
    *end = last + 1;
    return true;
}

/* Element by element in C order: an odometer over all dimensions. */
static void copy_view(const struct wml_pickle_tensor *t, const unsigned char *storage, size_t width, uint64_t n, unsigned char *out)
{
    int64_t at[WML_WEIGHT_MAX_RANK] = {0}, from = t->offset;
    for (uint64_t k = 0; k < n; k++) {
        memcpy(out + k * width, storage + (size_t)from * width, width);
        for (size_t i = t->rank; i-- > 0;) {
            from += t->strides[i];
            if (++at[i] < t->dims[i]) break;
            from -= t->strides[i] * t->dims[i];
            at[i] = 0;
        }
    }
}

struct adding {
    struct wml_weights *w;
    wml_torch_locate *locate;
    void *archive;
    uint64_t room; /* for copies that are yet to come */
};

static bool take_copy(struct adding *a, const struct wml_pickle_tensor *t, size_t width, uint64_t n, struct wml_weight *out,
                      struct wml_err *err)
{
    const uint64_t size = n * width;
    if (size > a->room) {
        wml_fail(err, WML_E_UNSUPPORTED, "it shows the same elements many times: %" PRIu64 " bytes written out", size);
        return wml_hint(err, "call contiguous() on expanded tensors before they are saved, or save as safetensors");
    }
    unsigned char *block = wml_big_alloc(size, err);
    if (!block) return false;
    WML_PUSH(&a->w->block, (void *)block);
    a->room -= size;
    copy_view(t, t->storage->bytes.ptr, width, n, block);
    out->bytes = (struct wml_span){block, (size_t)size};
    return true;
}

static bool add_tensor(struct adding *a, struct wml_str name, const struct wml_pickle_tensor *t, struct wml_err *err)
{
    struct wml_weight out = {.name = name, .dtype = t->dtype, .rank = t->rank, .dims = t->dims};
    const size_t width = wml_dtype_info((int)t->dtype)->bits / 8;
    struct wml_pickle_storage *s = t->storage;
    uint64_t n, size;
    int64_t end;
    if (!s->ready && !a->locate(a->archive, s, err)) return false;
    s->ready = true;
    if (!wml_dims_count(t->dims, t->rank, &n) || n > INT64_MAX / width || !reach(t, n, &end))
        return wml_fail(err, WML_E_FORMAT, "its sizes and strides are absurd");
    if ((uint64_t)end > s->bytes.len / width)
        return wml_fail(err, WML_E_FORMAT, "it reaches to element %" PRId64 " of a storage of %zu", end, s->bytes.len / width);
    size = n * width;
    if (!n) out.bytes = (struct wml_span){0};
    else if (in_c_order(t, n)) out.bytes = (struct wml_span){s->bytes.ptr + (size_t)t->offset * width, (size_t)size};
    else if (!take_copy(a, t, width, n, &out, err)) return false;
    return wml_weights_add(a->w, &out, err);
}

bool wml_torch_add_all(struct wml_weights *w, const struct wml_pickle *root, wml_torch_locate *locate, void *archive,
                       uint64_t most, struct wml_err *err)
{
    struct adding a = {.w = w, .locate = locate, .archive = archive, .room = most};
    const struct wml_pickle *dict;
    if (!choose(root, &dict, err)) return false;
    for (size_t i = 0; i + 1 < dict->item.len; i += 2) {
        const struct wml_pickle *key = dict->item.at[i], *v = dict->item.at[i + 1];
        if (v->kind != WML_PICKLE_TENSOR || key->kind != WML_PICKLE_STR) continue; /* epochs, versions */
        if (!add_tensor(&a, key->text, v->tensor, err)) return wml_wrap(err, "tensor '%.*s'", WML_ARG(key->text));
    }
    w->format = "PyTorch";
    return true;
}
