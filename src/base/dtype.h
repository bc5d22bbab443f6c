/* base/dtype.h - tensor element types. The values are those of TensorProto.DataType in onnx.proto,
 * which are also those of ONNXTensorElementDataType in the ORT C API. */
#ifndef WML_BASE_DTYPE_H
#define WML_BASE_DTYPE_H

#include "base/str.h"

enum wml_dtype {
    WML_UNDEFINED = 0, WML_F32 = 1, WML_U8 = 2, WML_I8 = 3, WML_U16 = 4, WML_I16 = 5,
    WML_I32 = 6, WML_I64 = 7, WML_STRING = 8, WML_BOOL = 9, WML_F16 = 10, WML_F64 = 11,
    WML_U32 = 12, WML_U64 = 13, WML_C64 = 14, WML_C128 = 15, WML_BF16 = 16,
    WML_F8E4M3FN = 17, WML_F8E4M3FNUZ = 18, WML_F8E5M2 = 19, WML_F8E5M2FNUZ = 20,
    WML_U4 = 21, WML_I4 = 22, WML_F4E2M1 = 23, WML_F8E8M0 = 24, WML_U2 = 25, WML_I2 = 26,
    WML_DTYPE_COUNT
};

enum wml_dclass { WML_CLASS_NONE, WML_CLASS_FLOAT, WML_CLASS_INT, WML_CLASS_UINT, WML_CLASS_BOOL,
                  WML_CLASS_STRING, WML_CLASS_COMPLEX };

struct wml_dtype_info {
    const char *name;  /* "float32", "int64", ...: numpy's name where it has one; JSON uses it */
    const char *onnx;  /* "FLOAT", "INT64", ... */
    const char *text;  /* as in the ONNX text form: "float", "int64", ... */
    const char *npy;   /* numpy descr without byte order, e.g. "f4"; NULL: none */
    unsigned bits;     /* of one element; 0: no fixed size */
    enum wml_dclass cls;
};

/* Never NULL: unknown numbers give the row of WML_UNDEFINED. */
const struct wml_dtype_info *wml_dtype_info(int dtype);
const char *wml_dtype_name(int dtype);
/* Accepts any of the three names, without case. WML_UNDEFINED when unknown. */
enum wml_dtype wml_dtype_parse(struct wml_str name);
bool wml_dtype_is_float(int dtype);
bool wml_dtype_is_integer(int dtype); /* signed or unsigned; not bool */
/* Bytes of n packed elements (sub-byte types fill bytes from the low end). false: overflow or no size. */
bool wml_dtype_bytes(int dtype, uint64_t n, uint64_t *bytes);

float wml_half_to_float(uint16_t h);   /* IEEE 754 binary16 */
uint16_t wml_float_to_half(float f);   /* round to nearest even */
uint16_t wml_float_to_half_weight(float f); /* as model converters do it: nothing but 0 becomes 0, nothing finite infinite */
float wml_bf16_to_float(uint16_t b);
uint16_t wml_float_to_bf16(float f);   /* round to nearest even, NaN stays NaN */
/* Element i of packed data as double (int64 beyond 2^53 loses bits; strings and complex give NaN). */
double wml_dtype_load(int dtype, const void *data, size_t i);
/* Stores v rounded and saturated to the type. */
void wml_dtype_store(int dtype, void *data, size_t i, double v);

#endif
