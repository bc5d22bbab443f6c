/* flow/machine.h - memory and load in the reports of benchmarks, from the replies of jobs (worker/measure.h). Internal to
 * src/flow. */
#ifndef WML_FLOW_MACHINE_H
#define WML_FLOW_MACHINE_H

#include "report/report.h"
#include "text/json.h"

/* "hw_monitor". u: the reply's usage, NULL: none was asked for. device: the kind that was asked for. */
struct wml_item *wml_machine_put_monitor(struct wml_item *root, const struct wml_json_val *u, struct wml_str device, bool simulated);
/* "memory". m: the reply's; NULL: nothing is put. */
void wml_machine_put_memory(struct wml_item *root, const struct wml_json_val *m);

#endif
