/* Scales and zero points. */
#include "quant/qparams.h"

#include <float.h>
#include <math.h>

static const struct integers {
    enum wml_dtype type;
    int32_t low, high, symmetric_low, reduced_low, reduced_high;
} integers[] = {
    {WML_U8, 0, 255, 0, 0, 127},
    {WML_I8, -128, 127, -127, -64, 64},
    {WML_U16, 0, 65535, 0, 0, 32767},
    {WML_I16, -32768, 32767, -32767, -16384, 16384},
    {WML_U4, 0, 15, 0, 0, 7},
    {WML_I4, -8, 7, -8, -4, 3},
};

static const struct integers *integers_of(enum wml_dtype type)
{
    for (size_t i = 0; i < WML_COUNT(integers); i++)
        if (integers[i].type == type) return &integers[i];
    return NULL;
}

bool wml_qtype_is_known(enum wml_dtype type)
{
    return integers_of(type) != NULL;
}

void wml_qform_range(const struct wml_qform *f, int32_t *low, int32_t *high)
{
    const struct integers *i = integers_of(f->type);
    *low = f->reduced ? i->reduced_low : f->symmetric ? i->symmetric_low : i->low;
    *high = f->reduced ? i->reduced_high : i->high;
}

double wml_real_round(enum wml_dtype real, double v)
{
    uint32_t bits = 0;
    wml_dtype_store(real, &bits, 0, v);
    return wml_dtype_load(real, &bits, 0);
}

/* A product of two floats, as of two halves, is exact in double. */
double wml_real_mul(enum wml_dtype real, double a, double b)
{
    return wml_real_round(real, a * b);
}

double wml_real_above(enum wml_dtype real, double v)
{
    if (real == WML_F32) return (double)nextafterf((float)v, INFINITY);
    return (double)wml_half_to_float((uint16_t)(wml_float_to_half((float)v) + 1));
}

struct wml_qparams wml_qparams_of(const struct wml_qform *f, enum wml_dtype real, double low, double high, double min_range)
{
    int32_t q_low, q_high;
    wml_qform_range(f, &q_low, &q_high);
    low = WML_MIN(low, 0);
    high = WML_MAX(high, 0);
    if (min_range > 0) high = WML_MAX(high, wml_real_round(real, low + wml_real_round(real, min_range)));
    if (f->symmetric) {
        high = WML_MAX(fabs(low), fabs(high));
        low = -high;
    }
    double scale = (high - low) / ((double)q_high - q_low), stored = wml_real_round(real, scale);
    /* Halves below the normal ones still divide well: integers are made in float. */
    if (real == WML_F16 ? stored < 0x1p-24 : scale < (double)FLT_MIN) return (struct wml_qparams){.scale = 1};
    double zero = f->symmetric ? rint((q_low + q_high) / 2.0) : rint(q_low - low / scale);
    return (struct wml_qparams){.scale = stored, .zero = (int32_t)zero};
}
