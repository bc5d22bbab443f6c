/* families/text_inputs.h - the inputs of text encoders. */
#ifndef WML_FAMILIES_TEXT_INPUTS_H
#define WML_FAMILIES_TEXT_INPUTS_H

#include "families/family.h"

struct wml_text {
    struct wml_value *ids, *mask, *types; /* [batch, length]; those that were not asked for are NULL */
    struct wml_value *additive;           /* [batch, 1, 1, length]: the mask as it is added to scores; made by families */
    struct wml_value *boxes, *pixels;     /* of documents: [batch, length, 4], [batch, channels, height, width] */
    struct wml_value *choices;            /* multiple-choice: input_ids [batch, choices, length], of which ids are the rows */
};

/* Declares input_ids, attention_mask and, of `segments` kinds above 0, token_type_ids. positions: how many the model has. */
struct wml_text wml_text_inputs(struct wml_family_job *j, int64_t vocab, int64_t positions, int64_t segments, bool choices);

/* Positions of tokens as RoBERTa counts them: the rows pad + 1, pad + 2, ... of the layer `name`, a table [rows, width], for those
 * that are no padding, row pad for those that are. A fixed length for which it has not enough is a failure. */
struct wml_value *wml_text_positions(struct wml_nn *b, struct wml_value *ids, const char *name, int64_t pad, int64_t rows, int64_t width);

#endif
