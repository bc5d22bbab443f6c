/* Which pass made the answers differ: the passes run step by step, so the first step after which the answers
 * differ is found by halving. */
#include "flow/optimize/internal.h"

/* Whether the model after so many steps answers like the source. false: it cannot be told. */
static bool differs_after(struct wml_optimize_run *r, size_t steps, bool *differs, size_t *last, struct wml_err *err)
{
    if (!wml_optimize_make(r, steps, NULL, last, err)) return false;
    if (wml_optimize_compare(r, r->model, err)) *differs = !r->verify.passed;
    else if (r->verify.failed == WML_VERIFY_RESULT) *differs = true;
    else return false;
    *err = (struct wml_err){0};
    return true;
}

bool wml_optimize_blame(struct wml_optimize_run *r, size_t *pass, struct wml_err *err)
{
    size_t good = 0, bad = 0, last = SIZE_MAX;
    bool differs = false;
    *pass = SIZE_MAX;
    if (!wml_optimize_make(r, 0, &bad, NULL, err)) return false;
    while (good + 1 < bad) {
        size_t middle = good + (bad - good) / 2;
        wml_note_progress(r->cx, "Looking for the pass that changed the answers", NULL, 0, 0, NULL);
        if (!wml_check_cancel(r->cx, err) || !differs_after(r, middle, &differs, &last, err)) return false;
        if (differs) bad = middle;
        else good = middle;
    }
    if (!differs_after(r, bad, &differs, &last, err)) return false;
    if (differs) *pass = last;
    return true;
}
