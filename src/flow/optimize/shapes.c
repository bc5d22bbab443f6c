/* Fixed shapes: --input-shape and --input-dim go into the graph's inputs. A symbol whose size a typed shape tells has that
 * size in the other inputs too. What the file says about inner values and outputs followed from the old shapes, so it is
 * forgotten and found anew. */
#include <inttypes.h>

#include "flow/optimize/internal.h"
#include "graph/edit.h"
#include "graph/tensor.h"
#include "graph/type.h"

static struct wml_value *input_named(struct wml_model *m, struct wml_str name)
{
    for (size_t i = 0; i < m->graph->inputs.len; i++)
        if (wml_str_eq(m->graph->inputs.at[i]->name, name)) return m->graph->inputs.at[i];
    return NULL;
}

static bool unknown_input(struct wml_optimize_run *r, struct wml_str name, struct wml_err *err)
{
    struct wml_buf names = {0};
    for (size_t i = 0; i < r->model->graph->inputs.len; i++)
        wml_buf_fmt(&names, "%s%.*s", i ? ", " : "", WML_ARG(r->model->graph->inputs.at[i]->name));
    wml_fail(err, WML_E_USAGE, "--input-shape: the model has no input '%.*s'", WML_ARG(name));
    wml_hint(err, "its inputs are: %.400s", wml_buf_text(&names));
    wml_buf_release(&names);
    return false;
}

static bool set_shape(struct wml_optimize_run *r, const struct wml_feed_shape *s, struct wml_err *err)
{
    struct wml_value *v = input_named(r->model, s->name);
    if (!v) return unknown_input(r, s->name, err);
    int64_t rank = wml_value_rank(v);
    if (rank >= 0 && (size_t)rank != s->rank)
        return wml_fail(err, WML_E_USAGE, "--input-shape: input '%.*s' has %" PRId64 " dimensions, %zu were given",
                        WML_ARG(s->name), rank, s->rank);
    struct wml_axis *axis = WML_NEW_ARRAY(&r->arena, struct wml_axis, s->rank + 1);
    for (size_t i = 0; i < s->rank; i++) {
        struct wml_axis old = rank >= 0 ? wml_value_axis(v, i) : (struct wml_axis){.size = -1};
        axis[i] = s->dim[i] < 0 ? old : (struct wml_axis){.size = s->dim[i]};
        if (old.size >= 0 && s->dim[i] >= 0 && old.size != s->dim[i])
            return wml_fail(err, WML_E_USAGE, "--input-shape: dimension %zu of input '%.*s' is %" PRId64
                            " in the model, %" PRId64 " was given", i, WML_ARG(s->name), old.size, s->dim[i]);
    }
    wml_value_set_type(v, wml_type_tensor(r->model, wml_value_elem(v), (int64_t)s->rank, axis));
    return true;
}

/* false: no input has the symbol. */
static bool set_dim(struct wml_optimize_run *r, const struct wml_feed_dim *d)
{
    struct wml_graph *g = r->model->graph;
    bool found = false;
    for (size_t i = 0; i < g->inputs.len; i++) {
        struct wml_value *v = g->inputs.at[i];
        int64_t rank = wml_value_rank(v);
        bool here = false;
        if (rank <= 0 || !v->type) continue;
        struct wml_axis *axis = WML_NEW_ARRAY(&r->arena, struct wml_axis, (size_t)rank);
        for (int64_t k = 0; k < rank; k++) {
            axis[k] = wml_value_axis(v, (size_t)k);
            if (axis[k].size < 0 && axis[k].symbol.len && wml_str_eq(axis[k].symbol, d->symbol)) {
                axis[k] = (struct wml_axis){.size = d->size};
                here = true;
            }
        }
        if (here) wml_value_set_type(v, wml_type_tensor(r->model, wml_value_elem(v), rank, axis));
        found = found || here;
    }
    return found;
}

static bool unknown_dim(const struct wml_feed_dim *d, struct wml_err *err)
{
    wml_fail(err, WML_E_USAGE, "--input-dim: no input has a dimension named '%.*s'", WML_ARG(d->symbol));
    return wml_hint(err, "`winml inspect -m MODEL` shows the names of dimensions");
}

struct dims {
    WML_VEC(struct wml_feed_dim) v;
};

/* Sizes of symbols that typed shapes tell; -1: they contradict each other. Before the shapes are set. */
static void find_dims(struct wml_optimize_run *r, struct dims *out)
{
    for (size_t i = 0; i < r->args->n_shapes; i++) {
        const struct wml_feed_shape *s = &r->args->shape[i];
        const struct wml_value *v = input_named(r->model, s->name);
        for (size_t k = 0; v && wml_value_rank(v) == (int64_t)s->rank && k < s->rank; k++) {
            struct wml_str symbol = wml_value_axis(v, k).symbol;
            size_t at = 0;
            if (!symbol.len || s->dim[k] < 0) continue;
            while (at < out->v.len && !wml_str_eq(out->v.at[at].symbol, symbol)) at++;
            struct wml_feed_dim d = {wml_arena_str(&r->arena, symbol), s->dim[k]};
            if (at == out->v.len) WML_PUSH_IN(&r->arena, &out->v, d);
            else if (out->v.at[at].size != d.size) out->v.at[at].size = -1;
        }
    }
}

/* An NPU wants to know every size. */
static void warn_open(struct wml_optimize_run *r)
{
    struct wml_buf text = {0};
    for (size_t i = 0; i < r->model->graph->inputs.len; i++) {
        struct wml_value *v = r->model->graph->inputs.at[i];
        if (!v->type || !v->type->tensor || wml_type_is_static(v->type) || v->init) continue;
        wml_buf_clear(&text);
        wml_buf_fmt(&text, "input '%.*s' is still open: ", WML_ARG(v->name));
        wml_type_text(v->type, &text);
        wml_optimize_warn(r, wml_buf_view(&text));
    }
    wml_buf_release(&text);
}

bool wml_optimize_shapes(struct wml_optimize_run *r, struct wml_err *err)
{
    struct wml_graph *g = r->model->graph;
    struct dims told = {0}, all = {0};
    if (!r->args->n_shapes && !r->args->n_dims) return true;
    find_dims(r, &told);
    for (size_t i = 0; i < r->args->n_shapes; i++)
        if (!set_shape(r, &r->args->shape[i], err)) return false;
    for (size_t i = 0; i < r->args->n_dims; i++) {
        if (!set_dim(r, &r->args->dim[i])) return unknown_dim(&r->args->dim[i], err);
        WML_PUSH_IN(&r->arena, &all.v, r->args->dim[i]);
    }
    for (size_t i = 0; i < told.v.len; i++) {
        if (told.v.at[i].size < 0) continue;
        set_dim(r, &told.v.at[i]);
        WML_PUSH_IN(&r->arena, &all.v, told.v.at[i]);
    }
    r->dim = all.v.at;
    r->n_dims = all.v.len;
    warn_open(r);
    for (struct wml_value *v = g->first_value; v; v = v->next)
        if (v->def && v->type && !v->n_outputs) wml_value_set_type(v, NULL);
    r->old_output_type = WML_NEW_ARRAY(&r->arena, struct wml_type *, g->outputs.len + 1);
    for (size_t i = 0; i < g->outputs.len; i++) {
        struct wml_value *v = g->outputs.at[i];
        if (v->def && v->type && v->type->tensor && !wml_type_is_static(v->type)) {
            r->old_output_type[i] = v->type;
            wml_value_set_type(v, NULL);
        }
    }
    return true;
}

void wml_optimize_restore_types(struct wml_optimize_run *r)
{
    struct wml_graph *g = r->model->graph;
    for (size_t i = 0; r->old_output_type && i < g->outputs.len; i++)
        if (!g->outputs.at[i]->type && r->old_output_type[i])
            wml_value_set_type(g->outputs.at[i], r->old_output_type[i]);
}
