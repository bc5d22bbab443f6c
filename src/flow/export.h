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
    bool hierarchy, with_report;
    bool batch_given, opset_given, hierarchy_given; /* by the user himself: configs do not change them */
    const char *config, *export_config; /* a build config, whose section `export` is read; a file of that section alone; or NULL */
    const char *input_specs, *shape_config, *dynamic_axes; /* JSON files, or NULL */
    const char *verify_against; /* .safetensors with in.<input> and out.<output>; NULL: nothing is run */
    double tolerance;           /* of the largest reference value of an output */
};

/* Beside every model: <stem>_htp_metadata.json, and with_report <stem>_htp_export_report.md. */
bool wml_flow_export(const struct wml_export_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);

#endif
