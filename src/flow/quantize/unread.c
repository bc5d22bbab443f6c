/* Options that were typed and that nothing reads: a precision has its own, and so has the comparison with the source. */
#include "flow/quantize/internal.h"

#include <stdio.h>

enum { QDQ = 1, DYNAMIC = 2, HALF = 4, RTN = 8, COMPARE = 16 };

/* One row each for the names and for who reads the option: two arrays, since commands walk the names. */
#define OPTIONS(ROW)                                                                                                              \
    ROW("samples", QDQ | COMPARE) ROW("seed", QDQ | COMPARE) ROW("calibration-data", QDQ | COMPARE)                               \
    ROW("tokenizer", QDQ | COMPARE) ROW("preprocessor", QDQ | COMPARE) ROW("input-shape", QDQ | COMPARE)                          \
    ROW("input-dim", QDQ | COMPARE) ROW("method", QDQ) ROW("bins", QDQ) ROW("percentile", QDQ) ROW("calibration-cache", QDQ)      \
    ROW("activation-type", QDQ) ROW("contrib-qdq", QDQ) ROW("overrides", QDQ) ROW("equalize", QDQ) ROW("bias-correction", QDQ)             \
    ROW("smooth-quant", QDQ) ROW("scale-search", QDQ) ROW("float-refused", QDQ) ROW("weight-type", QDQ | DYNAMIC) ROW("per-channel", QDQ | DYNAMIC) ROW("symmetric", QDQ | DYNAMIC)        \
    ROW("reduce-range", QDQ | DYNAMIC) ROW("keep-io-types", HALF) ROW("keep-op", HALF) ROW("block-size", RTN)                     \
    ROW("rtn-symmetric", RTN) ROW("accuracy-level", RTN) ROW("gather", RTN)

#define NAME(name, readers) name,
const char *const wml_quantize_options[] = {OPTIONS(NAME) NULL};
#define READERS(name, readers) readers,
static const unsigned readers_of[] = {OPTIONS(READERS)};

static unsigned readers(const struct wml_quantize_run *r)
{
    static const struct { const char *method; unsigned bit; } row[] = {{"qdq", QDQ}, {"dynamic", DYNAMIC}, {"fp16", HALF}, {"bf16", HALF}, {"rtn", RTN}};
    const struct wml_quantize_args *a = r->args;
    unsigned bits = a->accuracy != WML_VERIFY_OFF || a->rank || a->html ? COMPARE : 0;
    for (size_t i = 0; i < r->n_steps; i++)
        for (size_t k = 0; k < WML_COUNT(row); k++)
            if (strcmp(row[k].method, r->step[i].method->name) == 0) bits |= row[k].bit;
    return bits;
}

static unsigned readers_of_option(const char *name)
{
    for (size_t i = 0; wml_quantize_options[i]; i++)
        if (strcmp(wml_quantize_options[i], name) == 0) return readers_of[i];
    return ~0U;
}

void wml_quantize_warn_unread(struct wml_quantize_run *r)
{
    const struct wml_quantize_args *a = r->args;
    const unsigned present = readers(r);
    struct wml_buf names = {0};
    size_t n = 0;
    for (size_t i = 0; i < a->n_typed; i++)
        if (!(readers_of_option(a->typed[i]) & present)) wml_buf_fmt(&names, "%s--%s", n++ ? ", " : "", a->typed[i]);
    if (n) wml_quantize_warn(r, "%s: without effect with %s", wml_buf_text(&names), r->precision);
    wml_buf_release(&names);
}
