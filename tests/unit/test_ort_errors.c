/* What people read when ORT refuses: every row is a model that fails, or a message as ORT writes it. */
#include "ort_fixture.h"

#include "ort/internal.h"

static const struct {
    const char *model;
    enum wml_opt_level level;
    const char *msg[3], *hint;
} loads[] = {
    {"cut", WML_LEVEL_DISABLED, {"cut.onnx", "not a readable ONNX model", NULL}, "winml inspect"},
    {"no_kernel", WML_LEVEL_DISABLED, {"no kernel", "Conv", "'conv1'"}, "element types"},
    {"no_op", WML_LEVEL_DISABLED, {"no operator Magic", "domain vendor", NULL}, "custom operator"},
    {"ep_context", WML_LEVEL_DISABLED, {"that this session does not have", NULL, NULL}, "compiled"},
    {"names", WML_LEVEL_DISABLED, {"same node name (n)", NULL, NULL}, "winml optimize"},
    {"opset_999", WML_LEVEL_DISABLED, {"opset 999", "domain ai.onnx", "knows up to "}, "export the model again"},
    {"ir_99", WML_LEVEL_DISABLED, {"IR version 99", "knows up to ", NULL}, "export the model again"},
    {"optimiser_trap", WML_LEVEL_BASIC, {"'mid'", NULL, NULL}, "optimisation level"},
};

static void test_loads(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    for (size_t i = 0; i < WML_COUNT(loads); i++) {
        struct wml_err err = {0};
        struct wml_session *s = NULL;
        struct wml_model_source m = {.path = data_path(loads[i].model)};
        struct wml_session_opts opts = {.level = loads[i].level};
        if (wml_session_open(o, &m, &opts, &s, &err)) fail_msg("%s loads", loads[i].model);
        assert_null(s);
        assert_int_equal(err.code, WML_E_LOAD);
        for (size_t k = 0; k < 3 && loads[i].msg[k]; k++) ASSERT_HAS(err.msg, loads[i].msg[k]);
        ASSERT_HAS(err.hint, loads[i].hint);
        assert_null(strstr(err.msg, "onnxruntime::"));
        assert_null(strstr(err.msg, ".cc:"));
        assert_null(strchr(err.msg, '\n'));
    }
    /* The trap is a valid model: without ORT's optimiser it loads. */
    struct wml_session *s = open_model(o, "optimiser_trap", NULL);
    wml_session_close(s);
    wml_ort_close(&cx);
}

static void test_files(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_session *s = NULL;
    struct wml_model_source m = {.path = "/no/such/model.onnx"};
    assert_false(wml_session_open(o, &m, NULL, &s, &err));
    assert_int_equal(err.code, WML_E_NOT_FOUND);
    m.path = WML_TEST_DATA;
    assert_false(wml_session_open(o, &m, NULL, &s, &err));
    ASSERT_HAS(err.msg, "is a folder");
    m = (struct wml_model_source){.bytes = {NULL, 0}};
    assert_false(wml_session_open(o, &m, NULL, &s, &err));
    ASSERT_HAS(err.msg, "empty");
    wml_ort_close(&cx);
}

static void test_run(void **state)
{
    (void)state;
    static const float x[6];
    static const int64_t dims[] = {2, 3}, bad[] = {3, 3}, one[] = {1}, to[] = {4};
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    struct wml_err err = {0};
    struct wml_session *s = open_model(o, "fails", NULL);
    struct wml_tensor_view in[] = {{WML_F32, 2, dims, x, sizeof x, true}, {WML_I64, 1, one, to, sizeof to, true}};
    struct wml_run *r = NULL;
    ASSERT_OK(wml_run_new(s, in, 2, &r, &err));
    assert_false(wml_run_once(r, &err));
    assert_int_equal(err.code, WML_E_RUN);
    ASSERT_HAS(err.msg, "fails.onnx");
    ASSERT_HAS(err.msg, "node \"reshape\" (Reshape)");
    assert_null(strstr(err.msg, ".cc:"));
    ASSERT_HAS(wml_ort_last_log(o).ptr, "reshape"); /* ORT logs it as well */
    wml_ort_clear_log(o);
    assert_int_equal(wml_ort_last_log(o).len, 0);
    wml_run_free(r);
    in[0].dim = bad; /* fewer bytes than the shape needs: never handed to ORT */
    assert_false(wml_run_new(s, in, 2, &r, &err));
    ASSERT_HAS(err.msg, "36 needed");
    in[0].dim = one;
    in[0].rank = 1;
    ASSERT_OK(wml_run_new(s, in, 2, &r, &err));
    assert_false(wml_run_once(r, &err));
    ASSERT_HAS(err.msg, "x");
    ASSERT_HAS(err.hint, "--input-shape");
    wml_run_free(r);
    wml_session_close(s);
    wml_ort_close(&cx);
}

static const struct {
    const char *raw, *clean;
} messages[] = {
    {"Load model from a b.onnx failed:/src/core/graph/model.cc:181 onnxruntime::Model::Model(onnx::ModelProto&&, "
     "const std::basic_string<char>&, const logging::Logger&) Unsupported model IR version: 99, max 13\n",
     "Unsupported model IR version: 99, max 13"},
    {"D:\\a\\_work\\1\\s\\core\\graph\\model.cc:149 onnxruntime::Model::Model Unsupported model", "Unsupported model"},
    {"x.cc:5 int f::g(const int&) [with T = float; U = int[2]] a > 1 was false. The reason.", "The reason"},
    {"Error: tensorprotoutils.cc:619 ValidateExternalDataPathFromDir External data path does not exist: \"w\"",
     "Error: External data path does not exist: \"w\""},
    {"Got invalid dimensions for input: x for the following indices\n index: 0 Got: 2 Expected: 1\n Please fix either "
     "the "
     "inputs/outputs or the model.",
     "Got invalid dimensions for input: x for the following indices; index: 0 Got: 2 Expected: 1"},
    {"Non-zero status code returned while running Add node. Name:'n1' Status Message: /o/e.h:560 void "
     "onnxruntime::BroadcastIterator::Append(ptrdiff_t, ptrdiff_t) axis == 1 was false. Attempting to broadcast.",
     "node \"n1\" (Add): Attempting to broadcast"},
    {"Non-zero status code returned while running OpenVINOExecutionProvider_71_0 node. Name:'x' Status Message: "
     "Exception from src/a.cpp:224:\nException from src/b.cpp:7:\nThe kernel is too large.",
     "in a part of OpenVINOExecutionProvider: The kernel is too large"},
    {"Error creating execution provider: [ONNXRuntimeError] : 1 : FAIL : Only one should be set",
     "Only one should be set"},
    {"plain text: no location, f(x) stays", "plain text: no location, f(x) stays"},
    {"", "no reason was given"},
    {NULL, "no reason was given"},
    {"a.cc:", "a.cc:"},
    {"a.cc:12", "no reason was given"},
    {"a.cc:1 f::g(", "no reason was given"},
};

static void test_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < WML_COUNT(messages); i++) {
        struct wml_buf out = {0};
        wml_ort_clean_message(messages[i].raw, &out);
        assert_string_equal(wml_buf_text(&out), messages[i].clean);
        wml_buf_release(&out);
    }
}

static const struct {
    const char *text;
    enum wml_code code;
    const char *msg, *hint;
} known[] = {
    {"Failed to load library /p.so with error: libx.so: cannot open shared object file: No such file", WML_E_LOAD,
     "/p.so", "libx.so is missing"},
    {"Error loading \"C:\\p.dll\" which depends on \"x.dll\" which is missing. (Error 126: \"\")", WML_E_LOAD, "p.dll",
     "x.dll is missing"},
    {"Error loading \"C:\\p.dll\" which is missing. (Error 193: \"Bad EXE\")", WML_E_LOAD, "p.dll", "machine type"},
    {"Failed to load library /p.so with error: /p.so: invalid ELF header", WML_E_LOAD, "/p.so", "machine type"},
    {"Failed to find symbol CreateEpFactories in library, error code: 127", WML_E_LOAD, "no plugin EP", "plugin's own"},
    {"Unable to compile any nodes. Check that", WML_E_UNSUPPORTED, "took no node", "winml optimize"},
    {"Fatal error: com.x:Op(3) is not a registered function/op", WML_E_LOAD, "Op (opset 3) of domain com.x", "custom"},
    {"Fatal error: Op(-1) is not a registered function/op", WML_E_LOAD, "Op of domain ai.onnx", "custom"},
    {"Could not find an implementation for EPContext(1) node with name 'p'", WML_E_LOAD, "EPContext", "compiled"},
    {"something nobody knows", WML_E_LOAD, "something nobody knows", ""},
};

static void test_known(void **state)
{
    (void)state;
    const struct wml_ort o = {.info = {.version = "1.99.0"}};
    for (size_t i = 0; i < WML_COUNT(known); i++) {
        struct wml_err err = {0};
        wml_ort_explain(&o, WML_E_LOAD, wml_str(known[i].text), &err);
        assert_int_equal(err.code, known[i].code);
        ASSERT_HAS(err.msg, known[i].msg);
        ASSERT_HAS(err.hint, known[i].hint);
    }
}

static void test_log_keeps_the_newest(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_ort *o = need_ort(&cx);
    wml_ort_clear_log(o);
    char line[64];
    for (int i = 0; i < 2000; i++) {
        snprintf(line, sizeof line, "line number %d", i);
        wml_ort_log_line(o, ORT_LOGGING_LEVEL_WARNING, "", "", "", line);
    }
    struct wml_str log = wml_ort_last_log(o);
    assert_true(log.len <= WML_ORT_LOG_MAX);
    assert_true(log.len > WML_ORT_LOG_MAX / 2);
    assert_true(wml_str_starts(log, "line number "));
    assert_true(wml_str_ends(log, "line number 1999\n"));
    wml_ort_close(&cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),    cmocka_unit_test(test_files), cmocka_unit_test(test_run),
        cmocka_unit_test(test_messages), cmocka_unit_test(test_known), cmocka_unit_test(test_log_keeps_the_newest),
    };
    return cmocka_run_group_tests_name("ort errors", tests, NULL, NULL);
}
