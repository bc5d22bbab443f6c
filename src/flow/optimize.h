/* flow/optimize.h - the verb `optimize`. */
#ifndef WML_FLOW_OPTIMIZE_H
#define WML_FLOW_OPTIMIZE_H

#include "base/ctx.h"
#include "ep/ep.h"
#include "passes/passes.h"
#include "report/report.h"
#include "worker/feed.h"

enum wml_verify_choice { WML_VERIFY_AUTO, WML_VERIFY_ON, WML_VERIFY_OFF }; /* AUTO: where it is cheap */

struct wml_optimize_args {
    const char *model, *output; /* output NULL: <stem>_opt.onnx beside the model */
    bool overwrite;
    bool reference_weights;     /* the output points into the source's files */
    bool has_target;            /* an EP or a device was named */
    struct wml_target_spec target;
    bool verify_target;
    enum wml_verify_choice verify;
    const char *verify_data; /* inputs to verify with: .npz or a folder of .npy; NULL: seeded ones */
    const enum wml_pass_choice *choice; /* one per pass */
    const struct wml_feed_shape *shape; /* fixed shapes of inputs; -1: unknown */
    size_t n_shapes;
    const struct wml_feed_dim *dim; /* sizes of symbols */
    size_t n_dims;
    int64_t opset;     /* to convert to before the passes run; 0: as it is */
    bool allow_unsafe; /* chosen passes may make operators that the target has not */
    bool explain;      /* list what each pass did */
    bool verbose;      /* list what was left alone, and why */
    const char *diff;  /* HTML file with before and after side by side; NULL: none */
    enum wml_ort_level ort_level;
    bool clamp;        /* clamp-constant-values has bounds of the caller's */
    double clamp_min, clamp_max;
    uint64_t timeout_ms; /* of the check on the target */
};

bool wml_flow_optimize(const struct wml_optimize_args *a, struct wml_ctx *cx, struct wml_report *r,
                       struct wml_err *err);
/* What every capability would do to the model, each by itself; nothing is written. output, choice and what concerns
 * saving are not looked at. */
bool wml_flow_check_optim(const struct wml_optimize_args *a, struct wml_ctx *cx, struct wml_report *r, struct wml_err *err);
/* The catalogue of passes, as a report; rewrites: only the pattern rewrites. */
void wml_flow_capabilities(struct wml_report *r, bool verbose, bool rewrites);

#endif
