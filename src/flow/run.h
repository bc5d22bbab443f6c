/* flow/run.h - one inference from what people have: texts, arrays. A task (task/task.h) makes the model's inputs and reads its
 * outputs; the model runs in a child process. */
#ifndef WML_FLOW_RUN_H
#define WML_FLOW_RUN_H

#include "base/ctx.h"
#include "base/pair.h"
#include "ep/ep.h"
#include "report/report.h"

struct wml_run_args { /* strings are borrowed */
    const char *model;     /* an .onnx file, or a folder with one */
    const char *task;      /* NULL: that of the folder's build_manifest.json, or none: arrays */
    const char *tokenizer; /* NULL: beside the model */
    const char *text;      /* for the task's only field of texts; NULL: not given */
    const char *file;      /* .npz or .npy with the model's inputs, without a task; NULL: not given */
    const struct wml_pair *input, *param;
    size_t n_inputs, n_params;
    bool schema;           /* only what can be given */
    const char *output;    /* the rendered report goes there; NULL: nowhere */
    bool overwrite, json;
    struct wml_target_spec target;
};
/* WML_E_USAGE: inputs or parameters are given wrongly. WML_E_LOAD, WML_E_RUN: as the codes say, a child that died included. */
bool wml_flow_run(const struct wml_run_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);

#endif
