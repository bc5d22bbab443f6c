/* The text of targets, the rows, and discovery over folders made here. Nothing is loaded. */
#include "ort_fixture.h"

#include "ep/ep.h"
#include "ep/internal.h"
#include "ep/want.h"
#include "os/file.h"

static const struct {
    const char *ep, *device;
    bool compile;
    enum wml_code code;      /* WML_OK: fine */
    const char *name, *text; /* name of the EP, or part of the message or hint */
} checks[] = {
    {NULL, NULL, false, WML_OK, NULL, NULL},
    {"auto", "auto", false, WML_OK, NULL, NULL},
    {"AUTO", "npu", true, WML_OK, NULL, NULL},
    {"qnn", NULL, true, WML_OK, "QNNExecutionProvider", NULL},
    {"QNN", "npu", true, WML_OK, "QNNExecutionProvider", NULL},
    {"qnnexecutionprovider", "GPU", false, WML_OK, "QNNExecutionProvider", NULL},
    {"nv_tensorrt_rtx", "gpu:1", false, WML_OK, "NvTensorRTRTXExecutionProvider", NULL},
    {"qnn@pypi", "npu", false, WML_OK, "QNNExecutionProvider", NULL},
    {"qnn@PyPI", "npu", false, WML_OK, "QNNExecutionProvider", NULL},
    {"openvino@winml-catalog", "cpu", false, WML_OK, "OpenVINOExecutionProvider", NULL},
    {"cpu@bundled", "cpu", false, WML_OK, "CPUExecutionProvider", NULL},
    {"qnn", "cpu", false, WML_E_USAGE, NULL, "Supported: npu, gpu"},
    {"cpu", "npu", false, WML_E_USAGE, NULL, "Supported: cpu"},
    {"qn", "npu", false, WML_E_USAGE, NULL, "did you mean qnn?"},
    {"opnevino", NULL, false, WML_E_USAGE, NULL, "did you mean openvino?"},
    {"nothing-like-it", NULL, false, WML_E_USAGE, NULL, "EPs: qnn"},
    {"qnn@", NULL, false, WML_E_USAGE, NULL, "around the @"},
    {"@pypi", NULL, false, WML_E_USAGE, NULL, "around the @"},
    {"qnn@a@b", NULL, false, WML_E_USAGE, NULL, "one @ only"},
    {"qnn@conda", NULL, false, WML_E_USAGE, NULL, "bundled, directory"},
    {"q nn", NULL, false, WML_E_USAGE, NULL, "blank"},
    {"auto@pypi", NULL, false, WML_E_USAGE, NULL, "needs the name"},
    {"qnn@/no/such/lib.so", "npu", false, WML_E_NOT_FOUND, NULL, "/no/such/lib.so"},
    {"cpu@/bin/sh", NULL, false, WML_E_USAGE, NULL, "built into"},
    {NULL, "tpu", false, WML_E_USAGE, NULL, "npu, gpu, cpu, auto"},
    {NULL, "gpu:x", false, WML_E_USAGE, NULL, "after the colon"},
    {NULL, "gpu:", false, WML_E_USAGE, NULL, "after the colon"},
    {"cpu", NULL, true, WML_E_UNSUPPORTED, NULL, "EPContext"},
    {"dml", "gpu", true, WML_E_UNSUPPORTED, NULL, "compiles when the model is loaded"},
    {"cuda", NULL, true, WML_E_UNSUPPORTED, NULL, "EPContext"},
};

static void test_check(void **state)
{
    (void)state;
    for (size_t i = 0; i < WML_COUNT(checks); i++) {
        struct wml_err err = {0};
        const struct wml_ep *ep = NULL;
        struct wml_target_spec s = {.ep = checks[i].ep, .device = checks[i].device, .for_compile = checks[i].compile};
        bool ok = wml_target_check(&s, &ep, &err);
        if (ok != (checks[i].code == WML_OK)) fail_msg("row %zu: %s", i, ok ? "accepted" : err.msg);
        if (ok) {
            assert_true(!ep == !checks[i].name);
            if (ep) assert_string_equal(ep->name, checks[i].name);
            continue;
        }
        assert_int_equal(err.code, checks[i].code);
        if (!strstr(err.msg, checks[i].text) && !strstr(err.hint, checks[i].text))
            fail_msg("row %zu: \"%s\" / \"%s\" lacks \"%s\"", i, err.msg, err.hint, checks[i].text);
    }
}

static void test_plugin_without_a_row(void **state)
{
    (void)state;
    struct wml_err err = {0};
    const struct wml_ep *ep = &wml_ep_cpu;
    ASSERT_OK(wml_target_check(&(struct wml_target_spec){.ep = "MyExecutionProvider@/bin/sh"}, &ep, &err));
    assert_null(ep);
    assert_false(wml_target_is_plain_cpu(&(struct wml_target_spec){.ep = "cpu@/bin/sh"}));
    assert_true(wml_target_is_plain_cpu(&(struct wml_target_spec){.ep = "CPU"}));
    assert_false(wml_target_is_plain_cpu(&(struct wml_target_spec){.device = "cpu"})); /* may be OpenVINO */
    struct wml_pair option = {"a", "b"};
    assert_false(
        wml_target_check(&(struct wml_target_spec){.ep = "cpu", .option = &option, .n_options = 1}, &ep, &err));
    ASSERT_HAS(err.msg, "\"a\"");
}

static void test_rows(void **state)
{
    (void)state;
    assert_int_equal(wml_n_eps, 12);
    for (size_t i = 0; i < wml_n_eps; i++) {
        const struct wml_ep *ep = wml_eps[i];
        assert_non_null(ep->name);
        assert_non_null(ep->label);
        assert_non_null(ep->provider_token);
        assert_true(ep->n_devices >= 1);
        assert_true(ep->compiles == !ep->no_compile_reason);
        assert_true(!ep->trace_level_key == !ep->trace_file_key);
        assert_ptr_equal(wml_ep_find(wml_str(ep->name)), ep);
        for (const char *const *a = ep->alias; *a; a++) assert_ptr_equal(wml_ep_find(wml_str(*a)), ep);
        for (size_t k = 0; k < ep->n_devices; k++) assert_non_null(ep->device[k].defaults);
    }
    assert_null(wml_ep_find(WML_STR("")));
}

static void test_wants(void **state)
{
    (void)state;
    for (size_t i = 0; i < wml_n_eps; i++)
        for (size_t k = 0; k < wml_eps[i]->n_wants; k++) {
            const struct wml_ep_want *w = &wml_eps[i]->want[k];
            bool offered = false;
            for (size_t d = 0; d < wml_eps[i]->n_devices; d++) offered = offered || wml_eps[i]->device[d].type == w->device;
            assert_true(offered);
            assert_true(w->pass && w->why);
            assert_true(!w->before || wml_eps[i]->runtime_version);
        }
    const struct wml_ep *cpu = wml_ep_find(WML_STR("cpu")), *dml = wml_ep_find(WML_STR("dml")), *qnn = wml_ep_find(WML_STR("qnn"));
    assert_true(wml_ep_has_op(qnn, WML_STR("Gelu")) && !wml_ep_has_op(qnn, WML_STR("com.microsoft::Gelu")));
    assert_true(wml_ep_has_op(cpu, WML_STR("com.microsoft::Gelu")) && !wml_ep_has_op(cpu, WML_STR("vendor::Gelu")));
    assert_true(wml_ep_has_op(dml, WML_STR("com.microsoft::BiasGelu")) && !wml_ep_has_op(dml, WML_STR("com.microsoft::FusedConv")));
    assert_true(!wml_ep_has_op(dml, WML_STR("com.microsoft::Bias")) && !wml_ep_has_op(NULL, WML_STR("com.microsoft::Gelu")));
    assert_true(wml_version_below("2026.1.9", "2026.2") && !wml_version_below("2026.2.0", "2026.2"));
    assert_true(!wml_version_below("2026.10", "2026.2") && wml_version_below("2025.4", "2026.2"));
}

/* --- discovery --- */

struct place {
    struct wml_buf root;
};

static const char *make(struct place *p, const char *file)
{
    static char path[1200];
    struct wml_err err = {0};
    snprintf(path, sizeof path, "%s/%s", wml_buf_text(&p->root), file);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    ASSERT_OK(wml_dir_make(path, &err));
    *slash = '/';
    if (slash[1]) ASSERT_OK(wml_file_write(path, WML_STR("no library"), &err));
    return path;
}

static void set(struct place *p, const char *name, const char *below)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", wml_buf_text(&p->root), below);
    wml_env_set(name, path);
}

/* Every source points into an empty folder of ours. */
static int set_up(void **state)
{
    struct place *p = wml_xcalloc(1, sizeof *p);
    struct wml_err err = {0};
    if (!wml_dir_temp(NULL, "winml-ep-", &p->root, &err)) return -1;
    set(p, "WINML_DEPS", "deps");
    set(p, "HOME", "home");
    set(p, "NUGET_PACKAGES", "nuget");
    wml_env_set("WINML_EP_PATH", NULL);
    wml_env_set("WINMLCLI_EP_PATH", NULL);
    wml_env_set("VIRTUAL_ENV", NULL);
    wml_env_set("CONDA_PREFIX", NULL);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;
    static const char *const names[] = {"WINML_DEPS",       "NUGET_PACKAGES", "WINML_EP_PATH",
                                        "WINMLCLI_EP_PATH", "VIRTUAL_ENV",    "RYZEN_AI_INSTALLATION_PATH"};
    for (size_t i = 0; i < WML_COUNT(names); i++) wml_env_set(names[i], NULL);
    wml_dir_remove(wml_buf_text(&p->root));
    wml_buf_release(&p->root);
    free(p);
    return 0;
}

static size_t find_all(const struct wml_ep_libraries *l, const struct wml_ep *ep, const struct wml_ep_library **at,
                       size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < l->v.len; i++)
        if (l->v.at[i].ep == ep && n < max) at[n++] = &l->v.at[i];
    return n;
}

#define QNN_FILE      WML_EP_FILE("onnxruntime_providers_qnn")
#ifdef _WIN32
#define SITE "Lib/site-packages"
#else
#define SITE "lib/python3.12/site-packages"
#endif
#define OPENVINO_FILE WML_EP_FILE("onnxruntime_providers_openvino_plugin")

static void test_order_of_sources(void **state)
{
    struct place *p = *state;
    struct wml_ctx cx = {0};
    struct wml_err err = {0};
    struct wml_ep_libraries l;
    const struct wml_ep_library *at[8];
    char program[1200];
    make(p, "env/" QNN_FILE);
    make(p, "bin/ep/qnn/" QNN_FILE);
    make(p, "lib/winml/ep/" QNN_FILE);
    make(p, "deps/ep/qnn/" QNN_FILE);
    make(p, "venv/" SITE "/onnxruntime_qnn/" QNN_FILE);
    make(p, "venv/" SITE "/onnxruntime_qnn-2.7.0.dist-info/METADATA");
    set(p, "WINML_EP_PATH", "env");
    set(p, "VIRTUAL_ENV", "venv");
    snprintf(program, sizeof program, "%s/bin/winml", wml_buf_text(&p->root));
    cx.program = program;
    ASSERT_OK(wml_ep_discover(&cx, &l, &err));
    assert_int_equal(find_all(&l, &wml_ep_qnn, at, 8), 5);
    ASSERT_HAS(at[0]->path, "/env/");
    assert_string_equal(at[0]->env_var, "WINML_EP_PATH");
    assert_string_equal(at[0]->source_kind, "DirectorySource");
    ASSERT_HAS(at[1]->path, "/bin/ep/qnn/");
    ASSERT_HAS(at[2]->path, "/lib/winml/ep/");
    ASSERT_HAS(at[3]->path, "/deps/ep/qnn/");
    ASSERT_HAS(at[4]->path, "site-packages");
    assert_string_equal(at[4]->source_tag, "pypi");
    assert_string_equal(at[4]->distribution, "onnxruntime-qnn");
    assert_string_equal(at[4]->version, "2.7.0");
    assert_int_equal(find_all(&l, &wml_ep_cpu, at, 8), 1);
    assert_string_equal(at[0]->source_tag, "bundled");
    assert_null(at[0]->path);
    wml_ep_libraries_release(&l);
}

static void test_nuget_takes_the_newest_release(void **state)
{
    struct place *p = *state;
    struct wml_ctx cx = {0};
    struct wml_err err = {0};
    struct wml_ep_libraries l;
    const struct wml_ep_library *at[4];
    static const char *const versions[] = {"1.9.0", "1.10.2", "1.10.11-rc1", "2.0.0-dev"};
    char file[400];
    for (size_t i = 0; i < WML_COUNT(versions); i++) {
        snprintf(file, sizeof file, "nuget/intel.ml.onnxruntime.ep.openvino/%s/runtimes/%s/native/%s", versions[i],
                 wml_ep_nuget_rid, OPENVINO_FILE);
        make(p, file);
    }
    make(p, "nuget/intel.ml.onnxruntime.ep.openvino/3.0.0/"); /* no library for this machine in it */
    ASSERT_OK(wml_ep_discover(&cx, &l, &err));
    assert_int_equal(find_all(&l, &wml_ep_openvino, at, 4), 1);
    assert_string_equal(at[0]->version, "1.10.2");
    assert_string_equal(at[0]->source_tag, "nuget");
    wml_ep_libraries_release(&l);
}

static void test_files_lists_and_doubles(void **state)
{
    struct place *p = *state;
    struct wml_ctx cx = {0};
    struct wml_err err = {0};
    struct wml_ep_libraries l;
    const struct wml_ep_library *at[4];
    char list[3000];
    make(p, "a/" QNN_FILE);
    make(p, "b/" OPENVINO_FILE);
    make(p, "amd/deployment/" WML_EP_FILE("onnxruntime_providers_vitisai"));
    const char *root = wml_buf_text(&p->root);
    char c = wml_ep_list_separator;
    snprintf(list, sizeof list, "%s/a%c%c%s/a/../a/%s%c%s/b/%s%c%s/nowhere", root, c, c, root, QNN_FILE, c, root,
             OPENVINO_FILE, c, root);
    wml_env_set("WINMLCLI_EP_PATH", list);
    set(p, "RYZEN_AI_INSTALLATION_PATH", "amd");
    ASSERT_OK(wml_ep_discover(&cx, &l, &err));
    assert_int_equal(find_all(&l, &wml_ep_qnn, at, 4), 1); /* the same file twice is one entry */
    assert_int_equal(find_all(&l, &wml_ep_openvino, at, 4), 1);
    assert_int_equal(find_all(&l, &wml_ep_vitisai, at, 4), 1);
    assert_string_equal(at[0]->env_var, "RYZEN_AI_INSTALLATION_PATH");
    wml_ep_libraries_release(&l);
}

static void test_missing(void **state)
{
    (void)state;
    struct wml_ctx cx = {0};
    struct wml_err err = {0};
    struct wml_ep_libraries l;
    struct wml_buf why = {0};
    ASSERT_OK(wml_ep_discover(&cx, &l, &err));
    assert_true(l.looked.len >= 4);
    wml_ep_missing_reason(&wml_ep_qnn, &l, &why);
    ASSERT_HAS(wml_buf_text(&why), QNN_FILE);
    ASSERT_HAS(wml_buf_text(&why), "pip install onnxruntime-qnn");
    wml_buf_clear(&why);
    wml_ep_missing_reason(&wml_ep_dml, &l, &why);
    ASSERT_HAS(wml_buf_text(&why), "not built into this ONNX Runtime");
    wml_buf_release(&why);
    wml_ep_libraries_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_plugin_without_a_row),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_wants),
        cmocka_unit_test_setup_teardown(test_order_of_sources, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nuget_takes_the_newest_release, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_files_lists_and_doubles, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_missing, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("ep target", tests, NULL, NULL);
}
