/* flow/optimize_internal.h - the parts of `optimize`. Internal to src/flow. */
#ifndef WML_FLOW_OPTIMIZE_INTERNAL_H
#define WML_FLOW_OPTIMIZE_INTERNAL_H

#include "base/map.h"
#include "flow/optimize.h"
#include "flow/oracle.h"
#include "flow/verify.h"
#include "onnx/onnx.h"
#include "text/json.h"

struct wml_op_counts { /* nodes by operator, sub-graphs included */
    struct wml_arena arena;
    struct wml_map map; /* name -> size_t */
    size_t top, all;
};
void wml_op_counts_fill(struct wml_op_counts *c, struct wml_model *m);
void wml_op_counts_release(struct wml_op_counts *c);

struct wml_optimize_run {
    const struct wml_optimize_args *args;
    struct wml_ctx *cx;
    struct wml_arena arena;
    struct wml_flow_oracle oracle;
    struct wml_model *model;
    struct wml_type **old_output_type; /* by output; NULL: nothing was forgotten */
    const char *output, *dir, *name, *stage; /* stage NULL: not made */
    enum wml_pass_choice *choice;            /* one per pass: what was asked for, completed */
    struct wml_pass_result *result;          /* one per pass */
    const char **undone;                     /* one per pass: why its work was undone; NULL: it was not */
    struct wml_pass_log log;
    const char *lossy;                       /* a pass that changes answers by design and did something */
    bool differs;                            /* the verification failed because of what the passes did */
    struct wml_op_counts before, after;
    uint64_t bytes_before, bytes_after;
    WML_VEC(const char *) source_data;       /* files that the source keeps weights in */
    int64_t opset_before;
    const struct wml_feed_dim *dim; /* sizes of symbols: those typed, and those that follow from typed shapes */
    size_t n_dims;
    struct wml_onnx_saved saved;
    bool verified;
    struct wml_verify verify;
    const char *verify_note;        /* why it was not verified, or NULL */
    struct wml_json_doc *placement; /* reply of job "load"; NULL: none */
    const char *target_status, *target_note;
    const char *target_hint;
    const struct wml_ep *ep; /* NULL: none or automatic */
    WML_VEC(const char *) warning;
};

/* Adds a warning, unless it is there already. */
void wml_optimize_warn(struct wml_optimize_run *r, struct wml_str text);
/* Sets the shapes of inputs and forgets what follows from the old ones. */
bool wml_optimize_shapes(struct wml_optimize_run *r, struct wml_err *err);
/* Converts to args->opset and notes what it was. */
bool wml_optimize_opset(struct wml_optimize_run *r, const struct wml_env *env, struct wml_err *err);
/* Outputs whose type was forgotten and not found again get the old one back. */
void wml_optimize_restore_types(struct wml_optimize_run *r);
/* Loads the source and runs the passes over it, max_steps (0: all) of them; what was there before is freed. */
bool wml_optimize_make(struct wml_optimize_run *r, size_t max_steps, size_t *n_steps, size_t *last, struct wml_err *err);
/* The path is a file that the source keeps weights in. */
bool wml_optimize_is_source_data(const struct wml_optimize_run *r, const char *path);
/* Runs source and result: r->verify. false: one of them cannot be run. */
bool wml_optimize_compare(struct wml_optimize_run *r, struct wml_model *after, struct wml_err *err);
/* The pass that made the answers differ, found by halving the sequence of steps; SIZE_MAX: none can be blamed. */
bool wml_optimize_blame(struct wml_optimize_run *r, size_t *pass, struct wml_err *err);
/* What each pass did (args->explain), and what was left alone. */
void wml_optimize_explain(const struct wml_optimize_run *r, struct wml_item *root);
/* Writes args->diff. */
bool wml_optimize_diff(struct wml_optimize_run *r, struct wml_err *err);
/* Saves, verifies, renames into place. */
bool wml_optimize_save(struct wml_optimize_run *r, struct wml_err *err);
/* Loads the saved file on the target, in a child. Its failure is a note, never an error. */
void wml_optimize_check_target(struct wml_optimize_run *r);
void wml_optimize_report(const struct wml_optimize_run *r, struct wml_report *out);

#endif
