/* flow/inspect/bundle.h - the part of `inspect` that looks at GenAI bundles. Internal to this folder. */
#ifndef WML_FLOW_INSPECT_BUNDLE_H
#define WML_FLOW_INSPECT_BUNDLE_H

#include "report/report.h"

/* A damaged or missing model is told, and is no failure; a config that cannot be read is. */
bool wml_flow_inspect_bundle(const char *dir, struct wml_report *out, struct wml_err *err);

#endif
