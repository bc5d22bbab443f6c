/* passes/attention_form.h - softmax(scale * Q K^T + mask) V as exporters write it; what the fusions into attention
 * operators share. Only wml_attention_mask changes the graph.
 *
 * A rule walks from a Softmax: up over Add of a mask, Where, products with one number to the MatMul of Q and K^T;
 * down to the MatMul with V, and on to the Transpose that joins the heads. Then each operand is followed up to
 * where its heads were split. Old exports multiply matrices of rank 3, [batch * heads, length, size]: their
 * Reshapes are looked through. */
#ifndef WML_PASSES_ATTENTION_FORM_H
#define WML_PASSES_ATTENTION_FORM_H

#include "passes/match.h"

/* Q, K or V at the points where an operator may read it; what does not exist is NULL. Q and K may be multiplied by one
 * number on the way: whoever reads at a point multiplies by its factor. */
struct wml_heads {
    struct wml_value *bnsh; /* [batch, heads, length, size]; NULL when K is split and transposed in one step */
    struct wml_value *bsnh; /* [batch, length, heads, size], before Transpose 0,2,1,3 */
    struct wml_value *flat; /* [batch, length, heads * size], before the Reshape that splits */
    double bnsh_factor, bsnh_factor, flat_factor;
    int64_t heads, size; /* known */
};

enum wml_mask_kind { WML_MASK_ADD, WML_MASK_KEEP, WML_MASK_DROP };

/* One step between the scaled product and Softmax. */
struct wml_mask_step {
    enum wml_mask_kind kind; /* + value; Where(value, product, fill); Where(value, fill, product) */
    struct wml_value *value, *fill;
    double number; /* of fill: so far below zero that the product makes no difference */
    struct wml_node *expand; /* Expand of value to the shape of the product, looked through; or NULL */
};

enum { WML_MASK_STEPS = 3, WML_ATTENTION_INNER = 16 };

struct wml_attention {
    struct wml_pass_run *r;
    struct wml_node *scores, *softmax, *context; /* Q K^T; P V */
    struct wml_heads q, k, v;
    double scale; /* of Q K^T, where they are read without their factors */
    struct wml_mask_step mask[WML_MASK_STEPS];
    size_t n_mask;             /* in order from the product to Softmax */
    struct wml_value *product; /* Q K^T, perhaps scaled, as [batch, heads, length, keys]; NULL: only of rank 3 */
    struct wml_value *out;     /* [batch, heads, length, size of V] */
    struct wml_node *join;     /* Transpose 0,2,1,3 of out, its only reader; or NULL */
    struct wml_node *tail;     /* the Reshape behind join, its only reader, that makes of it [batch, length, heads * size],
                                * or takes that as well; or NULL */
    bool tail_stays;           /* it makes something else */
    bool widened;              /* half floats are cast to float for Softmax and back */
    struct wml_value *inner[WML_ATTENTION_INNER]; /* what goes away with it */
    size_t n_inner;
};

/* Fills *out from a Softmax. false: none, or not closed (an inner value has other readers, is an output, is pinned
 * by name); what looked like one is refused with the reason. Types of values must be known. */
bool wml_attention_find(struct wml_pass_run *r, struct wml_node *softmax, struct wml_attention *out);
/* Follows v, of layout [batch, heads, length, size], up to where it was split; scaled: through products with one number.
 * false: heads or size are not known. */
bool wml_heads_of(struct wml_pass_run *r, struct wml_value *v, bool scaled, struct wml_heads *out);
/* The same from [batch, length, heads, size], before the Transpose. */
bool wml_heads_from_split(struct wml_pass_run *r, struct wml_value *v, double factor, bool scaled, struct wml_heads *out);
/* Axis j of the product is as long as axis i of v. */
bool wml_attention_same_axis(const struct wml_attention *a, const struct wml_value *v, size_t i, size_t j);
/* The axes of the masks are 1 or those of the product; refused otherwise. */
bool wml_attention_mask_fits(const struct wml_attention *a);
/* Masks that fit, as one value that is added to the scaled product; NULL: there is none. Its last two axes are as long
 * as those of the product. full: of rank 4, as com.microsoft's operators want it. New nodes stand before `at`. */
struct wml_value *wml_attention_mask(const struct wml_attention *a, struct wml_node *at, bool full);
/* Every value from v down to `end` has one reader, no other use. */
bool wml_leads_only_to(const struct wml_value *v, const struct wml_node *end);
/* Takes the result from output 0 of n and removes what nothing reads any more. joined: with its heads joined, n stands
 * before a->join; else it is a->out, n stands before what made that. */
void wml_attention_finish(struct wml_attention *a, struct wml_node *n, bool joined);
/* Q, K and V have the same batch, Q's and K's heads and V's are equally many; refused otherwise. */
bool wml_attention_is_even(const struct wml_attention *a);
/* Sets the attribute `scale` unless it is 1 / sqrt(size), up to rounding. */
void wml_attention_set_scale(struct wml_node *n, double scale, int64_t size);

/* n is Transpose with exactly this order of 4 axes. */
bool wml_is_transpose(const struct wml_node *n, int64_t a, int64_t b, int64_t c, int64_t d);
/* Reshape n keeps its first two axes: [a, b, ...] -> [a, b, ...], with the rest multiplying to the same. like: a value
 * whose first two axes are known to be those of the input, or NULL. */
bool wml_reshape_keeps_two(struct wml_pass_run *r, const struct wml_node *n, const struct wml_value *like);
/* Up through linear layers and the like, which leave the leading axes as they are, to what gave them. */
const struct wml_value *wml_leads_of(const struct wml_value *v);
/* v is one number picked out of Shape(y): y, and the axis it is of; else NULL. */
const struct wml_value *wml_shape_source(struct wml_pass_run *r, const struct wml_value *v, size_t *axis);
/* v times one number: v's factor goes into *scale, and the other operand is returned; else NULL. */
struct wml_value *wml_scaled_from(struct wml_pass_run *r, struct wml_value *v, double *scale);

/* A linear layer: x W + bias, W [in, out] and bias [out] constants. */
struct wml_projection {
    struct wml_value *x, *w, *bias; /* bias: NULL when there is none */
    struct wml_value *product;      /* x W */
};
/* closed: x W + bias and what is inside have one reader each, nothing else needs them. */
bool wml_projection_of(struct wml_pass_run *r, struct wml_value *v, bool closed, struct wml_projection *out);

#endif
