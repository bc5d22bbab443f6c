/* flow/export.h - the verb `export`: a Hugging Face folder to ONNX files. */
#ifndef WML_FLOW_EXPORT_H
#define WML_FLOW_EXPORT_H

#include "base/ctx.h"
#include "report/report.h"

struct wml_export_args {
    const char *model;  /* a folder with config.json and weights */
    const char *output; /* "net.onnx"; the parts of a composite get "net_<part>.onnx" */
    bool overwrite;
    const char *task;     /* NULL: what the config says */
    const char *submodel; /* of a composite: this part alone; NULL: all */
    int64_t batch, opset;
    bool hierarchy;
    const char *input_specs, *shape_config, *dynamic_axes; /* JSON files, or NULL */
};

bool wml_flow_export(const struct wml_export_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);

#endif
