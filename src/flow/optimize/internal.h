/* flow/optimize/internal.h - the parts of `optimize`. Internal to this folder. */
#ifndef WML_FLOW_OPTIMIZE_INTERNAL_H
#define WML_FLOW_OPTIMIZE_INTERNAL_H

#include "base/map.h"
#include "flow/optimize.h"
#include "flow/oracle.h"
#include "flow/staged.h"
#include "flow/target.h"
#include "flow/verify.h"
#include "text/json.h"

struct wml_op_counts { /* nodes by operator, sub-graphs included */
    struct wml_arena arena;
    struct wml_map map; /* name -> size_t */
    size_t top, all;
};
void wml_op_counts_fill(struct wml_op_counts *c, struct wml_model *m);
void wml_op_counts_release(struct wml_op_counts *c);

struct wml_want_state { /* a row of the target's EP, and what became of it */
    const struct wml_ep_want *want;
    size_t pass;
    bool on;
    const char *reason; /* why it is not on */
};

struct wml_optimize_run {
    const struct wml_optimize_args *args;
    struct wml_ctx *cx;
    struct wml_arena arena;
    struct wml_flow_oracle oracle;
    struct wml_model *model;
    struct wml_type **old_output_type; /* by output; NULL: nothing was forgotten */
    struct wml_staged staged;
    enum wml_pass_choice *choice;            /* one per pass: what was asked for, completed */
    struct wml_pass_result *result;          /* one per pass */
    const char **undone;                     /* one per pass: why its work was undone; NULL: it was not */
    struct wml_pass_log log;
    const char *lossy;                       /* a pass that changes answers by design and did something */
    bool differs;                            /* the verification failed because of what the passes did */
    struct wml_op_counts before, after;
    int64_t opset_before;
    const struct wml_feed_dim *dim; /* sizes of symbols: those typed, and those that follow from typed shapes */
    size_t n_dims;
    bool verified;
    struct wml_verify verify;
    const char *verify_note;        /* why it was not verified, or NULL */
    const char *load_error;         /* why ONNX Runtime does not load the source, or NULL */
    struct wml_json_doc *placement; /* reply of job "load"; NULL: none */
    const char *target_status, *target_note;
    const char *target_hint;
    const struct wml_ep *ep; /* NULL: none, or one without a row */
    struct wml_want_state *want;
    size_t n_wants;
    struct wml_placed_count placed_before, placed_after;
    WML_VEC(const char *) warning;
};

/* Adds a warning, unless it is there already. */
void wml_optimize_warn(struct wml_optimize_run *r, struct wml_str text);
/* Which EP the target means: r->ep. With a device alone a child is asked. */
bool wml_optimize_target(struct wml_optimize_run *r, struct wml_err *err);
/* Whether the target is known to take an operator, "Op" or "domain::Op". */
bool wml_optimize_target_takes(const struct wml_optimize_run *r, struct wml_str op);
/* r->choice: what was asked for, completed. */
bool wml_optimize_choose(struct wml_optimize_run *r, struct wml_err *err);
/* Loads the source, with the shapes and the opset that were typed; what was there before is freed. */
bool wml_optimize_load(struct wml_optimize_run *r, const struct wml_env *env, struct wml_err *err);
/* What the caller said of how passes work, into env. */
void wml_optimize_bounds(const struct wml_optimize_run *r, struct wml_env *env);
/* err: of a run that failed, so that it speaks of the user's folder; else NULL. */
void wml_optimize_release(struct wml_optimize_run *r, struct wml_err *err);
/* Sets the shapes of inputs and forgets what follows from the old ones. */
bool wml_optimize_shapes(struct wml_optimize_run *r, struct wml_err *err);
/* Converts to args->opset and notes what it was. */
bool wml_optimize_opset(struct wml_optimize_run *r, const struct wml_env *env, struct wml_err *err);
/* Outputs whose type was forgotten and not found again get the old one back. */
void wml_optimize_restore_types(struct wml_optimize_run *r);
/* Loads the source and runs the passes over it, max_steps (0: all) of them; what was there before is freed. */
bool wml_optimize_make(struct wml_optimize_run *r, size_t max_steps, size_t *n_steps, size_t *last, struct wml_err *err);
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
/* Loads the saved file on the target. Its failure is a note, never an error. false: the target was better off with the
 * source, *why says how. */
bool wml_optimize_check_target(struct wml_optimize_run *r, const char **why);
/* What the target's EP wants: found and weighed, switched on, asked for after the passes ran (they run again when the
 * answer says so), taken back (false: nothing was done because of it), listed. */
void wml_optimize_wants_find(struct wml_optimize_run *r);
void wml_optimize_wants_choose(struct wml_optimize_run *r);
bool wml_optimize_wants_ask(struct wml_optimize_run *r, struct wml_err *err);
bool wml_optimize_wants_undo(struct wml_optimize_run *r, const char *why);
void wml_optimize_wants_report(const struct wml_optimize_run *r, struct wml_item *target, struct wml_item *root);
void wml_optimize_report(const struct wml_optimize_run *r, struct wml_report *out);

#endif
