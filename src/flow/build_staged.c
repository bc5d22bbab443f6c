/* flow/build_staged.c - a pipeline for an NPU: embeddings and head on the CPU, between them the transformer, once for a window of
 * the prompt and once for a token. */
#include "flow/build_internal.h"

#include "ep/stage.h"

#define TRANSFORMER_DATA "transformer.data"

static const struct wml_build_precision precisions[] = {{"fp32", NULL, WML_F32, 0}};

static bool unsupported(const struct wml_target_spec *t, struct wml_err *err)
{
    struct wml_buf names = {0};
    for (size_t i = 0; i < wml_n_eps; i++)
        if (wml_eps[i]->stage && !wml_eps[i]->test_only) wml_buf_fmt(&names, "%s%s", names.len ? ", " : "", wml_eps[i]->alias[0]);
    wml_fail(err, WML_E_USAGE, "--export-type optimized is not supported for ep=%s, device=%s", t->ep ? t->ep : "auto", t->device ? t->device : "auto");
    wml_hint(err, "EPs it is made for, on their NPU: %s; cpu to try it anywhere", wml_buf_text(&names));
    wml_buf_release(&names);
    return false;
}

static bool check_target(struct wml_build_run *r, struct wml_err *err)
{
    struct wml_target_spec t = r->a->target;
    const char *device = t.device ? t.device : "auto";
    if (!t.ep && (strcmp(device, "auto") == 0 || strcmp(device, "npu") == 0)) t.ep = "qnn";
    if (!wml_target_check(&t, &r->ep, err)) return false;
    const bool fits = strcmp(device, "auto") == 0 || strcmp(device, wml_ep_is_cpu(r->ep) ? "cpu" : "npu") == 0;
    return (r->ep && fits && (wml_ep_is_cpu(r->ep) || r->ep->stage)) || unsupported(&r->a->target, err);
}

bool wml_build_check_staged(struct wml_build_run *r, struct wml_err *err)
{
    const struct wml_str asked = wml_str(r->a->precision ? r->a->precision : "auto");
    for (size_t i = 0; i < WML_COUNT(precisions) && !r->precision; i++)
        if (wml_str_ieq(asked, wml_str(precisions[i].name))) r->precision = &precisions[i];
    if (r->precision) return check_target(r, err);
    wml_fail(err, WML_E_USAGE, "--precision %.*s is not supported for --export-type optimized", WML_ARG(asked));
    return wml_hint(err, "supported: fp32");
}

/* ------------------------------------------------------------------ the stages */

static bool make_embeddings(struct wml_build_run *r, struct wml_err *err)
{
    return wml_build_part(r, &(struct wml_build_graph){.part = WML_GENAI_EMBEDDINGS, .file = "embeddings.onnx", .real = WML_F32}, err);
}

static bool make_head(struct wml_build_run *r, struct wml_err *err)
{
    return wml_build_part(r, &(struct wml_build_graph){.part = WML_GENAI_HEAD, .file = "lm_head.onnx", .real = WML_F32, .bits = r->precision->bits}, err);
}

static bool make_context(struct wml_build_run *r, struct wml_err *err)
{
    return wml_build_part(r, &(struct wml_build_graph){.part = WML_GENAI_TRANSFORMER, .file = "ctx.onnx", .data = TRANSFORMER_DATA, .real = WML_F32, .step = r->window}, err);
}

static bool make_iterator(struct wml_build_run *r, struct wml_err *err)
{
    return wml_build_part(r, &(struct wml_build_graph){.part = WML_GENAI_TRANSFORMER, .file = "iter.onnx", .share = "ctx.onnx", .real = WML_F32, .step = 1}, err);
}

bool wml_build_make_staged(struct wml_build_run *r, struct wml_err *err)
{
    static const char *const embeddings[] = {"embeddings.onnx", "embeddings.onnx.data"}, *const head[] = {"lm_head.onnx", "lm_head.onnx.data"};
    static const char *const context[] = {"ctx.onnx", TRANSFORMER_DATA}, *const iterator[] = {"iter.onnx"};
    return wml_build_do(r, "context", context, WML_COUNT(context), make_context, err) &&
           wml_build_do(r, "iterator", iterator, WML_COUNT(iterator), make_iterator, err) &&
           wml_build_do(r, "embeddings", embeddings, WML_COUNT(embeddings), make_embeddings, err) &&
           wml_build_do(r, "lm_head", head, WML_COUNT(head), make_head, err);
}
