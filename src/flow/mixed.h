/* flow/mixed.h - mixed precision by sensitivity: which tensors of a statically quantised model need 16 bits so that its outputs
 * reach a ratio of signal to noise on the samples.
 *
 * What shares a scale is raised together: a part. Every part is weighed by the noise it makes at the outputs when it alone is
 * quantised and all else is float (flow/quantize/mixed_noise.h): one run per part and sample. Noise of parts adds up, near enough, so
 * that the order in which they are raised, and about how many, can be computed; how many really must is found by bisection
 * over that list, where every step quantises and runs the model. A part that is raised takes the nodes that make and
 * read it into 16 bits, with conversions at the borders (quant/overrides.h). */
#ifndef WML_FLOW_MIXED_H
#define WML_FLOW_MIXED_H

#include "base/map.h"
#include "base/vec.h"

/* The goal when none is named: noise of 1 % of the signal's power, which is a cosine of about 0.995. */
#define WML_MIXED_GOAL_DB 20.0

struct wml_mixed_step { /* a model that was made and run */
    size_t raised;  /* parts */
    double sqnr_db; /* of its worst output */
};

struct wml_mixed_raised {
    const char *name, *kind; /* of the part's first tensor; "activation", "weight" */
    double noise_db;         /* what this part alone costs: signal to noise of the outputs */
};

struct wml_mixed { /* what was found; zero: nobody asked */
    struct wml_arena arena;
    bool asked, reached;
    double goal_db, plain_db, sqnr_db; /* plain: nothing raised */
    size_t parts;                      /* that could be raised */
    size_t runs;                       /* that weighed them */
    size_t activations, constants;     /* with 16 bits in the end, those that follow a raised neighbour included */
    size_t nodes, wide_nodes;          /* of the float model, when some were raised; those in 16 bits */
    WML_VEC(struct wml_mixed_step) step;
    struct wml_map weighed; /* name of every tensor that could be raised -> its struct wml_mixed_raised, that of its part */
    WML_VEC(struct wml_mixed_raised) raised; /* in the order in which they were */
};
void wml_mixed_release(struct wml_mixed *m);

#endif
