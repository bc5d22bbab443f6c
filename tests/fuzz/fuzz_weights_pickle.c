/* A pickle, without the archive around it: nothing in it is called, and every tensor that is taken lies in its storage. */
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/num.h"
#include "weights/torch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STORAGE = 1 << 12, COPIES = 1 << 16 };
static const unsigned char storage[STORAGE];

static bool locate(void *archive, struct wml_pickle_storage *s, struct wml_err *err)
{
    uint64_t size;
    if (!wml_torch_storage_size(s, &size) || size > STORAGE) return wml_fail(err, WML_E_FORMAT, "a storage of %llu", (unsigned long long)s->n);
    s->bytes = (struct wml_span){storage, (size_t)size};
    *(size_t *)archive += 1;
    return true;
}

static void check(const struct wml_weights *w)
{
    uint64_t count, bytes, h = 0, total = 0;
    for (size_t i = 0; i < wml_weights_len(w); i++) {
        const struct wml_weight *t = wml_weights_at(w, i);
        if (t->rank > WML_WEIGHT_MAX_RANK || !wml_dims_count(t->dims, t->rank, &count)) abort();
        if (!wml_dtype_bytes((int)t->dtype, count, &bytes) || bytes != t->bytes.len) abort();
        h = wml_hash(t->bytes.ptr, t->bytes.len, h);
        total += bytes;
    }
    if (total != wml_weights_bytes(w) || h == 1) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_weights *w = wml_weights_blank();
    struct wml_pickle_ctx cx = {0};
    struct wml_pickle *root = NULL;
    struct wml_err err = {0};
    size_t located = 0;
    struct wml_rd r = wml_rd(data, size);
    const bool ok = wml_pickle_read(&cx, &r, &root, &err) && wml_torch_add_all(w, root, locate, &located, COPIES, &err);
    if (!ok && (!err.code || !err.msg[0])) abort();
    if (ok) check(w);
    wml_pickle_release(&cx);
    wml_weights_close(w);
    return 0;
}
