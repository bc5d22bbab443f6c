/* families/rope.h - rotary frequencies as configs say them: rope_theta, rope_scaling (linear, llama3, yarn, longrope). */
#ifndef WML_FAMILIES_ROPE_H
#define WML_FAMILIES_ROPE_H

#include "families/family.h"
#include "nn/rotary.h"

/* For heads of `head` elements, of which partial_rotary_factor turn. length: tokens there can be (longrope has two sets). */
void wml_rope_of(struct wml_family_job *j, const struct wml_json_val *cfg, int64_t head, double theta, int64_t positions, int64_t length,
                 struct wml_nn_rope *out);

#endif
