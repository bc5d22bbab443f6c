/* flow/source.h - the model that a command starts from. */
#ifndef WML_FLOW_SOURCE_H
#define WML_FLOW_SOURCE_H

#include "graph/model.h"

/* Loads and checks it. A compiled model (EPContext) is refused, and so is what no runtime would take, or one whose
 * weights in other files are not all there. verb: "optimize",
 * what the user should do with the original instead. */
bool wml_source_load(const char *path, const char *verb, struct wml_model **out, struct wml_err *err);
/* The checks alone. */
bool wml_source_check(struct wml_model *m, const char *path, const char *verb, struct wml_err *err);

#endif
