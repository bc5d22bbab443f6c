/* base/hash.h - a fast 64-bit hash for tables and content comparison, SHA-256 for identities, SHA-1 for git's names, the CRC of
 * archives.
 *
 * wml_hash is not stable between versions: never write it to a file. SHA-1 and SHA-256 follow FIPS 180-4. */
#ifndef WML_BASE_HASH_H
#define WML_BASE_HASH_H

#include "base/str.h"

uint64_t wml_hash(const void *bytes, size_t n, uint64_t seed);
uint64_t wml_hash_str(struct wml_str s);

/* CRC-32 of zip and PNG. Starts with 0; the result of one piece is the start of the next. */
uint32_t wml_crc32(uint32_t crc, const void *bytes, size_t n);

struct wml_sha256 {
    uint32_t h[8];
    uint64_t n;
    unsigned char block[64];
};

enum { WML_SHA256_HEX = 65 };

void wml_sha256_init(struct wml_sha256 *s);
void wml_sha256_add(struct wml_sha256 *s, const void *bytes, size_t n);
void wml_sha256_end(struct wml_sha256 *s, unsigned char digest[32]);
/* The digest as 64 lower-case hex digits and NUL. */
void wml_sha256_hex(struct wml_sha256 *s, char hex[WML_SHA256_HEX]);

/* Not safe against forgery: only where a format prescribes it. */
struct wml_sha1 {
    uint32_t h[5];
    uint64_t n;
    unsigned char block[64];
};

enum { WML_SHA1_HEX = 41 };

void wml_sha1_init(struct wml_sha1 *s);
void wml_sha1_add(struct wml_sha1 *s, const void *bytes, size_t n);
void wml_sha1_hex(struct wml_sha1 *s, char hex[WML_SHA1_HEX]);

#endif
