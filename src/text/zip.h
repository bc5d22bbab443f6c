/* text/zip.h - zip archives in memory, by their central directory: members stored or deflated, zip64. Encrypted and
 * split archives are refused. Stored members are spans of the archive: nothing is copied. */
#ifndef WML_TEXT_ZIP_H
#define WML_TEXT_ZIP_H

#include "base/rd.h"
#include "base/vec.h"

struct wml_zip_member {
    struct wml_str name; /* in the archive's bytes */
    uint64_t packed, size, offset;
    uint32_t crc;
    uint16_t method, flags;
};

struct wml_zip { /* zero is a valid empty archive */
    struct wml_span bytes;
    WML_VEC(struct wml_zip_member) v; /* in the directory's order */
    uint64_t inflated;                /* bytes handed out so far: bounded for all members together */
};

/* Reads the directory; bytes must outlive it. */
bool wml_zip_open(struct wml_span bytes, struct wml_zip *out, struct wml_err *err);
void wml_zip_release(struct wml_zip *z);
/* A member's bytes. *block is NULL where they lie in the archive, else heap memory that holds them: free() it. The
 * checksum reads all of them; PyTorch leaves out the right one when asked to save time. */
enum wml_zip_check { WML_ZIP_TRUST, WML_ZIP_CHECK };
bool wml_zip_read(struct wml_zip *z, const struct wml_zip_member *m, enum wml_zip_check check, struct wml_span *bytes,
                  void **block, struct wml_err *err);
/* Raw deflate: false unless exactly n_out bytes come out. */
bool wml_inflate(const void *in, size_t n_in, void *out, size_t n_out);

#endif
