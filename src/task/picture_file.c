/* Signatures, chunks and markers of picture files, up to what decoding needs. JPEG: ITU-T T.81 annex B. PNG: its
 * specification, 2nd edition. GIF: GIF89a. BMP: BITMAPCOREHEADER and later. EXIF: version 2.32, the TIFF part. */
#include "task/picture_file.h"

#include <inttypes.h>
#include "base/hash.h"
#include "task/picture.h"

static bool cut_short(const char *format, struct wml_err *err)
{
    return wml_fail(err, WML_E_FORMAT, "the %s data ends before the picture does", format);
}

/* Big or little endian number of n bytes. */
static uint32_t number(const unsigned char *p, unsigned n, bool big)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < n; i++) v = v << 8 | p[big ? i : n - 1 - i];
    return v;
}

/* The orientation in a TIFF directory; 0 when there is none, or none that makes sense. */
static unsigned orientation_of(struct wml_span tiff)
{
    enum { ORIENTATION = 0x112, ENTRY = 12 };
    if (tiff.len < 8 || tiff.ptr[0] != tiff.ptr[1] || (tiff.ptr[0] != 'I' && tiff.ptr[0] != 'M')) return 0;
    bool big = tiff.ptr[0] == 'M';
    size_t at = number(tiff.ptr + 4, 4, big);
    if (number(tiff.ptr + 2, 2, big) != 42 || at > tiff.len - 2) return 0;
    size_t n = number(tiff.ptr + at, 2, big);
    for (at += 2; n && tiff.len - at >= ENTRY; n--, at += ENTRY) {
        const unsigned char *e = tiff.ptr + at;
        if (number(e, 2, big) != ORIENTATION) continue;
        uint32_t type = number(e + 2, 2, big);
        if (number(e + 4, 4, big) != 1 || (type != 3 && type != 4)) return 0;
        uint32_t v = number(e + 8, type == 3 ? 2 : 4, big);
        return v >= 1 && v <= 8 ? v : 0;
    }
    return 0;
}

/* Past the fill bytes of a marker to its number; 0: no marker here. */
static unsigned jpeg_marker(struct wml_rd *r)
{
    uint8_t c = 0;
    if (!wml_rd_u8(r, &c, NULL) || c != 0xff) return 0;
    while (c == 0xff)
        if (!wml_rd_u8(r, &c, NULL)) return 0;
    return c;
}

static bool jpeg_has_end(struct wml_rd r)
{
    const unsigned char *p = r.p;
    while (r.end - p >= 2 && (p = memchr(p, 0xff, (size_t)(r.end - p) - 1)) != NULL)
        if (*++p == 0xd9) return true;
    return false;
}

/* A frame header: the size, and whether it is of a kind that stb_image decodes. */
static bool jpeg_frame(unsigned marker, struct wml_span body, struct wml_picture_facts *out, struct wml_err *err)
{
    if (body.len < 6) return cut_short(out->format, err);
    out->height = number(body.ptr + 1, 2, true);
    out->width = number(body.ptr + 3, 2, true);
    if (marker <= 0xc2 && body.ptr[0] == 8) return true;
    wml_fail(err, WML_E_UNSUPPORTED, "a JPEG of %d bits that is %s", body.ptr[0],
             marker <= 0xc2 ? "packed by Huffman's codes" : marker >= 0xc9 ? "packed arithmetically" : "lossless or in layers");
    return wml_hint(err, "save it as PNG or baseline JPEG");
}

static bool look_jpeg(struct wml_span file, struct wml_picture_facts *out, struct wml_err *err)
{
    enum { TEM = 0x01, TABLES = 0xc4, RESERVED = 0xc8, CONDITIONS = 0xcc, RST0 = 0xd0, RST7 = 0xd7, END = 0xd9, SCAN = 0xda, APP1 = 0xe1 };
    struct wml_rd r = wml_rd(file.ptr + 2, file.len - 2);
    for (;;) {
        struct wml_span size, body;
        unsigned m = jpeg_marker(&r);
        if (m == SCAN) return jpeg_has_end(r) ? true : cut_short(out->format, err);
        if (m == TEM || (m >= RST0 && m <= RST7)) continue;
        if (!wml_rd_left(&r)) return cut_short(out->format, err);
        if (m == 0 || m == END || !wml_rd_bytes(&r, 2, &size, NULL)) break;
        uint32_t n = number(size.ptr, 2, true);
        if (n < 2) break;
        if (!wml_rd_bytes(&r, n - 2, &body, NULL)) return cut_short(out->format, err);
        if (m >= 0xc0 && m <= 0xcf && m != TABLES && m != RESERVED && m != CONDITIONS && !jpeg_frame(m, body, out, err)) return false;
        if (m == APP1 && body.len > 6 && memcmp(body.ptr, "Exif\0", 6) == 0 && !out->orientation)
            out->orientation = orientation_of((struct wml_span){body.ptr + 6, body.len - 6});
    }
    return wml_fail(err, WML_E_FORMAT, "no marker at byte %zu of the JPEG data", file.len - wml_rd_left(&r));
}

static bool look_png(struct wml_span file, struct wml_picture_facts *out, struct wml_err *err)
{
    struct wml_rd r = wml_rd(file.ptr + 8, file.len - 8);
    for (;;) {
        struct wml_span head, body, sum;
        if (!wml_rd_bytes(&r, 8, &head, NULL) || !wml_rd_bytes(&r, number(head.ptr, 4, true), &body, NULL) ||
            !wml_rd_bytes(&r, 4, &sum, NULL))
            return cut_short(out->format, err);
        const unsigned char *type = head.ptr + 4;
        bool critical = !(type[0] & 0x20);
        /* The sum covers the type, which lies just before the body. */
        if (critical && wml_crc32(0, type, body.len + 4) != number(sum.ptr, 4, true))
            return wml_fail(err, WML_E_FORMAT, "the PNG data is damaged: the sum of the chunk at byte %zu is wrong",
                            (size_t)(head.ptr - file.ptr));
        if (memcmp(type, "IHDR", 4) == 0 && body.len >= 8 && !out->width) {
            out->width = number(body.ptr, 4, true);
            out->height = number(body.ptr + 4, 4, true);
        }
        if (memcmp(type, "eXIf", 4) == 0) out->orientation = orientation_of(body);
        if (memcmp(type, "IEND", 4) == 0) return true;
    }
}

/* Past a chain of blocks that each tell their size, up to the empty one. */
static bool gif_skip_blocks(struct wml_rd *r)
{
    for (uint8_t n = 1; n;)
        if (!wml_rd_u8(r, &n, NULL) || !wml_rd_skip(r, n, NULL)) return false;
    return true;
}

/* A colour table follows when the top bit is set. */
static bool gif_skip_colours(struct wml_rd *r, unsigned flags)
{
    return !(flags & 0x80) || wml_rd_skip(r, UINT64_C(6) << (flags & 7), NULL);
}

static bool look_gif(struct wml_span file, struct wml_picture_facts *out, struct wml_err *err)
{
    struct wml_rd r = wml_rd(file.ptr + 6, file.len - 6);
    struct wml_span head;
    uint8_t kind, label;
    if (!wml_rd_bytes(&r, 7, &head, NULL) || !gif_skip_colours(&r, head.ptr[4])) return cut_short(out->format, err);
    out->width = number(head.ptr, 2, false);
    out->height = number(head.ptr + 2, 2, false);
    while (wml_rd_u8(&r, &kind, NULL)) {
        if (kind == '!') {
            if (!wml_rd_u8(&r, &label, NULL) || !gif_skip_blocks(&r)) break;
        } else if (kind == ',') {
            if (!wml_rd_bytes(&r, 9, &head, NULL) || !gif_skip_colours(&r, head.ptr[8]) ||
                !wml_rd_skip(&r, 1, NULL) || !gif_skip_blocks(&r))
                break;
            return true;
        } else {
            return wml_fail(err, WML_E_FORMAT, "the GIF data has no picture");
        }
    }
    return cut_short(out->format, err);
}

static bool look_bmp(struct wml_span file, struct wml_picture_facts *out, struct wml_err *err)
{
    enum { CORE = 12, INFO = 40 };
    if (file.len < 54) return cut_short(out->format, err);
    uint32_t offset = number(file.ptr + 10, 4, false), header = number(file.ptr + 14, 4, false);
    uint32_t width, height, bits, packing = 0;
    if (header == CORE) {
        width = number(file.ptr + 18, 2, false), height = number(file.ptr + 20, 2, false);
        bits = number(file.ptr + 24, 2, false);
    } else {
        width = number(file.ptr + 18, 4, false), height = number(file.ptr + 22, 4, false);
        bits = number(file.ptr + 28, 2, false), packing = number(file.ptr + 30, 4, false);
    }
    if (header != CORE && header < INFO) return wml_fail(err, WML_E_FORMAT, "a BMP header of %" PRIu32 " bytes", header);
    if (packing != 0 && packing != 3)
        return wml_fail(err, WML_E_UNSUPPORTED, "packed BMP data (compression %" PRIu32 ")", packing);
    if (height >> 31) height = 0 - height; /* negative: rows from the top */
    out->width = width;
    out->height = height;
    if (bits > 32) return wml_fail(err, WML_E_FORMAT, "a BMP of %" PRIu32 " bits per pixel", bits);
    if (width >> 30 || height >> 30) return true; /* refused by its size */
    uint64_t row = ((uint64_t)width * bits + 31) / 32 * 4;
    if (offset > file.len || row * height > file.len - offset) return cut_short(out->format, err);
    return true;
}

struct signature {
    const char *format;
    unsigned at, len;
    const char *bytes;
    bool (*look)(struct wml_span file, struct wml_picture_facts *out, struct wml_err *err); /* NULL: not decoded */
};

static const struct signature signatures[] = {
    {"JPEG", 0, 3, "\xff\xd8\xff", look_jpeg},
    {"PNG", 0, 8, "\x89PNG\r\n\x1a\n", look_png},
    {"GIF", 0, 6, "GIF89a", look_gif},
    {"GIF", 0, 6, "GIF87a", look_gif},
    {"BMP", 0, 2, "BM", look_bmp},
    {"WebP", 8, 4, "WEBP", NULL},
    {"TIFF", 0, 4, "II*\0", NULL},
    {"TIFF", 0, 4, "MM\0*", NULL},
    {"HEIF or AVIF", 4, 4, "ftyp", NULL},
    {"JPEG 2000", 4, 4, "jP  ", NULL},
    {"JPEG XL", 0, 2, "\xff\x0a", NULL},
    {"Photoshop", 0, 4, "8BPS", NULL},
    {"PDF", 0, 4, "%PDF", NULL},
};

static bool size_is_allowed(const struct wml_picture_facts *f, struct wml_err *err)
{
    if (!f->width || !f->height) return wml_fail(err, WML_E_FORMAT, "the %s data has no picture", f->format);
    if (f->width <= (uint32_t)WML_PICTURE_MAX / f->height) return true;
    wml_fail(err, WML_E_UNSUPPORTED, "%" PRIu32 " x %" PRIu32 " pixels: at most %d pixels", f->width, f->height, WML_PICTURE_MAX);
    return wml_hint(err, "make the picture smaller");
}

bool wml_picture_look(struct wml_span file, struct wml_picture_facts *out, struct wml_err *err)
{
    *out = (struct wml_picture_facts){0};
    for (size_t i = 0; i < WML_COUNT(signatures); i++) {
        const struct signature *s = &signatures[i];
        if (file.len < s->at + s->len || memcmp(file.ptr + s->at, s->bytes, s->len) != 0) continue;
        out->format = s->format;
        if (s->look) return s->look(file, out, err) && size_is_allowed(out, err);
        wml_fail(err, WML_E_UNSUPPORTED, "%s files are not read", s->format);
        return wml_hint(err, "save it as PNG or JPEG");
    }
    if (!file.len) {
        wml_fail(err, WML_E_FORMAT, "the file is empty");
        return wml_hint(err, "copy it again, or take it out");
    }
    wml_fail(err, WML_E_UNSUPPORTED, "this is no JPEG, PNG, BMP or GIF file");
    return wml_hint(err, "save it as PNG or JPEG");
}
