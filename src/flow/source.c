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
    if (!compiled && !m->graph->outputs.len) {
        wml_fail(err, WML_E_UNSUPPORTED, "%s: the graph has no outputs", path);
        return wml_hint(err, "nobody could see what it computes: export it again, with outputs");
    }
    return !compiled && (wml_model_check(m, err) || wml_wrap(err, "%s", path)) &&
           (wml_model_check_versions(m, WML_IR_MAX, OPSET_MAX, err) || wml_wrap(err, "%s", path));
}

struct finding { struct wml_model *model; struct wml_err *err; };

/* Maps the file, reads nothing. */
static bool find_weight(void *arg, struct wml_tensor *t)
{
    const struct finding *f = arg;
    struct wml_span ignored;
    return t->payload != WML_PAYLOAD_EXTERNAL || t->dtype == WML_STRING || wml_tensor_bytes(f->model, t, &ignored, f->err);
}

bool wml_source_load(const char *path, const char *verb, struct wml_model **out, struct wml_err *err)
{
    struct wml_err why = {0};
    if (!wml_onnx_load(path, out, err)) return false;
    struct finding f = {*out, &why};
    bool ok = wml_source_check(*out, path, verb, &why) && (wml_model_each_tensor(*out, find_weight, &f) || wml_wrap(&why, "%s", path));
    if (ok) return true;
    if (err) *err = why;
    wml_model_free(*out);
    *out = NULL;
    return false;
}
