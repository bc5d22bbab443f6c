/* onnx/files.h - mapped files behind a model's sources. Internal to src/onnx. */
#ifndef WML_ONNX_FILES_H
#define WML_ONNX_FILES_H

#include "graph/store.h"

/* Maps the file; out->bytes, handle and close are set, path is the caller's. */
bool wml_onnx_map(const char *path, struct wml_source *out, struct wml_err *err);
/* The open file of a source: descriptor or HANDLE for wml_out_copy; -1 when it is memory. */
intptr_t wml_onnx_file_of(const struct wml_source *s);
/* The store's opener: location relative to the model's folder, by the path rules of external data. */
bool wml_onnx_open_external(struct wml_model *m, struct wml_str location, struct wml_source *out,
                            struct wml_err *err);
/* What a file is that is no ONNX model, told from its first bytes; NULL: nothing known. */
const char *wml_onnx_sniff(struct wml_span bytes);

#endif
