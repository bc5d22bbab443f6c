/* flow/ranges.h - value ranges and sizes that suit a model's inputs: from its metadata, else from what the graph does with them. */
#ifndef WML_FLOW_RANGES_H
#define WML_FLOW_RANGES_H

#include "graph/model.h"
#include "worker/feed.h"

/* Metadata "winml.io.inputs": [{"name": .., "value_range": [low, high)}, ..]; what cannot be read is left out. Inputs
 * that it does not speak of: indices of a Gather stay inside the table, a single number that is compared with a
 * constant equals it. Sizes that the file leaves open and a weight asks for (channels of Conv, columns of MatMul) are added
 * behind those that `into` has, which win. Texts live in the arena. */
void wml_model_ranges(struct wml_model *m, struct wml_arena *arena, struct wml_feed_spec *into);

#endif
