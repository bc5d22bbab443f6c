/* worker/target.h - targets, models and placements in job requests and replies. A child resolves the
 * target itself, so that the parent never loads vendor code.
 *
 *     request  "model": "m.onnx",
 *              "target": {"ep":"qnn","device":"npu","options":{"htp_arch":"73"},"compile":false}
 *     reply    "target": {"ep":"QNNExecutionProvider","device":"npu","hardware":"...","simulated":true,
 *                         "library":"...","source":"directory","ep_version":"2.7.0","options":{...},
 *                         "ort_version":"1.29.0"}
 *              "placement": [{"ep":"QNNExecutionProvider","nodes":120,"op_types":{"Conv":53,...}}, ...] */
#ifndef WML_WORKER_TARGET_H
#define WML_WORKER_TARGET_H

#include "ep/ep.h"
#include "text/json.h"

void wml_target_spec_put(struct wml_json *j, const struct wml_target_spec *s); /* as key "target" */
/* Strings alias the document or the arena. */
void wml_target_spec_get(const struct wml_json_val *request, struct wml_arena *arena,
                         struct wml_target_spec *out);
/* "target": facts of a resolved target. */
void wml_target_put(struct wml_json *j, const struct wml_target *t, const struct wml_ort *ort);
/* "placement": nodes per EP; writes null when this ORT cannot tell. */
void wml_placement_put(struct wml_json *j, const struct wml_session *s);

/* "elsewhere": the nodes that other EPs than this one run; null when this ORT cannot tell. */
void wml_elsewhere_put(struct wml_json *j, const struct wml_session *s, const char *ep);

/* A model as jobs are given it: "model" a path, or "skeleton" + "folder" for bytes in a file. */

/* Opens the session at `level`, or, when ORT itself fails on the model there (not on the CPU EP's lack of
 * kernels), at the next lower level, down to disabled. *level: what ran; note: why it is lower, or "". */
bool wml_session_open_falling(struct wml_ort *o, const struct wml_model_source *m, struct wml_session_opts *opts,
                              enum wml_opt_level *level, char note[256], struct wml_session **out,
                              struct wml_err *err);

#endif
