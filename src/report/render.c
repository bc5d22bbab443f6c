/* report/render.c - the list of renderers, made from renderers.def. */
#include "report/render.h"

static const struct wml_renderer *const renderers[] = {
#define RENDERER(name) &wml_renderer_##name,
#include "report/renderers.def"
#undef RENDERER
};

const struct wml_renderer *wml_renderer_find(const char *name)
{
    for (size_t i = 0; i < WML_COUNT(renderers); i++)
        if (strcmp(renderers[i]->name, name) == 0) return renderers[i];
    return NULL;
}
