/* flow/quantize.h - the verb `quantize`. */
#ifndef WML_FLOW_QUANTIZE_H
#define WML_FLOW_QUANTIZE_H

#include "calib/calib.h"
#include "ep/ep.h"
#include "flow/optimize.h"
#include "quant/quant.h"

struct wml_quantize_args {
    const char *model, *output; /* output NULL: beside the model, named after the precision */
    bool overwrite;
    const char *const *precision; /* passes in order; none: "auto" */
    size_t n_precisions;
    struct wml_quant_opts quant; /* what was typed: types 0 and symmetry DEFAULT follow the precision */
    const char *overrides;       /* JSON file, or NULL */
    bool has_target;             /* an EP or a device was named: its rules hold */
    struct wml_target_spec target;
    bool verify_target, float_refused; /* ask what it takes; leave float what it refuses as integers */
    uint64_t timeout_ms;               /* of one question */
    /* calibration */
    const char *method; /* calib/calib.h */
    struct wml_range_opts range;
    size_t samples;
    uint64_t seed;
    const char *tokenizer, *preprocessor; /* for texts, for pictures; NULL: the model's folder */
    const char *data, *cache; /* cache: read when it is there, else written */
    const struct wml_feed_shape *shape;
    size_t n_shapes;
    const struct wml_feed_dim *dim;
    size_t n_dims;
    enum wml_verify_choice accuracy; /* run source and result on samples and compare */
    size_t rank;                     /* tensors shown of the ranking; 0: it is not made, unless the report wants it */
    bool mixed;                      /* raise tensors to 16 bits until the outputs reach goal_db */
    double goal_db;
    const char *html;                /* HTML report; NULL: none */
    const char *const *typed; /* options of the command line that wml_quantize_options names: a warning for those without effect */
    size_t n_typed;
};

/* Options that only some methods read, by their long names; NULL ends the list. */
extern const char *const wml_quantize_options[];
bool wml_flow_quantize(const struct wml_quantize_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);

#endif
