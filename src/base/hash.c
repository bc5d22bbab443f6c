/* base/hash.c - hash of 8-byte words by multiply-and-fold, and SHA-256 (FIPS 180-4). */
#include "base/hash_block.h"

static uint64_t load64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
    /* 64x64 -> high xor low, from 32-bit halves: the same on every compiler */
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t ll = al * bl, lh = al * bh, hl = ah * bl, hh = ah * bh;
    uint64_t mid = (ll >> 32) + (uint32_t)lh + (uint32_t)hl;
    uint64_t low = (mid << 32) | (uint32_t)ll;
    uint64_t high = hh + (lh >> 32) + (hl >> 32) + (mid >> 32);
    return low ^ high;
}

uint64_t wml_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    /* The length is mixed in first: xor alone would let it cancel against the first byte. */
    uint64_t h = fold(seed ^ 0x9e3779b97f4a7c15u, (uint64_t)n ^ 0xd6e8feb86659fd93u);
    for (; n >= 8; p += 8, n -= 8) h = fold(h ^ load64(p), 0xd6e8feb86659fd93u);
    uint64_t tail = 0;
    for (size_t i = 0; i < n; i++) tail |= (uint64_t)p[i] << (8 * i);
    h = fold(h ^ tail, 0xa0761d6478bd642fu);
    return fold(h, 0xe7037ed1a0b428dbu);
}

uint64_t wml_hash_str(struct wml_str s)
{
    return wml_hash(s.ptr, s.len, 0);
}

static const uint32_t sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t v, int n)
{
    return v >> n | v << (32 - n);
}

static void sha_block(uint32_t *h, const unsigned char *p)
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], last = h[7];
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25), s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
        uint32_t t1 = last + s1 + (g ^ (e & (f ^ g))) + sha_k[i] + w[i], t2 = s0 + ((a & b) | (c & (a | b)));
        last = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const uint32_t v[8] = {a, b, c, d, e, f, g, last};
    for (int i = 0; i < 8; i++) h[i] += v[i];
}

void wml_sha256_init(struct wml_sha256 *s)
{
    *s = (struct wml_sha256){.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void wml_sha256_add(struct wml_sha256 *s, const void *bytes, size_t n)
{
    wml_hash_blocks(s->h, s->block, &s->n, bytes, n, sha_block);
}

void wml_sha256_end(struct wml_sha256 *s, unsigned char digest[32])
{
    wml_hash_pad(s->h, s->block, &s->n, sha_block);
    for (int i = 0; i < 32; i++) digest[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void wml_sha256_hex(struct wml_sha256 *s, char hex[WML_SHA256_HEX])
{
    unsigned char digest[32];
    wml_sha256_end(s, digest);
    for (int i = 0; i < 32; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    hex[64] = '\0';
}

/* Eight bytes at a time (Kounavis, Berry 2005). */
uint32_t wml_crc32(uint32_t crc, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint32_t table[8][256];
    if (n < 256) { /* less work than the tables */
        for (crc = ~crc; n; n--) {
            crc ^= *p++;
            for (int k = 0; k < 8; k++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        }
        return ~crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        table[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (size_t i = 0; i < 256; i++) table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 255];
    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
              table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    while (n--) crc = crc >> 8 ^ table[0][(crc ^ *p++) & 255];
    return ~crc;
}
