/* task/text.h - texts as inputs of a model: input_ids, attention_mask, token_type_ids, position_ids, as far as it has them. */
#ifndef WML_TASK_TEXT_H
#define WML_TASK_TEXT_H

#include "task/sample.h"
#include "tok/tok.h"

struct wml_text_plan { /* borrows all of it */
    const struct wml_tok *tok;
    const struct wml_task_input *input;
    size_t n;
    size_t length; /* tokens that the model wants, 0: any number */
    int64_t batch; /* rows that it wants; 1 where that is open */
};

/* WML_E_UNSUPPORTED: the model takes no texts. */
bool wml_text_plan_aim(struct wml_text_plan *p, const struct wml_tok *tok, const struct wml_task_input *in, size_t n, struct wml_err *err);
/* A text, or a pair when `second` is not absent. A fixed length is filled up to; where it is open the text's own length is
 * taken, at most 512 tokens. Every row of a fixed batch is this text. `ids` keeps the tokens. */
bool wml_text_make(const struct wml_text_plan *p, struct wml_str first, struct wml_str second, struct wml_tok_ids *ids,
                   struct wml_npys *sample, struct wml_err *err);

#endif
