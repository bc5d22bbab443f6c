/* families/timm_body.h - architectures of the library timm, whose checkpoints have names of their own. A config names the
 * architecture; what its weights do not tell (strides, activations, padding) is in tables under that name. */
#ifndef WML_FAMILIES_TIMM_BODY_H
#define WML_FAMILIES_TIMM_BODY_H

#include "families/family.h"

struct wml_timm {
    /* The class of the architecture; NULL: none of these. */
    const char *(*klass)(struct wml_str architecture);
    /* In the scope of the model: what its last block gives, and from that the head's result [batch, labels]. */
    struct wml_value *(*features)(struct wml_family_job *j, struct wml_str architecture, struct wml_value *x);
    struct wml_value *(*head)(struct wml_family_job *j, struct wml_str architecture, struct wml_value *x, int64_t labels);
};
extern const struct wml_timm wml_timm_mobile; /* MobileNets and EfficientNets */
extern const struct wml_timm wml_timm_resnet;

#endif
