/* flow/genai/source.c - the bundle of a model id: made once, kept in the cache. */
#include "flow/build.h"
#include "flow/checkpoint.h"
#include "flow/genai/internal.h"
#include "os/path.h"

static bool build(const struct wml_genai_source *s, const char *output, struct wml_ctx *cx, struct wml_err *err)
{
    struct wml_report *ignored = wml_report_new();
    const struct wml_build_args args = {.model = s->model, .output = output, .export_type = "optimized", .precision = s->precision,
                                        .rebuild = s->rebuild, .samples = WML_BUILD_SAMPLES, .target = {.ep = "qnn", .device = "npu"}};
    wml_log(cx, WML_LOG_INFO, "building the bundle of %s for QNN's NPU in %s", s->model, output);
    bool ok = wml_flow_build(&args, cx, ignored, err) || wml_wrap(err, "build the bundle of %s", s->model);
    wml_report_free(ignored);
    return ok;
}

bool wml_flow_genai_source(const struct wml_genai_source *s, struct wml_ctx *cx, struct wml_arena *arena, const char **bundle, bool *built,
                           struct wml_err *err)
{
    struct wml_err no_id = {0};
    *bundle = NULL;
    *built = false;
    if (wml_model_ref(s->model, &no_id) != WML_REF_ID) return true;
    const char *artifacts = wml_model_artifacts(cx, s->model, arena);
    if (!artifacts) {
        wml_fail(err, WML_E_NOT_FOUND, "no cache folder is known for the bundle of %s", s->model);
        return wml_hint(err, "make it with winml build -m %s -o DIR --export-type plain, and name that folder", s->model);
    }
    *bundle = wml_path_in(arena, artifacts, "genai-bundle");
    if (!s->rebuild && wml_flow_is_bundle(*bundle)) return true;
    *built = true;
    return build(s, *bundle, cx, err);
}
