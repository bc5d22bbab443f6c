/* base/sha1.c - SHA-1 (FIPS 180-4). */
#include "base/hash_block.h"

static uint32_t rotl(uint32_t v, int n)
{
    return v << n | v >> (32 - n);
}

static void block(uint32_t *h, const unsigned char *p)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? ((b & c) | (~b & d)) + 0x5a827999u
                   : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1u
                   : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu
                            : (b ^ c ^ d) + 0xca62c1d6u;
        uint32_t next = rotl(a, 5) + f + e + w[i];
        e = d;
        d = c;
        c = rotl(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void wml_sha1_init(struct wml_sha1 *s)
{
    *s = (struct wml_sha1){.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void wml_sha1_add(struct wml_sha1 *s, const void *bytes, size_t n)
{
    wml_hash_blocks(s->h, s->block, &s->n, bytes, n, block);
}

void wml_sha1_hex(struct wml_sha1 *s, char hex[WML_SHA1_HEX])
{
    wml_hash_pad(s->h, s->block, &s->n, block);
    for (int i = 0; i < 40; i++) hex[i] = "0123456789abcdef"[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[40] = '\0';
}
