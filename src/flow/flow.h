/* flow/flow.h - the verbs of the library, one per command: each fills a report. What a command needs from
 * its option rows arrives in the struct of the verb; strings are borrowed for the call. A verb that fails
 * leaves no file under a final name. */
#ifndef WML_FLOW_FLOW_H
#define WML_FLOW_FLOW_H

#include "base/ctx.h"
#include "ep/ep.h"
#include "report/report.h"

struct wml_sys_args {
    bool devices, eps; /* only these sections; both false: everything */
    bool verbose, compact;
};
bool wml_flow_sys(const struct wml_sys_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);

struct wml_inspect_args {
    const char *model; /* an ONNX file, the folder of a bundle or of a Hugging Face model, a model id; or NULL */
    bool all; /* every operator and initializer in text, not only the most frequent */
    /* Of Hugging Face models. NULL: what the config says. Without a model one of the last two must be there. */
    const char *task, *model_type, *model_class;
    bool hierarchy, list_tasks, verbose;
};
bool wml_flow_inspect(const struct wml_inspect_args *a, struct wml_ctx *cx, struct wml_report *r,
                      struct wml_err *err);

struct wml_catalog_args { /* filters; NULL: all */
    const char *model, *type, *task; /* equality without case */
    const char *ep;                  /* name or alias; "all-local": any that is installed here */
    const char *device;              /* "cpu", "gpu", "npu"; with ep: of that EP */
    const char *output;              /* NULL: none */
    bool overwrite;
};
bool wml_flow_catalog(const struct wml_catalog_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);

struct wml_compile_args {
    const char *const *model; /* several: they share one context; n_models >= 1 */
    size_t n_models;
    const char *output;     /* NULL: <stem>_<provider>_ctx.onnx in output_dir, or beside the model */
    const char *output_dir; /* NULL: the model's folder */
    const char *compiler;   /* "ort", "ort_session" */
    bool overwrite, embed, validate, isolate, cache;
    double min_cosine;      /* validation fails below */
    bool min_cosine_typed;  /* even where the source's own rounding is as coarse */
    uint64_t timeout_ms;    /* of each child; 0: none */
    struct wml_target_spec target;
};
bool wml_flow_compile(const struct wml_compile_args *a, struct wml_ctx *cx, struct wml_report *r,
                      struct wml_err *err);

#endif
