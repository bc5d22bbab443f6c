/* base/hash_block.c - see hash_block.h. */
#include "base/hash_block.h"

void wml_hash_blocks(uint32_t *h, unsigned char block[64], uint64_t *total, const void *bytes, size_t n,
                     void (*f)(uint32_t *h, const unsigned char *block))
{
    const unsigned char *p = bytes;
    size_t have = (size_t)(*total % 64);
    *total += n;
    if (have) {
        size_t take = WML_MIN(n, 64 - have);
        memcpy(block + have, p, take);
        p += take;
        n -= take;
        if (have + take < 64) return;
        f(h, block);
    }
    for (; n >= 64; p += 64, n -= 64) f(h, p);
    if (n) memcpy(block, p, n);
}

void wml_hash_pad(uint32_t *h, unsigned char block[64], uint64_t *total, void (*f)(uint32_t *h, const unsigned char *block))
{
    const uint64_t bits = *total * 8;
    unsigned char pad[72] = {0x80};
    const size_t have = (size_t)(*total % 64), n = (have < 56 ? 56 : 120) - have;
    for (int i = 0; i < 8; i++) pad[n + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    wml_hash_blocks(h, block, total, pad, n + 8, f);
}
