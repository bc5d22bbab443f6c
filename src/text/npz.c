/* .npz archives: zip by its central directory, as numpy writes and reads it; members stored or deflated,
 * zip64 sizes included. Encrypted and split archives are refused. */
#include "text/npz.h"

#include <inttypes.h>
#include "base/hash.h"
#include "base/num.h"
#include "os/file.h"

enum { END_SIZE = 22, END_SEARCH = 65557, MAX_MEMBERS = 65535, RATIO_MAX = 1100 };
static const uint64_t MAX_INFLATED = UINT64_C(8) << 30; /* all members together */

struct member {
    struct wml_str name;
    uint64_t packed, size, offset;
    uint32_t crc;
    uint16_t method, flags;
};

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
static bool widen(struct wml_rd extra, struct member *m, struct wml_err *err)
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

static bool read_entry(struct wml_rd *r, struct member *m, struct wml_err *err)
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

static bool inflate_member(const struct member *m, struct wml_span packed, size_t behind, struct wml_npys *out, uint64_t *total,
                           struct wml_span *bytes, struct wml_err *err)
{
    /* Deflate cannot shrink more than about 1030 times: a larger claim is a lie. */
    if (m->size > MAX_INFLATED - *total || m->size / RATIO_MAX > m->packed + 1)
        return wml_fail(err, WML_E_FORMAT, "member '%.*s' claims %" PRIu64 " bytes", WML_ARG(m->name), m->size);
    if (m->size > INT32_MAX || m->packed > INT32_MAX) {
        wml_fail(err, WML_E_UNSUPPORTED, "member '%.*s' has more than 2 GiB, compressed", WML_ARG(m->name));
        return wml_hint(err, "write the archive with numpy.savez, which does not compress");
    }
    unsigned char *data = wml_big_alloc(m->size + 1, err);
    if (!data) return false;
    WML_PUSH(&out->owned, (void *)data);
    *total += m->size;
    /* The decoder wants two bytes behind the stream to look ahead into: the archive's directory follows. */
    if (!wml_inflate(packed.ptr, packed.len + WML_MIN(behind, (size_t)4), data, (size_t)m->size))
        return wml_fail(err, WML_E_FORMAT, "member '%.*s' is damaged: it cannot be unpacked", WML_ARG(m->name));
    *bytes = (struct wml_span){data, (size_t)m->size};
    return true;
}

static bool open_member(struct wml_span zip, const struct member *m, struct wml_npys *out, uint64_t *total,
                        struct wml_span *bytes, struct wml_err *err)
{
    struct wml_rd r = at(zip, m->offset);
    uint16_t name_len, extra_len;
    uint32_t magic;
    struct wml_span packed;
    if (m->flags & 1) return wml_fail(err, WML_E_UNSUPPORTED, "member '%.*s' is encrypted", WML_ARG(m->name));
    /* Sizes come from the directory: a streamed archive has them only there and behind the data. */
    if (!wml_rd_u32(&r, &magic, err) || !wml_rd_skip(&r, 22, err) || !wml_rd_u16(&r, &name_len, err) ||
        !wml_rd_u16(&r, &extra_len, err) || !wml_rd_skip(&r, (uint64_t)name_len + extra_len, err) ||
        !wml_rd_bytes(&r, m->packed, &packed, err))
        return wml_wrap(err, "member '%.*s'", WML_ARG(m->name));
    if (magic != 0x04034b50 || (m->method == 0 && m->size != m->packed))
        return wml_fail(err, WML_E_FORMAT, "member '%.*s' is damaged: its header is wrong", WML_ARG(m->name));
    if (m->method == 0) *bytes = packed;
    else if (m->method != 8)
        return wml_fail(err, WML_E_UNSUPPORTED, "member '%.*s' is packed by method %u", WML_ARG(m->name), m->method);
    else if (!inflate_member(m, packed, wml_rd_left(&r), out, total, bytes, err)) return false;
    if (wml_crc32(0, bytes->ptr, bytes->len) != m->crc)
        return wml_fail(err, WML_E_FORMAT, "member '%.*s' is damaged: its checksum is wrong", WML_ARG(m->name));
    return true;
}

bool wml_npz_parse(struct wml_span zip, struct wml_npys *out, struct wml_err *err)
{
    uint64_t directory = 0, count = 0, total = 0;
    if (!find_end(zip, &directory, &count, err)) return false;
    if (count > MAX_MEMBERS) return wml_fail(err, WML_E_FORMAT, "the archive has too many members");
    struct wml_rd r = at(zip, directory);
    for (uint64_t i = 0; i < count; i++) {
        struct member m = {0};
        struct wml_span bytes;
        if (!read_entry(&r, &m, err)) return false;
        if (!wml_str_ends(m.name, ".npy")) continue;
        if (!open_member(zip, &m, out, &total, &bytes, err)) return false;
        if (!wml_npy_parse(bytes, wml_str_sub(m.name, 0, m.name.len - 4), out, err)) return false;
    }
    return true;
}

/* --- writing --- */

static void put(struct wml_buf *b, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) wml_buf_char(b, (char)(v >> (8 * i) & 0xff));
}

/* The fields that local and central headers share. Times are 1980-01-01, so equal arrays give equal files. */
static void put_common(struct wml_buf *b, uint32_t crc, struct wml_str name)
{
    bool ascii = true;
    for (size_t i = 0; i < name.len; i++) ascii = ascii && (unsigned char)name.ptr[i] < 0x80;
    put(b, 45, 2);
    put(b, ascii ? 0 : 0x800, 2); /* the name is UTF-8 */
    put(b, 0, 2);
    put(b, 0, 2);
    put(b, 0x21, 2);
    put(b, crc, 4);
    put(b, UINT32_MAX, 4);
    put(b, UINT32_MAX, 4);
    put(b, name.len + 4, 2); /* ".npy" */
}

static bool write_member(struct wml_out *o, const struct wml_npy *a, struct wml_buf *central, struct wml_err *err)
{
    struct wml_buf header = {0}, local = {0};
    wml_npy_header(a, &header);
    uint64_t size = header.len + a->data.len, offset = o->offset;
    uint32_t crc = wml_crc32(wml_crc32(0, header.ptr, header.len), a->data.ptr, a->data.len);
    wml_buf_cstr(&local, "PK\3\4");
    put_common(&local, crc, a->name);
    put(&local, 20, 2);
    wml_buf_fmt(&local, "%.*s.npy", WML_ARG(a->name));
    put(&local, 1, 2);
    put(&local, 16, 2);
    put(&local, size, 8);
    put(&local, size, 8);
    wml_buf_cstr(central, "PK\1\2");
    put(central, 45, 2);
    put_common(central, crc, a->name);
    put(central, 28, 2);
    put(central, 0, 2);
    put(central, 0, 8);
    put(central, UINT32_MAX, 4);
    wml_buf_fmt(central, "%.*s.npy", WML_ARG(a->name));
    put(central, 1, 2);
    put(central, 24, 2);
    put(central, size, 8);
    put(central, size, 8);
    put(central, offset, 8);
    bool ok = wml_out_write(o, local.ptr, local.len, err) && wml_out_write(o, header.ptr, header.len, err) &&
              wml_out_write(o, a->data.ptr, a->data.len, err);
    wml_buf_release(&header);
    wml_buf_release(&local);
    return ok;
}

static void put_end(struct wml_buf *b, uint64_t n, uint64_t size, uint64_t offset)
{
    uint64_t end = offset + size;
    wml_buf_cstr(b, "PK\6\6");
    put(b, 44, 8);
    put(b, 45, 2);
    put(b, 45, 2);
    put(b, 0, 8);
    put(b, n, 8);
    put(b, n, 8);
    put(b, size, 8);
    put(b, offset, 8);
    wml_buf_cstr(b, "PK\6\7");
    put(b, 0, 4);
    put(b, end, 8);
    put(b, 1, 4);
    wml_buf_cstr(b, "PK\5\6");
    put(b, 0, 4);
    put(b, n, 2);
    put(b, n, 2);
    put(b, UINT32_MAX, 4);
    put(b, UINT32_MAX, 4);
    put(b, 0, 2);
}

bool wml_npz_save(const char *path, const struct wml_npy *array, size_t n, struct wml_err *err)
{
    struct wml_out o = {0};
    struct wml_buf central = {0};
    for (size_t i = 0; i < n; i++)
        if (!wml_dtype_info((int)array[i].dtype)->npy)
            return wml_fail(err, WML_E_UNSUPPORTED, "array '%.*s': numpy has no element type %s", WML_ARG(array[i].name),
                            wml_dtype_name((int)array[i].dtype));
    if (n >= UINT16_MAX) return wml_fail(err, WML_E_UNSUPPORTED, "%zu arrays are too many for %s", n, path);
    bool ok = wml_out_open(&o, path, err);
    for (size_t i = 0; ok && i < n; i++) ok = write_member(&o, &array[i], &central, err);
    if (ok) {
        put_end(&central, n, central.len, o.offset);
        ok = wml_out_write(&o, central.ptr, central.len, err) && wml_out_commit(&o, err);
    }
    wml_out_release(&o);
    wml_buf_release(&central);
    return ok;
}
