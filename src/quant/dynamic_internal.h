/* quant/dynamic_internal.h - what the files of the method "dynamic" share. Internal to src/quant. */
#ifndef WML_QUANT_DYNAMIC_INTERNAL_H
#define WML_QUANT_DYNAMIC_INTERNAL_H

#include "graph/edit.h"
#include "quant/qparams.h"
#include "quant/quant.h"

struct wml_dynq { /* a quantised value: real = scale * (q - zero) */
    struct wml_value *q, *scale, *zero;
    bool exact; /* of a table: the floats hold no more than the integers */
};

struct wml_dynamic {
    struct wml_quant_run *r;
    struct wml_err *err;
    struct wml_map weights;     /* by tensor and form: struct wml_dynq */
    struct wml_map activations; /* by value: struct wml_dynq */
    WML_VEC(struct wml_node *) dq; /* behind what was taken from tables */
};

/* A float32 weight that callers cannot replace, of one element at least. What reads it beside a value is float32, too. */
bool wml_dynamic_is_weight(const struct wml_value *v);
/* false: it holds NaN or infinities, which is noted; or *d->err is set. */
bool wml_dynamic_is_finite(struct wml_dynamic *d, struct wml_value *v);
bool wml_dynamic_leave(struct wml_dynamic *d, const struct wml_value *v); /* notes that; always false */
/* The weight as integers, made once. channels: a scale for each element of the last axis. false: it is not finite, or *d->err is set. */
bool wml_dynamic_weight(struct wml_dynamic *d, struct wml_value *v, enum wml_dtype type, bool channels, struct wml_dynq *out);
/* A table of Gather, in the type of activations: its rows are read as those are. */
bool wml_dynamic_table(struct wml_dynamic *d, struct wml_value *v, struct wml_dynq *out);
/* x as uint8, scaled by what it holds at run time; one DynamicQuantizeLinear for all readers in one graph. */
struct wml_dynq wml_dynamic_activation(struct wml_dynamic *d, struct wml_value *x, struct wml_node *before);
/* x's integers are known without a DynamicQuantizeLinear, in its own graph. */
void wml_dynamic_know(struct wml_dynamic *d, const struct wml_value *x, const struct wml_dynq *by);
/* NULL: they are not. */
const struct wml_dynq *wml_dynamic_known(const struct wml_dynamic *d, const struct wml_value *x);
/* The type of weights: 16 bits become int8, which the kernels have. */
enum wml_dtype wml_dynamic_type(const struct wml_dynamic *d);
struct wml_qform wml_dynamic_form(const struct wml_dynamic *d, enum wml_dtype type);

/* LSTM to DynamicQuantizeLSTM, Attention to QAttention. False without *d->err: left alone. */
bool wml_dynamic_lstm(struct wml_dynamic *d, struct wml_node *n);
bool wml_dynamic_attention(struct wml_dynamic *d, struct wml_node *n);

#endif
