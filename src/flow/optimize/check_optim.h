/* flow/optimize/check_optim.h - `optimize --check-optim`: what each capability would do to a model. Internal to this folder.
 *
 * The passes run once as they run by default. Where a pass stands that is not on, it is tried on a copy of the graph as
 * it stands there (weights are shared). A copy on which it did something goes on through the rest of the passes by
 * itself; how its end differs from that of the default run is the finding. What needs another pass is compared with
 * the run of that one. So each finding is what the flag would do, and no pass is run before it has a match. */
#ifndef WML_FLOW_OPTIMIZE_CHECK_OPTIM_H
#define WML_FLOW_OPTIMIZE_CHECK_OPTIM_H

#include "flow/optimize/graph_diff.h"
#include "flow/optimize/internal.h"

enum wml_finding_kind {
    WML_FINDING_OFF,     /* not tried: it is on already */
    WML_FINDING_NOTHING, /* no match; reason may say why */
    WML_FINDING_FOUND,
    WML_FINDING_SKIPPED, /* not for this target, or cannot be had at all; reason */
    WML_FINDING_FAILED   /* reason */
};

struct wml_finding { /* one per pass */
    enum wml_finding_kind kind;
    char reason[256];
    size_t parent;  /* compared with the run of this pass; SIZE_MAX: with the default run */
    size_t matches; /* times that it changed something */
    struct wml_graph_diff diff;
    double ms;
};

struct wml_check_optim {
    struct wml_optimize_run *r;
    struct wml_ctx quiet;         /* without progress: probes are too short for it */
    struct wml_finding *finding;  /* one per pass */
    struct wml_graph_diff standard; /* what the default run changes */
    struct wml_pass_result *standard_result;
    size_t n_probed, n_done;
    double ms;
};

bool wml_check_optim_run(struct wml_check_optim *c, struct wml_err *err);
void wml_check_optim_report(const struct wml_check_optim *c, struct wml_report *out);

#endif
