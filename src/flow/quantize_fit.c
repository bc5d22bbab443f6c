/* The tools for accuracy (quant/fit.h) at their place between the steps of a method. */
#include "flow/quantize_internal.h"
#include "quant/fit.h"

static bool run_one(struct wml_quantize_run *r, const struct wml_fit *f, struct wml_quant_run *run, struct wml_err *err)
{
    size_t count = 0;
    wml_note_progress(r->cx, "Accuracy", f->name, 0, 0, NULL);
    if (!f->apply(run, NULL, 0, &count, err)) return wml_wrap(err, "%s", f->name);
    struct wml_quant_count row = {f->name, f->what, count};
    WML_PUSH_IN(&r->model->arena, &run->result->fit, row);
    if (!count) wml_quantize_warn(r, "%s: the model has nothing for it", f->name);
    return true;
}

bool wml_quantize_fit(struct wml_quantize_run *r, struct wml_quant_run *run, struct wml_err *err)
{
    const struct wml_fit *f;
    for (size_t i = 0; (f = wml_fit_at(i)); i++)
        if (f->asked(run->opts) && !run_one(r, f, run, err)) return false;
    return true;
}
