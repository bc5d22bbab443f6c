/* flow/verify.h - two models, the same seeded inputs, on the CPU without ORT's optimisations: do they give
 * the same answers? */
#ifndef WML_FLOW_VERIFY_H
#define WML_FLOW_VERIFY_H

#include "flow/compare.h"
#include "graph/model.h"
#include "ort/ort.h"
#include "worker/feed.h"

struct wml_verify_row {
    const char *name;
    bool comparable; /* numeric tensors of equal size on both sides */
    bool same;       /* within tolerance */
    struct wml_compare c; /* the worst of all seeds */
    double max_rel;       /* largest difference over the largest value */
};

enum wml_verify_failed { /* what could not be run */
    WML_VERIFY_NONE,
    WML_VERIFY_RUNTIME,     /* ONNX Runtime is not there */
    WML_VERIFY_SOURCE_LOAD, /* it does not take the first model */
    WML_VERIFY_SOURCE_RUN,  /* or not with these inputs, or not in time */
    WML_VERIFY_RESULT
};

struct wml_verify {
    struct wml_arena arena;
    WML_VEC(struct wml_verify_row) row; /* the outputs of the first model, in order */
    bool passed;
    enum wml_verify_failed failed;
};

/* false: could not be run (err, out->failed; nothing to release). true: look at passed. Outputs are matched by position and must have equal
 * names. Floats pass at cosine >= 1 - 1e-6 and a largest difference of 1e-3 of the largest value (or of 3e-7, the rounding
 * of numbers around 1), half floats at 1e-3 and 2e-2; other types must be equal. n_seeds runs are made, with the
 * feed's seed and those after it, every second one with wider numbers and sizes. When the first model takes longer than
 * limit_ms (0: no limit) to load and to run once, that is all that is done: WML_E_TIMEOUT. Later runs get more. */
bool wml_verify_models(struct wml_ctx *cx, struct wml_model *before, struct wml_model *after,
                       const struct wml_feed_spec *feed, size_t n_seeds, uint64_t limit_ms, struct wml_verify *out,
                       struct wml_err *err);
void wml_verify_release(struct wml_verify *v);

#endif
