/* quant/fit.h - float models rewritten so that their integers err less: tools by name, one file each (fits.def).
 *
 * A tool runs between prepare and wanted of a method that needs ranges (bias correction: after the ranges are known, before
 * apply). What it asks of values, the caller measures while the model runs; the tool itself sees numbers only. New weights
 * are DERIVED tensors. The order of fits.def is that in which tools run. */
#ifndef WML_QUANT_FIT_H
#define WML_QUANT_FIT_H

#include "quant/quant.h"

struct wml_channels { /* a value of the top graph, seen channel by channel over all samples */
    struct wml_value *value;
    int64_t axis; /* of the channels; from the end when negative */
    size_t n;     /* their number: the size of that axis */
    double *sum;  /* n of each: what the caller measured, of the float model */
    double *peak; /* largest magnitude */
    double count; /* of elements per channel */
};

struct wml_fit_values { WML_VEC(struct wml_channels) v; }; /* in the model's arena; sum and peak are the caller's */

enum wml_fit_needs {
    WML_FIT_GRAPH,  /* the graph alone */
    WML_FIT_FLOAT,  /* wml_channels of the float model */
    WML_FIT_ERRORS  /* sum: that of (float model - quantised model); runs when ranges are known */
};

struct wml_fit {
    const char *name;   /* key of its count in the report: "smooth_quant" */
    const char *option; /* "--smooth-quant" */
    const char *doing;  /* "Smoothing layers" */
    const char *what;   /* what the count counts: "Linear layers smoothed" */
    enum wml_fit_needs needs;
    bool (*asked)(const struct wml_quant_opts *o);
    bool (*wanted)(struct wml_quant_run *r, struct wml_fit_values *out, struct wml_err *err); /* NULL: WML_FIT_GRAPH */
    /* c: what wanted returned, measured. *count: what was changed; 0 is no error. */
    bool (*apply)(struct wml_quant_run *r, const struct wml_channels *c, size_t n, size_t *count, struct wml_err *err);
};

#define FIT(id, name) extern const struct wml_fit wml_fit_##id;
#include "quant/fits.def"
#undef FIT

const struct wml_fit *wml_fit_at(size_t i); /* NULL beyond the last */

#endif
