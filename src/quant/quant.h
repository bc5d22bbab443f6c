/* quant/quant.h - a float model becomes a smaller one: methods by name, one file each (quant.def).
 *
 * A method changes the graph in memory and reads the weights once at most, for their ranges. The new weights are
 * DERIVED tensors (graph/tensor.h), computed while the file is written. Nothing here runs a model: the ranges of
 * activations arrive as numbers, types that are not known by a callback. Nothing is left out silently: what a
 * method could not do is a note. */
#ifndef WML_QUANT_QUANT_H
#define WML_QUANT_QUANT_H

#include "base/ctx.h"
#include "base/dtype.h"
#include "graph/model.h"

enum wml_symmetry { WML_SYMMETRY_DEFAULT, WML_SYMMETRY_OFF, WML_SYMMETRY_ON };

struct wml_patterns { const struct wml_str *at; size_t len; }; /* names; wildcards are allowed */

struct wml_ranges;          /* calib/ranges.h */
struct wml_quant_overrides; /* quant/overrides.h */

struct wml_quant_opts { /* zero: the defaults */
    /* qdq, dynamic */
    enum wml_dtype weight, activation; /* 0: uint8 */
    bool per_channel;                  /* weights */
    enum wml_symmetry symmetric_weight, symmetric_activation; /* DEFAULT: weights of signed types are symmetric */
    bool reduce_range;
    double min_real_range; /* smallest high - low of a tensor; 0: none */
    bool contrib;          /* 16- and 4-bit Q/DQ in com.microsoft instead of raising the opset */
    bool wide;             /* tensors may be raised to 16 bits later: the opset is that which they need */
    const struct wml_ranges *ranges; /* of activations; qdq needs them */
    const struct wml_quant_overrides *overrides;
    struct wml_patterns op_types; /* only these; none: all */
    struct wml_patterns exclude;  /* nodes */
    struct wml_patterns leave;    /* nodes that the target refuses as integers, by their exact names */
    bool equalize, bias_correction, scale_search; /* quant/fit.h: what is done for accuracy beforehand */
    double smooth;             /* SmoothQuant's alpha; 0: off */
    const char *ep;            /* alias of the EP whose rules hold; NULL: none */
    /* rtn */
    unsigned bits, block_size; /* 0: 4, 128 */
    bool asymmetric, gather;   /* gather: tables of Gather too */
    int accuracy_level;
    /* fp16, bf16 */
    bool convert_io;           /* inputs and outputs too; else Casts keep them float */
    struct wml_patterns keep;     /* operators that stay float, beside those that must */
};

struct wml_quant_env { /* callbacks may be NULL */
    void *arg;
    /* Sets the types of values that are not known yet, in every graph. */
    bool (*infer_types)(void *arg, struct wml_model *m, size_t *n_set, struct wml_err *err);
    /* Converts the model to an opset of ONNX. false: it cannot be done, the model is as before. */
    bool (*set_opset)(void *arg, struct wml_model *m, int64_t opset, struct wml_err *err);
};

struct wml_quant_note { struct wml_str subject, text; }; /* "node 'conv1'", "its bias stays float: ..." */

struct wml_quant_mask { struct wml_str value; bool end[2]; }; /* beyond its lowest, its highest integer lie masks, on purpose */

struct wml_quant_count { const char *name, *what; size_t n; }; /* "equalize", "Pairs of layers equalized" */

struct wml_quant_result { /* lives in the model's arena */
    size_t nodes;         /* operators that were quantised or converted */
    size_t q, dq;         /* QuantizeLinear (and DynamicQuantizeLinear), DequantizeLinear that were added */
    size_t weights;       /* initializers that were quantised or converted */
    size_t clipped;       /* constants whose range the scale search made smaller */
    WML_VEC(struct wml_quant_count) fit; /* what was done for accuracy */
    WML_VEC(struct wml_quant_mask) mask;
    WML_VEC(struct wml_quant_note) note;
};

struct wml_quant_run { /* what a method gets */
    struct wml_model *model;
    const struct wml_quant_opts *opts;
    const struct wml_quant_env *env;
    struct wml_ctx *cx;
    struct wml_quant_result *result;
};
void wml_quant_note(struct wml_quant_run *r, struct wml_str subject, const char *fmt, ...) WML_PRINTF(3, 4);

struct wml_quant_values { WML_VEC(struct wml_value *) v; }; /* in the model's arena */

/* A method that needs ranges is called in the order prepare, wanted, (the model runs; opts->ranges by the names of the
 * values), apply; others have apply alone. Each fails with WML_E_UNSUPPORTED, nothing changed, when the model has nothing
 * for the method: the message says what it looked for. */
struct wml_quant_method {
    const char *name;    /* "qdq", "dynamic", "fp16", "bf16", "rtn" */
    const char *label;   /* "Quantization", "FP16 conversion"; for messages */
    bool (*prepare)(struct wml_quant_run *r, struct wml_err *err); /* the model as it will be calibrated, same answers */
    /* The float values whose ranges apply will look up, in the order in which the graph computes them. */
    bool (*wanted)(struct wml_quant_run *r, struct wml_quant_values *out, struct wml_err *err);
    bool (*apply)(struct wml_quant_run *r, struct wml_err *err);
};

#define METHOD(id, name) extern const struct wml_quant_method wml_quant_##id;
#include "quant/quant.def"
#undef METHOD

const struct wml_quant_method *wml_quant_find(const char *name); /* NULL: there is none */
/* Whether static quantisation has rules of its own for this EP (an alias). */
bool wml_quant_has_rules(const char *ep);
/* The type of weights for it when a precision means `type` and nobody named one. */
enum wml_dtype wml_quant_ep_weight(const char *ep, enum wml_dtype type);

#endif
