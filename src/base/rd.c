/* base/rd.c - the cursor of rd.h. */
#include "base/rd.h"

#include <inttypes.h>

struct wml_rd wml_rd(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    return (struct wml_rd){p, p ? p + n : p, p};
}

size_t wml_rd_left(const struct wml_rd *r)
{
    return (size_t)(r->end - r->p);
}

uint64_t wml_rd_offset(const struct wml_rd *r)
{
    return (uint64_t)(r->p - r->origin);
}

bool wml_rd_bytes(struct wml_rd *r, uint64_t n, struct wml_span *out, struct wml_err *err)
{
    size_t left = wml_rd_left(r);
    if (n > left)
        return wml_fail(err, WML_E_FORMAT, "byte %" PRIu64 ": need %" PRIu64 " bytes, %zu left",
                        wml_rd_offset(r), n, left);
    *out = (struct wml_span){r->p, (size_t)n};
    if (n) r->p += n;
    return true;
}

bool wml_rd_sub(struct wml_rd *r, uint64_t n, struct wml_rd *out, struct wml_err *err)
{
    struct wml_span s = {0};
    if (!wml_rd_bytes(r, n, &s, err)) return false;
    *out = (struct wml_rd){s.ptr, s.ptr ? s.ptr + s.len : s.ptr, r->origin};
    return true;
}

bool wml_rd_skip(struct wml_rd *r, uint64_t n, struct wml_err *err)
{
    struct wml_span s = {0};
    return wml_rd_bytes(r, n, &s, err);
}

static bool little(struct wml_rd *r, size_t n, uint64_t *out, struct wml_err *err)
{
    struct wml_span s = {0};
    if (!wml_rd_bytes(r, n, &s, err)) return false;
    *out = 0;
    for (size_t i = 0; i < n; i++) *out |= (uint64_t)s.ptr[i] << (8 * i);
    return true;
}

bool wml_rd_u8(struct wml_rd *r, uint8_t *out, struct wml_err *err)
{
    uint64_t v = 0;
    bool ok = little(r, 1, &v, err);
    *out = (uint8_t)v;
    return ok;
}

bool wml_rd_u16(struct wml_rd *r, uint16_t *out, struct wml_err *err)
{
    uint64_t v = 0;
    bool ok = little(r, 2, &v, err);
    *out = (uint16_t)v;
    return ok;
}

bool wml_rd_u32(struct wml_rd *r, uint32_t *out, struct wml_err *err)
{
    uint64_t v = 0;
    bool ok = little(r, 4, &v, err);
    *out = (uint32_t)v;
    return ok;
}

bool wml_rd_u64(struct wml_rd *r, uint64_t *out, struct wml_err *err)
{
    return little(r, 8, out, err);
}

bool wml_rd_varint(struct wml_rd *r, uint64_t *out, struct wml_err *err)
{
    uint64_t at = wml_rd_offset(r), v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (r->p == r->end)
            return wml_fail(err, WML_E_FORMAT, "byte %" PRIu64 ": the file ends inside a number", at);
        uint8_t b = *r->p++;
        if (shift == 63 && b > 1) break;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            *out = v;
            return true;
        }
    }
    return wml_fail(err, WML_E_FORMAT, "byte %" PRIu64 ": number longer than 64 bits", at);
}
