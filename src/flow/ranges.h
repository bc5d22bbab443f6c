/* flow/ranges.h - value ranges of inputs that a model carries in its metadata. */
#ifndef WML_FLOW_RANGES_H
#define WML_FLOW_RANGES_H

#include "graph/model.h"
#include "worker/feed.h"

/* Reads metadata "winml.io.inputs": [{"name": .., "value_range": [low, high)}, ..]. What cannot be read is
 * left out. Texts live in the arena. */
void wml_model_ranges(const struct wml_model *m, struct wml_arena *arena, struct wml_feed_spec *into);

#endif
