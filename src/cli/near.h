/* cli/near.h - "Did you mean": the documented sentences for mistyped words. */
#ifndef WML_CLI_NEAR_H
#define WML_CLI_NEAR_H

#include "base/vec.h"

struct wml_names { WML_VEC(const char *) v; }; /* heap; WML_VEC_RELEASE(&n.v) */

/* 2 * matching characters / all characters, as Python's difflib counts them; ASCII case ignored. */
double wml_word_ratio(struct wml_str a, struct wml_str b);
/* Adds " Did you mean 'a'?" or " (Did you mean one of: 'a', 'b'?)", or nothing, for the at most three
 * names whose ratio is 0.6 or more, nearest first. */
void wml_did_you_mean(struct wml_str word, const struct wml_names *names, struct wml_buf *out);

#endif
