/* base/dtype.c - the table of element types and conversions of single elements. */
#include "base/dtype.h"

#include <math.h>

static const struct wml_dtype_info dtypes[WML_DTYPE_COUNT] = {
    [WML_UNDEFINED] = {"undefined", "UNDEFINED", "undefined", NULL, 0, WML_CLASS_NONE},
    [WML_F32] = {"float32", "FLOAT", "float", "f4", 32, WML_CLASS_FLOAT},
    [WML_U8] = {"uint8", "UINT8", "uint8", "u1", 8, WML_CLASS_UINT},
    [WML_I8] = {"int8", "INT8", "int8", "i1", 8, WML_CLASS_INT},
    [WML_U16] = {"uint16", "UINT16", "uint16", "u2", 16, WML_CLASS_UINT},
    [WML_I16] = {"int16", "INT16", "int16", "i2", 16, WML_CLASS_INT},
    [WML_I32] = {"int32", "INT32", "int32", "i4", 32, WML_CLASS_INT},
    [WML_I64] = {"int64", "INT64", "int64", "i8", 64, WML_CLASS_INT},
    [WML_STRING] = {"string", "STRING", "string", NULL, 0, WML_CLASS_STRING},
    [WML_BOOL] = {"bool", "BOOL", "bool", "b1", 8, WML_CLASS_BOOL},
    [WML_F16] = {"float16", "FLOAT16", "float16", "f2", 16, WML_CLASS_FLOAT},
    [WML_F64] = {"float64", "DOUBLE", "double", "f8", 64, WML_CLASS_FLOAT},
    [WML_U32] = {"uint32", "UINT32", "uint32", "u4", 32, WML_CLASS_UINT},
    [WML_U64] = {"uint64", "UINT64", "uint64", "u8", 64, WML_CLASS_UINT},
    [WML_C64] = {"complex64", "COMPLEX64", "complex64", "c8", 64, WML_CLASS_COMPLEX},
    [WML_C128] = {"complex128", "COMPLEX128", "complex128", "c16", 128, WML_CLASS_COMPLEX},
    [WML_BF16] = {"bfloat16", "BFLOAT16", "bfloat16", NULL, 16, WML_CLASS_FLOAT},
    [WML_F8E4M3FN] = {"float8e4m3fn", "FLOAT8E4M3FN", "float8e4m3fn", NULL, 8, WML_CLASS_FLOAT},
    [WML_F8E4M3FNUZ] = {"float8e4m3fnuz", "FLOAT8E4M3FNUZ", "float8e4m3fnuz", NULL, 8, WML_CLASS_FLOAT},
    [WML_F8E5M2] = {"float8e5m2", "FLOAT8E5M2", "float8e5m2", NULL, 8, WML_CLASS_FLOAT},
    [WML_F8E5M2FNUZ] = {"float8e5m2fnuz", "FLOAT8E5M2FNUZ", "float8e5m2fnuz", NULL, 8, WML_CLASS_FLOAT},
    [WML_U4] = {"uint4", "UINT4", "uint4", NULL, 4, WML_CLASS_UINT},
    [WML_I4] = {"int4", "INT4", "int4", NULL, 4, WML_CLASS_INT},
    [WML_F4E2M1] = {"float4e2m1", "FLOAT4E2M1", "float4e2m1", NULL, 4, WML_CLASS_FLOAT},
    [WML_F8E8M0] = {"float8e8m0", "FLOAT8E8M0", "float8e8m0", NULL, 8, WML_CLASS_FLOAT},
    [WML_U2] = {"uint2", "UINT2", "uint2", NULL, 2, WML_CLASS_UINT},
    [WML_I2] = {"int2", "INT2", "int2", NULL, 2, WML_CLASS_INT},
};

const struct wml_dtype_info *wml_dtype_info(int dtype)
{
    return &dtypes[dtype > 0 && dtype < WML_DTYPE_COUNT ? dtype : 0];
}

const char *wml_dtype_name(int dtype)
{
    return wml_dtype_info(dtype)->name;
}

enum wml_dtype wml_dtype_parse(struct wml_str name)
{
    for (int i = 1; i < WML_DTYPE_COUNT; i++)
        if (wml_str_ieq(name, wml_str(dtypes[i].name)) || wml_str_ieq(name, wml_str(dtypes[i].onnx)) ||
            wml_str_ieq(name, wml_str(dtypes[i].text)))
            return (enum wml_dtype)i;
    return WML_UNDEFINED;
}

bool wml_dtype_is_float(int dtype)
{
    return wml_dtype_info(dtype)->cls == WML_CLASS_FLOAT;
}

bool wml_dtype_is_integer(int dtype)
{
    enum wml_dclass c = wml_dtype_info(dtype)->cls;
    return c == WML_CLASS_INT || c == WML_CLASS_UINT;
}

bool wml_dtype_bytes(int dtype, uint64_t n, uint64_t *bytes)
{
    uint64_t bits = wml_dtype_info(dtype)->bits;
    if (!bits || n > (UINT64_MAX - 7) / bits) return false;
    *bytes = (n * bits + 7) / 8;
    return true;
}

static float bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

float wml_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, frac = h & 0x3ff;
    if (exp == 31) return bits_float(sign | 0x7f800000u | frac << 13);
    if (exp) return bits_float(sign | (exp + 112) << 23 | frac << 13);
    float f = (float)frac * 0x1p-24f; /* subnormal: exact in float */
    return sign ? -f : f;
}

uint16_t wml_float_to_half(float f)
{
    uint32_t u = float_bits(f), sign = u >> 16 & 0x8000, mag = u & 0x7fffffff;
    if (mag > 0x7f800000u) return (uint16_t)(sign | 0x7e00 | (mag >> 13 & 0x3ff));
    if (mag >= 0x477ff000u) return (uint16_t)(sign | 0x7c00); /* 65520 and above round to infinity */
    if (mag < 0x38800000u) {                                  /* subnormal or zero in half */
        float scaled = bits_float(mag) + 0.5f;                /* the ulp at 0.5 is 2^-24: rounds for us */
        return (uint16_t)(sign | (float_bits(scaled) - float_bits(0.5f)));
    }
    uint32_t odd = mag >> 13 & 1;
    return (uint16_t)(sign | (mag - 0x38000000u + 0xfff + odd) >> 13);
}

uint16_t wml_float_to_half_weight(float f)
{
    const uint16_t h = wml_float_to_half(f), sign = h & 0x8000;
    const uint32_t mag = float_bits(f) & 0x7fffffff;
    if (mag && h == sign) return sign | 1;
    return mag < 0x7f800000u && (h & 0x7fff) == 0x7c00 ? (uint16_t)(sign | 0x7bff) : h;
}

float wml_bf16_to_float(uint16_t b)
{
    return bits_float((uint32_t)b << 16);
}

uint16_t wml_float_to_bf16(float f)
{
    uint32_t u = float_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* 8-bit floats: exponent bits e, bias, and which codes are special. */
static double small_float(unsigned code, int e_bits, int m_bits, int bias, bool fn, bool uz)
{
    unsigned sign = code >> (e_bits + m_bits) & 1;
    int exp = (int)(code >> m_bits & ((1u << e_bits) - 1));
    unsigned frac = code & ((1u << m_bits) - 1);
    if (uz && sign && !exp && !frac) return NAN;
    if (fn && !uz && exp == (1 << e_bits) - 1 && frac == (1u << m_bits) - 1) return NAN;
    if (!fn && !uz && exp == (1 << e_bits) - 1) return frac ? NAN : sign ? -INFINITY : INFINITY;
    double m = (double)frac / (1 << m_bits);
    double v = exp ? ldexp(1 + m, exp - bias) : ldexp(m, 1 - bias);
    return sign ? -v : v;
}

static double load_small(int dtype, unsigned code)
{
    switch (dtype) {
    case WML_F8E4M3FN: return small_float(code, 4, 3, 7, true, false);
    case WML_F8E4M3FNUZ: return small_float(code, 4, 3, 8, true, true);
    case WML_F8E5M2: return small_float(code, 5, 2, 15, false, false);
    case WML_F8E5M2FNUZ: return small_float(code, 5, 2, 16, true, true);
    case WML_F8E8M0: return code == 255 ? NAN : ldexp(1, (int)code - 127);
    case WML_F4E2M1: {
        static const double v[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
        return code & 8 ? -v[code & 7] : v[code & 7];
    }
    default: return NAN;
    }
}

static unsigned packed_code(const void *data, size_t i, unsigned bits)
{
    const unsigned char *p = data;
    unsigned per = 8 / bits;
    return (unsigned)p[i / per] >> (bits * (i % per)) & ((1u << bits) - 1);
}

#define LOAD(type)                                                                                 \
    type v;                                                                                        \
    memcpy(&v, (const char *)data + i * sizeof v, sizeof v);                                       \
    return (double)v

double wml_dtype_load(int dtype, const void *data, size_t i)
{
    switch (dtype) {
    case WML_F32: { LOAD(float); }
    case WML_F64: { LOAD(double); }
    case WML_I64: { LOAD(int64_t); }
    case WML_U64: { LOAD(uint64_t); }
    case WML_I32: { LOAD(int32_t); }
    case WML_U32: { LOAD(uint32_t); }
    case WML_I16: { LOAD(int16_t); }
    case WML_U16: { LOAD(uint16_t); }
    case WML_I8: { LOAD(int8_t); }
    case WML_U8:
    case WML_BOOL: { LOAD(uint8_t); }
    case WML_F16:
    case WML_BF16: {
        uint16_t h;
        memcpy(&h, (const char *)data + i * sizeof h, sizeof h);
        return (double)(dtype == WML_F16 ? wml_half_to_float(h) : wml_bf16_to_float(h));
    }
    case WML_U4: return packed_code(data, i, 4);
    case WML_U2: return packed_code(data, i, 2);
    case WML_I4: return (int)(packed_code(data, i, 4) ^ 8) - 8;
    case WML_I2: return (int)(packed_code(data, i, 2) ^ 2) - 2;
    case WML_F4E2M1: return load_small(dtype, packed_code(data, i, 4));
    default:
        if (wml_dtype_info(dtype)->bits == 8)
            return load_small(dtype, ((const unsigned char *)data)[i]);
        return NAN;
    }
}
#undef LOAD

static double clamp_round(double v, double low, double high)
{
    if (isnan(v)) return 0;
    return fmin(fmax(nearbyint(v), low), high);
}

static void put(void *data, size_t i, const void *v, size_t size)
{
    memcpy((char *)data + i * size, v, size);
}

static void put_int(void *data, size_t i, int dtype, double v)
{
    unsigned bits = wml_dtype_info(dtype)->bits;
    bool has_sign = wml_dtype_info(dtype)->cls == WML_CLASS_INT;
    if (bits == 64) {
        if (has_sign) {
            int64_t n = v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)clamp_round(v, -0x1p63, 0x1p63);
            put(data, i, &n, sizeof n);
        } else {
            uint64_t n = v >= 0x1p64 ? UINT64_MAX : (uint64_t)clamp_round(v, 0, 0x1p64);
            put(data, i, &n, sizeof n);
        }
        return;
    }
    double high = ldexp(1, (int)bits - (has_sign ? 1 : 0)) - 1;
    int64_t n = (int64_t)clamp_round(v, has_sign ? -high - 1 : 0, high);
    if (bits >= 8) {
        put(data, i, &n, bits / 8); /* little endian: the low bytes */
        return;
    }
    unsigned per = 8 / bits, shift = bits * (unsigned)(i % per), mask = (1u << bits) - 1;
    unsigned char *p = (unsigned char *)data + i / per;
    *p = (unsigned char)((*p & ~(mask << shift)) | ((unsigned)n & mask) << shift);
}

/* v as a float that rounds to 16 bits as v itself does: rounded to odd, so that no tie is made. */
static float for_sixteen_bits(double v)
{
    float f = (float)v;
    uint32_t u = float_bits(f);
    if ((double)f == v || isnan(v) || isinf(f)) return f;
    if (fabs((double)f) > fabs(v)) u--;
    return bits_float(u | 1);
}

void wml_dtype_store(int dtype, void *data, size_t i, double v)
{
    switch (dtype) {
    case WML_F32: {
        float f = (float)v;
        put(data, i, &f, sizeof f);
        return;
    }
    case WML_F64: put(data, i, &v, sizeof v); return;
    case WML_F16:
    case WML_BF16: {
        uint16_t h = dtype == WML_F16 ? wml_float_to_half(for_sixteen_bits(v)) : wml_float_to_bf16(for_sixteen_bits(v));
        put(data, i, &h, sizeof h);
        return;
    }
    case WML_BOOL: ((unsigned char *)data)[i] = v != 0; return;
    default:
        if (wml_dtype_is_integer(dtype)) put_int(data, i, dtype, v);
    }
}
