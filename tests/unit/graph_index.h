/* The use-def index of a model, computed again from its nodes and compared with the lists that edits keep. */
#ifndef GRAPH_INDEX_H
#define GRAPH_INDEX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/text.h"

struct tally { /* what the nodes say, one entry per value */
    struct wml_value *v;
    size_t reads, outputs, inputs;
};
struct tallies {
    WML_VEC(struct tally) v;
};

/* Values are numbered through their mark. */
static struct tally *of(struct tallies *t, const struct wml_value *v)
{
    assert_true(v->mark < t->v.len);
    assert_ptr_equal(t->v.at[v->mark].v, v); /* the value is in the list of its graph */
    return &t->v.at[v->mark];
}

static bool number_values(void *arg, struct wml_graph *g)
{
    struct tallies *t = arg;
    const struct wml_value *before = NULL;
    size_t n = 0;
    for (struct wml_value *v = g->first_value; v; before = v, v = v->next) {
        v->mark = t->v.len;
        struct tally one = {.v = v};
        WML_PUSH(&t->v, one);
        assert_ptr_equal(v->graph, g);
        assert_ptr_equal(v->prev, before);
        assert_ptr_equal(wml_graph_find(g, v->name), v);
        n++;
    }
    assert_ptr_equal(g->last_value, before);
    assert_int_equal(g->by_name.live, n);
    return true;
}

static bool tally_graph(void *arg, struct wml_graph *g)
{
    struct tallies *t = arg;
    const struct wml_node *before = NULL;
    size_t n = 0;
    for (const struct wml_node *node = g->first; node; before = node, node = node->next, n++) {
        assert_ptr_equal(node->graph, g);
        assert_ptr_equal(node->prev, before);
        for (size_t i = 0; i < node->n_in; i++) {
            if (!node->in[i]) continue;
            of(t, node->in[i])->reads++;
            assert_true(wml_graph_is_inside(g, node->in[i]->graph)); /* its own graph, or one around it */
            assert_ptr_equal(node->use[i].node, node);
            assert_int_equal(node->use[i].slot, i);
        }
        for (size_t i = 0; i < node->n_out; i++) {
            if (!node->out[i]) continue;
            of(t, node->out[i]);
            assert_ptr_equal(node->out[i]->def, node);
            assert_int_equal(node->out[i]->def_slot, i);
        }
        struct wml_graph *sub;
        for (size_t k = 0; (sub = wml_node_subgraph(node, k)); k++) {
            assert_ptr_equal(sub->owner, node);
            assert_ptr_equal(sub->outer, g);
        }
    }
    assert_ptr_equal(g->last, before);
    assert_int_equal(g->n_nodes, n);
    for (size_t i = 0; i < g->inputs.len; i++) of(t, g->inputs.at[i])->inputs++;
    for (size_t i = 0; i < g->outputs.len; i++) of(t, g->outputs.at[i])->outputs++;
    return true;
}

/* Every use in the list is one that a node has, and there are as many as the nodes have. */
static void check_value(const struct tally *t)
{
    const struct wml_value *v = t->v;
    const struct wml_use *before = NULL;
    size_t n = 0;
    for (const struct wml_use *u = v->uses; u; before = u, u = u->next, n++) {
        assert_ptr_equal(u->prev, before);
        assert_true(u->slot < u->node->n_in);
        assert_ptr_equal(u->node->in[u->slot], v);
        assert_ptr_equal(&u->node->use[u->slot], u);
    }
    assert_ptr_equal(v->last_use, before);
    assert_int_equal(v->n_uses, n);
    assert_int_equal(t->reads, n);
    assert_int_equal(v->n_inputs, t->inputs);
    assert_int_equal(v->n_outputs, t->outputs);
    if (v->init) assert_ptr_equal(v->init->value, v);
    if (v->def) assert_ptr_equal(v->def->out[v->def_slot], v);
}

static inline void check_index(struct wml_model *m)
{
    struct tallies t = {0};
    wml_model_each_graph(m, number_values, &t);
    wml_model_each_graph(m, tally_graph, &t);
    for (size_t i = 0; i < t.v.len; i++) check_value(&t.v.at[i]);
    WML_VEC_RELEASE(&t.v);
}

/* Text is the other witness: what is printed reads back to the same text. Unsorted graphs are sorted first. */
static inline void check_text(struct wml_model *m)
{
    struct wml_buf a = {0}, b = {0};
    struct wml_err err = {0};
    struct wml_model *again = NULL;
    if (!wml_graph_sort(m->graph, &err)) fail_msg("%s", err.msg);
    wml_model_text(m, WML_TEXT_HEADER | WML_TEXT_ALL_DATA | WML_TEXT_TYPES, &a);
    if (!wml_model_parse(wml_buf_view(&a), &again, &err)) fail_msg("%s\n%s", err.msg, wml_buf_text(&a));
    wml_model_text(again, WML_TEXT_HEADER | WML_TEXT_ALL_DATA | WML_TEXT_TYPES, &b);
    assert_string_equal(wml_buf_text(&b), wml_buf_text(&a));
    wml_model_free(again);
    wml_buf_release(&a);
    wml_buf_release(&b);
}

#endif
