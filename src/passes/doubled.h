/* passes/doubled.h - values whose last axis is one half written twice, as the cos and sin tables of rotary embeddings
 * are: concat(f, f), everything computed element by element from it, rows gathered from such a constant. */
#ifndef WML_PASSES_DOUBLED_H
#define WML_PASSES_DOUBLED_H

#include "passes/match.h"

/* Both halves of v's last axis are the same, whatever the inputs of the model are. */
bool wml_is_doubled(struct wml_pass_run *r, struct wml_value *v);
/* The half of such a value, computed beside it; asked twice, the same value. Its type is set. The caller has cleared
 * the marks first. */
struct wml_value *wml_half_of(struct wml_pass_run *r, struct wml_value *v);
/* Clears value marks, in which halves are remembered. */
void wml_doubled_begin(struct wml_pass_run *r);

#endif
