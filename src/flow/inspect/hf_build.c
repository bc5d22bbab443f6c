/* flow/inspect/hf_build.c - the graphs that export would write, to read facts off them. */
#include "flow/inspect/hf.h"

/* ------------------------------------------------------------- parameters */

bool wml_hf_is_parameter(const struct wml_weight *w)
{
    static const char *const computed[] = {
        "running_mean", "running_var", "num_batches_tracked", "position_ids", "relative_position_index", "relative_coords_table",
        "inv_freq", "final_logits_bias",
    };
    for (size_t i = 0; i < WML_COUNT(computed); i++)
        if (wml_str_ends(w->name, computed[i])) return false;
    return true;
}

static uint64_t elements(const struct wml_weight *w)
{
    uint64_t n = 1;
    for (size_t i = 0; i < w->rank; i++) n *= (uint64_t)w->dims[i]; /* checked against the file when it was opened */
    return n;
}

/* The module that a weight lies in: the longest path that its name begins with. SIZE_MAX: none. */
static size_t holder(const struct wml_map *paths, struct wml_str name)
{
    for (size_t dot = wml_str_rfind(name, '.'); dot != SIZE_MAX; dot = wml_str_rfind(name, '.')) {
        name = wml_str_sub(name, 0, dot);
        const uintptr_t known = (uintptr_t)wml_map_get(paths, name);
        if (known) return (size_t)known - 1;
    }
    return SIZE_MAX;
}

/* Checkpoints call the bare model by its name within a head, or not at all. */
static size_t module_of(struct wml_hf *h, const struct wml_map *paths, struct wml_str name)
{
    size_t i = holder(paths, name);
    const struct wml_str base = wml_str(h->plan.type->base);
    if (i != SIZE_MAX || !base.len) return i == SIZE_MAX ? 0 : i;
    if (wml_str_starts(name, base.ptr) && name.len > base.len && name.ptr[base.len] == '.')
        i = holder(paths, wml_str_sub(name, base.len + 1, name.len));
    else i = holder(paths, wml_arena_fmt(&h->arena, "%s.%.*s", base.ptr, WML_ARG(name)));
    return i == SIZE_MAX ? 0 : i;
}

/* Tensors that two names share count once, for the first. Layers of the framework belong to the module around them. */
static void count_parameters(struct wml_hf *h, struct wml_hf_part *p)
{
    const struct wml_export_result *m = &p->made;
    struct wml_map paths = {0}, seen = {0};
    p->own = WML_NEW_ARRAY(&h->arena, uint64_t, m->n_modules + 1);
    for (size_t i = m->n_modules; i-- > 1;) wml_map_put(&paths, m->module[i].path, (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < wml_weights_len(h->weights); i++) {
        const struct wml_weight *w = wml_weights_at(h->weights, i);
        const struct wml_str where = wml_arena_fmt(&h->arena, "%p %zu", (const void *)w->bytes.ptr, w->bytes.len);
        if (!w->used || !wml_hf_is_parameter(w) || (w->bytes.len && wml_map_put(&seen, where, h))) continue;
        size_t at = module_of(h, &paths, w->name);
        while (m->module[at].layer) at = m->module[at].parent;
        p->own[at] += elements(w);
        p->parameters += elements(w);
        if (!w->bytes.len || !wml_map_put(&h->counted, where, h)) h->parameters += elements(w);
    }
    wml_map_release(&paths);
    wml_map_release(&seen);
}

/* ------------------------------------------------------------------ parts */

static void list_parts(struct wml_hf *h)
{
    const struct wml_export_plan *p = &h->plan;
    if (!p->composite) {
        h->part[h->n_parts++] = (struct wml_hf_part){.task = p->one};
        return;
    }
    for (const struct wml_family_part *q = p->composite->part; q->name && h->n_parts < WML_HF_PARTS; q++)
        h->part[h->n_parts++] = (struct wml_hf_part){.name = q->name, .task = wml_family_task_of(p->family, wml_str(q->task))};
}

/* weights: NULL for a sketch. */
static bool make(struct wml_hf *h, const struct wml_hf_part *p, struct wml_weights *weights, int64_t batch, struct wml_export_result *out,
                 struct wml_err *err)
{
    struct wml_export_source s = h->source;
    const struct wml_export_opts o = {.batch = batch, .opset = WML_NN_OPSET};
    s.weights = weights;
    return wml_export_build(&s, &h->plan, p->task, &o, out, err);
}

static void build(struct wml_hf *h, struct wml_hf_part *p)
{
    struct wml_err why = {0};
    struct wml_weights *from = h->weights;
    if (from) {
        wml_weights_forget_use(from);
        if (make(h, p, from, 1, &p->made, &p->refusal)) count_parameters(h, p);
        else from = NULL;
    }
    if (!from && !make(h, p, NULL, 1, &p->made, &why) && !p->refusal.code) p->refusal = why;
    if (p->made.model) make(h, p, from, 2, &p->wide, NULL);
}

void wml_hf_build(struct wml_hf *h)
{
    if (!h->plan.family) return;
    list_parts(h);
    for (size_t i = 0; i < h->n_parts; i++) build(h, &h->part[i]);
}
