/* Sizes that are symbols are read once: values of a graph that hold the same sizes become the first of them. Vectors of
 * sizes are put together in one way: a Where whose condition is told by the sizes (-1 where a size is to stay, as
 * exporters write targets of Expand) becomes the Concat of what it picks, a picked size that only becomes a vector is
 * picked as one, neighbours picked from one Shape are picked together, and from the first that holds them. Left alone: sizes inference knows nothing of,
 * and graph outputs. Late: others look for the forms exporters write. */
#include "passes/shape_symbols.h"

#include <inttypes.h>

enum { SHAPES = 4 };

struct sharing {
    struct wml_symbols *c;
    struct wml_map seen;              /* by sizes: the first value of the graph that holds them */
    struct wml_value *shape[SHAPES]; /* the first results of Shape */
    size_t n_shapes;
};

static bool is_vector(const struct wml_value *v)
{
    return v && wml_value_elem(v) == WML_I64 && wml_value_rank(v) == 1;
}

static struct wml_value *add_constant(struct wml_symbols *c, struct wml_graph *g, size_t n, const int64_t *at)
{
    return wml_graph_add_init(g, WML_STR("shape"), wml_tensor_i64s(c->r->model, n, at));
}

/* -- equal sizes -- */

/* NULL: not all is told, or numbers only, which are constants anyway. */
static const struct wml_syms *told(struct wml_symbols *c, struct wml_value *v)
{
    const struct wml_syms *s;
    bool symbol = false;
    if (!v || v->n_outputs || v->pinned || wml_value_elem(v) != WML_I64 || wml_value_rank(v) < 0 || wml_value_rank(v) > 1) return NULL;
    if (!(s = wml_syms_of(c, v))) return NULL;
    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].kind == WML_SYM_OPEN) return NULL;
        symbol = symbol || s->at[i].kind == WML_SYM_SYMBOL;
    }
    return symbol ? s : NULL;
}

static struct wml_str key_of(struct wml_symbols *c, const struct wml_value *v, const struct wml_syms *s)
{
    struct wml_buf b = {0};
    wml_buf_fmt(&b, "%" PRId64, wml_value_rank(v));
    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].kind == WML_SYM_NUMBER) wml_buf_fmt(&b, ",%" PRId64, s->at[i].v);
        else wml_buf_fmt(&b, ",%zu:%.*s", s->at[i].s.len, WML_ARG(s->at[i].s));
    }
    struct wml_str key = wml_arena_str(c->r->scratch, wml_buf_view(&b));
    wml_buf_release(&b);
    return key;
}

/* Readers of v read the value before it that holds the same. */
static void share(struct sharing *h, const struct wml_node *n, struct wml_value *v)
{
    const struct wml_syms *s = told(h->c, v);
    if (!s || !v->n_uses) return;
    struct wml_str key = key_of(h->c, v, s);
    struct wml_value *first = wml_map_get(&h->seen, key);
    if (!first) {
        wml_map_put(&h->seen, key, v);
    } else if (first != v) {
        wml_value_replace_uses(v, first);
        wml_pass_applied(h->c->r, n->op_type, n->name);
    }
}

/* What node n, which was made anew, holds; it is used already. */
static void note_new(struct sharing *h, struct wml_node *n)
{
    wml_syms_note(h->c, n);
    share(h, n, n->out[0]);
}

/* -- vectors from pieces -- */

struct pieces { /* numbers in a row are one constant */
    struct wml_value *v[WML_SYMS];
    int64_t number[WML_SYMS];
    size_t n;
};

/* The operand of a Concat that is element i; NULL: it holds more than that one. */
static struct wml_value *element_of(const struct wml_node *concat, size_t i)
{
    for (size_t k = 0; k < concat->n_in; k++) {
        const struct wml_value *v = concat->in[k];
        int64_t size = is_vector(v) ? wml_value_axis(v, 0).size : -1;
        if (size < 0 || (i < (size_t)size && size != 1)) return NULL;
        if (i < (size_t)size) return concat->in[k];
        i -= (size_t)size;
    }
    return NULL;
}

/* Element i of operand v, a constant or a Concat. */
static bool pick(struct wml_symbols *c, struct wml_value *v, size_t i, size_t n, struct pieces *p)
{
    const struct wml_syms *s = wml_syms_of(c, v);
    struct wml_value *e = NULL;
    if (!s || (s->n != n && s->n != 1)) return false;
    struct wml_sym x = s->at[s->n == 1 ? 0 : i];
    if (x.kind != WML_SYM_NUMBER) {
        if (!is_vector(v)) return false;
        if (s->n == 1) e = v;
        else if (v->def && wml_node_is(v->def, "Concat")) e = element_of(v->def, i);
        if (!e) return false;
    }
    p->v[p->n] = e;
    p->number[p->n++] = x.v;
    return true;
}

/* Before n: the vector of these pieces. */
static struct wml_value *join(struct wml_symbols *c, struct wml_node *n, const struct pieces *p)
{
    struct wml_node *concat = wml_node_new(n, "", "Concat");
    wml_attr_set_int(concat, "axis", 0);
    for (size_t i = 0, end; i < p->n; i = end) {
        for (end = i + 1; !p->v[i] && end < p->n && !p->v[end]; end++) {}
        wml_node_add_input(concat, p->v[i] ? p->v[i] : add_constant(c, n->graph, end - i, p->number + i));
    }
    struct wml_value *v = wml_node_add_output(concat, WML_NO_STR);
    wml_value_set_type(v, wml_type_copy(c->r->model, n->out[0]->type));
    return v;
}

static void build_where(struct sharing *h, struct wml_node *n)
{
    struct wml_symbols *c = h->c;
    const struct wml_syms *is = wml_syms_of(c, wml_node_in(n, 0));
    struct pieces p = {0};
    int64_t size = is_vector(wml_node_out(n, 0)) ? wml_value_axis(n->out[0], 0).size : -1;
    if (!is || n->n_in != 3 || size < 1 || size > WML_SYMS || n->out[0]->n_outputs || n->out[0]->pinned) return;
    if (is->n != (size_t)size && is->n != 1) return;
    for (size_t i = 0; i < (size_t)size; i++) {
        struct wml_sym so = is->at[is->n == 1 ? 0 : i];
        if (so.kind != WML_SYM_NUMBER || !pick(c, n->in[so.v ? 1 : 2], i, (size_t)size, &p)) return;
    }
    struct wml_value *v = join(c, n, &p);
    wml_value_replace_uses(n->out[0], v);
    note_new(h, v->def);
    wml_pass_applied(c->r, n->op_type, n->name);
}

/* -- sizes picked out of a Shape -- */

/* n picks constant places of a vector. */
static bool is_pick(struct wml_symbols *c, const struct wml_node *n, const struct wml_syms **at)
{
    if (!n || !wml_node_is(n, "Gather") || wml_attr_int(n, "axis", 0) != 0 || !is_vector(wml_node_in(n, 0))) return false;
    if (!wml_constant_of(wml_node_in(n, 1)) || !(*at = wml_syms_of(c, n->in[1]))) return false;
    int64_t size = wml_value_axis(n->in[0], 0).size;
    for (size_t i = 0; i < (*at)->n; i++)
        if (size < 0 || (*at)->at[i].v < -size || (*at)->at[i].v >= size) return false;
    return true;
}

/* Before n: these places of a vector. */
static struct wml_value *gather(struct wml_symbols *c, struct wml_node *n, struct wml_value *from, size_t count, const int64_t *at)
{
    struct wml_axis axis = {.size = (int64_t)count};
    struct wml_node *g = wml_node_new(n, "", "Gather");
    wml_node_add_input(g, from);
    wml_node_add_input(g, add_constant(c, n->graph, count, at));
    struct wml_value *v = wml_node_add_output(g, WML_NO_STR);
    wml_value_set_type(v, wml_type_tensor(c->r->model, WML_I64, 1, &axis));
    return v;
}

/* Where in `shape` the sizes are that n picks; the places of constant `at` are of another Shape. */
static bool places_in(struct wml_symbols *c, struct wml_value *shape, const struct wml_syms *all, const struct wml_syms *at, int64_t *place)
{
    const struct wml_syms *s = wml_syms_of(c, shape);
    for (size_t i = 0; s && i < at->n; i++) {
        struct wml_sym want = all->at[at->at[i].v < 0 ? at->at[i].v + (int64_t)all->n : at->at[i].v];
        size_t k = 0;
        while (k < s->n && !(want.kind == WML_SYM_SYMBOL && wml_sym_eq(s->at[k], want))) k++;
        if (k == s->n) return false;
        place[i] = (int64_t)k;
    }
    return s != NULL;
}

/* What is picked from one Shape is picked from one before it that holds the sizes too. */
static void pick_first(struct sharing *h, struct wml_node *n)
{
    const struct wml_syms *at, *all;
    int64_t place[WML_SYMS];
    if (!is_pick(h->c, n, &at) || !n->in[0]->def || !wml_node_is(n->in[0]->def, "Shape") || !(all = wml_syms_of(h->c, n->in[0]))) return;
    if ((int64_t)all->n != wml_value_axis(n->in[0], 0).size) return;
    for (size_t i = 0; i < h->n_shapes && h->shape[i] != n->in[0]; i++) {
        if (!places_in(h->c, h->shape[i], all, at, place)) continue;
        bool vector = wml_value_rank(n->in[1]) == 1;
        struct wml_tensor *t = vector ? wml_tensor_i64s(h->c->r->model, at->n, place)
                                      : wml_tensor_copy(h->c->r->model, WML_I64, 0, NULL, place, sizeof *place, NULL);
        wml_node_set_input(n, 0, h->shape[i]);
        wml_node_set_input(n, 1, wml_graph_add_init(n->graph, WML_STR("index"), t));
        wml_pass_applied(h->c->r, n->op_type, n->name);
        return;
    }
}

/* Unsqueeze(Gather(shape, 1)) -> Gather(shape, [1]) */
static void pick_vector(struct sharing *h, struct wml_node *n)
{
    const struct wml_node *g = wml_node_producer(n, 0);
    const struct wml_syms *at;
    if (!wml_node_is(n, "Unsqueeze") || !is_vector(wml_node_out(n, 0)) || n->out[0]->n_outputs || n->out[0]->pinned) return;
    if (!is_pick(h->c, g, &at) || g->graph != n->graph || wml_value_rank(g->out[0]) != 0 || wml_value_only_user(g->out[0]) != n) return;
    struct wml_value *v = gather(h->c, n, g->in[0], 1, &at->at[0].v);
    wml_value_replace_uses(n->out[0], v);
    note_new(h, v->def);
    wml_pass_applied(h->c->r, n->op_type, n->name);
}

/* How many operands from slot i on are picked from one vector and read here only. */
static size_t run_of(struct wml_symbols *c, const struct wml_node *n, size_t i, struct pieces *p)
{
    const struct wml_syms *at;
    const struct wml_value *from = NULL;
    size_t k = i;
    *p = (struct pieces){0};
    for (; k < n->n_in; k++) {
        struct wml_node *g = wml_node_producer(n, k);
        if (!is_vector(n->in[k]) || !is_pick(c, g, &at) || g->graph != n->graph || (from && g->in[0] != from)) break;
        if (wml_value_only_user(n->in[k]) != n || n->in[k]->pinned || p->n + at->n > WML_SYMS) break;
        from = g->in[0];
        for (size_t e = 0; e < at->n; e++) p->number[p->n++] = at->at[e].v;
    }
    return k - i;
}

/* Concat(Gather(shape, [0]), Gather(shape, [1]), ...) -> Concat(Gather(shape, [0, 1]), ...), or the shape itself. */
static void pick_together(struct sharing *h, struct wml_node *n)
{
    if (!wml_node_is(n, "Concat") || !is_vector(wml_node_out(n, 0))) return;
    for (size_t i = 0; i < n->n_in; i++) {
        struct pieces p;
        size_t len = run_of(h->c, n, i, &p);
        if (!len) continue;
        struct wml_value *from = wml_node_producer(n, i)->in[0];
        int64_t size = wml_value_axis(from, 0).size;
        bool whole = p.n == (size_t)size;
        for (size_t k = 0; k < p.n; k++) whole = whole && (p.number[k] + size) % size == (int64_t)k;
        if (len < 2 && !whole) continue;
        struct wml_value *v = whole ? from : gather(h->c, n, from, p.n, p.number);
        for (size_t k = len - 1; k-- > 0;) wml_node_remove_input(n, i + 1);
        wml_node_set_input(n, i, v);
        if (!whole) note_new(h, v->def);
        wml_pass_applied(h->c->r, n->op_type, n->name);
    }
}

static bool each_graph(void *arg, struct wml_graph *g)
{
    struct sharing h = {.c = arg};
    for (struct wml_node *n = g->first; n; n = n->next) {
        wml_syms_note(h.c, n);
        if (wml_node_is(n, "Shape") && wml_node_out(n, 0) && h.n_shapes < SHAPES) h.shape[h.n_shapes++] = n->out[0];
        if (wml_node_is(n, "Where")) build_where(&h, n);
        pick_first(&h, n);
        pick_vector(&h, n);
        pick_together(&h, n);
        for (size_t i = 0; i < n->n_out; i++) share(&h, n, n->out[i]);
    }
    wml_map_release(&h.seen);
    return true;
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    (void)err;
    wml_model_each_graph(r->model, each_graph, wml_symbols_new(r));
    wml_sweep(r);
    return true;
}

const struct wml_pass wml_pass_size_sharing = {
    .name = "size-sharing", .category = "graph", .on = true, .late = true, .run = run,
    .summary = "Read every symbolic size once; put vectors of sizes together without Where, Unsqueeze and double picking",
};
