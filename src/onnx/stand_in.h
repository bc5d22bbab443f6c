/* onnx/stand_in.h - what is written in place of a tensor: a reference to bytes of a file, or bytes instead
 * of a reference. Internal to src/onnx. */
#ifndef WML_ONNX_STAND_IN_H
#define WML_ONNX_STAND_IN_H

#include "graph/tensor.h"

struct wml_stand_ins {
    struct wml_arena arena;
    WML_VEC(struct wml_tensor *) v; /* whose stand_in is set */
};

void wml_stand_in_add(struct wml_stand_ins *s, struct wml_tensor *t, struct wml_str location,
                      uint64_t offset, uint64_t length);
void wml_stand_in_inline(struct wml_stand_ins *s, struct wml_tensor *t, struct wml_span bytes);
/* Takes every stand-in away; the tensors are as before. */
void wml_stand_ins_clear(struct wml_stand_ins *s);
void wml_stand_ins_release(struct wml_stand_ins *s);

#endif
