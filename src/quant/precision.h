/* quant/precision.h - what the names of precisions stand for: methods and types, in order. */
#ifndef WML_QUANT_PRECISION_H
#define WML_QUANT_PRECISION_H

#include "base/dtype.h"
#include "base/err.h"

struct wml_quant_step {
    const char *method;                /* quant/quant.h */
    enum wml_dtype weight, activation; /* of qdq */
    unsigned bits;                     /* of rtn */
    int accuracy_level;                /* of rtn; 4: activations become 8-bit integers while it runs */
    bool rest;                         /* what the step before left: it may be nothing */
};

enum { WML_PRECISION_STEPS = 2 };
struct wml_precision {
    const char *name, *alias; /* alias NULL: none */
    const char *suffix;       /* of the output file */
    struct wml_quant_step step[WML_PRECISION_STEPS]; /* the second may be empty: method NULL */
};

/* Without case; NULL: no such name, and *err lists those there are (WML_E_USAGE). */
const struct wml_precision *wml_precision_find(const char *name, struct wml_err *err);

#endif
