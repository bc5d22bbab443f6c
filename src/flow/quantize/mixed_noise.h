/* flow/quantize/mixed_noise.h - a float model that quantises what a run asks for: the values of one part pass through integers and back
 * (Alter nodes, ort/observe.h), its constants are fed so changed; all else is float. Internal to this folder. */
#ifndef WML_FLOW_QUANTIZE_MIXED_NOISE_H
#define WML_FLOW_QUANTIZE_MIXED_NOISE_H

#include "flow/quantize/mixed_internal.h"
#include "quant/kernel.h"

struct wml_mixed_linear { /* the integers of one tensor */
    struct wml_linear by;
    size_t part;
    double real[256]; /* of every integer, with one scale; channels have none */
};

struct wml_mixed_fed { /* a constant that is an input */
    struct wml_mixed_linear linear;
    struct wml_tensor_view view; /* as it is */
};

struct wml_mixed_noise {
    struct wml_arena arena;
    struct wml_model *model;
    struct wml_session *session;
    struct wml_observer observer;
    size_t n_inputs, n_outputs; /* n_inputs: of the model itself; the tag follows, then the fed constants */
    WML_VEC(struct wml_mixed_linear) slot;
    WML_VEC(struct wml_mixed_fed) fed;
};

enum { WML_MIXED_NO_PART = -1 };

/* threads: of one run. The tag is an int64[1]: the part that is quantised. */
bool wml_mixed_noise_open(struct wml_mixed_search *x, unsigned threads, struct wml_mixed_noise *out, struct wml_err *err);
void wml_mixed_noise_close(struct wml_mixed_noise *n);
/* A constant as its integers have it, in memory of the caller (free). */
void *wml_mixed_noise_constant(const struct wml_mixed_fed *f, struct wml_err *err);

#endif
