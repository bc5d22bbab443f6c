/* onnx/files.h - mapped files behind a model's sources. Internal to src/onnx. */
#ifndef WML_ONNX_FILES_H
#define WML_ONNX_FILES_H

#include "graph/store.h"

/* Maps the file; all of *out is set but its path. */
bool wml_onnx_map(const char *path, struct wml_source *out, struct wml_err *err);
/* The store's opener: location relative to the model's folder, by the path rules of external data. */
bool wml_onnx_open_external(struct wml_model *m, struct wml_str location, struct wml_source *out,
                            struct wml_err *err);

#endif
