/* numpy archives and arrays from any bytes. What is read is written again and read back the same. */
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "text/npy.h"
#include "text/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_npys a = {0}, again = {0};
    struct wml_err err = {0};
    struct wml_span s = {data, size};
    bool zip = size >= 2 && data[0] == 'P';
    bool ok = zip ? wml_npz_parse(s, &a, &err) : wml_npy_parse(s, WML_STR("x"), &a, &err);
    if (!ok && (!err.code || !err.msg[0])) abort();
    /* Touches every byte. */
    uint64_t h = 0;
    for (size_t i = 0; i < a.v.len; i++) h = wml_hash(a.v.at[i].data.ptr, a.v.at[i].data.len, h);
    if (h == 1) a.v.at[0].rank = 0; /* keeps the compiler from dropping it */
    if (ok && a.v.len == 1 && a.v.at[0].data.len < 100000) {
        struct wml_buf b = {0};
        wml_npy_header(&a.v.at[0], &b);
        wml_buf_add(&b, a.v.at[0].data.ptr, a.v.at[0].data.len);
        struct wml_span written = {(const unsigned char *)b.ptr, b.len};
        if (!wml_npy_parse(written, WML_STR("x"), &again, &err)) abort();
        const struct wml_npy *x = &a.v.at[0], *y = &again.v.at[0];
        if (x->dtype != y->dtype || x->rank != y->rank || x->data.len != y->data.len) abort();
        if (x->data.len && memcmp(x->data.ptr, y->data.ptr, x->data.len) != 0) abort();
        wml_npys_release(&again);
        wml_buf_release(&b);
    }
    wml_npys_release(&a);
    return 0;
}
