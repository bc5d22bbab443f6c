/* flow/quantize/internal.h - the parts of `quantize`. Internal to this folder. */
#ifndef WML_FLOW_QUANTIZE_INTERNAL_H
#define WML_FLOW_QUANTIZE_INTERNAL_H

#include "flow/accuracy.h"
#include "flow/quantize/calibrate.h"
#include "flow/mixed.h"
#include "flow/oracle.h"
#include "flow/quantize.h"
#include "flow/quantize/target.h"
#include "flow/quantize/rank.h"
#include "flow/staged.h"
#include "graph/fingerprint.h"
#include "os/file.h"
#include "quant/overrides.h"
#include "quant/precision.h"
#include "quant/select.h"

struct wml_quantize_step {
    const struct wml_quant_step *what;
    const struct wml_quant_method *method;
    struct wml_quant_opts opts;
    struct wml_quant_result result;
    double ms;
};

struct wml_quantize_run {
    const struct wml_quantize_args *args;
    struct wml_ctx *cx;
    struct wml_arena arena;
    struct wml_flow_oracle oracle;
    struct wml_model *model;
    struct wml_quant_overrides *overrides;
    const char *ep; /* whose rules hold, or NULL */
    const struct wml_ep *ep_row; /* of the target; NULL: none, or not known */
    struct wml_staged staged;
    const char *precision; /* "w8a16", "int4 -> fp16" */
    struct wml_quantize_step *step;
    size_t n_steps;
    struct wml_samples *samples; /* what was read, for calibration and comparison; or NULL */
    struct wml_calibration calibration;
    char fingerprint[WML_FINGERPRINT]; /* of the source; "": no cache is asked for */
    bool other_model;                  /* the cache comes from another one */
    struct wml_accuracy accuracy;
    const char *accuracy_note; /* why it was not measured, or NULL */
    struct wml_rank rank;
    struct wml_out html;
    struct wml_mixed mixed;
    struct wml_quantize_target target;
    bool is_written; /* staged.path holds `model`, and the target was asked about it where it is to be */
    WML_VEC(struct wml_model *) base; /* what `model` shares bytes with */
    double ms;
    WML_VEC(const char *) warning;
};

/* Warns of options that were typed and that none of the steps reads. */
void wml_quantize_warn_unread(struct wml_quantize_run *r);
/* What the precisions stand for: r->step, r->precision, and the name of the output. */
bool wml_quantize_plan(struct wml_quantize_run *r, const char **output, struct wml_err *err);
void wml_quantize_warn(struct wml_quantize_run *r, const char *fmt, ...) WML_PRINTF(2, 3);
/* The tools for accuracy that were asked for: those of the float model when it is prepared and its ranges are not measured yet;
 * then, with `ranges` in the step's options, those that need a quantised model to compare with. */
bool wml_quantize_fit(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, const struct wml_samples_spec *samples,
                      bool ranges, struct wml_err *err);
/* What a cache of this step's ranges says of them; in r->arena. o: with the types that the method fits. */
void wml_quantize_cache_facts(struct wml_quantize_run *r, const struct wml_quantize_step *s, const struct wml_range_opts *o, struct wml_cache_facts *out);
struct wml_samples_spec wml_quantize_samples(struct wml_quantize_run *r);
/* Raises tensors until the outputs reach the goal, and puts the result in r->model; ranges are measured. */
bool wml_quantize_mix(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, struct wml_err *err);
/* The part of the HTML report about mixed precision; nothing when nobody asked for it. */
void wml_mixed_html(const struct wml_mixed *m, struct wml_buf *b);
/* Values that had no range yet get one. */
bool wml_quantize_calibrate(struct wml_quantize_run *r, const struct wml_quantize_step *s, struct wml_value *const *want, size_t n, struct wml_err *err);
/* `copy` shares bytes with r->model, and takes its place. */
void wml_quantize_adopt(struct wml_quantize_run *r, struct wml_model *copy);
/* target.c. Whether the target is to be asked what it takes. */
bool wml_quantize_asks(const struct wml_quantize_run *r);
/* Applies the step, with what the target refuses as integers left float; ranges are measured. Before a search for mixed
 * precision only the nodes are found. */
bool wml_quantize_by_placement(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, struct wml_err *err);
/* The staged file, and the target's answer about it; nothing when both are there already. */
bool wml_quantize_write(struct wml_quantize_run *r, struct wml_err *err);
/* The EP whose rules were applied; NULL: none. */
const char *wml_quantize_rules(const struct wml_quantize_run *r);
/* "600 of 600 nodes on ...", or why that is not known; the nodes that stay float for it, or nothing. */
void wml_quantize_target_line(const struct wml_quantize_run *r, struct wml_buf *out);
void wml_quantize_left_line(const struct wml_quantize_run *r, struct wml_buf *out);
void wml_quantize_put_target(const struct wml_quantize_run *r, struct wml_item *root);
/* The HTML report, where one is asked for, as r->html, which has no name yet; the ranking is at hand. */
bool wml_quantize_html(struct wml_quantize_run *r, struct wml_err *err);
void wml_quantize_report(const struct wml_quantize_run *r, struct wml_report *out);

#endif
