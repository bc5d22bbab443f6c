/* Edits keep the use-def index right: after seeded random edits everything the index says is computed again
 * from the nodes and compared. Also: sorting, and what linking refuses, by name. */
#include "base/rng.h"
#include "graph_index.h"

static struct wml_model *read_model(const char *text)
{
    struct wml_model *m = NULL;
    struct wml_err err = {0};
    if (!wml_model_parse(wml_str(text), &m, &err)) fail_msg("%s\n%s", err.msg, text);
    return m;
}

/* ---- random edits ---- */

static const char start[] =
    "g (float[2] x, bool c, float[2] d = {1.0, 2.0}) => (y, z) <float[2] k = {3.0, 4.0}, float s = {0.5}> {"
    " a = Add(x, k) b, b2 = Split(a) e = Clip(b, , s)"
    " y = If <then_branch = t () => (p) <float[2] w = {1.0, 1.0}> { q = Mul(a, w) p = Add(q, e)"
    "   }, else_branch = f () => (r) { r = If <then_branch = tt () => (u) { u = Neg(b2) }, else_branch = ff () => (v) { v = Abs(k) }> (c) }> (c)"
    " z = Sum(a, b, a, e, d) }";

struct edits {
    struct wml_model *m;
    struct wml_rng rng;
    WML_VEC(struct wml_node *) node;
    WML_VEC(struct wml_value *) value;
};

static size_t pick(struct edits *e, size_t n)
{
    return (size_t)wml_rng_range(&e->rng, 0, (int64_t)n);
}

static bool gather(void *arg, struct wml_graph *g)
{
    struct edits *e = arg;
    for (struct wml_node *n = g->first; n; n = n->next) WML_PUSH(&e->node, n);
    for (struct wml_value *v = g->first_value; v; v = v->next) WML_PUSH(&e->value, v);
    return true;
}

/* v is defined before n runs: an input, a constant, or a node further up in n's graph or in one around it. */
static bool is_visible(const struct wml_value *v, const struct wml_node *n)
{
    const struct wml_node *at = n;
    if (!wml_graph_is_inside(n->graph, v->graph)) return false;
    if (!v->def) return true;
    while (at->graph != v->graph) at = at->graph->owner;
    return at != v->def && wml_node_index(v->def) < wml_node_index(at);
}

static struct wml_value *some_visible(struct edits *e, const struct wml_node *n)
{
    for (int tries = 0; tries < 20; tries++) {
        struct wml_value *v = e->value.at[pick(e, e->value.len)];
        /* a name that an inner graph hides would read another value in the file */
        if (is_visible(v, n) && wml_graph_resolve(n->graph, v->name) == v) return v;
    }
    return NULL;
}

static bool is_free(const struct wml_node *n)
{
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && !wml_value_is_unused(n->out[i])) return false;
    return true;
}

static void edit_inputs(struct edits *e, struct wml_node *n)
{
    struct wml_value *v = some_visible(e, n);
    switch (pick(e, 5)) {
    case 0: wml_node_set_input(n, pick(e, n->n_in + 3), v); break;
    case 1: wml_node_set_input(n, pick(e, n->n_in + 1), NULL); break;
    case 2: wml_node_add_input(n, v); break;
    case 3:
        if (n->n_in) wml_node_remove_input(n, pick(e, n->n_in));
        break;
    default:
        if (v && n->n_in) wml_node_set_input(n, pick(e, n->n_in), v);
    }
}

static void edit_outputs(struct edits *e, struct wml_node *n)
{
    size_t slot = n->n_out ? pick(e, n->n_out) : 0;
    struct wml_value *v = wml_node_out(n, slot);
    switch (pick(e, 3)) {
    case 0: wml_node_add_output(n, pick(e, 2) ? WML_STR("a") : WML_NO_STR); break;
    case 1:
        if (v && wml_value_is_unused(v)) wml_node_drop_output(n, slot);
        break;
    default: { /* a node of another operator takes the place of n */
        if (!v) break;
        struct wml_node *r = wml_node_new(n, "", "Other");
        for (size_t i = 0; i < n->n_in; i++) wml_node_set_input(r, i, n->in[i]);
        wml_node_take_output(r, pick(e, 2), v);
    }
    }
}

static void edit_values(struct edits *e, struct wml_value *v)
{
    struct wml_graph *g = v->graph;
    struct wml_value *other;
    switch (pick(e, 5)) {
    case 0: /* names that inner graphs define are the caller's business */
        wml_value_rename(v, pick(e, 2) ? wml_model_unique(e->m, WML_STR("n")) : wml_arena_str(&e->m->arena, v->name));
        break;
    case 1:
        if (!v->def && !v->n_inputs && wml_value_is_unused(v)) wml_value_remove(v);
        break;
    case 2: wml_graph_add_init(g, WML_STR("k"), wml_tensor_f32(e->m, (float)pick(e, 9))); break;
    case 3: /* readers of v move to a value that all of them may read */
        other = e->value.at[pick(e, e->value.len)];
        if (other == v || !v->uses) break;
        for (const struct wml_use *u = v->uses; u; u = u->next)
            if (!is_visible(other, u->node) || wml_graph_resolve(u->node->graph, other->name) != other) return;
        wml_value_replace_uses(v, other);
        break;
    default: /* an equal node in place of the old one, name and readers included */
        if (!v->def) break;
        struct wml_value *twin = wml_node_add_output(wml_node_new(v->def, "", "Twin"), WML_STR("twin"));
        wml_value_replace(v, twin);
    }
}

static void edit_signature(struct edits *e, struct wml_graph *g)
{
    struct wml_value *v = e->value.at[pick(e, e->value.len)];
    size_t i = g->outputs.len ? pick(e, g->outputs.len) : 0;
    switch (pick(e, 4)) {
    case 0:
        if (v->graph == g && g->outputs.len < 6) wml_graph_add_output(g, v);
        break;
    case 1:
        if (g->outputs.len > 1) wml_graph_remove_output(g, i);
        break;
    case 2:
        if (v->graph == g && g->outputs.len) wml_graph_set_output(g, i, v);
        break;
    default:
        wml_graph_add_input(g, wml_model_unique(e->m, WML_STR("in")), wml_type_static(e->m, WML_F32, 0, NULL));
    }
}

static void one_edit(struct edits *e)
{
    e->node.len = e->value.len = 0;
    wml_model_each_graph(e->m, gather, e);
    struct wml_node *n = e->node.len ? e->node.at[pick(e, e->node.len)] : NULL;
    size_t what = pick(e, 10);
    if (!n) wml_node_add_output(wml_graph_append(e->m->graph, "", "First"), WML_STR("first"));
    else if (what < 3) edit_inputs(e, n);
    else if (what < 5) edit_outputs(e, n);
    else if (what < 7) edit_values(e, e->value.at[pick(e, e->value.len)]);
    else if (what < 8) edit_signature(e, n->graph);
    else if (what < 9 && is_free(n)) wml_node_remove(n);
    else wml_node_add_input(wml_graph_append(n->graph, "", "Tail"), some_visible(e, n));
}

static void random_edits(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct edits e = {.m = read_model(start), .rng = {seed}};
        check_index(e.m);
        for (int i = 0; i < 120; i++) {
            one_edit(&e);
            check_index(e.m);
        }
        check_text(e.m);
        check_index(e.m);
        WML_VEC_RELEASE(&e.node);
        WML_VEC_RELEASE(&e.value);
        wml_model_free(e.m);
    }
}

/* ---- single edits, with what they must leave ---- */

static void expect(struct wml_model *m, const char *text)
{
    struct wml_buf out = {0};
    check_index(m);
    wml_model_text(m, WML_TEXT_ONE_LINE, &out);
    assert_string_equal(wml_buf_text(&out), text);
    wml_buf_release(&out);
    wml_model_free(m);
}

static void replace_keeps_output_names(void **state)
{
    (void)state;
    struct wml_model *m = read_model("g (x) => (y) { h = Relu(x) y = Identity(h) z = Neg(y) Sink(z) }");
    struct wml_value *h = wml_graph_find(m->graph, WML_STR("h")), *y = wml_graph_find(m->graph, WML_STR("y"));
    assert_true(wml_value_replace(y, h));
    wml_node_remove(y->def);
    expect(m, "g (x) => (y) { y = Relu(x) z = Neg(y) Sink(z) }");
    m = read_model("g (x) => (y) { y = Identity(x) }");
    assert_false(wml_value_replace(wml_graph_find(m->graph, WML_STR("y")), wml_graph_find(m->graph, WML_STR("x"))));
    expect(m, "g (x) => (y) { y = Identity(x) }");
}

static void removing_a_branch_frees_what_it_captured(void **state)
{
    (void)state;
    struct wml_model *m = read_model("g (x, c) => (x) { h = Neg(x) y = If <then_branch = t () => (a) { a = Loop <body = b () => (h) { q = Abs(h) }> (h) }> (c) }");
    struct wml_value *h = wml_graph_find(m->graph, WML_STR("h"));
    assert_int_equal(h->n_uses, 2);
    assert_int_equal(h->n_outputs, 1); /* the inner graph hands it out */
    wml_node_remove(m->graph->last);
    assert_true(wml_value_is_unused(h));
    expect(m, "g (x, c) => (x) { h = Neg(x) }");
}

static void slots(void **state)
{
    (void)state;
    struct wml_model *m = read_model("g (x, y) => (z) { z = F(x, , y, x) }");
    struct wml_node *n = m->graph->first;
    wml_node_remove_input(n, 0);
    wml_node_set_input(n, 5, m->graph->inputs.at[0]);
    wml_node_set_input(n, 2, NULL);
    expect(m, "g (x, y) => (z) { z = F(\"\", y, \"\", \"\", \"\", x) }");
    m = read_model("g (x, y) => (z) { z = F(x, , y) }");
    wml_node_set_input(m->graph->first, 2, NULL); /* cuts the empty ones at the end */
    expect(m, "g (x, y) => (z) { z = F(x) }");
}

static void new_names_are_unique(void **state)
{
    (void)state;
    struct wml_model *m = read_model("g (x) => (y) { [relu] y = If <then_branch = relu_1 () => (v) { v = Neg(x) }> (x) }");
    struct wml_node *n = wml_node_new(m->graph->first, "", "Relu");
    wml_node_add_input(n, m->graph->inputs.at[0]);
    assert_true(wml_str_is(wml_node_add_output(n, WML_STR("relu"))->name, "relu_2"));
    assert_true(wml_str_is(wml_node_add_output(n, WML_STR("v"))->name, "v_1")); /* of an inner graph */
    assert_false(wml_value_rename(n->out[0], WML_STR("y")));
    assert_true(wml_value_rename(n->out[0], WML_STR("free")));
    expect(m, "g (x) => (y) { free, v_1 = Relu(x) [relu] y = If <then_branch = relu_1 () => (v) { v = Neg(x) }> (x) }");
}

/* ---- order, and what linking refuses ---- */

static void sorting(void **state)
{
    static const struct { const char *text, *sorted; } row[] = {
        {"g (x) => (c) { c = Neg(b) b = Neg(a) a = Neg(x) }", "g (x) => (c) { a = Neg(x) b = Neg(a) c = Neg(b) }"},
        /* in order already: stays as it is, whatever else would do */
        {"g (x) => (c) { a = Neg(x) d = Abs(x) b = Neg(a) c = Add(b, d) }", "g (x) => (c) { a = Neg(x) d = Abs(x) b = Neg(a) c = Add(b, d) }"},
        /* a branch reads a value that is defined further down */
        {"g (x) => (y) { y = If <then_branch = t () => (p) { p = Neg(h) }> (x) h = Abs(x) }",
         "g (x) => (y) { h = Abs(x) y = If <then_branch = t () => (p) { p = Neg(h) }> (x) }"},
        /* inside a branch */
        {"g (x) => (y) { y = If <then_branch = t () => (q) { q = Neg(p) p = Abs(x) }> (x) }",
         "g (x) => (y) { y = If <then_branch = t () => (q) { p = Abs(x) q = Neg(p) }> (x) }"},
    };
    (void)state;
    for (size_t i = 0; i < WML_COUNT(row); i++) expect(read_model(row[i].text), row[i].sorted);
}

static void refused(void **state)
{
    static const struct { const char *text, *part[3]; } row[] = {
        {"g (x) => (b) { [first] a = Add(x, b) [second] b = Neg(a) }", {"cycle", "'first'", "'second'"}},
        {"g (x) => (a) { [loop] a = Neg(a) }", {"cycle", "'loop'", "'g'"}},
        {"g (x) => (y) { [outer] y = If <then_branch = t () => (p) { [inner] p = Neg(y) }> (x) }", {"cycle", "'outer'", "'g'"}},
        {"g (x) => (y) { y = If <then_branch = t () => (b) { [p] a = Neg(b) [q] b = Neg(a) }> (x) }", {"cycle", "'p'", "'q'"}},
        {"g (x) => (y) { [p] y = Neg(x) [q] y = Abs(x) }", {"'y'", "'p'", "'q'"}},
        {"g (x) => (x) { [p] x = Neg(x) }", {"'x'", "'p'", "graph input"}},
        {"g (x) => (k) <float k = {1}> { [p] k = Neg(x) }", {"'k'", "'p'", "initializer"}},
        {"g (x) => (y) { [p] y, y = Split(x) }", {"'y'", "'p'", ""}},
    };
    (void)state;
    for (size_t i = 0; i < WML_COUNT(row); i++) {
        struct wml_err err = {0};
        struct wml_model *m = NULL;
        if (wml_model_parse(wml_str(row[i].text), &m, &err)) fail_msg("accepted: %s", row[i].text);
        for (size_t k = 0; k < WML_COUNT(row[i].part); k++)
            if (row[i].part[k] && !strstr(err.msg, row[i].part[k]))
                fail_msg("%s\n  said: %s\n  not: %s", row[i].text, err.msg, row[i].part[k]);
    }
}

static void a_cycle_made_by_edits(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_model *m = read_model("g (x) => (b) { [first] a = Neg(x) [second] b = Neg(a) }");
    wml_node_set_input(m->graph->first, 0, m->graph->last->out[0]);
    assert_false(wml_graph_sort(m->graph, &err));
    assert_non_null(strstr(err.msg, "'first'"));
    assert_non_null(strstr(err.msg, "'second'"));
    wml_model_free(m);
}

/* Inner graphs as well. */
static void sorting_after_edits(void **state)
{
    (void)state;
    struct wml_err err = {0};
    struct wml_model *m = read_model("g (x) => (y) { h = Abs(x) y = If <then_branch = t () => (q) { p = Neg(x) q = Add(p, h) }> (x) }");
    struct wml_node *branch = m->graph->last;
    wml_node_move(branch, m->graph->first);
    struct wml_graph *t = wml_node_subgraph(branch, 0);
    wml_node_move(t->last, t->first);
    check_index(m);
    assert_true(wml_graph_sort(m->graph, &err));
    expect(m, "g (x) => (y) { h = Abs(x) y = If <then_branch = t () => (q) { p = Neg(x) q = Add(p, h) }> (x) }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_edits), cmocka_unit_test(replace_keeps_output_names),
        cmocka_unit_test(removing_a_branch_frees_what_it_captured), cmocka_unit_test(slots),
        cmocka_unit_test(new_names_are_unique), cmocka_unit_test(sorting), cmocka_unit_test(refused),
        cmocka_unit_test(a_cycle_made_by_edits), cmocka_unit_test(sorting_after_edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
