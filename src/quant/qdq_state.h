/* quant/qdq_state.h - what the method "qdq" knows of a model while it works on it. Internal to src/quant. */
#ifndef WML_QUANT_QDQ_STATE_H
#define WML_QUANT_QDQ_STATE_H

#include "calib/ranges.h"
#include "graph/edit.h"
#include "quant/overrides.h"
#include "quant/qparams.h"
#include "quant/quant.h"

struct wml_qdq_scale { /* how integers become reals, for a tensor or for each of its channels */
    enum wml_dtype type, real;
    int64_t axis; /* -1: one pair for the whole tensor */
    size_t n;
    double *scale;
    int32_t *zero;
    struct wml_str scale_name, zero_name;
    struct wml_value *scale_value, *zero_value; /* initializers; NULL until the first node reads them */
};

struct wml_qdq_asked { /* what overrides say of a value; no channel: nothing */
    struct wml_override *channel; /* one, or one per channel */
    size_t n;
    bool converts, some; /* readers get `convert`: all, or those of `reader` */
    struct wml_override convert;
    WML_VEC(struct wml_node *) reader;
};

struct wml_qdq_tensor { /* a value of the top graph */
    struct wml_value *value;
    bool real;     /* float or half, and free to be changed: may be quantised */
    bool constant; /* an initializer that callers cannot replace */
    bool given;    /* the source quantises it already */
    bool marked;   /* gets integers */
    bool listed;   /* in wml_qdq.order */
    bool weight;   /* a constant with the type of weights; others have that of activations */
    bool bias;     /* some node's bias */
    bool exact;    /* a constant whose values must not change: its scale is a power of 2 */
    bool unit;     /* a Softmax's output: the range is 0..1 */
    int64_t axis;  /* of the channels of a constant; -1: none */
    struct wml_node *through; /* moves elements of its input 0 here, so both have one scale; NULL: none */
    struct wml_qdq_tensor *range_from; /* the activation behind it cuts its values to this one's range */
    struct wml_qdq_asked asked;
    struct wml_range range;
    struct wml_qform form;          /* of a marked constant, and what it holds: of every channel */
    struct wml_weight_range *held;
    size_t n_held;
    bool has_end[2]; /* its lowest, its highest values are masks: they end at `end` instead */
    double end[2];
    struct wml_qdq_scale *scale, *converted; /* NULL: none */
};

struct wml_qdq_bias {
    struct wml_node *node;
    struct wml_str name; /* of the dequantised value */
    float beta;          /* the node's factor of it */
    struct wml_qdq_sums *sums; /* its integers; NULL: it stays float */
};

struct wml_qdq;
struct wml_qdq_ep { /* what an EP wants of quantised models; one file each (qdq_eps.def) */
    const char *alias;  /* the first of its row in ep/ */
    double min_range;   /* smallest high - low of an activation; 0: none */
    enum wml_dtype weight8; /* of 8-bit weights whose type nobody named; 0: the precision's */
    bool one_symmetry;  /* the usual type of weights decides whether all are symmetric, those of another type too */
    bool strips_wide;   /* takes 16-bit Q and DQ out and computes in floats: what cuts values off must stay beside them */
    const char *wide_note; /* to be said of 16-bit activations; NULL */
    bool moves_follow;  /* operators that only move values are quantised where a neighbour is, not by themselves */
    void (*ask)(struct wml_qdq *q); /* puts requests on values of which overrides say nothing */
};

struct wml_qdq {
    struct wml_quant_run *run;
    const struct wml_quant_opts *opts;
    struct wml_model *model;
    struct wml_graph *graph;
    struct wml_arena *arena; /* the model's */
    const char *domain;      /* of the new nodes */
    int64_t opset;
    enum wml_dtype weight, activation;
    bool force;              /* operators that only move values start to be quantised by themselves */
    bool symmetric;          /* activations */
    const struct wml_qdq_ep *ep; /* whose rules hold, or NULL */
    double min_range;
    struct wml_qdq_tensor *tensor; /* value->mark is the index + 1 */
    size_t n_tensors, n_given, n_inner, n_clipped;
    size_t n_flat; /* activations whose range is 0 to 0 */
    struct wml_str flat; /* the first of them */
    WML_VEC(struct wml_qdq_tensor *) order; /* marked ones in order; skip those no longer marked */
    WML_VEC(struct wml_qdq_bias) bias;
    WML_VEC(struct wml_node *) merged; /* Relu and Clip that the integers of their output make superfluous */
};

#endif
