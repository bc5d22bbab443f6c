/* flow/checkpoint.h - the checkpoint that -m names: a folder, or a model id whose files are fetched from the hub. */
#ifndef WML_FLOW_CHECKPOINT_H
#define WML_FLOW_CHECKPOINT_H

#include "hub/hub.h"

/* What text is, without asking the network. */
enum wml_model_ref { WML_REF_FOLDER, WML_REF_ONNX, WML_REF_ID, WML_REF_INVALID };
/* INVALID: *err says why. An .onnx file is ONNX also where it is not there. */
enum wml_model_ref wml_model_ref(const char *text, struct wml_err *err);

/* Sets *folder to the folder, or to the snapshot of the id in the hub's cache. verb: what the user does, "export". An ONNX
 * file is WML_E_USAGE. */
bool wml_checkpoint_folder(struct wml_ctx *cx, const char *text, const char *verb, enum wml_hub_what what, struct wml_buf *folder,
                           struct wml_err *err);

#endif
