/* weights/supposed.c - a checkpoint that is not there: tensors come to be as their shapes are asked for. */
#include "base/num.h"
#include "weights/internal.h"

struct wml_weights *wml_weights_suppose(const struct wml_weights_supposer *s)
{
    struct wml_weights *w = wml_weights_blank();
    struct wml_weights_supposer *copy = WML_NEW(&w->arena, struct wml_weights_supposer);
    *copy = *s;
    w->supposer = copy;
    w->format = "supposed";
    return w;
}

bool wml_weights_would_have(const struct wml_weights *w, struct wml_str name)
{
    const struct wml_weights_supposer *s = w->supposer;
    return wml_map_has(&w->by_name, name) || (s && s->has && s->has(s->arg, name));
}

const struct wml_weight *wml_weights_make(struct wml_weights *w, struct wml_str name, size_t rank, const int64_t *dims)
{
    const struct wml_weights_supposer *s = w->supposer;
    int64_t chosen[WML_WEIGHT_MAX_RANK];
    uint64_t n, bytes;
    struct wml_err none = {0};
    if (!s || rank > WML_WEIGHT_MAX_RANK || wml_map_has(&w->by_name, name)) return NULL;
    for (size_t i = 0; i < rank; i++) chosen[i] = dims[i];
    if (s->shape && !s->shape(s->arg, name, rank, chosen)) return NULL;
    if (!wml_dims_count(chosen, rank, &n) || !wml_dtype_bytes((int)s->dtype, n, &bytes) || bytes > s->bytes.len) return NULL;
    const struct wml_weight t = {.name = name, .dtype = s->dtype, .rank = rank, .dims = chosen,
                                 .bytes = {s->bytes.ptr, (size_t)bytes}};
    return wml_weights_add(w, &t, &none) ? wml_weights_use(w, name) : NULL;
}
