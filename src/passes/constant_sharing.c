/* Equal initializers become one. Compared are type, sizes and bytes; the key holds only samples of large ones, so
 * that those are read no further than they agree. Where weights stay in their files, large ones are the same only if
 * they lie in the same place: reading gigabytes would cost more than one name for them saves. */
#include "passes/match.h"

#include <inttypes.h>

#include "base/hash.h"

enum { SAMPLE = 64, PIECES = 8, WHOLE = 4096, LARGE = 1 << 20 };

static bool can_share(const struct wml_value *v)
{
    return wml_constant_of(v) && !v->n_inputs && !v->n_outputs && !v->pinned && v->n_uses &&
           v->init->payload != WML_PAYLOAD_DERIVED && v->init->dtype != WML_STRING;
}

/* All of small ones, and pieces from the first byte to the last. */
static uint64_t sample(struct wml_span s, uint64_t h)
{
    const size_t n = WML_MIN(s.len, (size_t)SAMPLE), steps = s.len > WHOLE ? PIECES - 1 : 0;
    if (!steps) return wml_hash(s.ptr, s.len, h);
    for (size_t i = 0; i <= steps; i++) h = wml_hash(s.ptr + (s.len - n) / steps * i, n, h);
    return h;
}

static struct wml_str key_of(struct wml_pass_run *r, struct wml_value *v)
{
    struct wml_span s;
    struct wml_tensor *t = v->init;
    if (!wml_tensor_bytes(r->model, t, &s, NULL)) return WML_NO_STR;
    uint64_t h = s.len;
    if (r->env->weights_stay && s.len > LARGE) h = wml_hash(&s.ptr, sizeof s.ptr, h);
    else h = sample(s, h);
    for (size_t i = 0; i < t->dims.len; i++) h = wml_hash(&t->dims.at[i], sizeof(int64_t), h);
    return wml_arena_fmt(r->scratch, "%d %zu %016" PRIx64, (int)t->dtype, t->dims.len, h);
}

struct chain {
    struct wml_value *v;
    struct chain *next;
};

static bool share_in(void *arg, struct wml_graph *g)
{
    struct wml_pass_run *r = arg;
    struct wml_map seen = {0};
    for (struct wml_value *v = g->first_value, *next; v; v = next) {
        next = v->next;
        if (!can_share(v)) continue;
        struct wml_str key = key_of(r, v);
        if (!key.ptr) continue;
        struct chain *head = wml_map_get(&seen, key), *c = head;
        while (c && !wml_tensor_eq(r->model, c->v->init, v->init)) c = c->next;
        if (c) {
            wml_value_replace_uses(v, c->v);
            wml_value_remove(v);
            wml_pass_applied(r, WML_STR("Constant"), v->name);
            continue;
        }
        c = WML_NEW(r->scratch, struct chain);
        *c = (struct chain){v, head};
        wml_map_put(&seen, key, c);
    }
    wml_map_release(&seen);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    return wml_model_each_graph(r->model, share_in, r);
}

const struct wml_pass wml_pass_constant_sharing = {
    .name = "constant-sharing", .category = "graph", .on = true, .reference_on = true, .run = run,
    .summary = "Merge equal initializers",
};
