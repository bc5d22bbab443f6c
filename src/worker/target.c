/* Targets and placements as JSON, and opening a session at the highest level that works. */
#include "worker/target.h"

#include "base/map.h"

void wml_target_spec_put(struct wml_json *j, const struct wml_target_spec *s)
{
    wml_json_key(j, "target");
    wml_json_begin(j, '{');
    wml_json_key(j, "ep");
    wml_json_put_cstr(j, s->ep);
    wml_json_key(j, "device");
    wml_json_put_cstr(j, s->device);
    wml_json_key(j, "compile");
    wml_json_put_bool(j, s->for_compile);
    wml_json_key(j, "exact");
    wml_json_put_bool(j, s->exact);
    wml_json_key(j, "options");
    wml_json_put_pairs(j, s->option, s->n_options);
    wml_json_end(j, '}');
}

void wml_target_spec_get(const struct wml_json_val *request, struct wml_arena *arena,
                         struct wml_target_spec *out)
{
    const struct wml_json_val *t = wml_json_get(request, "target");
    struct wml_str ep = wml_json_get_str(t, "ep"), device = wml_json_get_str(t, "device");
    struct wml_pair *pair;
    *out = (struct wml_target_spec){0};
    if (ep.len) out->ep = wml_arena_cstr(arena, ep);
    if (device.len) out->device = wml_arena_cstr(arena, device);
    out->for_compile = wml_json_get_bool(t, "compile", false);
    out->exact = wml_json_get_bool(t, "exact", false);
    out->n_options = wml_json_pairs(wml_json_get(t, "options"), arena, &pair);
    out->option = pair;
}

void wml_target_put(struct wml_json *j, const struct wml_target *t, const struct wml_ort *ort)
{
    struct wml_ort_info info = wml_ort_info(ort);
    wml_json_key(j, "target");
    wml_json_begin(j, '{');
    wml_json_key(j, "ep");
    wml_json_put_cstr(j, t->ep_name);
    wml_json_key(j, "device");
    wml_json_put_cstr(j, wml_device_type_name(t->type));
    wml_json_key(j, "hardware");
    wml_json_put_cstr(j, t->hardware);
    wml_json_key(j, "simulated");
    wml_json_put_bool(j, t->simulated);
    wml_json_key(j, "library");
    wml_json_put_cstr(j, t->library);
    wml_json_key(j, "source");
    wml_json_put_cstr(j, t->source_tag);
    wml_json_key(j, "ep_version");
    wml_json_put_cstr(j, t->ep_version);
    wml_json_key(j, "options");
    wml_json_put_pairs(j, t->option, t->n_options);
    wml_json_key(j, "ort_version");
    wml_json_put_cstr(j, info.version);
    wml_json_key(j, "ort_path");
    wml_json_put_cstr(j, info.path);
    wml_json_end(j, '}');
}

struct op_count { size_t n; };

/* One object per EP, in order of first appearance: the groups of one EP are added up. */
static void put_ep(struct wml_json *j, const struct wml_placed *group, size_t n, const char *ep)
{
    struct wml_map ops = {0};
    struct wml_arena arena = {0};
    size_t nodes = 0, groups = 0;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(group[i].ep, ep) != 0) continue;
        groups++;
        nodes += group[i].n_nodes;
        for (size_t k = 0; k < group[i].n_nodes; k++) {
            const char *domain = group[i].domain[k];
            bool plain = !domain || !*domain || strcmp(domain, "ai.onnx") == 0;
            struct wml_str name = plain ? wml_str(group[i].op_type[k])
                                        : wml_arena_fmt(&arena, "%s::%s", domain, group[i].op_type[k]);
            struct op_count *c = wml_map_get(&ops, name);
            if (!c) wml_map_put(&ops, name, c = WML_NEW(&arena, struct op_count));
            c->n++;
        }
    }
    wml_json_begin(j, '{');
    wml_json_key(j, "ep");
    wml_json_put_cstr(j, ep);
    wml_json_key(j, "nodes");
    wml_json_put_uint(j, nodes);
    wml_json_key(j, "groups");
    wml_json_put_uint(j, groups);
    wml_json_key(j, "op_types");
    wml_json_begin(j, '{');
    for (size_t i = 0; i < ops.len; i++) {
        wml_json_key_str(j, ops.entry[i].key);
        wml_json_put_uint(j, ((struct op_count *)ops.entry[i].value)->n);
    }
    wml_json_end(j, '}');
    wml_json_end(j, '}');
    wml_map_release(&ops);
    wml_arena_release(&arena);
}

void wml_placement_put(struct wml_json *j, const struct wml_session *s)
{
    const struct wml_placed *group = NULL;
    size_t n = 0;
    struct wml_err ignored = {0};
    wml_json_key(j, "placement");
    if (!wml_session_placement(s, &group, &n, &ignored)) {
        wml_json_put_null(j);
        return;
    }
    wml_json_begin(j, '[');
    for (size_t i = 0; i < n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++) seen = seen || strcmp(group[k].ep, group[i].ep) == 0;
        if (!seen) put_ep(j, group, n, group[i].ep);
    }
    wml_json_end(j, ']');
}

void wml_elsewhere_put(struct wml_json *j, const struct wml_session *s, const char *ep)
{
    const struct wml_placed *group;
    size_t n;
    struct wml_err ignored = {0};
    wml_json_key(j, "elsewhere");
    if (!wml_session_placement(s, &group, &n, &ignored)) {
        wml_json_put_null(j);
        return;
    }
    wml_json_begin(j, '[');
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < group[i].n_nodes && strcmp(group[i].ep, ep) != 0; k++) {
            wml_json_begin(j, '{');
            wml_json_key(j, "op");
            wml_json_put_cstr(j, group[i].op_type[k]);
            wml_json_key(j, "name");
            wml_json_put_cstr(j, group[i].node[k]);
            wml_json_end(j, '}');
        }
    wml_json_end(j, ']');
}

bool wml_session_open_falling(struct wml_ort *o, const struct wml_model_source *m, struct wml_session_opts *opts,
                              enum wml_opt_level *level, char note[256], struct wml_session **out,
                              struct wml_err *err)
{
    struct wml_err first = {0}, now = {0};
    enum wml_opt_level wanted = opts->level;
    note[0] = 0;
    for (int l = (int)wanted; l >= (int)WML_LEVEL_DISABLED; l--) {
        now = (struct wml_err){0};
        opts->level = *level = (enum wml_opt_level)l;
        if (wml_session_open(o, m, opts, out, &now)) {
            if (l != (int)wanted)
                snprintf(note, 256, "ORT fails at level %s (%.160s); level %s works", wml_opt_level_name(wanted),
                         first.msg, wml_opt_level_name(*level));
            return true;
        }
        if (l == (int)wanted) first = now;
        if (now.code != WML_E_LOAD) break;
    }
    opts->level = *level = wanted;
    if (err) *err = first;
    return false;
}
