/* ort_fixture.h - what the tests of ort and ep share: a context, paths of the small models, sessions. */
#ifndef WML_TESTS_ORT_FIXTURE_H
#define WML_TESTS_ORT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "os/sys.h"
#include "ort/ort.h"

/* Memory that ORT and vendor libraries never give back is not ours to report. */
__attribute__((visibility("default"), used)) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libonnxruntime\nleak:libQnn\nleak:libopenvino\nleak:libtbb\nleak:libc++\nleak:_dl_\n";
}

static inline const char *data_path(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/ort/%s.onnx", WML_TEST_DATA, name);
    return path;
}

#define ASSERT_OK(call)                                                                                                \
    do {                                                                                                               \
        if (!(call)) fail_msg("%s: %s (hint: %s)", #call, err.msg, err.hint);                                          \
    } while (0)
#define ASSERT_HAS(text, part)                                                                                         \
    do {                                                                                                               \
        if (!strstr((text), (part))) fail_msg("\"%s\" lacks \"%s\"", (text), (part));                                  \
    } while (0)

/* ORT, or a named skip. */
static inline struct wml_ort *need_ort(struct wml_ctx *cx)
{
    struct wml_ort *o = NULL;
    struct wml_err err = {0};
    if (!wml_ort_open(cx, &o, &err)) {
        print_message("skipped: %s\n", err.msg);
        skip();
    }
    return o;
}

static inline struct wml_session *open_model(struct wml_ort *o, const char *name, const struct wml_session_opts *opts)
{
    struct wml_err err = {0};
    struct wml_session *s = NULL;
    struct wml_model_source m = {.path = data_path(name)};
    ASSERT_OK(wml_session_open(o, &m, opts, &s, &err));
    return s;
}

#endif
