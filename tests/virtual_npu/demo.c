/* demo.c - the self-test of the virtual NPU, against ORT's own CPU EP.
 *
 *   vnpu_selftest ORT_LIBRARY PLUGIN FOLDER
 *
 * It writes one line per check and ends with 0 when all hold, 1 when one does not, 77 when ORT is
 * missing. */
#include "demo.h"
#include "demo_child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned failures;

static void check(bool ok, const char *fmt, const char *detail)
{
    printf(ok ? "ok    " : "FAIL  ");
    printf("%s %s\n", fmt, detail);
    failures += ok ? 0 : 1;
}

static const struct demo_option none[] = {{NULL, NULL}};

/* --- the plugin and its device --- */

static const OrtApiBase *real_base;

static const OrtApi *ORT_API_CALL old_api(uint32_t version)
{
    return version < 20 ? real_base->GetApi(version) : NULL;
}

static const char *ORT_API_CALL old_version(void)
{
    return "1.19.0";
}

static void test_old_ort(struct demo *d)
{
    static const OrtApiBase old = {old_api, old_version};
    CreateEpApiFactoriesFn create;
    OrtEpFactory *factories[4] = {NULL};
    size_t n = 9;
    void *p = demo_plugin_symbol(d->plugin, "CreateEpFactories");
    check(p != NULL, "plugin exports", "CreateEpFactories");
    if (p == NULL) return;
    memcpy(&create, &p, sizeof(create));
    real_base = d->base;
    check(
        demo_says(d, create("vnpu", &old, NULL, factories, 4, &n), "this is ONNX Runtime 1.19.0") &&
            n == 0,
        "an older ORT is refused:", "with its version in the message");
}

static void test_device(struct demo *d)
{
    demo_must(d, demo_register(d, "vnpu.virtual"), "register vnpu.virtual");
    const OrtHardwareDevice *h = d->api->EpDevice_Device(demo_device(d));
    check(d->api->HardwareDevice_Type(h) == OrtHardwareDeviceType_NPU,
          "registered as *.virtual:", "an NPU");
    demo_must(d, demo_unregister(d, "vnpu.virtual"), "unregister vnpu.virtual");
}

static void test_plain_device(struct demo *d)
{
    const OrtEpDevice *e = demo_device(d);
    const char *virtual = d->api->GetKeyValue(d->api->EpDevice_EpMetadata(e), "virtual");
    const OrtHardwareDevice *h = d->api->EpDevice_Device(e);
    check(d->api->HardwareDevice_Type(h) == OrtHardwareDeviceType_CPU,
          "registered under a plain name:", "a CPU stands in");
    check(virtual != NULL && strcmp(virtual, "1") == 0, "device metadata:", "virtual=1");
    check(strcmp(d->api->EpDevice_EpVendor(e), "winml") == 0,
          "vendor:", d->api->EpDevice_EpVendor(e));
}

/* --- running --- */

static bool runs_as_cpu(struct demo *d, OrtSession *s, const float want[8])
{
    float got[8] = {0};
    demo_must(d, demo_run(d, s, got), "run");
    return memcmp(got, want, sizeof(got)) == 0;
}

static void test_run(struct demo *d, const float want[8])
{
    static const struct demo_option refuse[] = {{"refuse_ops", "MatMul,Sigmoid"}, {NULL, NULL}};
    static const struct demo_option refuse_all[] = {{"refuse_ops", "all"}, {NULL, NULL}};
    static const struct demo_option all[] = {{"ops", "all"}, {NULL, NULL}};
    static const struct demo_option large[] = {{"min_nodes", "3"}, {NULL, NULL}};
    static const struct {
        const struct demo_option *option;
        size_t nodes;
        const char *name;
    } rows[] = {
        {none, DEMO_NODES_ON_NPU, "default"},
        {refuse, DEMO_NODES_ON_NPU - 2, "refuse_ops=MatMul,Sigmoid"},
        {refuse_all, 0, "refuse_ops=all"},
        {all, DEMO_NODES, "ops=all"},
        {large, 3, "min_nodes=3"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        OrtSession *s;
        demo_must(d, demo_session(d, NULL, true, rows[i].option, &s), rows[i].name);
        check(demo_nodes_on(d, s, DEMO_EP) == rows[i].nodes, "placement:", rows[i].name);
        check(runs_as_cpu(d, s, want), "same bits as the CPU:", rows[i].name);
        d->api->ReleaseSession(s);
    }
}

static void test_bad_options(struct demo *d)
{
    static const struct {
        const char *key, *value, *says;
    } rows[] = {
        {"colour", "red", "known: ops, refuse_ops"},
        {"latency_us", "soon", "not a whole number"},
        {"csv", "maybe", "neither on nor off"},
        {"profiling_level", "loud", "none of off, basic, detailed"},
        {"profiling_level", "detailed", "needs the option profiling_file_path"},
        {"fault", "boom@run", "is not WHAT@WHERE"},
        {"fault", "fail@run:", "is not WHAT@WHERE"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct demo_option o[] = {{rows[i].key, rows[i].value}, {NULL, NULL}};
        OrtSession *s;
        check(demo_says(d, demo_session(d, NULL, true, o, &s), rows[i].says),
              "refused option:", rows[i].key);
    }
}

/* --- EPContext --- */

static void test_context(struct demo *d, const float want[8], bool embed, const char *shared)
{
    const struct demo_option o[] = {{"shared_context", shared}, {NULL, NULL}};
    const char *name = embed ? "embedded" : "beside";
    char model[1024], sidecar[1024];
    OrtSession *s;
    size_t n;
    snprintf(model, sizeof(model), "%s", demo_path(d, "selftest_ctx.onnx"));
    snprintf(sidecar, sizeof(sidecar), "%s", demo_path(d, "selftest_ctx_vnpu.bin"));
    remove(model);
    remove(sidecar);
    demo_must(d, demo_compile(d, model, embed, none, o), "compile");
    char *bytes = demo_read(sidecar, &n);
    check((bytes == NULL) == embed, "context file:", name);
    demo_must(d, demo_session(d, model, true, none, &s), "load");
    check(demo_nodes_on(d, s, DEMO_EP) == DEMO_PARTS, "compiled parts are on the NPU:", name);
    check(runs_as_cpu(d, s, want), "compiled model, same bits:", name);
    d->api->ReleaseSession(s);
    if (bytes != NULL) {
        bytes[n / 2] ^= 0x20;
        check(demo_write(sidecar, bytes, n) &&
                  demo_says(d, demo_session(d, model, true, none, &s), "is damaged"),
              "damaged context:", "refused");
        check(demo_write(sidecar, bytes, n / 3) &&
                  demo_says(d, demo_session(d, model, true, none, &s), "ends inside"),
              "short context:", "refused");
        remove(sidecar);
        check(demo_says(d, demo_session(d, model, true, none, &s), "belongs beside the model"),
              "missing context:", "refused");
    }
    free(bytes);
}

/* Two models, one context file. */
static void test_sharing(struct demo *d, const float want[8])
{
    static const struct demo_option first[] = {{"ep.share_ep_contexts", "1"}, {NULL, NULL}};
    static const struct demo_option last[] = {
        {"ep.share_ep_contexts", "1"}, {"ep.stop_share_ep_contexts", "1"}, {NULL, NULL}};
    static const char *const files[] = {"shared_a.onnx", "shared_b.onnx"};
    char other[1024];
    size_t n;
    snprintf(other, sizeof(other), "%s", demo_path(d, "shared_b_vnpu.bin"));
    for (size_t i = 0; i < 2; i++) {
        remove(demo_path(d, files[i]));
        demo_must(d, demo_compile(d, demo_path(d, files[i]), false, i == 0 ? first : last, none),
                  files[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        OrtSession *s;
        demo_must(d, demo_session(d, demo_path(d, files[i]), true, none, &s), files[i]);
        check(runs_as_cpu(d, s, want), "shared context, same bits:", files[i]);
        d->api->ReleaseSession(s);
        remove(demo_path(d, files[i]));
    }
    char *bytes = demo_read(other, &n);
    check(bytes == NULL, "shared context:", "one file");
    free(bytes);
    remove(demo_path(d, "shared_a_vnpu.bin"));
}

/* --- profile --- */

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)) != NULL; p += strlen(what))
        n++;
    return n;
}

static void test_profile(struct demo *d, const char *level, const char *csv, size_t nodes)
{
    char path[1024];
    float y[8];
    OrtSession *s;
    size_t n;
    snprintf(path, sizeof(path), "%s", demo_path(d, "self,test.csv"));
    const struct demo_option o[] = {
        {"profiling_level", level}, {"profiling_file_path", path}, {"csv", csv}, {NULL, NULL}};
    remove(path);
    demo_must(d, demo_session(d, NULL, true, o, &s), "profiled session");
    for (int i = 0; i < 3; i++)
        demo_must(d, demo_run(d, s, y), "profiled run");
    d->api->ReleaseSession(s);
    char *text = demo_read(path, &n);
    if (strcmp(csv, "off") == 0) {
        check(text == NULL, "csv=off:", "no file");
    } else {
        check(text != NULL && count(text, ",FINALIZE,") == DEMO_PARTS &&
                  count(text, "ROOT,Accelerator (execute) time\n") == 3 * DEMO_PARTS &&
                  count(text, ",NODE,") == 3 * nodes,
              "profile, one block per run and part:", level);
        check(text != NULL && count(text, "SUB-EVENT,net/MatMul:OpId_") == (nodes > 0 ? 3 : 0),
              "profile, source node names:", level);
    }
    free(text);
    remove(path);
}

/* --- faults --- */

static void test_fail(struct demo *d, const char *where)
{
    char fault[64], says[64];
    snprintf(fault, sizeof(fault), "fail@%s", where);
    snprintf(says, sizeof(says), "failed at %s", where);
    const struct demo_option o[] = {{"fault", fault}, {NULL, NULL}};
    OrtSession *s = NULL;
    float y[8];
    OrtStatus *st = demo_session(d, NULL, true, o, &s);
    if (strcmp(where, "run") == 0) {
        demo_must(d, st, fault);
        st = demo_run(d, s, y);
    } else if (strcmp(where, "teardown") == 0) { /* cannot be reported: all goes on */
        demo_must(d, st, fault);
        d->api->ReleaseSession(s);
        check(true, "fault, goes on:", fault);
        return;
    }
    check(demo_says(d, st, says), "fault, with a message:", fault);
    if (s != NULL) d->api->ReleaseSession(s);
}

static void test_spared(struct demo *d)
{
    const struct demo_option o[] = {{"fault", "fail@run:2"}, {NULL, NULL}};
    OrtSession *s;
    float y[8];
    demo_must(d, demo_session(d, NULL, true, o, &s), "fail@run:2");
    demo_must(d, demo_run(d, s, y), "first run");
    demo_must(d, demo_run(d, s, y), "second run");
    check(demo_says(d, demo_run(d, s, y), "failed at run"), "fault, third run:", "fail@run:2");
    d->api->ReleaseSession(s);
}

/* What the child does: the step in which the fault strikes. Returns only when it does not. */
static int child(struct demo *d, const char *fault)
{
    const struct demo_option o[] = {{"fault", fault}, {NULL, NULL}};
    const char *where = strchr(fault, '@') + 1;
    OrtSession *s;
    float y[8];
    demo_environment("WINML_VNPU_FAULT", fault); /* the only way to ask for register and unload */
    demo_must(d, demo_register(d, "vnpu"), "register");
    if (strcmp(where, "compile") == 0 || strcmp(where, "teardown") == 0) {
        demo_must(d, demo_compile(d, demo_path(d, "child_ctx.onnx"), false, none, o), "compile");
    } else {
        demo_must(d, demo_session(d, NULL, true, o, &s), "session");
        demo_must(d, demo_run(d, s, y), "run");
        d->api->ReleaseSession(s);
    }
    demo_must(d, demo_unregister(d, "vnpu"), "unregister");
    return 0;
}

static void test_deaths(struct demo *d, const char *self, const char *ort)
{
    static const char *const what[] = {"crash", "abort", "kill", "exit", "hang"};
    static const enum demo_end ends[] = {DEMO_CRASHED, DEMO_ABORTED, DEMO_KILLED, DEMO_EXITED,
                                         DEMO_HUNG};
    static const char *const where[] = {"register", "compile", "load", "run", "teardown", "unload"};
    char model[1024];
    snprintf(model, sizeof(model), "%s", demo_path(d, "child_ctx.onnx"));
    for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++)
        for (size_t k = 0; k < sizeof(where) / sizeof(*where); k++) {
            char fault[64];
            int code;
            size_t n;
            snprintf(fault, sizeof(fault), "%s@%s", what[i], where[k]);
            const char *const argv[] = {self, ort, d->plugin, d->folder, "--child", fault, NULL};
            remove(model);
            enum demo_end end = demo_child(argv, ends[i] == DEMO_HUNG ? 3000 : 60000, &code);
            bool ok = end == ends[i] && (end != DEMO_EXITED || code == 3);
#if defined(_WIN32)
            ok = ok || (ends[i] == DEMO_ABORTED && code == 3);
#endif
            check(ok, "fault, ends the process:", fault);
            char *bytes = demo_read(model, &n);
            if (strcmp(where[k], "compile") == 0)
                check(bytes == NULL, "  nothing is left of it:", fault);
            else if (strcmp(where[k], "teardown") == 0)
                check(bytes != NULL && n > 0, "  the result is there:", fault);
            free(bytes);
        }
    remove(model);
    remove(demo_path(d, "child_ctx_vnpu.bin"));
}

static void test_all(struct demo *d, const char *self, const char *ort)
{
    float want[8];
    OrtSession *s;
    test_old_ort(d);
    test_device(d);
    demo_must(d, demo_register(d, "vnpu"), "register vnpu");
    test_plain_device(d);
    demo_must(d, demo_session(d, NULL, false, NULL, &s), "CPU session");
    demo_must(d, demo_run(d, s, want), "CPU run");
    d->api->ReleaseSession(s);
    test_run(d, want);
    test_bad_options(d);
    test_context(d, want, true, "1");
    test_context(d, want, false, "1");
    test_context(d, want, true, "0");
    test_sharing(d, want);
    test_profile(d, "detailed", "on", DEMO_NODES_ON_NPU + 2 * DEMO_PARTS);
    test_profile(d, "basic", "on", 0);
    test_profile(d, "detailed", "off", 0);
    test_fail(d, "compile");
    test_fail(d, "load");
    test_fail(d, "run");
    test_fail(d, "teardown");
    test_spared(d);
    demo_must(d, demo_unregister(d, "vnpu"), "unregister vnpu");
    test_deaths(d, self, ort);
}

int main(int argc, char **argv)
{
    struct demo d;
    int code;
    if (argc < 4) {
        fprintf(stderr, "usage: vnpu_selftest ORT_LIBRARY PLUGIN FOLDER\n");
        return 2;
    }
    if (!demo_open(&d, argv[1], argv[2], argv[3])) return 77;
    if (argc == 6) {
        code = child(&d, argv[5]);
    } else {
        test_all(&d, argv[0], argv[1]);
        printf("%u failed\n", failures);
        code = failures > 0 ? 1 : 0;
    }
    demo_close(&d);
    return code;
}
