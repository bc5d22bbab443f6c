/* Checkpoints from any bytes: safetensors, PyTorch's archives and its old format. What is read is as long as its dims say. */
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/num.h"
#include "weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t look_at(const struct wml_weights *w, const struct wml_weight *t, uint64_t h)
{
    uint64_t n = 0, bytes = 0;
    if (t->rank > WML_WEIGHT_MAX_RANK || !wml_dims_count(t->dims, t->rank, &n)) abort();
    if (t->dtype && (!wml_dtype_bytes((int)t->dtype, n, &bytes) || bytes != t->bytes.len)) abort();
    if (wml_weights_find(w, t->name) != t) abort();
    return wml_hash(t->bytes.ptr, t->bytes.len, h); /* touches every byte */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_weights *w = NULL;
    struct wml_err err = {0};
    uint64_t h = 0, total = 0;
    if (!wml_weights_parse((struct wml_span){data, size}, &w, &err)) {
        if (w || !err.code || !err.msg[0]) abort();
        return 0;
    }
    for (size_t i = 0; i < wml_weights_len(w); i++) {
        h = look_at(w, wml_weights_at(w, i), h);
        total += wml_weights_at(w, i)->bytes.len;
    }
    if (total != wml_weights_bytes(w) || !wml_weights_format(w)) abort();
    if (h == 1) wml_weights_hold(w); /* keeps the compiler from dropping it */
    wml_weights_close(w);
    return 0;
}
