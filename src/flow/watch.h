/* flow/watch.h - a session over a model in memory that shows values of its top graph while it runs (ort/observe.h). */
#ifndef WML_FLOW_WATCH_H
#define WML_FLOW_WATCH_H

#include "graph/model.h"
#include "ort/ort.h"

enum { WML_WATCH_TAG = 2 }; /* numbers in a run's tag */

/* On the CPU, without ORT's optimisations. Value want[i] is slot i of the observer; in the order of the graph, values need
 * the memory of one at a time. threads: of one run (0: ORT's choice). The last of the session's inputs is not the
 * model's: int64[WML_WATCH_TAG], the tag that comes back with every value. The model is as it was afterwards. */
bool wml_flow_watch(struct wml_ctx *cx, struct wml_model *m, struct wml_value *const *want, size_t n,
                    const struct wml_observer *observer, unsigned threads, struct wml_session **out, struct wml_err *err);

/* The same model as bytes, for a session of another process; weights stay in files of *folder, which lives as long as m. */
bool wml_flow_watched(struct wml_model *m, struct wml_value *const *want, size_t n, struct wml_buf *out, struct wml_str *folder, struct wml_err *err);

/* About the largest part of a run's values that is alive at one time, in bytes; 0: some sizes are open. */
uint64_t wml_flow_live_bytes(struct wml_model *m);
/* Of the top graph's initializers. */
uint64_t wml_flow_weight_bytes(const struct wml_model *m);
/* How many runs, of n, to have at one time: as many as there are cores, as long as their values together take little beside the
 * weights. */
unsigned wml_flow_workers(struct wml_model *m, size_t n);

#endif
