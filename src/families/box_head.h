/* families/box_head.h - the head that detectors have for boxes (and YOLOS for classes). */
#ifndef WML_FAMILIES_BOX_HEAD_H
#define WML_FAMILIES_BOX_HEAD_H

#include "families/family.h"

/* "layers.0" to "layers.2" of the module `name`, linear with ReLU between them: [.., out]. x of two axes: one node for each. */
struct wml_value *wml_box_head(struct wml_nn *b, const char *name, struct wml_value *x, int64_t hidden, int64_t out);

#endif
