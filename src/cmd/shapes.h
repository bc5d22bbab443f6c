/* cmd/shapes.h - --input-shape NAME=1,3,48,192 and --input-dim SYMBOL=N, as several commands take them. */
#ifndef WML_CMD_SHAPES_H
#define WML_CMD_SHAPES_H

#include "cli/opt.h"
#include "worker/feed.h"

struct wml_cmd_shapes {
    struct wml_feed_shape *shape;
    size_t n_shapes;
    struct wml_feed_dim *dim;
    size_t n_dims;
};

/* A size is a number; -1, ? and an empty text leave it unknown. Everything lives in the arena or argv. */
bool wml_cmd_shapes_parse(const struct wml_opt_list *shapes, const struct wml_opt_list *dims,
                          struct wml_arena *arena, struct wml_cmd_shapes *out, struct wml_err *err);

#endif
