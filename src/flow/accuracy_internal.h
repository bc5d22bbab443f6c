/* flow/accuracy_internal.h - what comparisons of models share. Internal to src/flow. */
#ifndef WML_FLOW_ACCURACY_INTERNAL_H
#define WML_FLOW_ACCURACY_INTERNAL_H

#include "flow/accuracy.h"

/* A row for every output of the float model. */
void wml_accuracy_start(struct wml_accuracy *out, const struct wml_io *output, size_t n);
/* b against a, added to what the row has seen; other sizes or types make it a row of no comparison. */
void wml_accuracy_add(struct wml_accuracy_row *row, const struct wml_tensor_view *a, const struct wml_tensor_view *b);
/* The feed in the types of the session's inputs: half floats, when those were asked for there as well. What is as it was,
 * is borrowed. */
bool wml_accuracy_convert(const struct wml_session *session, const struct wml_feed *feed, struct wml_feed *out, struct wml_err *err);
/* Nothing but the reason is left. */
void wml_accuracy_give_up(struct wml_accuracy *out);
/* false; out->failed is what, and *err says so. */
bool wml_accuracy_fail(struct wml_accuracy *out, enum wml_accuracy_failed what, struct wml_err *err);

/* A view whose data and sizes are on the heap: free() of its dim releases both. */
struct wml_tensor_view wml_view_copy(const struct wml_tensor_view *v);
void wml_view_free(struct wml_tensor_view *v);

#endif
