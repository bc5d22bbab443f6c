/* winml_weights CHECKPOINT...: each one, a folder or a file, as one line of JSON.
 *
 *     {"format", "files": [...], "bytes", "tensors": [{"name", "dtype", "shape", "sha256", "copied"}]}
 *     {"error", "hint", "code"}
 *
 * winml_weights --time CHECKPOINT: milliseconds to open it, tensors, and the memory that took. */
#include <inttypes.h>

#include "base/hash.h"
#include "os/sys.h"
#include "text/json.h"
#include "weights/weights.h"

static bool in_a_file(const struct wml_weights *w, struct wml_span s)
{
    for (size_t i = 0; i < wml_weights_n_files(w); i++) {
        const struct wml_span f = wml_weights_file(w, i)->map.bytes;
        if (s.ptr >= f.ptr && s.ptr + s.len <= f.ptr + f.len) return true;
    }
    return false;
}

static void put_tensor(struct wml_json *j, const struct wml_weights *w, const struct wml_weight *t)
{
    struct wml_sha256 sum;
    char hex[WML_SHA256_HEX];
    wml_sha256_init(&sum);
    wml_sha256_add(&sum, t->bytes.ptr, t->bytes.len);
    wml_sha256_hex(&sum, hex);
    wml_json_begin(j, '{');
    wml_json_key(j, "name");
    wml_json_put_str(j, t->name);
    wml_json_key(j, "dtype");
    wml_json_put_cstr(j, wml_dtype_name((int)t->dtype));
    wml_json_key(j, "shape");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < t->rank; i++) wml_json_put_int(j, t->dims[i]);
    wml_json_end(j, ']');
    wml_json_key(j, "sha256");
    wml_json_put_cstr(j, hex);
    wml_json_key(j, "copied");
    wml_json_put_bool(j, t->bytes.len && !in_a_file(w, t->bytes));
    wml_json_end(j, '}');
}

static void put_set(struct wml_json *j, const struct wml_weights *w)
{
    wml_json_key(j, "format");
    wml_json_put_cstr(j, wml_weights_format(w));
    wml_json_key(j, "bytes");
    wml_json_put_uint(j, wml_weights_bytes(w));
    wml_json_key(j, "files");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < wml_weights_n_files(w); i++) wml_json_put_str(j, wml_weights_file(w, i)->path);
    wml_json_end(j, ']');
    wml_json_key(j, "tensors");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < wml_weights_len(w); i++) put_tensor(j, w, wml_weights_at(w, i));
    wml_json_end(j, ']');
}

static void put_error(struct wml_json *j, const struct wml_err *err)
{
    wml_json_key(j, "error");
    wml_json_put_cstr(j, err->msg);
    wml_json_key(j, "hint");
    wml_json_put_cstr(j, err->hint);
    wml_json_key(j, "code");
    wml_json_put_cstr(j, wml_code_name(err->code));
}

static int measure(const char *path)
{
    struct wml_weights *w = NULL;
    struct wml_err err = {0};
    uint64_t begin = wml_now_ns();
    if (!wml_weights_open(path, &w, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    printf("%.2f ms, %zu tensors, %.1f MB; memory that is no file: %.1f MB\n", (double)(wml_now_ns() - begin) / 1e6, wml_weights_len(w),
           (double)wml_weights_bytes(w) / 1e6, (double)wml_rss_anon() / 1e6);
    wml_weights_close(w);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--time") == 0) return measure(argv[2]);
    for (int i = 1; i < argc; i++) {
        struct wml_weights *w = NULL;
        struct wml_err err = {0};
        struct wml_buf text = {0};
        struct wml_json j = {.out = &text};
        wml_json_begin(&j, '{');
        if (wml_weights_open(argv[i], &w, &err)) put_set(&j, w);
        else put_error(&j, &err);
        wml_json_end(&j, '}');
        wml_buf_char(&text, '\n');
        fwrite(text.ptr, 1, text.len, stdout);
        wml_buf_release(&text);
        wml_weights_close(w);
    }
    return 0;
}
