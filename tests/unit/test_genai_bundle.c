/* Configs of bundles: what is read, which EP a stage gets, and the config that comes out. Nothing is loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "genai/bundle.h"

#define PIPELINE(context, iterator)                                                                                     \
    "{\"model\":{\"type\":\"decoder-pipeline\",\"context_length\":64,\"x\":[1,{\"y\":2.5}],\"decoder\":{\"z\":null,\"pipeline\":["      \
    "{\"embeddings\":{\"filename\":\"e.onnx\"}},{\"context\":{\"filename\":\"c.onnx\"," context "}},"                       \
    "{\"iterator\":{" iterator ",\"filename\":\"i.onnx\"}},{\"lm_head\":{\"filename\":\"h.onnx\",\"is_lm_head\":true}}]}},\"search\":{}}"
#define ON(providers) "\"session_options\":{\"log_id\":\"a\",\"provider_options\":[" providers "]}"
#define FLAT(providers) "{\"model\":{\"type\":\"llama\",\"decoder\":{\"filename\":\"m.onnx\"," ON(providers) "}}}"

static const struct wml_pair defaults[] = {{"burst", "1"}};

/* Rows of the routing table: the stage "context" (a flat bundle's only one) before and after. */
static const struct {
    const char *config, *ep;
    const char *name, *options; /* afterwards; NULL: on the CPU */
    bool runs, changed;
} routes[] = {
    {PIPELINE(ON("{\"qnn\":{\"a\":\"b\"}}"), ON("{\"qnn\":{}}")), "cpu", NULL, NULL, true, true},
    {PIPELINE(ON(""), ON("{\"cpu\":{}}")), "cpu", NULL, NULL, true, false},
    {PIPELINE(ON(""), ON("")), "qnn", NULL, NULL, false, false},
    {PIPELINE(ON("{\"CPUExecutionProvider\":{}}"), ON("{\"qnn\":{\"a\":\"b\"}}")), "qnn", NULL, NULL, true, false},
    {PIPELINE(ON("{\"QNN\":{\"a\":\"b\"}}"), ON("")), "qnn", "qnn", "a=b", true, false},
    {PIPELINE(ON("{\"qnn\":{\"a\":\"b\"}}"), ON("")), "QNNExecutionProvider", "qnn", "a=b", true, false},
    {PIPELINE(ON("{\"qnn\":{\"a\":\"b\"}},{\"dml\":{}}"), ON("")), "qnn", "qnn", "a=b", true, true},
    {PIPELINE(ON("{\"dml\":{}}"), ON("{\"qnn\":{\"c\":\"d\"}}")), "qnn", "qnn", "c=d", true, true},
    {PIPELINE(ON("{\"qnn\":{\"a\":\"b\"}}"), ON("")), "openvino", "openvino", "device_type=NPU", true, true},
    {PIPELINE(ON("{\"qnn\":{\"a\":\"b\"}}"), ON("")), "vitisai", "vitisai", "device_type=NPU", true, true},
    {PIPELINE(ON("{\"dml\":{}}"), ON("")), "qnn", "qnn", "burst=1", true, true},
    {PIPELINE(ON("{\"qnn\":{\"a\":\"b\"}}"), ON("")), "vnpu", "VirtualNPUExecutionProvider", "burst=1", true, true},
    {FLAT(""), "cuda", "cuda", "burst=1", true, true},
    {FLAT("{\"cuda\":{\"n\":3}}"), "cpu", NULL, NULL, true, true},
    {FLAT("{\"cuda\":{\"n\":3}}"), "CUDA", "cuda", "n=3", true, false},
};

static const struct wml_bundle_stage *stage_of(const struct wml_bundle *b)
{
    return &b->stage[b->staged ? 1 : 0];
}

static void check_stage(size_t row, const struct wml_bundle *b)
{
    const struct wml_bundle_stage *s = stage_of(b);
    char options[64] = "";
    if (!routes[row].name) {
        if (s->n_providers) fail_msg("row %zu: still on %s", row, s->provider[0].name);
        return;
    }
    if (s->n_providers != 1 || strcmp(s->provider[0].name, routes[row].name) != 0) fail_msg("row %zu: on another EP", row);
    for (size_t i = 0; i < s->provider[0].n_options; i++) {
        const struct wml_pair *o = &s->provider[0].option[i];
        snprintf(options + strlen(options), sizeof options - strlen(options), "%s%s=%s", i ? "," : "", o->key, o->value);
    }
    if (strcmp(options, routes[row].options) != 0) fail_msg("row %zu: options %s", row, options);
}

static void test_routes(void **state)
{
    (void)state;
    for (size_t i = 0; i < WML_COUNT(routes); i++) {
        struct wml_bundle b, again;
        struct wml_err err = {0};
        struct wml_buf text = {0};
        struct wml_bundle_override o = {.ep = wml_ep_find(wml_str(routes[i].ep)), .defaults = defaults, .n_defaults = 1};
        if (!wml_bundle_parse(wml_str(routes[i].config), &b, &err)) fail_msg("row %zu: %s", i, err.msg);
        bool runs = wml_bundle_route(&b, &o);
        if (runs != routes[i].runs || wml_bundle_runs_on(&b, o.ep) != runs) fail_msg("row %zu: runs on it: %d", i, runs);
        if (stage_of(&b)->changed != routes[i].changed) fail_msg("row %zu: changed %d", i, stage_of(&b)->changed);
        check_stage(i, &b);
        wml_bundle_print(&b, &text);
        if (!wml_bundle_parse(wml_buf_view(&text), &again, &err)) fail_msg("row %zu, printed: %s", i, err.msg);
        check_stage(i, &again);
        wml_bundle_close(&again);
        wml_bundle_close(&b);
        wml_buf_release(&text);
    }
}

/* What nobody asked to change stays, member by member. */
static void test_print(void **state)
{
    struct wml_bundle b;
    struct wml_err err = {0};
    struct wml_buf text = {0}, compact = {0};
    struct wml_json_doc *doc = NULL;
    (void)state;
    const struct wml_pair typed[] = {{"a", "1"}, {"b", "2"}};
    assert_true(wml_bundle_parse(WML_STR(PIPELINE(ON("{\"qnn\":{\"a\":\"0\"}}"), "\"n\":1")), &b, &err));
    wml_bundle_set_options(&b, wml_ep_find(WML_STR("qnn")), typed, 2);
    wml_bundle_set_file(&b, 2, "other.onnx");
    assert_true(wml_bundle_changed(&b));
    wml_bundle_print(&b, &text);
    assert_true(wml_json_parse(wml_buf_view(&text), &doc, &err));
    wml_json_print(wml_json_root(doc), &compact);
    assert_string_equal(wml_buf_text(&compact),
        "{\"model\":{\"type\":\"decoder-pipeline\",\"context_length\":64,\"x\":[1,{\"y\":2.5}],\"decoder\":{\"z\":null,\"pipeline\":["
        "{\"embeddings\":{\"filename\":\"e.onnx\"}},{\"context\":{\"filename\":\"c.onnx\",\"session_options\":{\"log_id\":\"a\","
        "\"provider_options\":[{\"qnn\":{\"a\":\"1\",\"b\":\"2\"}}]}}},{\"iterator\":{\"n\":1,\"filename\":\"other.onnx\"}},"
        "{\"lm_head\":{\"filename\":\"h.onnx\",\"is_lm_head\":true}}]}},\"search\":{}}");
    wml_json_free(doc);
    wml_buf_release(&text);
    wml_buf_release(&compact);
    wml_bundle_close(&b);
}

static const struct { const char *config, *ep, *device; bool several; } facts[] = {
    {FLAT(""), NULL, "cpu", false},
    {FLAT("{\"qnn\":{\"backend_path\":\"C:/x/QnnHtp.dll\"}}"), "QNNExecutionProvider", "npu", false},
    {FLAT("{\"qnn\":{\"backend_path\":\"libQnnGpu.so\"}}"), "QNNExecutionProvider", "gpu", false},
    {FLAT("{\"qnn\":{}}"), "QNNExecutionProvider", NULL, false},
    {FLAT("{\"openvino\":{\"device_type\":\"GPU\"}}"), "OpenVINOExecutionProvider", "gpu", false},
    {FLAT("{\"dml\":{}}"), "DmlExecutionProvider", "gpu", false},
    {FLAT("{\"ryzenai\":{}}"), NULL, NULL, false},
    {PIPELINE(ON("{\"dml\":{}}"), ON("{\"vitisai\":{}}")), NULL, NULL, true},
};

static void test_facts(void **state)
{
    (void)state;
    for (size_t i = 0; i < WML_COUNT(facts); i++) {
        struct wml_bundle b;
        struct wml_err err = {0};
        bool several;
        if (!wml_bundle_parse(wml_str(facts[i].config), &b, &err)) fail_msg("row %zu: %s", i, err.msg);
        const struct wml_ep *ep = wml_bundle_ep(&b, &several);
        const char *device = wml_bundle_device(&b);
        if (several != facts[i].several || !ep != !facts[i].ep || (ep && strcmp(ep->name, facts[i].ep) != 0)) fail_msg("row %zu: EP %s", i, ep ? ep->name : "none");
        if (!device != !facts[i].device || (device && strcmp(device, facts[i].device) != 0)) fail_msg("row %zu: device %s", i, device ? device : "none");
        wml_bundle_close(&b);
    }
}

static void test_refused(void **state)
{
    static const struct { const char *config, *part; } bad[] = {
        {"{", "line"},
        {"[]", "model.decoder"},
        {"{\"model\":{\"decoder\":{\"pipeline\":[{\"a\":{}}]}}}", "names no model"},
        {"{\"model\":{\"decoder\":{\"pipeline\":[{\"a\":{\"filename\":\"../m.onnx\"}}]}}}", "not below"},
        {"{\"model\":{\"decoder\":{\"filename\":\"/etc/m.onnx\"}}}", "not below"},
    };
    (void)state;
    for (size_t i = 0; i < WML_COUNT(bad); i++) {
        struct wml_bundle b;
        struct wml_err err = {0};
        if (wml_bundle_parse(wml_str(bad[i].config), &b, &err)) fail_msg("row %zu was accepted", i);
        if (!strstr(err.msg, bad[i].part)) fail_msg("row %zu: %s", i, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_routes), cmocka_unit_test(test_print), cmocka_unit_test(test_facts),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
