/* Sessions on the CPU EP: what goes in and out, runs, placement, profiling. */
#include "ort_fixture.h"

#include "os/file.h"

static const float X[] = {1, 2, 3, 4, 5, 6};

static void test_open(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx), *again = NULL;
    struct wml_err err = {0};
    struct wml_ort_info info = wml_ort_info(o);
    print_message("ONNX Runtime %s from %s\n", info.version, info.path);
    assert_true(wml_str_starts(wml_str(info.version), "1."));
    assert_true(info.api_version >= 24);
    assert_true(info.bytes > 1000000);
    assert_true(wml_file_exists(info.path));
    ASSERT_OK(wml_ort_open(&cx, &again, &err));
    assert_ptr_equal(o, again);
    bool cpu = false;
    for (const char *const *ep = wml_ort_builtin_eps(o); *ep; ep++) cpu = cpu || !strcmp(*ep, "CPUExecutionProvider");
    assert_true(cpu);
    const struct wml_ort_device *d = NULL;
    size_t n = 0;
    ASSERT_OK(wml_ort_devices(o, &d, &n, &err));
    assert_true(n >= 1);
    assert_string_equal(d[0].ep, "CPUExecutionProvider");
    assert_int_equal(d[0].type, WML_DEVICE_CPU);
    assert_null(wml_pair_find(d[0].ep_meta, d[0].n_ep_meta, "no such key"));
    wml_ort_close(&cx);
    assert_null(cx.ort);
    ASSERT_OK(wml_ort_open(&cx, &o, &err)); /* and once more in the same process */
    wml_ort_close(&cx);
}

static void test_open_fails(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = NULL;
    struct wml_err err = {0};
    struct wml_buf users = {0};
    bool set = wml_env("WINML_ORT", &users);
    wml_env_set("WINML_ORT", "/no/such/libonnxruntime.so");
    assert_false(wml_ort_open(&cx, &o, &err));
    ASSERT_HAS(err.msg, "/no/such/libonnxruntime.so");
    ASSERT_HAS(err.hint, "WINML_ORT");
    assert_null(cx.ort);
#ifdef _WIN32
    wml_env_set("WINML_ORT", "version.dll");
#else
    wml_env_set("WINML_ORT", "libm.so.6");
#endif
    assert_false(wml_ort_open(&cx, &o, &err));
    ASSERT_HAS(err.msg, "is not ONNX Runtime");
    wml_env_set("WINML_ORT", set ? wml_buf_text(&users) : NULL);
    wml_buf_release(&users);
}

static void test_inputs(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    size_t n = 0;
    struct wml_session *s = open_model(o, "dynamic", NULL);
    const struct wml_io *io = wml_session_inputs(s, &n);
    assert_int_equal(n, 1);
    assert_string_equal(io[0].name, "x");
    assert_int_equal(io[0].kind, WML_IO_TENSOR);
    assert_int_equal(io[0].dtype, WML_F32);
    assert_true(io[0].has_shape);
    assert_int_equal(io[0].rank, 2);
    assert_int_equal(io[0].dim[0], -1);
    assert_string_equal(io[0].symbol[0], "N");
    assert_int_equal(io[0].dim[1], 3);
    assert_string_equal(io[0].symbol[1], "");
    io = wml_session_outputs(s, &n);
    assert_int_equal(n, 2);
    assert_int_equal(io[1].dtype, WML_I64);
    wml_session_close(s);
    s = open_model(o, "kinds", NULL);
    wml_session_inputs(s, &n);
    assert_int_equal(n, 2);
    io = wml_session_optional_inputs(s, &n);
    assert_int_equal(n, 1);
    assert_string_equal(io[0].name, "k");
    io = wml_session_outputs(s, &n);
    assert_int_equal(io[1].kind, WML_IO_SEQUENCE);
    assert_true(io[1].elem_is_tensor);
    assert_int_equal(io[1].dtype, WML_F32);
    wml_session_close(s);
    wml_ort_close(&cx);
}

static void test_dim_override(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    size_t n = 0;
    struct wml_pair dims[] = {{"N", "7"}};
    struct wml_session_opts opts = {.dim_override = dims, .n_dim_overrides = 1};
    struct wml_session *s = open_model(o, "dynamic", &opts);
    assert_int_equal(wml_session_inputs(s, &n)[0].dim[0], 7);
    wml_session_close(s);
    dims[0].value = "many";
    struct wml_model_source m = {.path = data_path("dynamic")};
    assert_false(wml_session_open(o, &m, &opts, &s, &err));
    assert_null(s);
    assert_int_equal(err.code, WML_E_USAGE);
    ASSERT_HAS(err.msg, "many");
    wml_ort_close(&cx);
}

static struct wml_run *start(struct wml_session *s, const int64_t *dim, const float *x)
{
    struct wml_err err = {0};
    struct wml_run *r = NULL;
    struct wml_tensor_view in = {WML_F32, 2, dim, x, (size_t)(dim[0] * dim[1]) * sizeof *x, true};
    ASSERT_OK(wml_run_new(s, &in, 1, &r, &err));
    ASSERT_OK(wml_run_once(r, &err));
    return r;
}

static void test_run_static(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_session *s = open_model(o, "static", NULL);
    float x[6];
    memcpy(x, X, sizeof x);
    struct wml_run *r = start(s, (const int64_t[]){2, 3}, x);
    struct wml_tensor_view y;
    ASSERT_OK(wml_run_output(r, 0, &y, &err));
    const void *first = y.data;
    for (size_t i = 0; i < 6; i++) assert_true(((const float *)y.data)[i] == (X[i] + (float)i) * 2);
    x[0] = 100; /* inputs are borrowed: a change is seen by the next run */
    ASSERT_OK(wml_run_once(r, &err));
    ASSERT_OK(wml_run_output(r, 0, &y, &err));
    assert_ptr_equal(y.data, first); /* the memory of a fixed output stays */
    assert_true(*(const float *)y.data == 200);
    assert_int_equal(y.bytes, sizeof x);
    assert_false(wml_run_output(r, 1, &y, &err));
    wml_run_free(r);
    wml_session_close(s);
    wml_ort_close(&cx);
}

static void test_run_dynamic(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_session *s = open_model(o, "dynamic", NULL);
    float x[6] = {0, 1, 0, 1, 1, 0};
    struct wml_run *r = start(s, (const int64_t[]){2, 3}, x);
    struct wml_tensor_view y;
    ASSERT_OK(wml_run_output(r, 1, &y, &err));
    assert_int_equal(y.dtype, WML_I64);
    assert_int_equal(y.dim[1], 3);
    x[1] = 0; /* another shape in the next run */
    ASSERT_OK(wml_run_once(r, &err));
    ASSERT_OK(wml_run_output(r, 1, &y, &err));
    assert_int_equal(y.dim[1], 2);
    memset(x, 0, sizeof x); /* and an empty one */
    ASSERT_OK(wml_run_once(r, &err));
    ASSERT_OK(wml_run_output(r, 1, &y, &err));
    assert_int_equal(y.dim[1], 0);
    assert_int_equal(y.bytes, 0);
    assert_non_null(y.data);
    wml_run_free(r);
    wml_session_close(s);
    wml_ort_close(&cx);
}

static void test_shape_that_is_not_kept(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_session *s = open_model(o, "liar", NULL);
    const int64_t dims[] = {2, 3}, two[] = {2}, to[] = {3, 2};
    struct wml_tensor_view in[] = {{WML_F32, 2, dims, X, sizeof X, true}, {WML_I64, 1, two, to, sizeof to, true}};
    struct wml_run *r = NULL;
    struct wml_tensor_view y;
    ASSERT_OK(wml_run_new(s, in, 2, &r, &err));
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(wml_run_once(r, &err));
        ASSERT_OK(wml_run_output(r, 0, &y, &err));
        assert_int_equal(y.dim[0], 3);
    }
    wml_run_free(r);
    wml_session_close(s);
    wml_ort_close(&cx);
}

/* ORT writes nothing into memory that is made for an output which is an input. */
static void test_input_as_output(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_session *s = open_model(o, "through", NULL);
    float x[6];
    memcpy(x, X, sizeof x);
    struct wml_run *r = start(s, (const int64_t[]){2, 3}, x);
    struct wml_tensor_view y;
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(wml_run_output(r, 0, &y, &err));
        assert_memory_equal(y.data, x, sizeof x);
        ASSERT_OK(wml_run_output(r, 1, &y, &err));
        assert_true(*(const float *)y.data == -x[0]);
        ASSERT_OK(wml_run_output(r, 2, &y, &err));
        assert_true(((const float *)y.data)[1] == 7);
        x[0] = 100;
        ASSERT_OK(wml_run_once(r, &err));
    }
    wml_run_free(r);
    wml_session_close(s);
    wml_ort_close(&cx);
}

static void test_kinds(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_session *s = open_model(o, "kinds", NULL);
    const int64_t two[] = {2}, one[] = {1};
    const char *const text[] = {"a", "b\xc3\xa4"};
    const float k[] = {100};
    struct wml_tensor_view y, in[] = {{WML_STRING, 1, two, text, sizeof text, true},
                                      {WML_F32, 1, two, X, 2 * sizeof *X, true},
                                      {WML_F32, 1, one, NULL, 0, true}};
    struct wml_run *r = NULL;
    ASSERT_OK(wml_run_new(s, in, 3, &r, &err));
    ASSERT_OK(wml_run_once(r, &err));
    ASSERT_OK(wml_run_output(r, 0, &y, &err));
    assert_int_equal(y.dtype, WML_STRING);
    assert_null(y.data);
    ASSERT_OK(wml_run_output(r, 1, &y, &err));
    assert_false(y.is_tensor);
    ASSERT_OK(wml_run_output(r, 2, &y, &err));
    assert_true(*(const float *)y.data == 6); /* 1 + the default of k */
    wml_run_free(r);
    in[2].data = k;
    in[2].bytes = sizeof k;
    ASSERT_OK(wml_run_new(s, in, 3, &r, &err));
    ASSERT_OK(wml_run_once(r, &err));
    ASSERT_OK(wml_run_output(r, 2, &y, &err));
    assert_true(*(const float *)y.data == 101);
    wml_run_free(r);
    in[1].data = NULL;
    assert_false(wml_run_new(s, in, 3, &r, &err));
    assert_null(r);
    ASSERT_HAS(err.msg, "\"x\"");
    assert_false(wml_run_new(s, in, 1, &r, &err));
    wml_session_close(s);
    wml_ort_close(&cx);
}

static void test_bytes_and_external(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_buf bytes = {0};
    ASSERT_OK(wml_file_read(data_path("external"), 0, &bytes, &err));
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/ort", WML_TEST_DATA);
    struct wml_model_source m = {.bytes = {(const unsigned char *)bytes.ptr, bytes.len}, .folder = folder};
    struct wml_session *s = NULL;
    ASSERT_OK(wml_session_open(o, &m, NULL, &s, &err));
    struct wml_run *r = start(s, (const int64_t[]){2, 3}, X);
    struct wml_tensor_view y;
    ASSERT_OK(wml_run_output(r, 0, &y, &err));
    for (size_t i = 0; i < 6; i++) assert_true(((const float *)y.data)[i] == X[i] + (float)i);
    wml_run_free(r);
    wml_session_close(s);
    m.folder = "/tmp";
    assert_false(wml_session_open(o, &m, NULL, &s, &err));
    ASSERT_HAS(err.msg, "all.bin");
    wml_buf_release(&bytes);
    wml_ort_close(&cx);
}

static void test_placement(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    const struct wml_placed *p = NULL;
    size_t n = 0;
    struct wml_session *s = open_model(o, "static", &(struct wml_session_opts){.record_placement = true});
    ASSERT_OK(wml_session_placement(s, &p, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(p[0].ep, "CPUExecutionProvider");
    assert_int_equal(p[0].n_nodes, 2);
    assert_string_equal(p[0].node[0], "add");
    assert_string_equal(p[0].op_type[1], "Mul");
    assert_string_equal(p[0].domain[1], "");
    wml_session_close(s);
    s = open_model(o, "static", NULL);
    assert_false(wml_session_placement(s, &p, &n, &err)); /* was not asked for */
    wml_session_close(s);
    wml_ort_close(&cx);
}

static void test_profile(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_buf dir = {0}, prefix = {0}, path = {0}, text = {0};
    ASSERT_OK(wml_dir_temp(NULL, "winml-profile-", &dir, &err));
    wml_buf_fmt(&prefix, "%s/trace", wml_buf_text(&dir));
    struct wml_session *s =
        open_model(o, "static", &(struct wml_session_opts){.profile_prefix = wml_buf_text(&prefix)});
    wml_run_free(start(s, (const int64_t[]){2, 3}, X));
    ASSERT_OK(wml_session_end_profile(s, &path, &err));
    ASSERT_HAS(wml_buf_text(&path), "trace");
    ASSERT_OK(wml_file_read(wml_buf_text(&path), 0, &text, &err));
    ASSERT_HAS(wml_buf_text(&text), "add_kernel_time");
    wml_session_close(s);
    struct wml_model_source m = {.path = data_path("static")};
    assert_false(wml_session_open(o, &m, &(struct wml_session_opts){.profile_prefix = "/no/such/folder/p"}, &s, &err));
    ASSERT_HAS(err.msg, "/no/such/folder");
    wml_dir_remove(wml_buf_text(&dir));
    wml_buf_release(&dir);
    wml_buf_release(&prefix);
    wml_buf_release(&path);
    wml_buf_release(&text);
    wml_ort_close(&cx);
}

static void test_cancel(void **state)
{
    (void)state;
    atomic_bool stop = true;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_session *s = NULL;
    struct wml_model_source m = {.path = data_path("static")};
    cx.cancel = &stop;
    assert_false(wml_session_open(o, &m, NULL, &s, &err));
    assert_int_equal(err.code, WML_E_CANCELLED);
    wml_ort_close(&cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_open_fails),
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_dim_override),
        cmocka_unit_test(test_run_static),
        cmocka_unit_test(test_run_dynamic),
        cmocka_unit_test(test_shape_that_is_not_kept),
        cmocka_unit_test(test_input_as_output),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_bytes_and_external),
        cmocka_unit_test(test_placement),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests_name("ort session", tests, NULL, NULL);
}
