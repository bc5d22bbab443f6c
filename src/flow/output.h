/* flow/output.h - rules for the files that commands write. */
#ifndef WML_FLOW_OUTPUT_H
#define WML_FLOW_OUTPUT_H

#include "base/str.h"

/* Refuses an existing file unless overwrite, a folder, and a target that is the input itself unless
 * overwrite; makes the parent folder. label: "Output file". input may be NULL. To be called before any
 * work. WML_E_EXISTS with the documented text. */
bool wml_output_check(const char *label, const char *path, bool overwrite, const char *input,
                      struct wml_err *err);
/* The same for a model, which is renamed into place: what is no ordinary file is refused even with overwrite, and so is
 * a name that is too long or missing. */
bool wml_output_check_model(const char *path, bool overwrite, const char *input, struct wml_err *err);
struct wml_output_name { const char *what, *path; }; /* "the source"; path NULL: there is none */
/* A further file of the command, whose path none of the others may have. option: "--report". WML_E_USAGE. */
bool wml_output_check_other(const char *option, const char *path, const struct wml_output_name *taken, size_t n, struct wml_err *err);
/* Errors speak of the user's folder, not of the private one inside it: replaces `stage` by `dir` in message and
 * hint. stage may be NULL. */
void wml_output_unstage(struct wml_err *err, const char *stage, const char *dir);
/* dir of `model` + stem + suffix: "a/net.onnx", "_opt.onnx" -> "a/net_opt.onnx". dir NULL: the model's. */
void wml_output_beside(struct wml_buf *out, const char *model, const char *dir, const char *suffix);

#endif
