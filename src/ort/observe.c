/* ort/observe.c - Observe, Alter and AlterHalf as custom operators of one session. */
#include "ort/observe.h"

#include "ort/internal.h"

enum { OBSERVE, ALTER, ALTER_HALF, N_OPS };

struct op { /* what ORT hands back is its first member */
    OrtCustomOp op;
    const struct wml_ort_observe *of;
    const char *name;
    ONNXTensorElementDataType type; /* of the value; undefined: any */
};

struct wml_ort_observe {
    struct op op[N_OPS];
    const struct wml_ort *o;
    struct wml_observer observer;
    OrtCustomOpDomain *domain;
};

struct kernel {
    const struct op *op;
    int64_t slot;
};

static const struct op *op_of(const OrtCustomOp *op)
{
    return (const struct op *)(const void *)op;
}

static OrtStatus *ORT_API_CALL create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info, void **out)
{
    struct kernel *k = wml_xcalloc(1, sizeof *k);
    k->op = op_of(op);
    OrtStatus *st = api->KernelInfoGetAttribute_int64(info, "slot", &k->slot);
    if (st) free(k);
    else *out = k;
    return st;
}

static void ORT_API_CALL destroy(void *kernel)
{
    free(kernel);
}

static OrtStatus *alter(const struct kernel *k, OrtKernelContext *context, const struct wml_tensor_view *view, const int64_t *tag)
{
    const struct wml_ort_observe *of = k->op->of;
    OrtValue *value;
    void *out;
    OrtStatus *st = of->o->api->KernelContext_GetOutput(context, 0, view->dim, view->rank, &value);
    if (!st) st = of->o->api->GetTensorMutableData(value, &out);
    if (!st) of->observer.alter(of->observer.arg, k->slot, tag, view, out);
    return st;
}

static OrtStatus *ORT_API_CALL compute(void *kernel, OrtKernelContext *context)
{
    const struct kernel *k = kernel;
    const struct wml_ort_observe *of = k->op->of;
    const struct wml_ort *o = of->o;
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
    else if (k->op != &of->op[OBSERVE]) st = alter(k, context, &view, tag.data);
    else of->observer.see(of->observer.arg, k->slot, tag.data, &view);
    wml_arena_release(&arena);
    return st;
}

static const char *ORT_API_CALL name(const OrtCustomOp *op)
{
    return op_of(op)->name;
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
    return op_of(op) != &op_of(op)->of->op[OBSERVE];
}

static ONNXTensorElementDataType ORT_API_CALL type(const OrtCustomOp *op, size_t i)
{
    return i ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 : op_of(op)->type;
}

static size_t ORT_API_CALL in_place(int **in, int **out)
{
    *in = wml_xcalloc(1, sizeof **in);
    *out = wml_xcalloc(1, sizeof **out);
    return 1; /* the first output in the first input */
}

static void ORT_API_CALL release_in_place(int *in, int *out)
{
    free(in);
    free(out);
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

static void make_op(struct wml_ort_observe *w, size_t i, const char *op_name, ONNXTensorElementDataType value)
{
    w->op[i].of = w;
    w->op[i].name = op_name;
    w->op[i].type = value;
    w->op[i].op = (OrtCustomOp){
        .version = WML_ORT_MIN_MINOR, /* the oldest that is loaded knows these members */
        .GetName = name, .GetExecutionProviderType = provider, .GetInputType = type, .GetInputTypeCount = input_count,
        .GetOutputType = type, .GetOutputTypeCount = output_count, .KernelDestroy = destroy, .GetInputCharacteristic = needed,
        .GetOutputCharacteristic = needed, .GetInputMemoryType = memory, .GetVariadicInputMinArity = one,
        .GetVariadicInputHomogeneity = one, .GetVariadicOutputMinArity = one, .GetVariadicOutputHomogeneity = one,
        .CreateKernelV2 = create, .KernelComputeV2 = compute, .GetStartVersion = one, .GetEndVersion = one,
    };
    if (i == OBSERVE) return;
    w->op[i].op.GetMayInplace = in_place;
    w->op[i].op.ReleaseMayInplace = release_in_place;
}

struct wml_ort_observe *wml_ort_observe_new(const struct wml_ort *o, const struct wml_observer *observer, OrtSessionOptions *so,
                                            struct wml_err *err)
{
    struct wml_ort_observe *w = wml_xcalloc(1, sizeof *w);
    w->o = o;
    w->observer = *observer;
    make_op(w, OBSERVE, WML_OBSERVE_OP, ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
    make_op(w, ALTER, WML_ALTER_OP, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
    make_op(w, ALTER_HALF, WML_ALTER_HALF_OP, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16);
    bool ok = wml_ort_ok(o, o->api->CreateCustomOpDomain(WML_OBSERVE_DOMAIN, &w->domain), WML_E_RUNTIME, err);
    for (size_t i = 0; ok && i < N_OPS; i++) ok = wml_ort_ok(o, o->api->CustomOpDomain_Add(w->domain, &w->op[i].op), WML_E_RUNTIME, err);
    if (ok && wml_ort_ok(o, o->api->AddCustomOpDomain(so, w->domain), WML_E_RUNTIME, err)) return w;
    wml_ort_observe_free(w);
    return NULL;
}

void wml_ort_observe_free(struct wml_ort_observe *w)
{
    if (!w) return;
    if (w->domain) w->o->api->ReleaseCustomOpDomain(w->domain);
    free(w);
}
