/* Real plugin EPs: resolve, load, run, compile and load again. Each is skipped, by name, where its library
 * or its hardware is missing. Answers are compared with the CPU EP. */
#include "ort_fixture.h"

#include <math.h>
#include "ep/ep.h"
#include "os/file.h"
#include "os/path.h"

enum { N_IN = 36, N_OUT = 16 };

/* OpenVINO's TBB loads a library with RTLD_DEEPBIND, at which AddressSanitizer ends the process. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED false
#endif

static void need_no_sanitizer(void)
{
    if (!SANITIZED) return;
    print_message("skipped: OpenVINO cannot be loaded under AddressSanitizer\n");
    skip();
}

struct want {
    const char *ep, *device;
    bool simulated, may_be_absent;
};

/* The virtual NPU is built beside the tests: <build>/ep. */
static void find_virtual_npu(void)
{
    struct wml_buf program = {0}, dir = {0};
    if (!wml_env_is_set("WINML_EP_PATH") && wml_path_program(&program)) {
        wml_buf_fmt(&dir, "%.*s/../ep", WML_ARG(wml_path_dir(wml_buf_view(&program))));
        if (wml_dir_exists(wml_buf_text(&dir))) wml_env_set("WINML_EP_PATH", wml_buf_text(&dir));
    }
    wml_buf_release(&program);
    wml_buf_release(&dir);
}

static bool resolve(struct wml_ctx *cx, const struct want *w, struct wml_target *t)
{
    struct wml_err err = {0};
    struct wml_target_spec spec = {.ep = w->ep, .device = w->device};
    find_virtual_npu();
    if (wml_target_resolve(cx, &spec, t, &err)) return true;
    print_message("skipped %s on %s: %s\n", w->ep, w->device, err.msg);
    bool too_old = strstr(err.msg, "was built for version") != NULL; /* for an older ORT than the plugin's */
    assert_true(err.code == WML_E_NOT_FOUND || too_old);
    assert_true(err.hint[0] || too_old);
    return false;
}

static void run(struct wml_ort *o, const char *path, const struct wml_target *t, float out[N_OUT], const char *ep)
{
    struct wml_err err = {0};
    struct wml_session_opts opts = {.record_placement = true};
    struct wml_model_source m = {.path = path};
    struct wml_session *s = NULL;
    struct wml_run *r = NULL;
    struct wml_tensor_view y;
    float x[N_IN];
    static const int64_t dims[] = {1, 1, 6, 6};
    for (size_t i = 0; i < N_IN; i++) x[i] = (float)(i % 7) / 10 - 0.3f;
    if (t) wml_target_session(t, &opts);
    ASSERT_OK(wml_session_open(o, &m, &opts, &s, &err));
    if (ep) {
        const struct wml_placed *p = NULL;
        size_t n = 0, on_ep = 0;
        ASSERT_OK(wml_session_placement(s, &p, &n, &err));
        for (size_t i = 0; i < n; i++) on_ep += !strcmp(p[i].ep, ep) ? p[i].n_nodes : 0;
        assert_true(on_ep > 0);
    }
    struct wml_tensor_view in = {WML_F32, 4, dims, x, sizeof x, true};
    ASSERT_OK(wml_run_new(s, &in, 1, &r, &err));
    ASSERT_OK(wml_run_once(r, &err));
    ASSERT_OK(wml_run_once(r, &err));
    ASSERT_OK(wml_run_output(r, 0, &y, &err));
    assert_int_equal(y.bytes, N_OUT * sizeof *out);
    memcpy(out, y.data, y.bytes);
    wml_run_free(r);
    wml_session_close(s);
}

static void compare(const float *a, const float *b)
{
    for (size_t i = 0; i < N_OUT; i++) assert_true(fabsf(a[i] - b[i]) <= 0.021f); /* one step of the output's scale */
}

static void whole_path(const struct want *w)
{
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_target t;
    struct wml_buf dir = {0}, out = {0};
    float cpu[N_OUT], ep[N_OUT];
    if (!resolve(&cx, w, &t)) {
        wml_ort_close(&cx);
        skip();
    }
    assert_true(t.simulated == w->simulated);
    assert_string_equal(wml_device_type_name(t.type), w->device);
    assert_true(t.n_devices == 1 && t.hardware[0]);
    run(o, data_path("qdq"), NULL, cpu, "CPUExecutionProvider");
    run(o, data_path("qdq"), &t, ep, t.ep_name);
    compare(cpu, ep);
    ASSERT_OK(wml_dir_temp(NULL, "winml-compile-", &dir, &err));
    for (int embed = 0; embed < 2; embed++) {
        wml_buf_clear(&out);
        wml_buf_fmt(&out, "%s/ctx%d.onnx", wml_buf_text(&dir), embed);
        struct wml_compile_opts c = {.embed = embed != 0, .output = wml_buf_text(&out)};
        struct wml_model_source m = {.path = data_path("qdq")};
        wml_target_session(&t, &c.session);
        ASSERT_OK(wml_ort_compile(o, &m, &c, &err));
        assert_true(wml_file_exists(wml_buf_text(&out)));
        run(o, wml_buf_text(&out), &t, ep, t.ep_name);
        compare(cpu, ep);
    }
    wml_dir_remove(wml_buf_text(&dir));
    wml_buf_release(&dir);
    wml_buf_release(&out);
    wml_target_release(&t);
    wml_ort_close(&cx);
}

static void test_qnn(void **state)
{
    (void)state;
#if defined(__x86_64__)
    whole_path(&(struct want){"qnn", "npu", true, true});
#else
    whole_path(&(struct want){"qnn", "npu", false, true});
#endif
}

static void test_openvino(void **state)
{
    (void)state;
    need_no_sanitizer();
    whole_path(&(struct want){"openvino", "cpu", false, true});
}

static void test_virtual_npu(void **state)
{
    (void)state;
    whole_path(&(struct want){"vnpu", "npu", true, true});
}

static void test_options(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_target t;
    if (!resolve(&cx, &(struct want){"qnn", "npu", true, true}, &t)) {
        wml_ort_close(&cx);
        skip();
    }
    assert_string_equal(wml_pair_find(t.option, t.n_options, "htp_performance_mode"), "burst");
    wml_target_release(&t);
    struct wml_pair typed[] = {{"htp_performance_mode", "balanced"}, {"backend_path", "/no/such/backend.so"}};
    struct wml_target_spec spec = {.ep = "QNN", .device = "npu", .option = typed, .n_options = 2};
    ASSERT_OK(wml_target_resolve(&cx, &spec, &t, &err));
    assert_string_equal(wml_pair_find(t.option, t.n_options, "htp_performance_mode"), "balanced");
    assert_string_equal(wml_pair_find(t.option, t.n_options, "backend_path"), "/no/such/backend.so");
    /* The two defaults, the typed path, and on the simulator a chip for it. */
    assert_int_equal(t.n_options, t.simulated ? 4 : 3);
    /* ORT would go on without the EP: we do not. */
    struct wml_session_opts opts = {0};
    struct wml_model_source m = {.path = data_path("qdq")};
    struct wml_session *s = NULL;
    wml_target_session(&t, &opts);
    assert_false(wml_session_open(o, &m, &opts, &s, &err));
    assert_int_equal(err.code, WML_E_LOAD);
    ASSERT_HAS(err.msg, "QNNExecutionProvider did not start");
    ASSERT_HAS(err.msg, "/no/such/backend.so");
    wml_target_release(&t);
    typed[1] = (struct wml_pair){"backend_type", "htp"}; /* excludes backend_path */
    ASSERT_OK(wml_target_resolve(&cx, &spec, &t, &err));
    assert_null(wml_pair_find(t.option, t.n_options, "backend_path"));
    wml_target_release(&t);
    wml_ort_close(&cx);
}

static void test_nothing_compiled(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_target t;
    struct wml_buf dir = {0}, out = {0};
    if (!resolve(&cx, &(struct want){"qnn", "npu", true, true}, &t)) {
        wml_ort_close(&cx);
        skip();
    }
    ASSERT_OK(wml_dir_temp(NULL, "winml-compile-", &dir, &err));
    wml_buf_fmt(&out, "%s/none.onnx", wml_buf_text(&dir));
    struct wml_compile_opts c = {.output = wml_buf_text(&out)};
    struct wml_model_source m = {.path = data_path("kinds")}; /* strings and a sequence */
    struct wml_session_opts *opts = &c.session;
    wml_target_session(&t, opts);
    bool ok = wml_ort_compile(o, &m, &c, &err);
    if (!ok) {
        assert_true(err.code == WML_E_UNSUPPORTED || err.code == WML_E_RUNTIME);
        assert_true(err.msg[0]);
    }
    wml_dir_remove(wml_buf_text(&dir));
    wml_buf_release(&dir);
    wml_buf_release(&out);
    wml_target_release(&t);
    wml_ort_close(&cx);
}

static void test_automatic_choice(void **state)
{
    (void)state;
    need_no_sanitizer();
    struct wml_ctx cx = {0};
    struct wml_err err = {0};
    struct wml_target t;
    need_ort(&cx);
    find_virtual_npu();
    /* Whatever is installed: something is chosen, and never a simulator. */
    ASSERT_OK(wml_target_resolve(&cx, &(struct wml_target_spec){0}, &t, &err));
    assert_false(t.simulated);
    assert_string_not_equal(t.ep_name, "VirtualNPUExecutionProvider");
    wml_target_release(&t);
    wml_ort_close(&cx);
}

static void test_named_choice(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_err err = {0};
    struct wml_target t;
    need_ort(&cx);
    ASSERT_OK(wml_target_resolve(&cx, &(struct wml_target_spec){.ep = "cpu"}, &t, &err));
    assert_string_equal(t.ep_name, "CPUExecutionProvider");
    assert_null(t.library);
    assert_string_equal(t.source_tag, "bundled");
    struct wml_session_opts opts = {.n_devices = 9};
    wml_target_session(&t, &opts);
    assert_int_equal(opts.n_devices, 0);
    wml_target_release(&t);
    assert_false(wml_target_resolve(&cx, &(struct wml_target_spec){.ep = "cpu", .device = "cpu:7"}, &t, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    assert_false(wml_target_resolve(&cx, &(struct wml_target_spec){.ep = "qnn@msix"}, &t, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    ASSERT_HAS(err.msg, "msix");
    wml_target_release(&t); /* safe after a failure */
    wml_ort_close(&cx);
}

static void test_not_a_plugin(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_err err = {0};
    struct wml_target t;
    struct wml_ort *o = need_ort(&cx);
    struct wml_buf spec = {0};
    wml_buf_fmt(&spec, "MyExecutionProvider@%s", wml_ort_info(o).path); /* a library, but no EP */
    assert_false(wml_target_resolve(&cx, &(struct wml_target_spec){.ep = wml_buf_text(&spec)}, &t, &err));
    ASSERT_HAS(err.msg, "MyExecutionProvider");
    ASSERT_HAS(err.msg, "cannot load the plugin");
    wml_buf_clear(&spec);
    wml_buf_fmt(&spec, "MyExecutionProvider@%s", data_path("qdq")); /* no library at all */
    assert_false(wml_target_resolve(&cx, &(struct wml_target_spec){.ep = wml_buf_text(&spec)}, &t, &err));
    ASSERT_HAS(err.msg, "qdq.onnx");
    assert_true(err.hint[0]);
    wml_buf_release(&spec);
    wml_ort_close(&cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_choice),     cmocka_unit_test(test_automatic_choice),
        cmocka_unit_test(test_not_a_plugin),     cmocka_unit_test(test_virtual_npu),
        cmocka_unit_test(test_openvino),         cmocka_unit_test(test_options),
        cmocka_unit_test(test_nothing_compiled), cmocka_unit_test(test_qnn),
    };
    return cmocka_run_group_tests_name("ep plugins", tests, NULL, NULL);
}
