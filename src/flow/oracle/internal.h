/* flow/oracle/internal.h - what the files of the oracle share. Internal to this folder. */
#ifndef WML_FLOW_ORACLE_INTERNAL_H
#define WML_FLOW_ORACLE_INTERNAL_H

#include "flow/oracle.h"
#include "onnx/onnx.h"

/* The source that a skeleton is for ORT; dir keeps the folder's name. */
struct wml_model_source wml_flow_source(const struct wml_buf *skeleton, struct wml_str folder, struct wml_buf *dir);
/* The env's infer_types (oracle_types.c). */
bool wml_flow_infer_types(void *arg, struct wml_model *m, size_t *n_set, struct wml_err *err);

#endif
