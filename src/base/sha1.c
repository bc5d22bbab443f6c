/* base/sha1.c - SHA-1 (FIPS 180-4). */
#include "base/hash.h"

static uint32_t rotl(uint32_t v, int n)
{
    return v << n | v >> (32 - n);
}

static void block(uint32_t h[5], const unsigned char *p)
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
    const unsigned char *p = bytes;
    size_t have = (size_t)(s->n % 64);
    s->n += n;
    if (have) {
        size_t take = WML_MIN(n, 64 - have);
        memcpy(s->block + have, p, take);
        p += take;
        n -= take;
        if (have + take < 64) return;
        block(s->h, s->block);
    }
    for (; n >= 64; p += 64, n -= 64) block(s->h, p);
    if (n) memcpy(s->block, p, n);
}

void wml_sha1_hex(struct wml_sha1 *s, char hex[WML_SHA1_HEX])
{
    uint64_t bits = s->n * 8;
    unsigned char pad[72] = {0x80};
    size_t have = (size_t)(s->n % 64), n = (have < 56 ? 56 : 120) - have;
    for (int i = 0; i < 8; i++) pad[n + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    wml_sha1_add(s, pad, n + 8);
    for (int i = 0; i < 40; i++) hex[i] = "0123456789abcdef"[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[40] = '\0';
}
