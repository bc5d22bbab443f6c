/* families/dinov2_body.h - DINOv2 as the backbone of other families. */
#ifndef WML_FAMILIES_DINOV2_BODY_H
#define WML_FAMILIES_DINOV2_BODY_H

#include "families/family.h"

enum { WML_DINOV2_STATES = 8 };

struct wml_dinov2_states { /* n is set by the caller, the rest by the call */
    struct wml_value *state[WML_DINOV2_STATES]; /* [batch, 1 + rows * columns, hidden], normalised */
    size_t n;
    int64_t grid[2], hidden, patch;
};
/* In the scope: the layers that out_indices (or out_features) of the backbone's config name. */
bool wml_dinov2_backbone(struct wml_family_job *j, const struct wml_json_val *cfg, struct wml_value *pixels, struct wml_dinov2_states *out);

#endif
