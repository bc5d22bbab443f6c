/* Shapes typed on the command line. The last "=" separates: names of inputs may hold others. */
#include "cmd/shapes.h"

#include "base/num.h"

enum { MAX_RANK = 64 };

static bool bad(const char *option, const char *typed, const char *form, struct wml_err *err)
{
    return wml_fail(err, WML_E_USAGE, "Invalid value for '%s': '%s' is not of the form %s", option, typed, form);
}

static bool split(const char *typed, struct wml_str *name, struct wml_str *value)
{
    struct wml_str s = wml_str(typed);
    size_t eq = wml_str_rfind(s, '=');
    if (eq == SIZE_MAX || eq == 0) return false;
    *name = wml_str_trim(wml_str_sub(s, 0, eq));
    *value = wml_str_trim(wml_str_sub(s, eq + 1, s.len));
    return name->len > 0;
}

static bool parse_size(struct wml_str s, int64_t *out)
{
    s = wml_str_trim(s);
    *out = -1;
    if (!s.len || wml_str_is(s, "?") || wml_str_is(s, "-1")) return true;
    return wml_parse_i64(s, out) && *out >= 0;
}

static bool parse_shape(const char *typed, struct wml_arena *arena, struct wml_feed_shape *out, struct wml_err *err)
{
    struct wml_str value, part;
    int64_t *dim = WML_NEW_ARRAY(arena, int64_t, MAX_RANK);
    if (!split(typed, &out->name, &value)) return bad("--input-shape", typed, "NAME=1,3,48,192", err);
    out->dim = dim;
    for (size_t at = 0; value.len && at <= value.len; at += part.len + 1) {
        part = wml_str_sub(value, at, value.len);
        size_t comma = wml_str_find(part, ',');
        if (comma != SIZE_MAX) part = wml_str_sub(part, 0, comma);
        if (out->rank == MAX_RANK || !parse_size(part, &dim[out->rank++]))
            return bad("--input-shape", typed, "NAME=1,3,48,192", err);
    }
    return true;
}

bool wml_cmd_shapes_parse(const struct wml_opt_list *shapes, const struct wml_opt_list *dims,
                          struct wml_arena *arena, struct wml_cmd_shapes *out, struct wml_err *err)
{
    *out = (struct wml_cmd_shapes){.shape = WML_NEW_ARRAY(arena, struct wml_feed_shape, shapes->v.len + 1),
                                   .dim = WML_NEW_ARRAY(arena, struct wml_feed_dim, dims->v.len + 1)};
    for (size_t i = 0; i < shapes->v.len; i++)
        if (!parse_shape(shapes->v.at[i], arena, &out->shape[out->n_shapes++], err)) return false;
    for (size_t i = 0; i < dims->v.len; i++) {
        struct wml_feed_dim *d = &out->dim[out->n_dims++];
        struct wml_str value;
        if (!split(dims->v.at[i], &d->symbol, &value) || !wml_parse_i64(value, &d->size) || d->size < 0)
            return bad("--input-dim", dims->v.at[i], "SYMBOL=N", err);
    }
    return true;
}
