/* flow/run/internal.h - what the files behind run.h share. */
#ifndef WML_FLOW_RUN_INTERNAL_H
#define WML_FLOW_RUN_INTERNAL_H

#include "flow/run.h"
#include "graph/model.h"
#include "task/task.h"
#include "text/json.h"

struct wml_run_call {
    struct wml_arena arena;
    const struct wml_run_args *args;
    struct wml_ctx *cx;
    const char *path;            /* of the .onnx file */
    const struct wml_task *task; /* wml_task_tensors: none */
    struct wml_model *model;
    struct wml_task_field *field; /* of the task, or made of the model's inputs; {0} ends */
    struct wml_tok *tok;
    struct wml_task_work work;
    struct wml_json_doc *reply;  /* of the child */
    struct wml_buf folder;       /* private: what goes to the child and comes from it; the outputs are mapped there */
    double run_ms;               /* of all samples */
};

/* Finds file and task, and reads the model's inputs into work.input. */
bool wml_run_find(struct wml_run_call *c, struct wml_err *err);
/* What was typed into work.value and work.param: names, clashes, values that must be there. */
bool wml_run_values(struct wml_run_call *c, struct wml_err *err);
/* Runs the model on work.sample, in a child; work.answer gets its outputs. */
bool wml_run_infer(struct wml_run_call *c, struct wml_err *err);
/* Fields and parameters. hint: nothing was given, and this is the answer. */
void wml_run_put_schema(const struct wml_run_call *c, struct wml_item *root, bool hint);

#endif
