/* blob.c - the form in which programs are kept, and the files they are kept in.
 *
 * A blob holds one or more programs; all numbers are little-endian:
 *   "VNPUCTX1", count:u32, then per program
 *   name length:u32, model length:u64, FNV-1a of the model:u64, name, ONNX model
 * What is read back is not trusted: every length is checked against what is left. */
#include "blob.h"
#include "sys.h"

#include <stdio.h>
#include <string.h>

static const char magic[8] = {'V', 'N', 'P', 'U', 'C', 'T', 'X', '1'};
enum { ENTRY_HEADER = 4 + 8 + 8 };

/* --- the blob --- */

static uint64_t fnv1a(const unsigned char *p, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static void put_number(struct vnpu_buf *b, uint64_t v, size_t bytes)
{
    unsigned char le[8];
    for (size_t i = 0; i < bytes; i++)
        le[i] = (unsigned char)(v >> (8 * i));
    vnpu_buf_add(b, le, bytes);
}

static uint64_t get_number(const unsigned char *p, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

OrtStatus *vnpu_blob_header(const OrtApi *api, size_t n, struct vnpu_buf *out)
{
    vnpu_buf_add(out, magic, sizeof(magic));
    put_number(out, n, 4);
    return out->failed ? vnpu_fail(api, "out of memory while writing a context") : NULL;
}

OrtStatus *vnpu_blob_entry(const OrtApi *api, const struct vnpu_program *p, struct vnpu_buf *out)
{
    put_number(out, strlen(p->name), 4);
    put_number(out, p->model.len, 8);
    put_number(out, fnv1a(p->model.ptr, p->model.len), 8);
    vnpu_buf_add(out, p->name, strlen(p->name));
    vnpu_buf_add(out, p->model.ptr, p->model.len);
    return out->failed ? vnpu_fail(api, "out of memory while writing a context") : NULL;
}

OrtStatus *vnpu_blob_find(const OrtApi *api, const unsigned char *blob, size_t n, const char *name,
                          const unsigned char **bytes, size_t *size)
{
    const unsigned char *p = blob, *end = blob + n;
    *bytes = NULL;
    if (n < sizeof(magic) + 4 || memcmp(p, magic, sizeof(magic)) != 0)
        return vnpu_fail(api, "the context of %s is not one of a virtual NPU (%zu bytes)", name, n);
    uint64_t count = get_number(p + sizeof(magic), 4);
    p += sizeof(magic) + 4;
    for (uint64_t i = 0; i < count; i++) {
        if ((size_t)(end - p) < ENTRY_HEADER)
            return vnpu_fail(api, "the context of %s ends inside program %llu", name,
                             (unsigned long long)i);
        uint64_t name_len = get_number(p, 4), len = get_number(p + 4, 8),
                 hash = get_number(p + 12, 8);
        p += ENTRY_HEADER;
        if (name_len > (size_t)(end - p) || len > (size_t)(end - p) - name_len)
            return vnpu_fail(api, "the context of %s ends inside program %llu", name,
                             (unsigned long long)i);
        bool same = name_len == strlen(name) && memcmp(p, name, (size_t)name_len) == 0;
        p += name_len;
        if (same || count == 1) {
            if (fnv1a(p, (size_t)len) != hash)
                return vnpu_fail(api, "the context of %s is damaged: its checksum differs", name);
            *bytes = p;
            *size = (size_t)len;
            return NULL;
        }
        p += len;
    }
    return NULL;
}

/* --- where the file is --- */

size_t vnpu_folder_length(const char *path)
{
    size_t n = strlen(path);
    while (n > 0 && !vnpu_is_separator(path[n - 1]))
        n--;
    return n;
}

OrtStatus *vnpu_model_path(const struct vnpu_ep *ep, const OrtGraph *graph, bool writing,
                           char out[VNPU_PATH_MAX])
{
    const OrtApi *api = ep->api;
    const ORTCHAR_T *native = NULL;
    out[0] = '\0';
    VNPU_TRY(api->Graph_GetModelPath(graph, &native));
    if (native != NULL && !vnpu_narrow_path(native, out, VNPU_PATH_MAX))
        return vnpu_fail(api, "the model's path is longer than %d bytes", VNPU_PATH_MAX);
    if (*ep->options.context_file != '\0' && (writing || *out == '\0')) {
        if (strlen(ep->options.context_file) >= VNPU_PATH_MAX)
            return vnpu_fail(api, "ep.context_file_path is longer than %d bytes", VNPU_PATH_MAX);
        memcpy(out, ep->options.context_file, strlen(ep->options.context_file) + 1);
    } else if (writing && *out != '\0') {
        size_t stem = strlen(out), folder = vnpu_folder_length(out);
        const char *dot = strrchr(out + folder, '.');
        stem = dot != NULL ? (size_t)(dot - out) : stem;
        if (stem + sizeof("_ctx.onnx") > VNPU_PATH_MAX)
            return vnpu_fail(api, "the model's path is longer than %d bytes", VNPU_PATH_MAX);
        memcpy(out + stem, "_ctx.onnx", sizeof("_ctx.onnx"));
    }
    return NULL;
}

static OrtStatus *open_failed(const OrtApi *api, const char *what, const char *path)
{
    return vnpu_fail(api, "cannot %s %s: is the folder there and are you allowed to use it?", what,
                     path);
}

OrtStatus *vnpu_write_file(const OrtApi *api, const char *path, const struct vnpu_buf *b)
{
    char temporary[VNPU_PATH_MAX + 32];
    snprintf(temporary, sizeof(temporary), "%s.%llu.tmp", path,
             (unsigned long long)vnpu_process_id());
    FILE *f = vnpu_fopen(temporary, "wb");
    if (f == NULL) return open_failed(api, "create", temporary);
    bool ok = fwrite(b->ptr, 1, b->len, f) == b->len;
    ok = fclose(f) == 0 && ok;
    if (ok && vnpu_rename(temporary, path)) return NULL;
    vnpu_remove(temporary);
    return open_failed(api, "write", path);
}

OrtStatus *vnpu_read_file(const OrtApi *api, const char *path, struct vnpu_buf *b)
{
    unsigned char chunk[16384];
    FILE *f = vnpu_fopen(path, "rb");
    if (f == NULL)
        return vnpu_fail(api, "context file %s is not there; it belongs beside the model", path);
    for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
        vnpu_buf_add(b, chunk, n);
    bool ok = !ferror(f) && !b->failed;
    fclose(f);
    return ok ? NULL : open_failed(api, "read", path);
}
