/* families/resnet_body.h - ResNet as the backbone of other families. */
#ifndef WML_FAMILIES_RESNET_BODY_H
#define WML_FAMILIES_RESNET_BODY_H

#include "families/family.h"

/* "embedder" and "encoder" in the scope: the last stage [batch, channels, rows, columns]. cfg: of a model_type resnet. */
struct wml_value *wml_resnet_backbone(struct wml_family_job *j, const struct wml_json_val *cfg, struct wml_value *x);
/* The same under timm's names (conv1, layer1.0.conv2, ...), whose sizes are those of the weights; of a sketch, those of
 * the name. dilated: the last stage has holes in place of its stride. */
struct wml_value *wml_resnet_timm(struct wml_nn *b, struct wml_value *x, struct wml_str name, bool dilated);

#endif
