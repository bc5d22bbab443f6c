/* task/pool.h - one vector for a text, of the states that a model gives its tokens. */
#ifndef WML_TASK_POOL_H
#define WML_TASK_POOL_H

#include "task/task.h"

/* The states of the tokens: the output that is named so, or else the first float one of the shape [batch, tokens, size].
 * NULL: none. tokens: of the sample. */
const struct wml_npy *wml_pool_states(const struct wml_npys *answer, size_t tokens);
/* The mean over all tokens but the padding, of the first row, in double precision; where the model pools itself
 * (no states, but an output [batch, size]), that. *out, of *n numbers, is in the arena. WML_E_UNSUPPORTED: neither is there. */
bool wml_pool_mean(struct wml_task_work *w, size_t sample, double **out, size_t *n, struct wml_err *err);
double wml_pool_cosine(const double *a, const double *b, size_t n); /* 0 when one of them is zero */
void wml_pool_normalize(double *v, size_t n);

#endif
