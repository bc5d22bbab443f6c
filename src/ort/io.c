/* ort/io.c - types of inputs and outputs, and views of values that ORT owns. */
#include "ort/internal.h"

#include "base/num.h"

static bool read_tensor(const struct wml_ort *o, const OrtTensorTypeAndShapeInfo *t, struct wml_arena *a,
                        struct wml_io *out, struct wml_err *err)
{
    const OrtApi *api = o->api;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t rank = 0;
    if (!wml_ort_ok(o, api->GetTensorElementType(t, &type), WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, api->GetDimensionsCount(t, &rank), WML_E_RUNTIME, err))
        return false;
    out->dtype = (unsigned)type < WML_DTYPE_COUNT ? (enum wml_dtype)type : WML_UNDEFINED;
    out->has_shape = api->TensorTypeAndShape_HasShape(t);
    out->rank = out->has_shape ? rank : 0;
    if (!out->rank) return true;
    int64_t *dim = WML_NEW_ARRAY(a, int64_t, rank);
    const char **symbol = WML_NEW_ARRAY(a, const char *, rank);
    if (!wml_ort_ok(o, api->GetDimensions(t, dim, rank), WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, api->GetSymbolicDimensions(t, symbol, rank), WML_E_RUNTIME, err))
        return false;
    for (size_t i = 0; i < rank; i++) {
        if (dim[i] < 0) dim[i] = -1;
        symbol[i] = symbol[i] ? wml_arena_cstr(a, wml_str(symbol[i])) : "";
    }
    out->dim = dim;
    out->symbol = symbol;
    return true;
}

static bool read_any(const struct wml_ort *o, const OrtTypeInfo *info, struct wml_arena *a, struct wml_io *out,
                     struct wml_err *err);

static bool read_element(const struct wml_ort *o, const OrtTypeInfo *info, struct wml_arena *a, struct wml_io *out,
                         struct wml_err *err)
{
    struct wml_io element = {0};
    if (!read_any(o, info, a, &element, err)) return false;
    out->elem_is_tensor = element.kind == WML_IO_TENSOR;
    out->dtype = element.dtype;
    out->has_shape = element.has_shape;
    out->rank = element.rank;
    out->dim = element.dim;
    out->symbol = element.symbol;
    return true;
}

static bool read_sequence(const struct wml_ort *o, const OrtTypeInfo *info, struct wml_arena *a, struct wml_io *out,
                          struct wml_err *err)
{
    const OrtSequenceTypeInfo *sequence = NULL;
    OrtTypeInfo *element = NULL;
    if (!wml_ort_ok(o, o->api->CastTypeInfoToSequenceTypeInfo(info, &sequence), WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, o->api->GetSequenceElementType(sequence, &element), WML_E_RUNTIME, err))
        return false;
    bool ok = read_element(o, element, a, out, err);
    o->api->ReleaseTypeInfo(element);
    return ok;
}

static bool read_optional(const struct wml_ort *o, const OrtTypeInfo *info, struct wml_arena *a, struct wml_io *out,
                          struct wml_err *err)
{
    const OrtOptionalTypeInfo *optional = NULL;
    OrtTypeInfo *element = NULL;
    if (!wml_ort_ok(o, o->api->CastTypeInfoToOptionalTypeInfo(info, &optional), WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, o->api->GetOptionalContainedTypeInfo(optional, &element), WML_E_RUNTIME, err))
        return false;
    bool ok = read_element(o, element, a, out, err);
    o->api->ReleaseTypeInfo(element);
    return ok;
}

static bool read_any(const struct wml_ort *o, const OrtTypeInfo *info, struct wml_arena *a, struct wml_io *out,
                     struct wml_err *err)
{
    enum ONNXType kind = ONNX_TYPE_UNKNOWN;
    if (!wml_ort_ok(o, o->api->GetOnnxTypeFromTypeInfo(info, &kind), WML_E_RUNTIME, err)) return false;
    switch (kind) {
    case ONNX_TYPE_TENSOR:
    case ONNX_TYPE_SPARSETENSOR: {
        const OrtTensorTypeAndShapeInfo *t = NULL;
        out->kind = kind == ONNX_TYPE_TENSOR ? WML_IO_TENSOR : WML_IO_SPARSE;
        if (!wml_ort_ok(o, o->api->CastTypeInfoToTensorInfo(info, &t), WML_E_RUNTIME, err)) return false;
        return !t || read_tensor(o, t, a, out, err);
    }
    case ONNX_TYPE_SEQUENCE: out->kind = WML_IO_SEQUENCE; return read_sequence(o, info, a, out, err);
    case ONNX_TYPE_OPTIONAL: out->kind = WML_IO_OPTIONAL; return read_optional(o, info, a, out, err);
    case ONNX_TYPE_MAP: out->kind = WML_IO_MAP; return true;
    default: out->kind = WML_IO_OTHER; return true;
    }
}

bool wml_ort_read_io(const struct wml_ort *o, const OrtTypeInfo *info, struct wml_arena *a, struct wml_io *out,
                     struct wml_err *err)
{
    return read_any(o, info, a, out, err);
}

static bool view_tensor(const struct wml_ort *o, OrtValue *value, struct wml_arena *a, struct wml_tensor_view *out,
                        struct wml_err *err)
{
    const OrtApi *api = o->api;
    OrtTensorTypeAndShapeInfo *t = NULL;
    if (!wml_ort_ok(o, api->GetTensorTypeAndShape(value, &t), WML_E_RUN, err)) return false;
    bool ok = false;
    struct wml_io io = {0};
    void *data = NULL;
    if (!read_tensor(o, t, a, &io, err)) goto done;
    out->dtype = io.dtype;
    out->rank = io.rank;
    out->dim = io.dim;
    out->is_tensor = true;
    if (out->dtype != WML_STRING) {
        uint64_t count, bytes;
        if (!wml_dims_count(io.dim, io.rank, &count) || !wml_dtype_bytes(out->dtype, count, &bytes) || !wml_to_size(bytes, &out->bytes)) {
            wml_fail(err, WML_E_UNSUPPORTED, "output of element type %d", (int)out->dtype);
            goto done;
        }
        if (!wml_ort_ok(o, api->GetTensorMutableData(value, &data), WML_E_RUN, err)) goto done;
        out->data = data ? data : "";
    }
    ok = true;
done:
    api->ReleaseTensorTypeAndShapeInfo(t);
    return ok;
}

bool wml_ort_view(const struct wml_ort *o, OrtValue *value, struct wml_arena *a, struct wml_tensor_view *out,
                  struct wml_err *err)
{
    *out = (struct wml_tensor_view){0};
    enum ONNXType kind = ONNX_TYPE_UNKNOWN;
    if (!value) return true;
    if (!wml_ort_ok(o, o->api->GetValueType(value, &kind), WML_E_RUN, err)) return false;
    if (kind != ONNX_TYPE_TENSOR) return true;
    int has_value = 1;
    if (!wml_ort_ok(o, o->api->HasValue(value, &has_value), WML_E_RUN, err)) return false;
    return !has_value || view_tensor(o, value, a, out, err);
}
