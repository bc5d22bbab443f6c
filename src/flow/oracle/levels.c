/* Parts of a model between levels: which values pass from one to another, and the runs. */
#include "flow/oracle/levels_internal.h"

#include "flow/channels.h"
#include "flow/oracle.h"
#include "graph/edit.h"
#include "onnx/onnx.h"

static const uint64_t KEEP_MAX = UINT64_C(1) << 30;

/* A value of a sample, copied. */
static bool keep(struct wml_levels *l, struct wml_level_value *v, size_t sample, const struct wml_tensor_view *view, struct wml_err *err)
{
    struct wml_tensor_view *to = &v->kept[sample];
    size_t head = view->rank * sizeof(int64_t);
    if (!view->is_tensor || !view->data) return wml_fail(err, WML_E_UNSUPPORTED, "value '%.*s' is no tensor of numbers", WML_ARG(v->value->name));
    unsigned char *block = wml_big_alloc(head + view->bytes + 1, err);
    if (!block) return false;
    if (head) memcpy(block, view->dim, head);
    memcpy(block + head, view->data, view->bytes);
    *to = *view;
    to->dim = (const int64_t *)(const void *)block;
    to->data = block + head;
    l->kept_bytes += view->bytes;
    if (!v->value->type) wml_value_set_type(v->value, wml_type_tensor(l->model, view->dtype, -1, NULL));
    return true;
}

static void drop(struct wml_levels *l, struct wml_level_value *v)
{
    for (size_t i = 0; i < l->n_samples; i++) {
        if (v->kept[i].data) l->kept_bytes -= v->kept[i].bytes;
        free((void *)(uintptr_t)v->kept[i].dim);
        v->kept[i] = (struct wml_tensor_view){0};
    }
}

/* What the session of a part needs to know. */
struct part {
    size_t level;
    struct wml_value **show, **given;
    struct wml_level_value **shown, **from; /* of show: what is kept or measured; of the session's inputs: where it is kept, NULL: an input of the model */
    size_t n_show, n_given, n_inputs;
    struct wml_channels **measured; /* of show, or NULL */
    struct wml_session *session;
};

static bool is_kept(const struct wml_levels *l, const struct wml_level_value *v, size_t level)
{
    return l->keeps && v->level <= level && v->last > level;
}

static void choose(struct wml_levels *l, size_t level, struct wml_arena *arena, struct part *p)
{
    size_t n_inputs = l->model->graph->inputs.len;
    *p = (struct part){.level = level, .show = WML_NEW_ARRAY(arena, struct wml_value *, l->n), .given = WML_NEW_ARRAY(arena, struct wml_value *, l->n + n_inputs),
                       .shown = WML_NEW_ARRAY(arena, struct wml_level_value *, l->n), .measured = WML_NEW_ARRAY(arena, struct wml_channels *, l->n)};
    for (size_t i = 0; i < l->n; i++) {
        struct wml_level_value *v = &l->value[i];
        if (l->keeps && v->level < level && v->last >= level) p->given[p->n_given++] = v->value;
        if (v->level != level || (!v->channels && !is_kept(l, v, level))) continue;
        p->shown[p->n_show] = v;
        p->measured[p->n_show] = v->channels;
        p->show[p->n_show++] = v->value;
    }
    for (size_t i = 0; level == 1 && i < n_inputs; i++) /* all of them: samples are made for the model */
        if (!l->model->graph->inputs.at[i]->init) p->given[p->n_given++] = l->model->graph->inputs.at[i];
}

/* Session and samples; where each of the session's inputs comes from. */
static bool open_part(struct wml_levels *l, struct part *p, struct wml_arena *arena, struct wml_err *err)
{
    struct wml_skeleton_opts opts = {.only = p->show, .n_only = p->n_show, .given = p->given, .n_given = p->n_given};
    struct wml_session_opts plain = {0};
    if (!wml_flow_session(l->cx, l->model, &opts, &plain, &p->session, err)) return false;
    const struct wml_io *io = wml_session_inputs(p->session, &p->n_inputs);
    if (p->level == 1) {
        if (!wml_samples_open(&l->spec, io, p->n_inputs, &l->samples, err)) return false;
        l->n_samples = wml_samples_count(l->samples);
        for (size_t i = 0; i < l->n; i++) l->value[i].kept = WML_NEW_ARRAY(&l->arena, struct wml_tensor_view, l->n_samples);
        for (size_t i = 0; i < p->n_inputs; i++) wml_map_put(&l->input, wml_arena_str(&l->arena, wml_str(io[i].name)), (void *)(uintptr_t)(i + 1));
    }
    p->from = WML_NEW_ARRAY(arena, struct wml_level_value *, p->n_inputs);
    for (size_t i = 0; i < p->n_inputs; i++) p->from[i] = wml_map_get(&l->by_name, wml_str(io[i].name));
    return true;
}

static bool feed_of(struct wml_levels *l, const struct part *p, size_t sample, struct wml_feed *made, struct wml_tensor_view *view, struct wml_err *err)
{
    size_t n;
    const struct wml_io *io = wml_session_inputs(p->session, &n);
    for (size_t i = 0; i < p->n_inputs; i++) {
        if (p->from[i]) {
            view[i] = p->from[i]->kept[sample];
            continue;
        }
        if (!made->view.len && !wml_samples_make(l->samples, sample, made, err)) return false;
        size_t at = (size_t)(uintptr_t)wml_map_get(&l->input, wml_str(io[i].name));
        if (!at || at > made->view.len) return wml_fail(err, WML_E_INTERNAL, "nothing makes '%s'", io[i].name);
        view[i] = made->view.at[at - 1];
    }
    return true;
}

static bool look(struct wml_levels *l, const struct part *p, struct wml_run *run, size_t sample, struct wml_err *err)
{
    for (size_t i = 0; i < p->n_show; i++) {
        struct wml_tensor_view v;
        if (!wml_run_output(run, i, &v, err)) return false;
        if (p->measured[i]) wml_channels_add(p->measured[i], &v);
        p->shown[i]->rank = v.rank;
        if (is_kept(l, p->shown[i], p->level) && !keep(l, p->shown[i], sample, &v, err)) return false;
    }
    return true;
}

static bool run_part(struct wml_levels *l, const struct part *p, struct wml_err *err)
{
    for (size_t i = 0; i < l->n_samples; i++) {
        struct wml_feed made = {0};
        struct wml_run *run = NULL;
        struct wml_arena arena = {0};
        struct wml_tensor_view *view = WML_NEW_ARRAY(&arena, struct wml_tensor_view, p->n_inputs + 1);
        bool ok = wml_check_cancel(l->cx, err) && feed_of(l, p, i, &made, view, err) && wml_run_new(p->session, view, p->n_inputs, &run, err) &&
                  wml_run_watched(run, 0, err) && look(l, p, run, i, err);
        wml_run_free(run);
        wml_feed_release(&made);
        wml_arena_release(&arena);
        if (!ok) return wml_wrap(err, "sample %zu", i + 1);
        l->keeps = l->keeps && l->kept_bytes <= KEEP_MAX; /* if not, the next levels begin at the inputs */
    }
    return true;
}

bool wml_levels_measure(struct wml_levels *l, size_t level, struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct part p;
    choose(l, level, &arena, &p);
    bool ok = open_part(l, &p, &arena, err) && run_part(l, &p, err);
    wml_session_close(p.session);
    wml_arena_release(&arena);
    for (size_t i = 0; i < l->n && l->samples; i++)
        if (l->value[i].last <= level || !l->keeps) drop(l, &l->value[i]);
    return ok;
}

bool wml_levels_open(struct wml_ctx *cx, struct wml_model *m, struct wml_channels *c, size_t n, const struct wml_samples_spec *samples,
                     struct wml_levels **out, struct wml_err *err)
{
    struct wml_levels *l = wml_xcalloc(1, sizeof *l);
    *l = (struct wml_levels){.cx = cx, .model = m, .spec = *samples, .keeps = true};
    *out = l;
    if (wml_levels_plan(l, c, n, err)) return true;
    wml_levels_close(l);
    *out = NULL;
    return false;
}

void wml_levels_close(struct wml_levels *l)
{
    if (!l) return;
    for (size_t i = 0; i < l->n && l->samples; i++) drop(l, &l->value[i]);
    wml_samples_close(l->samples);
    wml_map_release(&l->by_name);
    wml_map_release(&l->input);
    wml_model_free(l->model);
    wml_arena_release(&l->arena);
    free(l);
}

size_t wml_levels_count(const struct wml_levels *l)
{
    return l->levels;
}
