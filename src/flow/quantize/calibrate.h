/* flow/quantize/calibrate.h - ranges of values while a model runs: a session on the CPU without ORT's optimisations, whose outputs are
 * the wanted values, fed sample after sample. Never are the values of more than one sample per worker in memory. */
#ifndef WML_FLOW_QUANTIZE_CALIBRATE_H
#define WML_FLOW_QUANTIZE_CALIBRATE_H

#include "calib/cache.h"
#include "calib/calib.h"
#include "calib/ranges.h"
#include "flow/samples.h"
#include "graph/model.h"

struct wml_calibration_spec {
    const char *method;              /* name of a range method */
    struct wml_range_opts range;
    struct wml_samples_spec samples; /* ranges that suit the model's inputs are added */
    const char *cache;               /* JSON of ranges: read when it is there, else written; NULL: none */
    struct wml_cache_facts facts;    /* of it */
};

struct wml_calibration {
    struct wml_ranges ranges;
    size_t samples;
    char data[160];    /* what they were, "random data" */
    bool random, from_cache;
    size_t n_unseen, n_odd; /* values that held no number in any sample; that held NaN or infinities, too */
    char unseen[64], odd[64]; /* the first of each */
};

/* want: values of the top graph. */
bool wml_flow_calibrate(struct wml_ctx *cx, struct wml_model *m, struct wml_value *const *want, size_t n_wanted,
                        const struct wml_calibration_spec *spec, struct wml_calibration *out, struct wml_err *err);
void wml_calibration_release(struct wml_calibration *c);

#endif
