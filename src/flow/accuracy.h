/* flow/accuracy.h - how far a quantised model's answers lie from the float model's, over samples, on the CPU. */
#ifndef WML_FLOW_ACCURACY_H
#define WML_FLOW_ACCURACY_H

#include "flow/compare.h"
#include "flow/samples.h"
#include "graph/model.h"

struct wml_accuracy_row { /* one output, over all samples */
    const char *name;
    bool comparable; /* float tensors of equal size on both sides */
    struct wml_compare c;
};

enum wml_accuracy_failed { /* what could not be had */
    WML_ACCURACY_NONE,
    WML_ACCURACY_SAMPLES, /* inputs for the models */
    WML_ACCURACY_SOURCE_LOAD,
    WML_ACCURACY_SOURCE_RUN, /* or not in time */
    WML_ACCURACY_RESULT
};

struct wml_accuracy {
    struct wml_arena arena;
    WML_VEC(struct wml_accuracy_row) row;
    size_t samples; /* 0: not measured */
    enum wml_accuracy_failed failed;
};

/* before, after: files; the weights of one are in memory at a time. Stops after about budget_ms (0: no limit), but not before
 * one sample is done; when one of the first runs of `before` takes longer than that, WML_E_TIMEOUT. The samples that were
 * done are the first ones. false: nothing to release, out->failed says what it was. */
bool wml_accuracy_measure(struct wml_ctx *cx, const char *before, const char *after, const struct wml_samples_spec *samples,
                          uint64_t budget_ms, struct wml_accuracy *out, struct wml_err *err);
void wml_accuracy_release(struct wml_accuracy *a);

/* The float model's answers, to compare several models with: it is opened once and run once for every sample, as long as
 * its outputs take no more than 256 MiB. The spec must outlive it. */
struct wml_answers;
bool wml_answers_open(struct wml_ctx *cx, const char *before, const struct wml_samples_spec *samples, struct wml_answers **out, struct wml_err *err);
bool wml_answers_compare(struct wml_answers *a, struct wml_session *after, struct wml_accuracy *out, struct wml_err *err);
void wml_answers_close(struct wml_answers *a);

#endif
