/* ort/compile.c - ORT's compile API: the EP turns its nodes into EPContext and writes the files. Nothing is
 * written under the final name before the EP is done; that is the caller's rule, who names a private path. */
#include "ort/internal.h"

#include "os/file.h"

static bool set_input(struct wml_ort *o, const struct wml_model_source *m, OrtModelCompilationOptions *mc,
                      struct wml_err *err)
{
    const OrtCompileApi *c = o->compile;
    if (!m->path)
        return wml_ort_ok(o, c->ModelCompilationOptions_SetInputModelFromBuffer(mc, m->bytes.ptr, m->bytes.len),
                          WML_E_LOAD, err);
    if (!wml_file_exists(m->path)) return wml_fail(err, WML_E_NOT_FOUND, "%s does not exist", m->path);
    struct wml_ort_path path = {0};
    bool ok = wml_ort_path_init(&path, m->path, err) &&
              wml_ort_ok(o, c->ModelCompilationOptions_SetInputModelPath(mc, path.ptr), WML_E_LOAD, err);
    wml_ort_path_release(&path);
    return ok;
}

static bool set_output(struct wml_ort *o, const struct wml_compile_opts *opts, OrtModelCompilationOptions *mc,
                       struct wml_err *err)
{
    const OrtCompileApi *c = o->compile;
    struct wml_ort_path path = {0};
    bool ok = wml_ort_path_init(&path, opts->output, err) &&
              wml_ort_ok(o, c->ModelCompilationOptions_SetOutputModelPath(mc, path.ptr), WML_E_IO, err) &&
              wml_ort_ok(o, c->ModelCompilationOptions_SetEpContextEmbedMode(mc, opts->embed), WML_E_RUNTIME, err);
    wml_ort_path_release(&path);
    return ok;
}

bool wml_ort_compile(struct wml_ort *o, const struct wml_model_source *m, const struct wml_compile_opts *opts,
                     struct wml_err *err)
{
    bool ok = false;
    const OrtCompileApi *c = o->compile;
    OrtSessionOptions *so = NULL;
    OrtModelCompilationOptions *mc = NULL;
    if (!c) return wml_fail(err, WML_E_UNSUPPORTED, "this ONNX Runtime has no compile API");
    if (!wml_check_cancel(o->cx, err)) return false;
    if (!wml_ort_options(o, m, &opts->session, &so, err)) goto done;
    if (!wml_ort_ok(o, c->CreateModelCompilationOptionsFromSessionOptions(o->env, so, &mc), WML_E_RUNTIME, err))
        goto done;
    OrtStatus *st = c->ModelCompilationOptions_SetGraphOptimizationLevel(mc, wml_ort_level(opts->session.level));
    if (!wml_ort_ok(o, st, WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, c->ModelCompilationOptions_SetFlags(mc, OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED),
                    WML_E_RUNTIME, err))
        goto done;
    if (!set_input(o, m, mc, err) || !set_output(o, opts, mc, err)) goto done;
    wml_buf_clear(&o->refusal);
    ok = wml_ort_ok(o, c->CompileModel(o->env, mc), WML_E_RUNTIME, err);
    if (!ok) wml_ort_check_refusal(o, &opts->session, err); /* says more than "nothing was compiled" */
done:
    if (mc) c->ReleaseModelCompilationOptions(mc);
    if (so) o->api->ReleaseSessionOptions(so);
    return ok ? true : wml_wrap(err, "cannot compile %s", wml_ort_label(m));
}
