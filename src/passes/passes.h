/* passes/passes.h - the optimiser: passes over a graph (pass.h), one per file, run in the order of passes.def until
 * nothing changes. Every pass ends in applied, nothing to do, skipped or failed, with a reason: nothing is dropped
 * silently. */
#ifndef WML_PASSES_PASSES_H
#define WML_PASSES_PASSES_H

#include "passes/pass.h"

#define PASS(id, name) extern const struct wml_pass wml_pass_##id;
#include "passes/passes.def"
#undef PASS

extern const struct wml_pass *const wml_passes[];
extern const size_t wml_n_passes;
/* Index by name, dashes or underscores; SIZE_MAX: unknown. */
size_t wml_pass_find(struct wml_str name);

enum wml_pass_choice { WML_PASS_DEFAULT, WML_PASS_ON, WML_PASS_OFF };

enum wml_pass_status { WML_PASS_NOTHING, WML_PASS_APPLIED, WML_PASS_SKIPPED, WML_PASS_FAILED };
const char *wml_pass_status_name(enum wml_pass_status s); /* "nothing to do", "applied", ... */

struct wml_pass_result {
    enum wml_pass_status status;
    char reason[256];
    size_t applied, rounds;
    int64_t nodes_removed; /* negative: added. Top graph and sub-graphs */
    double ms;
};

/* choice, result: one entry per pass of wml_passes. One that fails is reported, the others go on. *m may be another then. */
struct wml_passes_opts {
    const struct wml_env *env;
    const enum wml_pass_choice *choice;
    struct wml_ctx *cx;
    uint64_t (*now_ns)(void);
    struct wml_pass_log *log; /* NULL: not kept */
    size_t max_steps;         /* stop after that many runs of single passes (bisection); 0: no limit */
    size_t n_steps, last;     /* set: how many there were, index of the pass of the last one */
    size_t from_round, from_pass; /* goes on in the middle of such a run */
    bool changed, from_late;      /* something has changed in that round; it is one of the late passes */
    /* Called where a pass stands that is not on, or is wider, with the model as it would find it; NULL: nobody asks. */
    bool (*probe)(void *arg, struct wml_model *m, size_t round, size_t pass, struct wml_err *err);
    void *probe_arg;
};
bool wml_passes_run(struct wml_model **m, struct wml_passes_opts *o, struct wml_pass_result *result, struct wml_err *err);

/* Completes a choice: what a chosen pass needs is chosen too. WML_E_USAGE with both names when that was switched
 * off; with the reason when a chosen pass is refused, undoes another chosen one, or makes operators that the target
 * has not. ep: alias of the target's EP, NULL: the CPU EP. any: do it all the same. */
bool wml_passes_settle(enum wml_pass_choice *choice, const char *ep, bool any, struct wml_err *err);

#endif
