/* cmd/perf_live.h - the live panel of `perf --monitor` on a terminal: takes the place of the progress line while
 * runs go on, and gives it back. Internal to src/cmd. */
#ifndef WML_CMD_PERF_LIVE_H
#define WML_CMD_PERF_LIVE_H

#include "base/ctx.h"

struct wml_perf_live;
/* NULL when stderr is no terminal that can be redrawn. Texts must outlive it; unit: of the throughput, NULL: samples. */
struct wml_perf_live *wml_perf_live_start(struct wml_ctx *cx, const char *title, const char *device, double batch,
                                          const char *unit);
/* Erases the panel and restores cx. NULL is fine. */
void wml_perf_live_end(struct wml_perf_live *l);

#endif
