/* flow/export_internal.h - what the files of `export` share. */
#ifndef WML_FLOW_EXPORT_INTERNAL_H
#define WML_FLOW_EXPORT_INTERNAL_H

#include "export/export.h"
#include "flow/export.h"
#include "flow/staged.h"

struct wml_export_run {
    const struct wml_export_args *a;
    struct wml_ctx *cx;
    struct wml_report *r;
    struct wml_arena arena;
    struct wml_json_doc *config, *preprocessor;
    struct wml_weights *weights;
    struct wml_export_source source;
    struct wml_export_plan plan;
    struct wml_export_opts opts;
    WML_VEC(struct wml_family_input) given;
};

/* The files of --input-specs, --shape-config and --dynamic-axes into opts. */
bool wml_export_read_specs(struct wml_export_run *r, struct wml_err *err);

#endif
