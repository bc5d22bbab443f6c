/* quant/qparams.h - from what a tensor holds to the integers that stand for it: real = scale * (q - zero).
 *
 * The formulas are those of ONNX Runtime's quantizer: in double, the scale then rounded to the tensor's own float type.
 * "Float type" is WML_F32 or WML_F16 everywhere here. */
#ifndef WML_QUANT_QPARAMS_H
#define WML_QUANT_QPARAMS_H

#include "base/dtype.h"
#include "base/rd.h"

struct wml_qform { /* how a tensor is quantised */
    enum wml_dtype type; /* (u)int8, (u)int16, (u)int4 */
    bool symmetric;      /* signed types give up their lowest value; zero lies in the middle */
    bool reduced;        /* one bit less, for kernels whose sums saturate */
};

struct wml_qparams {
    double scale; /* exact in the float type */
    int32_t zero;
};

/* Whether something can be quantised to the type here. */
bool wml_qtype_is_known(enum wml_dtype type);
/* The integers that a range is spread over. */
void wml_qform_range(const struct wml_qform *f, int32_t *low, int32_t *high);
/* Scale and zero point for values in low..high (finite). min_range > 0: at least that far apart. A range of no width
 * gives scale 1 and zero point 0. */
struct wml_qparams wml_qparams_of(const struct wml_qform *f, enum wml_dtype real, double low, double high, double min_range);

/* Arithmetic of the float type: v rounded to it; the product of two of its numbers. */
double wml_real_round(enum wml_dtype real, double v);
double wml_real_mul(enum wml_dtype real, double a, double b);
/* The next number of the type above v >= 0. */
double wml_real_above(enum wml_dtype real, double v);

struct wml_weight_range {
    double low, high;  /* of the finite elements; 0, 0 when there are none */
    bool has_nan, has_inf;
};
/* The ranges of the channels of [outer, channels, inner] elements, row major, in one walk at the speed of memory. */
void wml_weight_ranges(enum wml_dtype real, const void *data, size_t outer, size_t channels, size_t inner, struct wml_weight_range *out);

#endif
