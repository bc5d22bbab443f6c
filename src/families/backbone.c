/* families/backbone.c - see backbone.h. */
#include "families/backbone.h"

/* -1: no such state. */
static int64_t named(struct wml_str name, int64_t last)
{
    if (wml_str_is(name, "stem")) return 0;
    if (!wml_str_starts(name, "stage")) return -1;
    int64_t n = 0;
    for (size_t k = 5; k < name.len; k++) {
        if (name.ptr[k] < '0' || name.ptr[k] > '9' || n > last) return -1;
        n = 10 * n + (name.ptr[k] - '0');
    }
    return name.len > 5 && n <= last ? n : -1;
}

static bool insert(int64_t *out, size_t *n, size_t max, int64_t at)
{
    size_t i = 0;
    while (i < *n && out[i] < at) i++;
    if (i < *n && out[i] == at) return true;
    if (*n == max) return false;
    memmove(out + i + 1, out + i, (*n - i) * sizeof *out);
    out[i] = at;
    ++*n;
    return true;
}

size_t wml_backbone_states(struct wml_family_job *j, const struct wml_json_val *cfg, int64_t last, int64_t *out, size_t max)
{
    const struct wml_json_val *names = wml_json_get(cfg, "out_features"), *indices = wml_json_get(cfg, "out_indices");
    const bool by_name = wml_json_is_array(names) && wml_json_len(names) > 0;
    const struct wml_json_val *list = by_name ? names : indices;
    size_t n = 0;
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *e;
    while (wml_json_is_array(list) && wml_json_next(list, &it, &key, &e)) {
        int64_t at = by_name ? named(wml_json_str(e), last) : wml_json_int(e, INT64_MIN);
        if (!by_name && at < 0 && at >= -last - 1) at += last + 1;
        if (at < 0 || at > last) {
            wml_nn_fail(j->nn, WML_E_FORMAT, "config.json: the backbone's %s names a state that its %lld layers do not give",
                        by_name ? "out_features" : "out_indices", (long long)last);
            return 0;
        }
        if (!insert(out, &n, max, at)) {
            wml_nn_fail(j->nn, WML_E_UNSUPPORTED, "config.json: the backbone gives more than %zu states", max);
            return 0;
        }
    }
    if (n) return n;
    out[0] = last;
    return 1;
}

void wml_backbone_channels(struct wml_family_job *j, const struct wml_json_val *cfg)
{
    if (!j->size[WML_SIZE_CHANNELS] && wml_json_get(cfg, "num_channels")) j->size[WML_SIZE_CHANNELS] = wml_cfg_size(j, cfg, "num_channels", 0);
}
