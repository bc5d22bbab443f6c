/* graph/sync.c - linked face back to the file face: names from values, lists from what is alive. Old
 * entries keep their place and their other fields, so that an untouched model stays as it was; new
 * ones follow. */
#include "graph/graph.h"

#include "graph/edit.h"
#include "graph/internal.h"
#include "graph/parts.h"

static struct wml_str name_of(const struct wml_value *v)
{
    return v ? v->name : WML_STR("");
}

static void sync_node(struct wml_arena *a, struct wml_node *n)
{
    n->input.len = n->output.len = 0;
    for (size_t i = 0; i < n->n_in; i++) WML_PUSH_IN(a, &n->input, name_of(n->in[i]));
    for (size_t i = 0; i < n->n_out; i++) WML_PUSH_IN(a, &n->output, name_of(n->out[i]));
}

static void refresh(struct wml_value_info *info)
{
    info->name = info->value->name;
    if (info->value->type_changed) info->type = info->value->type;
}

static struct wml_value_info *new_info(struct wml_arena *a, struct wml_value *v)
{
    struct wml_value_info *info = WML_NEW(a, struct wml_value_info);
    info->value = v;
    info->name = v->name;
    info->type = v->type;
    return info;
}

/* Inputs and outputs: the entry that stood for the value, looked for at its old place first. */
static struct wml_value_info *info_for(struct wml_arena *a, struct wml_value_info *const *old,
                                       size_t n_old, size_t place, struct wml_value *v)
{
    if (place < n_old && old[place]->value == v) return old[place];
    for (size_t i = 0; i < n_old; i++)
        if (old[i]->value == v) return old[i];
    return new_info(a, v);
}

static void sync_signature(struct wml_arena *a, struct wml_graph *g)
{
    struct wml_value_info **input = WML_NEW_ARRAY(a, struct wml_value_info *, g->inputs.len);
    struct wml_value_info **output = WML_NEW_ARRAY(a, struct wml_value_info *, g->outputs.len);
    for (size_t i = 0; i < g->inputs.len; i++) {
        input[i] = info_for(a, g->input.at, g->input.len, i, g->inputs.at[i]);
        refresh(input[i]);
    }
    for (size_t i = 0; i < g->outputs.len; i++) {
        output[i] = info_for(a, g->output.at, g->output.len, i, g->outputs.at[i]);
        refresh(output[i]);
    }
    g->input.at = input;
    g->input.len = g->input.cap = g->inputs.len;
    g->output.at = output;
    g->output.len = g->output.cap = g->outputs.len;
}

/* Drops entries of removed values (those the file already had dangling stay), adds new ones. */
static void sync_value_info(struct wml_arena *a, struct wml_graph *g)
{
    size_t kept = 0;
    for (struct wml_value *v = g->first_value; v; v = v->next) v->listed = false;
    for (size_t i = 0; i < g->value_info.len; i++) {
        struct wml_value_info *info = g->value_info.at[i];
        struct wml_value *v = info->value;
        if (v && (v->graph != g || !v->type || (v->type_changed && v->n_outputs))) continue;
        if (v) {
            refresh(info);
            v->listed = true;
        }
        g->value_info.at[kept++] = info;
    }
    g->value_info.len = kept;
    for (struct wml_value *v = g->first_value; v; v = v->next)
        if (v->type_changed && v->type && !v->listed && !v->n_inputs && !v->n_outputs)
            WML_PUSH_IN(a, &g->value_info, new_info(a, v));
}

static void sync_constants(struct wml_arena *a, struct wml_graph *g)
{
    size_t kept = 0;
    for (struct wml_value *v = g->first_value; v; v = v->next) v->listed = false;
    for (size_t i = 0; i < g->initializer.len; i++) {
        struct wml_tensor *t = g->initializer.at[i];
        if (!t->value || t->value->graph != g || t->value->init != t || t->value->listed) continue;
        t->name = t->value->name;
        t->value->listed = true;
        g->initializer.at[kept++] = t;
    }
    g->initializer.len = kept;
    kept = 0;
    for (size_t i = 0; i < g->sparse_initializer.len; i++) {
        struct wml_sparse_tensor *s = g->sparse_initializer.at[i];
        struct wml_value *v = s->values->value;
        if (!v || v->graph != g || v->sparse != s) continue;
        s->values->name = v->name;
        g->sparse_initializer.at[kept++] = s;
    }
    g->sparse_initializer.len = kept;
    for (struct wml_value *v = g->first_value; v; v = v->next) {
        if (!v->init || v->listed) continue;
        v->init->name = v->name;
        WML_PUSH_IN(a, &g->initializer, v->init);
    }
}

static void sync_annotations(struct wml_graph *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->annotation.len; i++) {
        struct wml_annotation *note = g->annotation.at[i];
        if (note->value && note->value->graph != g) continue;
        if (note->value) note->tensor_name = note->value->name;
        g->annotation.at[kept++] = note;
    }
    g->annotation.len = kept;
}

static void sync_nodes(struct wml_arena *a, struct wml_graph *g)
{
    g->node.len = 0;
    for (struct wml_node *n = g->first; n; n = n->next) {
        sync_node(a, n);
        WML_PUSH_IN(a, &g->node, n);
    }
}

static bool sync_graph(void *arg, struct wml_graph *g)
{
    struct wml_arena *a = arg;
    sync_nodes(a, g);
    sync_signature(a, g);
    sync_value_info(a, g);
    sync_constants(a, g);
    sync_annotations(g);
    return true;
}

void wml_node_sync(struct wml_node *n)
{
    struct wml_arena *a = &n->graph->model->arena;
    struct wml_graph *sub;
    sync_node(a, n);
    for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++) wml_graph_each(sub, sync_graph, a);
}

static void sync_function(struct wml_arena *a, struct wml_function *f)
{
    struct wml_graph *g = &f->body;
    sync_nodes(a, g);
    sync_value_info(a, g);
    f->input.len = f->output.len = 0;
    for (size_t i = 0; i < g->inputs.len; i++) WML_PUSH_IN(a, &f->input, g->inputs.at[i]->name);
    for (size_t i = 0; i < g->outputs.len; i++) WML_PUSH_IN(a, &f->output, g->outputs.at[i]->name);
    for (struct wml_node *n = g->first; n; n = n->next) {
        struct wml_graph *sub;
        for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++) wml_graph_each(sub, sync_graph, a);
    }
}

void wml_model_sync(struct wml_model *m)
{
    struct wml_arena *a = &m->arena;
    wml_graph_each(m->graph, sync_graph, a);
    for (size_t i = 0; i < m->function.len; i++) sync_function(a, m->function.at[i]);
    for (size_t i = 0; i < m->training.len; i++) {
        if (m->training.at[i]->initialization) wml_graph_each(m->training.at[i]->initialization, sync_graph, a);
        if (m->training.at[i]->algorithm) wml_graph_each(m->training.at[i]->algorithm, sync_graph, a);
    }
}
