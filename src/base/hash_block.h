/* base/hash_block.h - what SHA-1 and SHA-256 share (FIPS 180-4): bytes gathered to blocks of 64, and the padding of the last.
 * Internal to base/. */
#ifndef WML_BASE_HASH_BLOCK_H
#define WML_BASE_HASH_BLOCK_H

#include "base/hash.h"

/* Takes n bytes into state h; *total counts all so far, of which the last, *total % 64, wait in `block`. */
void wml_hash_blocks(uint32_t *h, unsigned char block[64], uint64_t *total, const void *bytes, size_t n,
                     void (*f)(uint32_t *h, const unsigned char *block));
/* The end of the message: a one bit, zeros, its length in bits. */
void wml_hash_pad(uint32_t *h, unsigned char block[64], uint64_t *total, void (*f)(uint32_t *h, const unsigned char *block));

#endif
