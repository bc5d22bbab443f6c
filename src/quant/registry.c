/* quant/registry.c - the methods and tools by name, and the notes they leave. */
#include "quant/fit.h"
#include "quant/qdq_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct wml_quant_method *const methods[] = {
#define METHOD(id, name) &wml_quant_##id,
#include "quant/quant.def"
#undef METHOD
    NULL,
};

const struct wml_quant_method *wml_quant_find(const char *name)
{
    for (size_t i = 0; methods[i]; i++)
        if (strcmp(methods[i]->name, name) == 0) return methods[i];
    return NULL;
}

static const struct wml_fit *const fits[] = {
#define FIT(id, name) &wml_fit_##id,
#include "quant/fits.def"
#undef FIT
    NULL,
};

const struct wml_fit *wml_fit_at(size_t i)
{
    return i < WML_COUNT(fits) ? fits[i] : NULL;
}

static const struct wml_qdq_ep *const eps[] = {
#define QDQ_EP(id) &wml_qdq_ep_##id,
#include "quant/qdq_eps.def"
#undef QDQ_EP
    NULL,
};

const struct wml_qdq_ep *wml_qdq_ep_find(const char *alias)
{
    for (size_t i = 0; alias && eps[i]; i++)
        if (strcmp(eps[i]->alias, alias) == 0) return eps[i];
    return NULL;
}

bool wml_quant_has_rules(const char *ep)
{
    return wml_qdq_ep_find(ep) != NULL;
}

enum wml_dtype wml_quant_ep_weight(const char *ep, enum wml_dtype type)
{
    const struct wml_qdq_ep *e = wml_qdq_ep_find(ep);
    return e && e->weight8 && wml_dtype_info((int)type)->bits == 8 ? e->weight8 : type;
}

void wml_quant_note(struct wml_quant_run *r, struct wml_str subject, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    struct wml_quant_note note = {wml_arena_str(&r->model->arena, subject), wml_arena_str(&r->model->arena, wml_str(text))};
    WML_PUSH_IN(&r->model->arena, &r->result->note, note);
}
