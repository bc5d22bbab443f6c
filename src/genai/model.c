/* A bundle, loaded: its config, the model, the tokenizer. */
#include "genai/internal.h"

static double ms_since(uint64_t start)
{
    return (double)(wml_now_ns() - start) / 1e6;
}

bool wml_genai_load(struct wml_genai *g, const char *dir, void (*phase)(void *arg, const char *name), void *arg,
                    struct wml_genai_model **out, struct wml_genai_load *times, struct wml_err *err)
{
    struct wml_genai_model *m = wml_xcalloc(1, sizeof *m);
    m->g = g;
    phase(arg, "config");
    uint64_t start = wml_now_ns();
    bool ok = wml_genai_ok(g, g->CreateConfig(dir, &m->config), WML_E_LOAD, err) || wml_wrap(err, "read the config of %s", dir);
    times->config_ms = ms_since(start);
    if (ok) {
        phase(arg, "model");
        start = wml_now_ns();
        ok = wml_genai_ok(g, g->CreateModelFromConfig(m->config, &m->model), WML_E_LOAD, err) || wml_wrap(err, "load the model of %s", dir);
        times->model_ms = ms_since(start);
    }
    if (ok) {
        phase(arg, "tokenizer");
        start = wml_now_ns();
        ok = wml_genai_ok(g, g->CreateTokenizer(m->model, &m->tokenizer), WML_E_LOAD, err) || wml_wrap(err, "load the tokenizer of %s", dir);
        times->tokenizer_ms = ms_since(start);
    }
    if (!ok) {
        wml_genai_unload(m);
        return false;
    }
    *out = m;
    return true;
}

void wml_genai_unload(struct wml_genai_model *m)
{
    if (!m) return;
    if (m->tokenizer) m->g->DestroyTokenizer(m->tokenizer);
    if (m->model) m->g->DestroyModel(m->model);
    if (m->config) m->g->DestroyConfig(m->config);
    free(m);
}
