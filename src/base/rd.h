/* base/rd.h - cursor over untrusted bytes. Every length is compared with what is left before it is
 * used, and every failure names the absolute byte offset. Little endian. */
#ifndef WML_BASE_RD_H
#define WML_BASE_RD_H

#include "base/str.h"

struct wml_span {
    const unsigned char *ptr;
    size_t len;
};

struct wml_rd {
    const unsigned char *p, *end;
    const unsigned char *origin; /* what offset 0 means in messages: the start of the file */
};

struct wml_rd wml_rd(const void *bytes, size_t n);
size_t wml_rd_left(const struct wml_rd *r);
uint64_t wml_rd_offset(const struct wml_rd *r);
bool wml_rd_bytes(struct wml_rd *r, uint64_t n, struct wml_span *out, struct wml_err *err);
/* A cursor over the next n bytes, with the same origin. */
bool wml_rd_sub(struct wml_rd *r, uint64_t n, struct wml_rd *out, struct wml_err *err);
bool wml_rd_skip(struct wml_rd *r, uint64_t n, struct wml_err *err);
bool wml_rd_u8(struct wml_rd *r, uint8_t *out, struct wml_err *err);
bool wml_rd_u16(struct wml_rd *r, uint16_t *out, struct wml_err *err);
bool wml_rd_u32(struct wml_rd *r, uint32_t *out, struct wml_err *err);
bool wml_rd_u64(struct wml_rd *r, uint64_t *out, struct wml_err *err);
/* Protobuf base-128 varint, at most 10 bytes. */
bool wml_rd_varint(struct wml_rd *r, uint64_t *out, struct wml_err *err);

#endif
