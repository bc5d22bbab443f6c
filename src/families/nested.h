/* families/nested.h - a model of one family as a part of a model of another. */
#ifndef WML_FAMILIES_NESTED_H
#define WML_FAMILIES_NESTED_H

#include "families/family.h"

/* Builds a family's task at `attribute` of the scope: of the family that cfg's model_type says, with cfg as its config. Inputs
 * are declared; gives its only output, which is taken back. */
struct wml_value *wml_nested(struct wml_family_job *j, const struct wml_json_val *cfg, const char *attribute, const char *task);
/* The shape of what that would give, without building it here. */
struct wml_nn_shape wml_nested_shape(struct wml_family_job *j, const struct wml_json_val *cfg, const char *attribute, const char *task);

#endif
