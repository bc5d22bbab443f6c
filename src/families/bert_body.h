/* families/bert_body.h - the encoder of BERT (Devlin et al. 2018), which other families have with the same names of
 * modules and weights: layers normalised after each sum. What differs is said in the parameters. */
#ifndef WML_FAMILIES_BERT_BODY_H
#define WML_FAMILIES_BERT_BODY_H

#include "families/text_inputs.h"

enum wml_bert_places { /* position_embedding_type */
    WML_BERT_ABSOLUTE,     /* a table added to the words */
    WML_BERT_RELATIVE_KEY, /* a table of distances per layer, which scores the queries (Shaw et al. 2018) */
    WML_BERT_RELATIVE_BOTH, /* ... and the keys (Huang et al. 2020) */
    WML_BERT_NOWHERE        /* not in the embeddings: the family's own attention knows them */
};

struct wml_bert {
    int64_t hidden, layers, heads, inner, vocab, positions, segments; /* segments 0: there is no table of them */
    int64_t embedding; /* width of the tables: hidden, unless the family projects them */
    int64_t pad;       /* positions are counted behind it (RoBERTa); -1: they are 0, 1, 2, ... */
    int64_t first;     /* row of the table of positions that the first token has */
    double eps;
    struct wml_str act;
    enum wml_bert_places places;
    bool bias_unscaled; /* scores of distances are added to scores that are scaled already */
    /* Another attention than BERT's, inside the scope "attention.self": [batch, length, hidden]. NULL: BERT's. */
    struct wml_value *(*self)(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t);
    const char *self_class; /* its class; NULL: "*SelfAttention" */
    /* Other layers `dense` of "intermediate" and "output". NULL: linear ones. */
    struct wml_value *(*dense)(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, int64_t out);
    bool own_mask;   /* the family makes the mask that it adds to scores: struct wml_text has none */
    const void *own; /* of the family */
};

/* config.json over the defaults of a family's class. */
struct wml_bert wml_bert_params(struct wml_family_job *j, const struct wml_bert *defaults);
/* input_ids, attention_mask with the mask for scores, and token_type_ids where positions are not counted behind padding. */
struct wml_text wml_bert_inputs(struct wml_family_job *j, const struct wml_bert *p, bool choices);

/* The module "embeddings": [batch, length, embedding]. */
struct wml_value *wml_bert_embeddings(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t);
/* What it sums, without its scope and its norm: words, segments, positions. */
struct wml_value *wml_bert_embedded(struct wml_nn *b, const struct wml_bert *p, const struct wml_text *t);
/* The module "encoder", one "layer.<i>" of it, and a layer's part behind attention: "intermediate" and "output". */
struct wml_value *wml_bert_encoder(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t);
struct wml_value *wml_bert_layer(struct wml_nn *b, const struct wml_bert *p, size_t i, struct wml_value *x, const struct wml_text *t);
struct wml_value *wml_bert_inner(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x); /* "intermediate" */
/* A layer that is normalised before its parts, by `norm`, not behind them. */
struct wml_value *wml_bert_layer_before(struct wml_nn *b, const struct wml_bert *p, size_t i, struct wml_value *x, const struct wml_text *t, const char *norm);
struct wml_value *wml_bert_feed_forward(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x);
/* "query", "key", "value" and the attention over them, in the scope: [batch, length, hidden]. */
struct wml_value *wml_bert_attention(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, const struct wml_text *t);
/* "dense" and "LayerNorm" over the sum with `rest`, in a scope of their own. */
struct wml_value *wml_bert_sum(struct wml_nn *b, const struct wml_bert *p, const char *class_name, const char *name,
                               struct wml_value *x, struct wml_value *rest);
/* The bare model: both. */
struct wml_value *wml_bert_body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t);
/* The same with "embeddings_project" between them where the tables are narrower. */
struct wml_value *wml_bert_projected_body(struct wml_family_job *j, const struct wml_bert *p, const struct wml_text *t);

/* "transform" of BERT's head over the vocabulary, in its scope: a linear layer to `width`, the activation, a norm. */
struct wml_value *wml_bert_transform(struct wml_nn *b, const struct wml_bert *p, struct wml_value *x, int64_t width);
/* "pooler" of the bare model in one with a head: tanh of a linear layer over the first token. */
struct wml_value *wml_bert_pooled(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);
/* "cls": scores of the vocabulary. */
struct wml_value *wml_bert_predict(struct wml_family_job *j, const struct wml_bert *p, struct wml_value *x);

#endif
