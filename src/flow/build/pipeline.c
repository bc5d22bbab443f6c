/* flow/build/pipeline.c - what genai_config.json says of the stages of a pipeline. Names are those of the graphs. */
#include "flow/build/internal.h"

#include "ep/stage.h"
#include "genai/bundle.h"
#include "graph/graph.h"
#include "onnx/onnx.h"

struct stage {
    const char *name, *file;
    bool prompt, token, transformer, head;
};
static const struct stage stages[] = {
    {"embeddings", "embeddings.onnx", true, true, false, false}, {"context", "ctx.onnx", true, false, true, false},
    {"iterator", "iter.onnx", false, true, true, false}, {"lm_head", "lm_head.onnx", true, true, false, true},
};

static void put_str(struct wml_json *w, const char *key, const char *v)
{
    wml_json_key(w, key);
    wml_json_put_cstr(w, v);
}

static void put_bool(struct wml_json *w, const char *key, bool v)
{
    wml_json_key(w, key);
    wml_json_put_bool(w, v);
}

static void put_threads(struct wml_json *w, const char *key, unsigned n)
{
    if (!n) return;
    wml_json_key(w, key);
    wml_json_put_int(w, n);
}

/* Options that were typed win over those of the EP. */
static void put_options(const struct wml_build_run *r, struct wml_json *w)
{
    const struct wml_target_spec *t = &r->a->target;
    wml_json_begin(w, '{');
    for (const struct wml_pair *p = r->ep->stage->option; p->key; p++)
        if (!wml_pair_find(t->option, t->n_options, p->key)) put_str(w, p->key, p->value);
    for (size_t i = 0; i < t->n_options; i++) put_str(w, t->option[i].key, t->option[i].value);
    wml_json_end(w, '}');
}

static void put_session(const struct wml_build_run *r, const struct stage *s, struct wml_json *w)
{
    char id[64];
    snprintf(id, sizeof id, "onnxruntime-genai.%s", s->name);
    wml_json_key(w, "session_options");
    wml_json_begin(w, '{');
    put_str(w, "log_id", id);
    wml_json_key(w, "provider_options");
    wml_json_begin(w, '[');
    wml_json_begin(w, '{');
    wml_json_key(w, wml_bundle_provider_name(r->ep));
    put_options(r, w);
    wml_json_end(w, '}');
    wml_json_end(w, ']');
    put_threads(w, "intra_op_num_threads", r->ep->stage->intra_threads);
    put_threads(w, "inter_op_num_threads", r->ep->stage->inter_threads);
    wml_json_end(w, '}');
}

static void put_values(struct wml_json *w, const char *key, struct wml_value_info *const *v, size_t n)
{
    wml_json_key(w, key);
    wml_json_begin(w, '[');
    for (size_t i = 0; i < n; i++) wml_json_put_str(w, v[i]->name);
    wml_json_end(w, ']');
}

static bool put_stage(struct wml_build_run *r, const struct stage *s, struct wml_json *w, struct wml_err *err)
{
    struct wml_model *m = NULL;
    if (!wml_onnx_load(wml_build_out(r, s->file), &m, err)) return false;
    wml_json_begin(w, '{');
    wml_json_key(w, s->name);
    wml_json_begin(w, '{');
    put_str(w, "filename", s->file);
    put_values(w, "inputs", m->graph->input.at, m->graph->input.len);
    put_values(w, "outputs", m->graph->output.at, m->graph->output.len);
    put_bool(w, "run_on_prompt", s->prompt);
    put_bool(w, "run_on_token_gen", s->token);
    if (s->transformer && r->ep->stage) put_session(r, s, w);
    if (s->head) put_bool(w, "is_lm_head", true);
    wml_json_end(w, '}');
    wml_json_end(w, '}');
    wml_model_free(m);
    return true;
}

static void put_window(const struct wml_build_run *r, struct wml_json *w)
{
    wml_json_key(w, "sliding_window");
    wml_json_begin(w, '{');
    wml_json_key(w, "window_size");
    wml_json_put_int(w, r->window);
    wml_json_key(w, "pad_value");
    wml_json_put_int(w, 0);
    put_str(w, "alignment", "left");
    put_bool(w, "slide_inputs", true);
    put_bool(w, "slide_key_value_cache", false);
    wml_json_end(w, '}');
}

bool wml_build_put_pipeline(struct wml_build_run *r, struct wml_json *w, struct wml_err *err)
{
    bool ok = true;
    put_window(r, w);
    wml_json_key(w, "pipeline");
    wml_json_begin(w, '[');
    for (size_t i = 0; ok && i < WML_COUNT(stages); i++) ok = put_stage(r, &stages[i], w, err);
    wml_json_end(w, ']');
    return ok;
}
