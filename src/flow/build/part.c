/* flow/build/part.c - one graph of a bundle: built, quantised where that is asked, written. */
#include "flow/build/internal.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "opset/opset.h"
#include "quant/quant.h"

enum { OPSET = 21, BLOCK = 32, INTEGERS = 4 /* accuracy level: activations become 8-bit integers where a kernel can */ };

static bool quantise(struct wml_build_run *r, const struct wml_build_graph *g, struct wml_model *m, struct wml_err *err)
{
    const struct wml_quant_method *rtn = wml_quant_find("rtn");
    const struct wml_quant_opts opts = {.bits = g->bits, .block_size = r->a->block_size ? r->a->block_size : BLOCK, .accuracy_level = INTEGERS};
    const struct wml_quant_env env = {0};
    struct wml_quant_result result = {0};
    struct wml_quant_run run = {.model = m, .opts = &opts, .env = &env, .cx = r->cx, .result = &result};
    if (!rtn->apply(&run, err)) return false;
    for (size_t i = 0; i < result.note.len; i++)
        wml_log(r->cx, WML_LOG_WARN, "%.*s %.*s", WML_ARG(result.note.at[i].subject), WML_ARG(result.note.at[i].text));
    return true;
}

bool wml_build_save(struct wml_build_run *r, const struct wml_build_graph *g, struct wml_model *m, struct wml_err *err)
{
    struct wml_onnx_save_opts opts = {.external = WML_EXTERNAL_ALWAYS, .data_name = g->data, .cx = r->cx};
    struct wml_model *with = NULL;
    bool ok = true;
    if (g->share) {
        opts.weights = WML_WEIGHTS_REFERENCE;
        ok = wml_onnx_load(wml_build_out(r, g->share), &with, err) && wml_build_share(m, with, err);
    }
    ok = ok && wml_onnx_save(m, wml_build_out(r, g->file), &opts, NULL, err);
    wml_model_free(with);
    return ok;
}

static bool finish(struct wml_build_run *r, const struct wml_build_graph *g, struct wml_model *m, struct wml_err *err)
{
    wml_model_set_opset(m, "com.microsoft", 1);
    wml_model_raise_ir(m, wml_opset_ir(OPSET));
    for (struct wml_node *n = m->graph->first; n; n = n->next) n->metadata.len = 0; /* names of nodes say the same */
    return (!g->bits || quantise(r, g, m, err)) && wml_build_save(r, g, m, err);
}

bool wml_build_part(struct wml_build_run *r, const struct wml_build_graph *g, struct wml_err *err)
{
    struct wml_export_opts opts = {.batch = 1, .opset = OPSET, .real = g->real, .genai = {.turn_tied = g->bits != 0, .cache = g->cache}};
    struct wml_export_result made = {0};
    opts.size[WML_SIZE_CACHE] = r->context;
    opts.size[WML_SIZE_NEW_TOKENS] = g->step;
    if (!wml_checkpoint_weights(&r->checkpoint, err)) return false;
    r->source.weights = r->checkpoint.weights;
    if (!wml_export_build(&r->source, &r->plan, &r->plan.family->bundle->part[g->part], &opts, &made, err)) return false;
    wml_checkpoint_lend(&r->checkpoint, made.model);
    const bool ok = finish(r, g, made.model, err);
    wml_model_free(made.model);
    return ok;
}
