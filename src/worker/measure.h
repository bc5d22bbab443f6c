/* worker/measure.h - what jobs that measure share: memory before, after loading and after running, load of the machine, and
 * both in their replies. */
#ifndef WML_WORKER_MEASURE_H
#define WML_WORKER_MEASURE_H

#include "monitor/sampler.h"
#include "text/json.h"

struct wml_memory_points { /* zero it */
    uint64_t rss[3], peak;            /* bytes: before, loaded, after; the most since the first */
    struct wml_loads *loads;          /* NULL on the CPU EP */
    double local_mb[3], shared_mb[3]; /* on accelerators; < 0: not known */
};
/* Takes the first point. Again: starts anew. */
void wml_memory_begin(struct wml_memory_points *m, bool accelerator);
void wml_memory_look(struct wml_memory_points *m, size_t point);
void wml_memory_end(struct wml_memory_points *m);

enum { WML_LIVE_TEXT = 128 };
/* The newest sample as the item of a progress, see monitor/chart.h. ms: of the last run. */
void wml_live_item(struct wml_sampler *sampler, double ms, char out[WML_LIVE_TEXT]);

/* "memory": bytes, and MB on accelerators; "usage". */
void wml_memory_put(struct wml_json *j, const struct wml_memory_points *m);
void wml_usage_put(struct wml_json *j, const struct wml_usage *u);

#endif
