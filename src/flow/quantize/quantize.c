/* quantize: methods over the graph in memory, one after another; the file is written once, into a private folder, its
 * answers are compared with the source's, then it is renamed into place. */
#include "flow/quantize/internal.h"

#include <inttypes.h>
#include <stdarg.h>

#include "flow/output.h"
#include "flow/ranges.h"
#include "flow/source.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/store.h"
#include "onnx/onnx.h"
#include "opset/opset.h"
#include "ops/ops.h"
#include "os/path.h"
#include "os/sys.h"

static const uint64_t ACCURACY_AUTO_MAX = UINT64_C(2) << 30, ACCURACY_AUTO_MS = 3000;

void wml_quantize_warn(struct wml_quantize_run *r, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    WML_PUSH_IN(&r->arena, &r->warning, wml_arena_cstr(&r->arena, wml_str(text)));
}

static bool find_quantized(void *arg, struct wml_node *n)
{
    bool *found = arg;
    bool contrib = wml_str_is(n->domain, "com.microsoft") &&
                   (wml_str_is(n->op_type, "MatMulNBits") || wml_str_is(n->op_type, "QuantizeLinear") || wml_str_is(n->op_type, "DequantizeLinear"));
    *found = contrib || wml_op_has(n, WML_OP_QUANT);
    return !*found;
}

static bool load(struct wml_quantize_run *r, struct wml_err *err)
{
    if (!wml_source_load(r->args->model, "quantize", &r->model, err) || !wml_staged_guard(&r->staged, r->model, err)) return false;
    if (r->args->html && !wml_staged_guard_file(&r->staged, r->args->html, err)) return false;
    if (r->model->ir_version < WML_IR_SEPARATE_WEIGHTS) {
        wml_quantize_warn(r, "IR version %" PRId64 " became %d: weights are no longer inputs of the model", r->model->ir_version,
                          WML_IR_SEPARATE_WEIGHTS);
        wml_model_raise_ir(r->model, WML_IR_SEPARATE_WEIGHTS);
    }
    if (r->args->cache) wml_model_fingerprint(r->model, r->fingerprint);
    bool quantized = false;
    wml_graph_walk(r->model->graph, find_quantized, &quantized);
    if (quantized) wml_quantize_warn(r, "the model is quantised in part already: that part stays as it is");
    return true;
}

/* A conversion that fails half way leaves a model of no use: it is tried on a copy. */
static bool set_opset(void *arg, struct wml_model *m, int64_t opset, struct wml_err *err)
{
    size_t n_unsure;
    struct wml_model *copy = wml_onnx_clone(m, err);
    bool ok = copy && wml_opset_convert(copy, opset, &n_unsure, err);
    (void)arg;
    wml_model_free(copy);
    return ok && wml_opset_convert(m, opset, &n_unsure, err);
}

struct wml_samples_spec wml_quantize_samples(struct wml_quantize_run *r)
{
    const struct wml_quantize_args *a = r->args;
    const char *folder = wml_arena_cstr(&r->arena, wml_path_dir(wml_str(a->model)));
    return (struct wml_samples_spec){.data = a->data, .count = a->samples, .tokenizer = a->tokenizer ? a->tokenizer : folder,
                                     .preprocessor = a->preprocessor, .beside = folder, .cx = r->cx, .kept = &r->samples,
                                     .feed = {.seed = a->seed, .shape = a->shape, .n_shapes = a->n_shapes, .dim = a->dim, .n_dims = a->n_dims}};
}

/* Of several passes, the one that failed is named. */
static bool fail_step(const struct wml_quantize_run *r, const struct wml_quantize_step *s, struct wml_err *err)
{
    if (r->n_steps > 1) wml_wrap(err, "pass %zu of %zu (%s)", (size_t)(s - r->step) + 1, r->n_steps, s->method->name);
    return wml_wrap(err, "%s", r->args->model);
}

static void tell_of_samples(struct wml_quantize_run *r, struct wml_quant_run *run)
{
    const struct wml_calibration *c = &r->calibration;
    if (c->n_unseen)
        wml_quantize_warn(r, "%zu value%s held no number in any sample (the first: '%s'): the samples are empty or broken for it", c->n_unseen,
                          c->n_unseen > 1 ? "s" : "", c->unseen);
    if (c->n_odd)
        wml_quant_note(run, WML_STR("samples"), "%zu value%s held NaN or infinities, too (the first: '%s'), which the ranges leave out", c->n_odd,
                       c->n_odd > 1 ? "s" : "", c->odd);
}

static struct wml_calibration_spec calibration_spec(struct wml_quantize_run *r, const struct wml_quantize_step *s)
{
    const struct wml_quantize_args *a = r->args;
    struct wml_calibration_spec spec = {.method = a->method, .range = a->range, .cache = a->cache, .samples = wml_quantize_samples(r)};
    const struct wml_range_method *method = wml_range_method_find(a->method);
    spec.range.integer = s->opts.activation;
    if (method && method->fits_type && s->opts.symmetric_activation == WML_SYMMETRY_ON) spec.range.form = WML_RANGE_SYMMETRIC;
    return spec;
}

bool wml_quantize_calibrate(struct wml_quantize_run *r, const struct wml_quantize_step *s, struct wml_value *const *want, size_t n, struct wml_err *err)
{
    struct wml_calibration_spec spec = calibration_spec(r, s);
    struct wml_calibration more;
    spec.cache = NULL; /* it has the rest */
    spec.samples.cx = NULL;
    if (!wml_flow_calibrate(r->cx, r->model, want, n, &spec, &more, err)) return false;
    for (size_t i = 0; i < n; i++) {
        const struct wml_range *range = wml_ranges_find(&more.ranges, want[i]->name);
        if (range) wml_ranges_put(&r->calibration.ranges, want[i]->name, *range);
    }
    wml_calibration_release(&more);
    return true;
}

static bool calibrate(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, struct wml_err *err)
{
    struct wml_calibration_spec spec = calibration_spec(r, s);
    struct wml_quant_values want = {0};
    if (!s->method->prepare(run, err) || !wml_quantize_fit(r, s, run, &spec.samples, false, err) || !s->method->wanted(run, &want, err))
        return fail_step(r, s, err);
    wml_quantize_cache_facts(r, s, &spec.range, &spec.facts);
    if (!wml_flow_calibrate(r->cx, r->model, want.v.at, want.v.len, &spec, &r->calibration, err)) return false;
    s->opts.ranges = &r->calibration.ranges;
    tell_of_samples(r, run);
    if (r->other_model) wml_quantize_warn(r, "%s comes from another model: remove it to calibrate again", r->args->cache);
    return s->opts.wide || wml_quantize_fit(r, s, run, &spec.samples, true, err); /* mixed precision: when types are settled */
}

static bool apply(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_err *err)
{
    struct wml_quant_env env = {.arg = &r->oracle, .infer_types = wml_flow_env(&r->oracle).infer_types, .set_opset = set_opset};
    struct wml_quant_run run = {.model = r->model, .opts = &s->opts, .env = &env, .cx = r->cx, .result = &s->result};
    uint64_t start = wml_now_ns();
    r->oracle.open = r->oracle.nodes = 0;
    s->opts.wide = r->args->mixed && s->method->wanted;
    if (s->method->wanted && !calibrate(r, s, &run, err)) return false;
    bool by_placement = s->method->wanted && r->args->float_refused && wml_quantize_asks(r);
    if (by_placement && !wml_quantize_by_placement(r, s, &run, err)) return fail_step(r, s, err);
    if (!s->opts.wide) wml_note_progress(r->cx, s->method->label, r->staged.name, 0, 0, NULL);
    struct wml_err why = {0};
    bool ok = s->opts.wide ? wml_quantize_mix(r, s, &run, &why) : by_placement || s->method->apply(&run, &why);
    if (!ok && (s->opts.wide || !s->what->rest || why.code != WML_E_UNSUPPORTED)) {
        *err = why;
        return fail_step(r, s, err);
    }
    if (why.code) wml_quantize_warn(r, "%s: %s", s->method->name, why.msg);
    s->ms = (double)(wml_now_ns() - start) / 1e6;
    return true;
}

static bool has_method(const struct wml_quantize_run *r, const char *name)
{
    for (size_t i = 0; i < r->n_steps; i++)
        if (strcmp(r->step[i].method->name, name) == 0) return true;
    return false;
}

/* No comparison, but that is not the result's fault: the source does not run here, or nobody can make inputs for it. */
static bool is_excused(const struct wml_quantize_run *r, const struct wml_err *why)
{
    switch (r->accuracy.failed) {
    case WML_ACCURACY_SOURCE_LOAD:
    case WML_ACCURACY_SOURCE_RUN: return true;
    case WML_ACCURACY_SAMPLES: return why->code == WML_E_UNSUPPORTED && !r->args->data;
    default: return false;
    }
}

/* Answers that got worse are shown, not judged: how much is too much, the user knows. */
static bool measure(struct wml_quantize_run *r, struct wml_err *err)
{
    const struct wml_quantize_args *a = r->args;
    struct wml_samples_spec samples = wml_quantize_samples(r);
    struct wml_err why = {0};
    bool asked = a->accuracy == WML_VERIFY_ON;
    if (a->accuracy == WML_VERIFY_OFF) r->accuracy_note = "not measured: switched off";
    else if (!asked && r->staged.bytes_before > ACCURACY_AUTO_MAX)
        r->accuracy_note = "not measured: a model above 2 GiB takes long to run; ask with --accuracy";
    else if (!asked && has_method(r, "bf16"))
        r->accuracy_note = "not measured: ONNX Runtime's CPU kernels hardly take bfloat16";
    if (r->accuracy_note) return true;
    wml_model_ranges(r->model, &r->arena, &samples.feed);
    wml_model_drop_all(r->model);
    if (wml_accuracy_measure(r->cx, a->model, r->staged.path, &samples, asked ? 0 : ACCURACY_AUTO_MS, &r->accuracy, &why)) return true;
    if (why.code == WML_E_CANCELLED || asked || !is_excused(r, &why)) {
        *err = why;
        if (r->accuracy.failed == WML_ACCURACY_RESULT && why.code != WML_E_CANCELLED)
            wml_wrap(err, "the quantized model does not run on the CPU, nothing was written");
        return wml_hint(err, "--no-accuracy writes it anyway");
    }
    if (r->accuracy.failed == WML_ACCURACY_SOURCE_LOAD) wml_quantize_warn(r, "what came out was not run: %.400s", why.msg);
    r->accuracy_note = why.code == WML_E_TIMEOUT ? "not measured: one run takes more than 3 s; ask with --accuracy"
                                                 : wml_arena_fmt(&r->arena, "not measured: %.300s", why.msg).ptr;
    return true;
}

static bool rank(struct wml_quantize_run *r, struct wml_err *err)
{
    const struct wml_quantize_args *a = r->args;
    struct wml_samples_spec samples = wml_quantize_samples(r);
    samples.cx = NULL; /* what there is to tell, was told before */
    if (!a->rank && !a->html) return true;
    WML_VEC(struct wml_quant_mask) mask = {0};
    for (size_t i = 0; i < r->n_steps; i++)
        for (size_t k = 0; k < r->step[i].result.mask.len; k++) WML_PUSH_IN(&r->arena, &mask, r->step[i].result.mask.at[k]);
    return wml_rank_measure(r->cx, a->model, r->staged.path, &samples, mask.at, mask.len, &r->rank, err) || wml_wrap(err, "the ranking of tensors");
}

static bool prepare(struct wml_quantize_run *r, const char *output, struct wml_err *err)
{
    const struct wml_quantize_args *a = r->args;
    const struct wml_output_name taken[] = {{"the source model", a->model}, {"the resulting model", output}, {"the calibration cache", a->cache}};
    return wml_staged_prepare(&r->staged, a->model, output, a->overwrite, err) &&
           (!a->cache || (wml_output_check_other("--calibration-cache", a->cache, taken, 2, err) &&
                         wml_output_check("Calibration cache", a->cache, true, NULL, err))) &&
           (!a->html || (wml_output_check_other("--report", a->html, taken, WML_COUNT(taken), err) &&
                         wml_output_check("HTML report", a->html, a->overwrite, NULL, err)));
}

static void release(struct wml_quantize_run *r, struct wml_err *err)
{
    wml_samples_drop(&r->samples);
    wml_accuracy_release(&r->accuracy);
    wml_rank_release(&r->rank);
    wml_mixed_release(&r->mixed);
    wml_calibration_release(&r->calibration);
    wml_quantize_target_release(&r->target);
    wml_model_free(r->model);
    while (r->base.len) wml_model_free(r->base.at[--r->base.len]);
    wml_quant_overrides_free(r->overrides);
    wml_out_release(&r->html);
    wml_staged_release(&r->staged, err);
    wml_flow_oracle_release(&r->oracle);
    wml_arena_release(&r->arena);
}

/* All that may go wrong does so before the first file has its name. */
static bool publish(struct wml_quantize_run *r, struct wml_err *err)
{
    return wml_quantize_html(r, err) && wml_staged_publish(&r->staged, err) &&
           (!r->html.temp || wml_out_commit(&r->html, err) || wml_wrap(err, "the model is written, its report is not"));
}

bool wml_flow_quantize(const struct wml_quantize_args *a, struct wml_ctx *cx, struct wml_report *out, struct wml_err *err)
{
    struct wml_quantize_run r = {.args = a, .cx = cx, .oracle = {.cx = cx, .any_rank = true}};
    uint64_t start = wml_now_ns();
    const char *output;
    bool ok = wml_quantize_plan(&r, &output, err) && prepare(&r, output, err);
    if (ok) wml_note_progress(cx, "Reading", a->model, 0, 0, NULL);
    ok = ok && load(&r, err);
    for (size_t i = 0; ok && i < r.n_steps; i++) ok = apply(&r, &r.step[i], err);
    ok = ok && wml_quantize_write(&r, err) && measure(&r, err) && rank(&r, err) && publish(&r, err);
    wml_end_progress(cx);
    r.ms = (double)(wml_now_ns() - start) / 1e6;
    if (ok) wml_quantize_report(&r, out);
    release(&r, ok ? NULL : err);
    return ok;
}
