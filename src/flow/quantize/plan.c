/* From the names of precisions to methods with their options. */
#include "flow/output.h"
#include "flow/quantize/internal.h"
#include "os/path.h"

static bool add_step(struct wml_quantize_run *r, const char *name, const struct wml_quant_step *what, struct wml_err *err)
{
    const struct wml_quantize_args *a = r->args;
    struct wml_quantize_step *s = &r->step[r->n_steps++];
    *s = (struct wml_quantize_step){.what = what, .method = wml_quant_find(what->method), .opts = a->quant};
    s->opts.overrides = r->overrides;
    s->opts.ep = r->ep;
    if (!s->method) {
        wml_fail(err, WML_E_UNSUPPORTED, "precision '%s' is not available in this version", name);
        return wml_hint(err, "`winml quantize --help` lists those that are");
    }
    if (!s->opts.weight) s->opts.weight = wml_quant_ep_weight(s->method->wanted ? r->ep : NULL, what->weight ? what->weight : WML_U8);
    if (!s->opts.activation) s->opts.activation = what->activation ? what->activation : WML_U8;
    if (what->bits && s->opts.bits && s->opts.bits != what->bits)
        wml_quantize_warn(r, "rtn_bits is %u in the config: precision '%s' means %u bits, which it gets", s->opts.bits, name, what->bits);
    if (what->bits) s->opts.bits = what->bits;
    if (!s->opts.accuracy_level) s->opts.accuracy_level = what->accuracy_level;
    return true;
}

/* What the file of overrides and the target ask for. */
static bool read_rules(struct wml_quantize_run *r, struct wml_err *err)
{
    const struct wml_quantize_args *a = r->args;
    const struct wml_ep *ep = NULL;
    if (a->has_target && !wml_target_check(&a->target, &ep, err)) return false;
    if (a->has_target && !ep) ep = wml_target_ask_ep(r->cx, &a->target);
    if (ep && ep->quantizes && !a->n_precisions) {
        wml_fail(err, WML_E_USAGE, "%s quantizes float models itself when it loads them: for it there is nothing to do here", ep->label);
        return wml_hint(err, "give it the float model; -p NAME quantizes all the same");
    }
    r->ep_row = ep;
    r->ep = ep && ep->alias ? ep->alias[0] : NULL;
    return !a->overrides || (r->overrides = wml_quant_overrides_load(a->overrides, err)) != NULL;
}

static bool check_mixed(const struct wml_quantize_run *r, struct wml_err *err)
{
    for (size_t i = 0; i < r->n_steps; i++)
        if (!r->args->mixed || r->step[i].method->wanted) return true;
    wml_fail(err, WML_E_USAGE, "--auto-mixed and --target-sqnr raise tensors of static quantisation, and '%s' has none", r->precision);
    return wml_hint(err, "with -p w8a8, for example");
}

bool wml_quantize_plan(struct wml_quantize_run *r, const char **output, struct wml_err *err)
{
    static const char *const fallback[] = {"auto"};
    const struct wml_quantize_args *a = r->args;
    const char *const *name = a->n_precisions ? a->precision : fallback;
    size_t n = a->n_precisions ? a->n_precisions : 1;
    struct wml_buf title = {0}, suffix = {0}, path = {0};
    bool ok = true;
    if (!read_rules(r, err)) return false;
    r->step = WML_NEW_ARRAY(&r->arena, struct wml_quantize_step, n * WML_PRECISION_STEPS);
    for (size_t i = 0; ok && i < n; i++) {
        const struct wml_precision *p = wml_precision_find(name[i], err);
        ok = p != NULL;
        for (size_t k = 0; ok && k < WML_PRECISION_STEPS && p->step[k].method; k++) ok = add_step(r, name[i], &p->step[k], err);
        wml_buf_fmt(&title, "%s%s", i ? " -> " : "", name[i]);
        if (n > 1) wml_buf_fmt(&suffix, "_%s", name[i]);
        else if (ok) wml_buf_cstr(&suffix, p->suffix);
    }
    wml_buf_cstr(&suffix, ".onnx");
    r->precision = wml_arena_cstr(&r->arena, wml_buf_view(&title));
    if (a->output) wml_buf_cstr(&path, a->output);
    else wml_output_beside(&path, a->model, NULL, wml_buf_text(&suffix));
    *output = wml_arena_cstr(&r->arena, wml_buf_view(&path));
    ok = ok && check_mixed(r, err);
    if (ok) wml_quantize_warn_unread(r);
    wml_buf_release(&title);
    wml_buf_release(&suffix);
    wml_buf_release(&path);
    return ok;
}
