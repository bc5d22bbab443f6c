/* .npz archives, as numpy writes and reads them: a zip of .npy members. Written members are stored, in order. */
#include "text/npz.h"

#include <inttypes.h>
#include "base/hash.h"
#include "os/file.h"
#include "text/zip.h"

bool wml_npz_parse(struct wml_span bytes, struct wml_npys *out, struct wml_err *err)
{
    struct wml_zip zip = {0};
    bool ok = wml_zip_open(bytes, &zip, err);
    for (size_t i = 0; ok && i < zip.v.len; i++) {
        const struct wml_zip_member *m = &zip.v.at[i];
        struct wml_span member;
        void *block = NULL;
        if (!wml_str_ends(m->name, ".npy")) continue;
        ok = wml_zip_read(&zip, m, WML_ZIP_CHECK, &member, &block, err);
        if (block) WML_PUSH(&out->owned, block);
        ok = ok && wml_npy_parse(member, wml_str_sub(m->name, 0, m->name.len - 4), out, err);
    }
    wml_zip_release(&zip);
    return ok;
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
