/* Damaged models: cut at many places, bytes flipped. Never a crash, always an error that names the place; what
 * still loads must survive being looked at and written again. Run under the sanitizers this is a memory test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

enum { STEP = 997, FLIPS = 5000 };

/* A real model where the cache has it, else the largest of the small ones. */
static bool read_model(struct wml_buf *out)
{
    struct wml_buf path = {0};
    struct wml_err err = {0};
    if (!wml_env("WINML_DEPS", &path) && wml_path_cache(&path)) wml_buf_cstr(&path, "/winml-build");
    wml_buf_cstr(&path, "/models/ocr-cls.onnx");
    bool real = wml_file_read(wml_buf_text(&path), 0, out, &err);
    wml_buf_release(&path);
    if (real) return true;
    err = (struct wml_err){0};
    assert_true(wml_file_read(WML_TEST_DATA "/bugs/layernorm_axes.onnx", 0, out, &err));
    return false;
}

/* Everything that commands do with a model before they trust it. */
static void look_at(struct wml_model *m)
{
    struct wml_err err = {0};
    struct wml_epctx_list contexts = {0};
    struct wml_model_size size;
    struct wml_buf out = {0};
    wml_model_check(m, &err);
    wml_epctx_find(m, &contexts);
    wml_epctx_list_release(&contexts);
    wml_model_measure(m, &size);
    wml_onnx_files(m);
    err = (struct wml_err){0};
    wml_onnx_encode(m, &out, &err);
    wml_buf_release(&out);
}

/* True when it loaded; otherwise the error must say something useful. */
static bool try_bytes(const unsigned char *bytes, size_t n)
{
    /* A block of exactly this size: the sanitizer sees one byte too far. */
    unsigned char *copy = malloc(n ? n : 1);
    struct wml_model *m = NULL;
    struct wml_err err = {0};
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    bool ok = wml_onnx_load_bytes((struct wml_span){copy, n}, NULL, &m, &err);
    if (ok) look_at(m);
    else assert_true(err.code != WML_OK && err.msg[0]);
    if (!ok && !strstr(err.msg, "byte") && !strstr(err.msg, "node") && !strstr(err.msg, "value") && !strstr(err.msg, "graph") &&
        !strstr(err.msg, "this is") && !strstr(err.msg, "empty") && !strstr(err.msg, "tensor") && !strstr(err.msg, "function"))
        fail_msg("the error names no place: %s", err.msg);
    wml_model_free(m);
    free(copy);
    return ok;
}

static void test_cut(void **state)
{
    struct wml_buf model = {0};
    size_t loaded = 0, tried = 0;
    (void)state;
    bool real = read_model(&model);
    for (size_t n = 0; n < model.len; n += real ? STEP : 1, tried++)
        loaded += try_bytes((const unsigned char *)model.ptr, n);
    print_message("%zu cuts, %zu still load\n", tried, loaded);
    assert_true(loaded < tried / 10 + 2);
    wml_buf_release(&model);
}

static void test_flips(void **state)
{
    struct wml_buf model = {0};
    struct wml_rng rng = {.state = 42};
    size_t loaded = 0;
    (void)state;
    read_model(&model);
    unsigned char *bytes = (unsigned char *)model.ptr;
    for (size_t i = 0; i < FLIPS; i++) {
        /* Half of them among the first bytes, where structure is dense. */
        size_t at = (size_t)wml_rng_range(&rng, 0, (int64_t)(i % 2 ? model.len : WML_MIN(model.len, (size_t)60000)));
        unsigned char old = bytes[at];
        bytes[at] ^= (unsigned char)(1u << (wml_rng_u64(&rng) & 7));
        loaded += try_bytes(bytes, model.len);
        bytes[at] = old;
    }
    print_message("%d flips, %zu still load\n", FLIPS, loaded);
    wml_buf_release(&model);
}

/* Random bytes behind a plausible start. */
static void test_noise(void **state)
{
    struct wml_rng rng = {.state = 7};
    unsigned char bytes[512];
    (void)state;
    for (int i = 0; i < 2000; i++) {
        size_t n = (size_t)wml_rng_range(&rng, 1, sizeof bytes);
        for (size_t k = 0; k < n; k++) bytes[k] = (unsigned char)wml_rng_u64(&rng);
        bytes[0] = i % 2 ? 0x08 : 0x3a;
        try_bytes(bytes, n);
    }
}

/* Files that came instead of the model are called by their names. */
static void test_other_kinds(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *what, *todo;
    } rows[] = {
#define ROW(bytes, what, todo) {bytes, sizeof(bytes) - 1, what, todo}
        ROW("version https://git-lfs.github.com/spec/v1\n", "this is a Git LFS pointer, not an ONNX model", "git lfs pull"),
        ROW("<!DOCTYPE html><html>", "a web page", "the download went to a page"),
        ROW("PK\3\4\24\0\0\0\0\0", "a zip archive", ".onnx"),
        ROW("GGUF\3\0\0\0", "a GGUF model", ".onnx"),
        ROW("\x90\2\0\0\0\0\0\0{\"a\":", "safetensors weights", ".onnx"),
        ROW("\x80\2\0\0\0\0\0\0{\"a\":", "safetensors weights", ".onnx"), /* as long as a pickle's first bytes say */
        ROW("\x80\2}q\0.", "a Python pickle", ".onnx"),
        ROW("\34\0\0\0TFL3", "a TensorFlow Lite model", ".onnx"),
        ROW("\x1f\x8b\x08", "a gzip archive", "unpack"),
        ROW("{\"a\": 1}", "JSON text", ".onnx"),
#undef ROW
    };
    (void)state;
    for (size_t i = 0; i < WML_COUNT(rows); i++) {
        struct wml_model *m = NULL;
        struct wml_err err = {0};
        assert_false(wml_onnx_load_bytes((struct wml_span){(const unsigned char *)rows[i].bytes, rows[i].n}, NULL, &m, &err));
        if (!strstr(err.msg, rows[i].what) || !strstr(err.hint, rows[i].todo)) fail_msg("row %zu: %s (%s)", i, err.msg, err.hint);
    }
}

/* The first field of a model may hold anything: here the producer's name puts another kind's mark at byte 4. */
static void test_marks_in_a_model(void **state)
{
    static const unsigned char bytes[] = "\22\6abTFL3\10\10\72\3\22\1g";
    struct wml_model *m = NULL;
    struct wml_err err = {0};
    (void)state;
    if (!wml_onnx_load_bytes((struct wml_span){bytes, sizeof bytes - 1}, NULL, &m, &err)) fail_msg("%s", err.msg);
    assert_true(wml_str_is(m->producer_name, "abTFL3"));
    wml_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cut), cmocka_unit_test(test_flips), cmocka_unit_test(test_noise),
                                       cmocka_unit_test(test_other_kinds), cmocka_unit_test(test_marks_in_a_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
