/* report/render.h - renderers of a report: one file each, listed in renderers.def. */
#ifndef WML_REPORT_RENDER_H
#define WML_REPORT_RENDER_H

#include "report/report.h"

struct wml_render_opts {
    bool colour;     /* text: ANSI colours */
    unsigned width;  /* text: columns; 0: 100 */
    unsigned indent; /* json: 0 one line, else spaces per level */
};

struct wml_renderer {
    const char *name, *summary;
    void (*render)(const struct wml_report *r, const struct wml_render_opts *o, struct wml_buf *out);
};

#define RENDERER(name) extern const struct wml_renderer wml_renderer_##name;
#include "report/renderers.def"
#undef RENDERER

/* NULL when there is none of this name. */
const struct wml_renderer *wml_renderer_find(const char *name);

#endif
