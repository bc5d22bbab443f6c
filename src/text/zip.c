/* zip archives: the end record, the directory, one member. Sizes come from the directory, since a streamed archive
 * has them only there and behind the data; the header before the data only tells where it begins. */
#include "text/zip.h"

#include <inttypes.h>
#include "base/hash.h"

enum { END_SIZE = 22, END_SEARCH = 65557, ENTRY_SIZE = 46, RATIO_MAX = 1100 };
static const uint64_t MAX_INFLATED = UINT64_C(8) << 30; /* all members together */

static struct wml_rd at(struct wml_span zip, uint64_t offset)
{
    struct wml_rd r = wml_rd(zip.ptr, zip.len);
    r.p = offset <= zip.len ? r.p + offset : r.end;
    return r;
}

static bool find_end(struct wml_span zip, uint64_t *directory, uint64_t *count, struct wml_err *err)
{
    size_t low = zip.len > END_SEARCH ? zip.len - END_SEARCH : 0;
    for (size_t i = zip.len >= END_SIZE ? zip.len - END_SIZE + 1 : 0; i-- > low;) {
        if (memcmp(zip.ptr + i, "PK\5\6", 4) != 0) continue;
        struct wml_rd r = at(zip, i + 10);
        uint16_t n;
        uint32_t size, offset;
        if (!wml_rd_u16(&r, &n, err) || !wml_rd_u32(&r, &size, err) || !wml_rd_u32(&r, &offset, err)) return false;
        *directory = offset;
        *count = n;
        if (offset != UINT32_MAX && n != UINT16_MAX) return true;
        /* zip64: its locator stands right before. */
        uint64_t where, total;
        if (i < 20 || memcmp(zip.ptr + i - 20, "PK\6\7", 4) != 0) return true;
        r = at(zip, i - 12);
        if (!wml_rd_u64(&r, &where, err)) return false;
        r = at(zip, where);
        return wml_rd_skip(&r, 32, err) && wml_rd_u64(&r, count, err) && wml_rd_u64(&r, &total, err) &&
               wml_rd_u64(&r, directory, err);
    }
    return wml_fail(err, WML_E_FORMAT, "the zip archive has no directory: it is cut or damaged");
}

/* The zip64 extra field replaces the sizes that are all ones, in this order. */
static bool widen(struct wml_rd extra, struct wml_zip_member *m, struct wml_err *err)
{
    while (wml_rd_left(&extra) >= 4) {
        uint16_t id, len;
        struct wml_rd field;
        if (!wml_rd_u16(&extra, &id, err) || !wml_rd_u16(&extra, &len, err) || !wml_rd_sub(&extra, len, &field, err))
            return false;
        if (id != 1) continue;
        if (m->size == UINT32_MAX && !wml_rd_u64(&field, &m->size, err)) return false;
        if (m->packed == UINT32_MAX && !wml_rd_u64(&field, &m->packed, err)) return false;
        if (m->offset == UINT32_MAX && !wml_rd_u64(&field, &m->offset, err)) return false;
    }
    return true;
}

static bool read_entry(struct wml_rd *r, struct wml_zip_member *m, struct wml_err *err)
{
    uint32_t magic, packed, size, offset;
    uint16_t name_len, extra_len, comment_len;
    struct wml_span name;
    struct wml_rd extra;
    if (!wml_rd_u32(r, &magic, err)) return false;
    if (magic != 0x02014b50) return wml_fail(err, WML_E_FORMAT, "the zip directory is damaged");
    if (!wml_rd_skip(r, 4, err) || !wml_rd_u16(r, &m->flags, err) || !wml_rd_u16(r, &m->method, err) ||
        !wml_rd_skip(r, 4, err) || !wml_rd_u32(r, &m->crc, err) || !wml_rd_u32(r, &packed, err) || !wml_rd_u32(r, &size, err) ||
        !wml_rd_u16(r, &name_len, err) || !wml_rd_u16(r, &extra_len, err) || !wml_rd_u16(r, &comment_len, err) ||
        !wml_rd_skip(r, 8, err) || !wml_rd_u32(r, &offset, err) || !wml_rd_bytes(r, name_len, &name, err) ||
        !wml_rd_sub(r, extra_len, &extra, err) || !wml_rd_skip(r, comment_len, err))
        return false;
    m->name = (struct wml_str){(const char *)name.ptr, name.len};
    m->packed = packed;
    m->size = size;
    m->offset = offset;
    return widen(extra, m, err);
}

static bool inflate_member(struct wml_zip *z, const struct wml_zip_member *m, struct wml_span packed, size_t behind,
                           void **block, struct wml_err *err)
{
    /* Deflate cannot shrink more than about 1030 times: a larger claim is a lie. */
    if (m->size > MAX_INFLATED - z->inflated || m->size / RATIO_MAX > m->packed + 1)
        return wml_fail(err, WML_E_FORMAT, "member '%.*s' claims %" PRIu64 " bytes", WML_ARG(m->name), m->size);
    if (m->size > INT32_MAX || m->packed > INT32_MAX) {
        wml_fail(err, WML_E_UNSUPPORTED, "member '%.*s' has more than 2 GiB, compressed", WML_ARG(m->name));
        return wml_hint(err, "write the archive without compression (numpy.savez and torch.save do not compress)");
    }
    unsigned char *data = wml_big_alloc(m->size + 1, err);
    if (!data) return false;
    /* The decoder wants two bytes behind the stream to look ahead into: the archive's directory follows. */
    if (!wml_inflate(packed.ptr, packed.len + WML_MIN(behind, (size_t)4), data, (size_t)m->size)) {
        free(data);
        return wml_fail(err, WML_E_FORMAT, "member '%.*s' is damaged: it cannot be unpacked", WML_ARG(m->name));
    }
    z->inflated += m->size;
    *block = data;
    return true;
}

bool wml_zip_read(struct wml_zip *z, const struct wml_zip_member *m, enum wml_zip_check check, struct wml_span *bytes,
                  void **block, struct wml_err *err)
{
    struct wml_rd r = at(z->bytes, m->offset);
    uint16_t name_len, extra_len;
    uint32_t magic;
    struct wml_span packed;
    *block = NULL;
    if (m->flags & 1) return wml_fail(err, WML_E_UNSUPPORTED, "member '%.*s' is encrypted", WML_ARG(m->name));
    if (!wml_rd_u32(&r, &magic, err) || !wml_rd_skip(&r, 22, err) || !wml_rd_u16(&r, &name_len, err) ||
        !wml_rd_u16(&r, &extra_len, err) || !wml_rd_skip(&r, (uint64_t)name_len + extra_len, err) ||
        !wml_rd_bytes(&r, m->packed, &packed, err))
        return wml_wrap(err, "member '%.*s'", WML_ARG(m->name));
    if (magic != 0x04034b50 || (m->method == 0 && m->size != m->packed))
        return wml_fail(err, WML_E_FORMAT, "member '%.*s' is damaged: its header is wrong", WML_ARG(m->name));
    if (m->method != 0 && m->method != 8)
        return wml_fail(err, WML_E_UNSUPPORTED, "member '%.*s' is packed by method %u", WML_ARG(m->name), m->method);
    if (m->method == 8 && !inflate_member(z, m, packed, wml_rd_left(&r), block, err)) return false;
    *bytes = *block ? (struct wml_span){*block, (size_t)m->size} : packed;
    if (check == WML_ZIP_CHECK && wml_crc32(0, bytes->ptr, bytes->len) != m->crc) {
        free(*block);
        *block = NULL;
        return wml_fail(err, WML_E_FORMAT, "member '%.*s' is damaged: its checksum is wrong", WML_ARG(m->name));
    }
    return true;
}

bool wml_zip_open(struct wml_span bytes, struct wml_zip *out, struct wml_err *err)
{
    uint64_t directory = 0, count = 0;
    *out = (struct wml_zip){.bytes = bytes};
    if (!find_end(bytes, &directory, &count, err)) return false;
    struct wml_rd r = at(bytes, directory);
    bool ok = count <= wml_rd_left(&r) / ENTRY_SIZE ||
              wml_fail(err, WML_E_FORMAT, "the zip archive claims %" PRIu64 " members, more than its directory can hold", count);
    for (uint64_t i = 0; ok && i < count; i++) {
        struct wml_zip_member m = {0};
        ok = read_entry(&r, &m, err);
        if (ok) WML_PUSH(&out->v, m);
    }
    if (!ok) wml_zip_release(out);
    return ok;
}

void wml_zip_release(struct wml_zip *z)
{
    WML_VEC_RELEASE(&z->v);
    *z = (struct wml_zip){0};
}
