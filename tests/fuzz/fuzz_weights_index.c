/* An index of shards, a NUL, one of its shards ("more.safetensors"); two others are there and whole. What the index names is
 * found where it says or refused with a message, and no file outside of the folder is ever read. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/num.h"
#include "os/file.h"
#include "weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static char folder[256];

static void put(const char *name, const void *bytes, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f)) abort();
}

static void put_shard(const char *name, const char *header)
{
    char bytes[256] = {(char)strlen(header)};
    snprintf(bytes + 8, sizeof bytes - 8, "%s", header);
    put(name, bytes, 8 + strlen(header) + 8);
}

static void clean(void)
{
    wml_dir_remove(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    struct wml_buf path = {0};
    struct wml_err err = {0};
    if (!wml_dir_temp(NULL, "winml-fuzz-index-", &path, &err)) return 1;
    snprintf(folder, sizeof folder, "%s", wml_buf_text(&path));
    wml_buf_release(&path);
    put_shard("one.safetensors", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}");
    put_shard("two.safetensors", "{\"b\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}");
    return atexit(clean);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct wml_str input = {(const char *)data, size};
    const size_t end = wml_str_find(input, '\0'), n = end < size ? end : size;
    struct wml_weights *w = NULL;
    struct wml_err err = {0};
    put("model.safetensors.index.json", data, n);
    put("more.safetensors", data + n + (n < size), size - n - (n < size));
    if (!wml_weights_open(folder, &w, &err)) {
        if (w || !err.code || !err.msg[0]) abort();
        return 0;
    }
    uint64_t total = 0, h = 0, bytes;
    for (size_t i = 0; i < wml_weights_len(w); i++) {
        const struct wml_weight *t = wml_weights_at(w, i);
        uint64_t count;
        if (!wml_dims_count(t->dims, t->rank, &count)) abort();
        if (t->dtype && (!wml_dtype_bytes((int)t->dtype, count, &bytes) || bytes != t->bytes.len)) abort();
        h = wml_hash(t->bytes.ptr, t->bytes.len, h);
        total += t->bytes.len;
    }
    for (size_t i = 0; i < wml_weights_n_files(w); i++)
        if (!wml_str_starts(wml_weights_file(w, i)->path, folder) || wml_str_has(wml_weights_file(w, i)->path, "..")) abort();
    if (total != wml_weights_bytes(w) || !wml_weights_n_files(w)) abort();
    if (h == 1) wml_weights_hold(w); /* keeps the compiler from dropping it */
    wml_weights_close(w);
    return 0;
}
