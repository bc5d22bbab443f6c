/* ort/observe.c - the operator Observe as a custom operator of one session. */
#include "ort/observe.h"

#include "ort/internal.h"

struct wml_ort_observe {
    OrtCustomOp op; /* first: ORT hands it back */
    const struct wml_ort *o;
    struct wml_observer observer;
    OrtCustomOpDomain *domain;
};

struct kernel {
    const struct wml_ort_observe *of;
    int64_t slot;
};

static OrtStatus *ORT_API_CALL create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info, void **out)
{
    struct kernel *k = wml_xcalloc(1, sizeof *k);
    k->of = (const struct wml_ort_observe *)(const void *)op;
    OrtStatus *st = api->KernelInfoGetAttribute_int64(info, "slot", &k->slot);
    if (st) free(k);
    else *out = k;
    return st;
}

static void ORT_API_CALL destroy(void *kernel)
{
    free(kernel);
}

static OrtStatus *ORT_API_CALL compute(void *kernel, OrtKernelContext *context)
{
    const struct kernel *k = kernel;
    const struct wml_ort *o = k->of->o;
    struct wml_arena arena = {0};
    struct wml_err err = {0};
    struct wml_tensor_view view, tag;
    const OrtValue *in[2];
    OrtStatus *st = NULL;
    for (size_t i = 0; i < 2 && !st; i++) st = o->api->KernelContext_GetInput(context, i, &in[i]);
    if (st) return st;
    /* The calls that look at a value want it without const; none of them changes it. */
    OrtValue *value[2];
    memcpy(value, in, sizeof value);
    if (!wml_ort_view(o, value[0], &arena, &view, &err) || !wml_ort_view(o, value[1], &arena, &tag, &err))
        st = o->api->CreateStatus(ORT_FAIL, err.msg);
    else k->of->observer.see(k->of->observer.arg, k->slot, tag.data, &view);
    wml_arena_release(&arena);
    return st;
}

static const char *ORT_API_CALL name(const OrtCustomOp *op)
{
    (void)op;
    return WML_OBSERVE_OP;
}

static const char *ORT_API_CALL provider(const OrtCustomOp *op)
{
    (void)op;
    return NULL; /* the CPU's */
}

static size_t ORT_API_CALL input_count(const OrtCustomOp *op)
{
    (void)op;
    return 2;
}

static size_t ORT_API_CALL output_count(const OrtCustomOp *op)
{
    (void)op;
    return 0;
}

static ONNXTensorElementDataType ORT_API_CALL type(const OrtCustomOp *op, size_t i)
{
    (void)op;
    return i ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 : ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED; /* undefined: any */
}

static OrtCustomOpInputOutputCharacteristic ORT_API_CALL needed(const OrtCustomOp *op, size_t i)
{
    (void)op, (void)i;
    return INPUT_OUTPUT_REQUIRED;
}

static OrtMemType ORT_API_CALL memory(const OrtCustomOp *op, size_t i)
{
    (void)op, (void)i;
    return OrtMemTypeDefault;
}

static int ORT_API_CALL one(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

struct wml_ort_observe *wml_ort_observe_new(const struct wml_ort *o, const struct wml_observer *observer, OrtSessionOptions *so,
                                            struct wml_err *err)
{
    struct wml_ort_observe *w = wml_xcalloc(1, sizeof *w);
    w->o = o;
    w->observer = *observer;
    w->op = (OrtCustomOp){
        .version = WML_ORT_MIN_MINOR, /* the oldest that is loaded knows these members */
        .GetName = name, .GetExecutionProviderType = provider, .GetInputType = type, .GetInputTypeCount = input_count,
        .GetOutputType = type, .GetOutputTypeCount = output_count, .KernelDestroy = destroy, .GetInputCharacteristic = needed,
        .GetOutputCharacteristic = needed, .GetInputMemoryType = memory, .GetVariadicInputMinArity = one,
        .GetVariadicInputHomogeneity = one, .GetVariadicOutputMinArity = one, .GetVariadicOutputHomogeneity = one,
        .CreateKernelV2 = create, .KernelComputeV2 = compute, .GetStartVersion = one, .GetEndVersion = one,
    };
    if (wml_ort_ok(o, o->api->CreateCustomOpDomain(WML_OBSERVE_DOMAIN, &w->domain), WML_E_RUNTIME, err) &&
        wml_ort_ok(o, o->api->CustomOpDomain_Add(w->domain, &w->op), WML_E_RUNTIME, err) &&
        wml_ort_ok(o, o->api->AddCustomOpDomain(so, w->domain), WML_E_RUNTIME, err))
        return w;
    wml_ort_observe_free(w);
    return NULL;
}

void wml_ort_observe_free(struct wml_ort_observe *w)
{
    if (!w) return;
    if (w->domain) w->o->api->ReleaseCustomOpDomain(w->domain);
    free(w);
}
