/* families/backbone.h - which of its states a backbone gives to the model around it. */
#ifndef WML_FAMILIES_BACKBONE_H
#define WML_FAMILIES_BACKBONE_H

#include "families/family.h"

/* States are counted in the order they come: 0 is what the embeddings (the "stem") give, then one per layer or stage up to
 * `last`. By out_features ("stage3") or out_indices (negative ones count from the end) of the backbone's config; with neither
 * the last. Ascending, at most max; how many. */
size_t wml_backbone_states(struct wml_family_job *j, const struct wml_json_val *cfg, int64_t last, int64_t *out, size_t max);
/* Pictures have the channels that the backbone's config names, unless the user gave another number. */
void wml_backbone_channels(struct wml_family_job *j, const struct wml_json_val *cfg);

#endif
