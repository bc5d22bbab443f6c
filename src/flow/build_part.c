/* flow/build_part.c - one graph of a bundle: built, quantised where that is asked, written. */
#include "flow/build_internal.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "opset/opset.h"
#include "quant/quant.h"

enum { OPSET = 21, BLOCK = 32, INTEGERS = 4 /* accuracy level: activations become 8-bit integers where a kernel can */ };

static bool quantise(struct wml_build_run *r, struct wml_model *m, struct wml_err *err)
{
    const struct wml_quant_method *rtn = wml_quant_find("rtn");
    const struct wml_quant_opts opts = {.bits = r->precision->bits, .block_size = r->a->block_size ? r->a->block_size : BLOCK, .accuracy_level = INTEGERS};
    const struct wml_quant_env env = {0};
    struct wml_quant_result result = {0};
    struct wml_quant_run run = {.model = m, .opts = &opts, .env = &env, .cx = r->cx, .result = &result};
    if (!rtn->apply(&run, err)) return false;
    for (size_t i = 0; i < result.note.len; i++)
        wml_log(r->cx, WML_LOG_WARN, "%.*s %.*s", WML_ARG(result.note.at[i].subject), WML_ARG(result.note.at[i].text));
    return true;
}

static bool finish(struct wml_build_run *r, struct wml_model *m, const char *name, struct wml_err *err)
{
    const struct wml_onnx_save_opts opts = {.external = WML_EXTERNAL_ALWAYS, .cx = r->cx};
    wml_model_set_opset(m, "com.microsoft", 1);
    wml_model_raise_ir(m, wml_opset_ir(OPSET));
    for (struct wml_node *n = m->graph->first; n; n = n->next) n->metadata.len = 0; /* names of nodes say the same */
    if (r->precision->bits && !quantise(r, m, err)) return false;
    return wml_onnx_save(m, wml_build_out(r, name), &opts, NULL, err);
}

bool wml_build_part(struct wml_build_run *r, enum wml_genai_part part, const char *name, struct wml_err *err)
{
    struct wml_export_opts opts = {.batch = 1, .opset = OPSET, .real = r->precision->real, .turn_tied = r->precision->bits != 0};
    struct wml_export_result made = {0};
    opts.size[WML_SIZE_CACHE] = r->context;
    if (!wml_checkpoint_weights(&r->checkpoint, err)) return false;
    r->source.weights = r->checkpoint.weights;
    if (!wml_export_build(&r->source, &r->plan, &r->plan.family->bundle->part[part], &opts, &made, err)) return false;
    wml_checkpoint_lend(&r->checkpoint, made.model);
    const bool ok = finish(r, made.model, name, err);
    wml_model_free(made.model);
    return ok;
}
