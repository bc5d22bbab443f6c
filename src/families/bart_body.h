/* families/bart_body.h - the encoder and decoder of BART (Lewis et al. 2019), as its relatives have them with the same names
 * of modules and weights: Marian, mBART, Pegasus, M2M-100, Blenderbot, Whisper, TrOCR. What differs is in the parameters. */
#ifndef WML_FAMILIES_BART_BODY_H
#define WML_FAMILIES_BART_BODY_H

#include "families/seq2seq.h"

enum wml_bart_places {
    WML_BART_TABLE,  /* "embed_positions" of the checkpoint */
    WML_BART_WAVES,  /* sines in the first half, cosines in the second (Vaswani et al. 2017), where the checkpoint has no table */
    WML_BART_COUNTED /* the same by another formula, and positions count tokens that are not padding */
};

struct wml_bart_stack {
    int64_t layers, heads, inner, vocab, positions; /* positions: behind the offset */
};

struct wml_bart {
    struct wml_bart_stack encoder, decoder;
    int64_t width, states; /* states: of what the decoder reads, width unless another encoder made it */
    int64_t offset;        /* rows of the table of positions before the first place */
    int64_t pad;
    enum wml_bart_places places;
    bool first_norm;     /* "layernorm_embedding" */
    bool norm_words;     /* of the decoder: over the words, before positions are added */
    bool pre;            /* parts are normalised before, and the last layer's result by "layer_norm"; else after each sum */
    double scale;        /* of words */
    struct wml_str act;
    const char *shared;  /* the table of words of both, from the root: "/model.shared.weight"; NULL: each has its own */
    bool tied;           /* the head is the table of words */
    bool trust_mask;     /* see seq2seq.h */
};

/* config.json over the values of a family's class in p. */
void wml_bart_params(struct wml_family_job *j, struct wml_bart *p);

/* Inside of the module "encoder" or "decoder". */
struct wml_value *wml_bart_embed(struct wml_nn *b, const struct wml_bart *p, struct wml_value *ids);
struct wml_value *wml_bart_add_positions(struct wml_nn *b, const struct wml_bart *p, struct wml_value *x, struct wml_value *ids);
struct wml_value *wml_bart_encoder_layer(struct wml_nn *b, const struct wml_bart *p, size_t i, struct wml_value *x, struct wml_value *mask);
struct wml_value *wml_bart_encoder_end(struct wml_nn *b, const struct wml_bart *p, struct wml_value *x);

/* The modules "encoder" of texts, and "decoder". */
struct wml_value *wml_bart_encoder(struct wml_nn *b, const struct wml_bart *p, struct wml_value *ids, struct wml_value *mask);
struct wml_value *wml_bart_decoder(struct wml_nn *b, const struct wml_bart *p, struct wml_seq2seq *s);

/* Inputs of a step of the decoder; source: the length of the encoder's states. */
void wml_bart_step_inputs(struct wml_family_job *j, const struct wml_bart *p, struct wml_seq2seq *s, int64_t source, bool source_mask);

/* What encoder-decoders of text do: the encoder alone, and one token of the decoder. */
void wml_bart_encode(struct wml_family_job *j, const struct wml_bart *p);
void wml_bart_step(struct wml_family_job *j, const struct wml_bart *p);

/* The tasks of families that differ in their parameters only: `own` of the descriptor is a struct wml_bart_kind. */
struct wml_bart_kind {
    struct wml_bart (*params)(struct wml_family_job *j);
};
void wml_bart_encode_task(struct wml_family_job *j);
void wml_bart_step_task(struct wml_family_job *j);

#endif
