/* The model that a command starts from. */
#include "flow/source.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"

enum { OPSET_MAX = 28 };

bool wml_source_check(struct wml_model *m, const char *path, const char *verb, struct wml_err *err)
{
    struct wml_epctx_list contexts = {0};
    wml_epctx_find(m, &contexts);
    bool compiled = contexts.v.len > 0;
    if (compiled) {
        struct wml_str source = contexts.v.at[0].source;
        if (!source.len) source = WML_STR("an EP");
        wml_fail(err, WML_E_USAGE, "%s is already compiled for %.*s", path, WML_ARG(source));
        wml_hint(err, "%s the original ONNX model, then compile that", verb);
    }
    wml_epctx_list_release(&contexts);
    return !compiled && (wml_model_check(m, err) || wml_wrap(err, "%s", path)) &&
           (wml_model_check_versions(m, WML_IR_MAX, OPSET_MAX, err) || wml_wrap(err, "%s", path));
}

bool wml_source_load(const char *path, const char *verb, struct wml_model **out, struct wml_err *err)
{
    if (!wml_onnx_load(path, out, err)) return false;
    if (wml_source_check(*out, path, verb, err)) return true;
    wml_model_free(*out);
    *out = NULL;
    return false;
}
