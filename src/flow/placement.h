/* flow/placement.h - where the nodes of a session run, as jobs tell it, in a report. */
#ifndef WML_FLOW_PLACEMENT_H
#define WML_FLOW_PLACEMENT_H

#include "report/report.h"
#include "text/json.h"

/* JSON: `key` in `in`, as it is (null when ORT cannot tell). Text: a table under `text`, titled. */
void wml_item_placement(struct wml_item *in, const char *key, struct wml_item *text, const char *title,
                        const struct wml_json_val *placement);

#endif
