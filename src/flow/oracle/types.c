/* Types of values, asked of ONNX Runtime over skeletons. A graph is asked about in runs of nodes; what lies before a
 * run is given by its type. Layers repeat: an operator with the same attributes and the same types of inputs has the
 * same types of outputs, so what has been answered once is not asked again. A run is about two layers long: ORT takes
 * most of the time, and the more it is asked at once, the less is known already. */
#include "flow/oracle/internal.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/type.h"

enum { RUN = 256, FEW = 4 }; /* nodes; a question about the whole graph is worth it for one value in so many nodes */

static struct wml_type *type_from(struct wml_model *m, const struct wml_io *io)
{
    struct wml_axis *axis = WML_NEW_ARRAY(&m->arena, struct wml_axis, io->rank + 1);
    for (size_t i = 0; i < io->rank; i++)
        axis[i] = (struct wml_axis){io->dim[i], io->symbol && io->symbol[i] ? wml_str(io->symbol[i]) : WML_NO_STR};
    struct wml_type *t = io->dtype == WML_UNDEFINED ? NULL : wml_type_tensor(m, io->dtype, io->has_shape ? (int64_t)io->rank : -1, axis);
    if (io->kind == WML_IO_TENSOR) return t;
    if (io->kind == WML_IO_SEQUENCE && io->elem_is_tensor && t) return wml_type_sequence(m, t);
    if (io->kind == WML_IO_OPTIONAL && io->elem_is_tensor && t) return wml_type_optional(m, t);
    return NULL;
}

static size_t known_axes(const struct wml_type *t)
{
    int64_t rank = wml_type_rank(t);
    size_t n = 0;
    for (int64_t i = 0; i < rank; i++) n += wml_type_axis(t, (size_t)i).size >= 0;
    return n;
}

/* What the file says of an output is its interface: it stays. What was found out may become more. */
static bool is_settled(const struct wml_value *v)
{
    return v->n_outputs && !v->type_changed;
}

/* A type that says more than the one there is. Types without a shape say too little to be written down, for most. */
static bool is_better(const struct wml_flow_oracle *o, const struct wml_type *found, const struct wml_value *v)
{
    if (!found || (found->tensor && wml_type_rank(found) < 0 && !o->any_rank)) return false;
    return !v->type || (!is_settled(v) && found->tensor && v->type->tensor && known_axes(found) > known_axes(v->type));
}

/* The type is missing or leaves sizes open. */
static bool is_open(const struct wml_value *v)
{
    return v && v->def && (!v->type || (v->type->tensor && !is_settled(v) && !wml_type_is_static(v->type)));
}

struct values { WML_VEC(struct wml_value *) v; };

static void find_open(struct wml_model *m, struct values *u)
{
    for (struct wml_value *v = m->graph->first_value; v; v = v->next)
        if (is_open(v)) WML_PUSH(&u->v, v);
}

/* --- one question --- */

struct question {
    struct wml_flow_oracle *o;
    struct wml_model *m;
    size_t *n_set;
    struct values asked, given;
    WML_VEC(struct wml_type *) said; /* parallel to asked; NULL: nothing */
};

static void release(struct question *q)
{
    WML_VEC_RELEASE(&q->asked.v);
    WML_VEC_RELEASE(&q->given.v);
    WML_VEC_RELEASE(&q->said);
}

static void set_types(struct question *q, const struct wml_oracle_type *type, size_t n)
{
    struct wml_map by_name = {0};
    for (size_t i = 0; i < n; i++) wml_map_put(&by_name, wml_str(type[i].io.name), (void *)(uintptr_t)&type[i]);
    for (size_t i = 0; i < q->asked.v.len; i++) {
        struct wml_value *v = q->asked.v.at[i];
        const struct wml_oracle_type *t = wml_map_get(&by_name, v->name);
        struct wml_type *found = t ? type_from(q->m, &t->io) : NULL;
        WML_PUSH(&q->said, found);
        if (!is_better(q->o, found, v)) continue;
        wml_value_set_type(v, found);
        ++*q->n_set;
    }
    wml_map_release(&by_name);
}

static bool ask(struct question *q, const struct wml_skeleton_opts *opts, struct wml_err *err)
{
    struct wml_buf skeleton = {0}, dir = {0};
    struct wml_str folder;
    struct wml_arena answers = {0};
    struct wml_oracle_type *type = NULL;
    struct wml_ort *ort;
    size_t n = 0;
    bool ok = wml_ort_open(q->o->cx, &ort, err) && wml_onnx_skeleton(q->m, opts, &skeleton, &folder, err);
    if (ok) {
        struct wml_model_source s = wml_flow_source(&skeleton, folder, &dir);
        q->o->sessions++;
        ok = wml_oracle_types(ort, &s, &answers, &type, &n, err);
    }
    if (ok) set_types(q, type, n);
    wml_arena_release(&answers);
    wml_buf_release(&skeleton);
    wml_buf_release(&dir);
    return ok;
}

/* --- answers by what a node looks like --- */

static void put(struct wml_buf *b, int64_t x)
{
    wml_buf_add(b, &x, sizeof x);
}

static void put_str(struct wml_buf *b, struct wml_str s)
{
    put(b, (int64_t)s.len);
    if (s.len) wml_buf_str(b, s);
}

/* false: no dense tensor. */
static bool put_type(struct wml_buf *b, const struct wml_type *t)
{
    if (!t || !t->tensor) return false;
    int64_t rank = wml_type_rank(t);
    put(b, (int64_t)wml_type_elem(t));
    put(b, rank);
    for (int64_t i = 0; i < rank; i++) {
        struct wml_axis a = wml_type_axis(t, (size_t)i);
        put(b, a.size);
        if (a.size < 0) put_str(b, a.symbol);
    }
    return true;
}

static int64_t get(struct wml_str *s)
{
    int64_t x;
    memcpy(&x, s->ptr, sizeof x);
    *s = (struct wml_str){s->ptr + sizeof x, s->len - sizeof x};
    return x;
}

static struct wml_type *get_type(struct wml_model *m, struct wml_str *s)
{
    enum wml_dtype elem = (enum wml_dtype)get(s);
    int64_t rank = get(s);
    struct wml_axis *axis = WML_NEW_ARRAY(&m->arena, struct wml_axis, (size_t)WML_MAX(rank, 0) + 1);
    for (int64_t i = 0; i < rank; i++) {
        axis[i].size = get(s);
        if (axis[i].size >= 0) continue;
        size_t len = (size_t)get(s);
        axis[i].symbol = (struct wml_str){s->ptr, len};
        *s = (struct wml_str){s->ptr + len, s->len - len};
    }
    return wml_type_tensor(m, elem, rank, axis);
}

static bool put_attrs(struct wml_buf *b, const struct wml_node *n)
{
    put(b, (int64_t)n->attr.len);
    for (size_t i = 0; i < n->attr.len; i++) {
        const struct wml_attr *a = n->attr.at[i];
        enum wml_attr_type kind = wml_attr_kind(a);
        put_str(b, a->name);
        put(b, kind);
        if (a->ref.len) return false;
        switch (kind) {
        case WML_ATTR_INT: put(b, a->i); break;
        case WML_ATTR_FLOAT: wml_buf_add(b, &a->f, sizeof a->f); break;
        case WML_ATTR_STRING: put_str(b, a->s); break;
        case WML_ATTR_INTS:
            put(b, (int64_t)a->ints.len);
            for (size_t k = 0; k < a->ints.len; k++) put(b, a->ints.at[k]);
            break;
        default: return false;
        }
    }
    return true;
}

/* Whole numbers of a small vector may be sizes, axes, indices: types follow from them. */
static bool may_be_sizes(const struct wml_value *v)
{
    enum wml_dtype elem = wml_value_elem(v);
    return elem != WML_UNDEFINED && wml_dtype_is_integer((int)elem) && wml_value_rank(v) <= 1;
}

/* Constants that ORT may look into; the others are weights. */
static bool is_small(const struct wml_tensor *t)
{
    uint64_t n = 0;
    return wml_tensor_count(t, &n, NULL) && n <= (wml_dtype_is_float(t->dtype) ? 8 : 64);
}

static bool put_input(struct wml_buf *b, struct wml_model *m, struct wml_value *v)
{
    struct wml_span bytes;
    put(b, v ? v->init && !v->n_inputs ? 2 : 1 : 0);
    if (!v) return true;
    if (v->init && !v->type) {
        put(b, v->init->dtype);
        put(b, (int64_t)v->init->dims.len);
        for (size_t i = 0; i < v->init->dims.len; i++) put(b, v->init->dims.at[i]);
    } else if (!put_type(b, v->type)) return false;
    if (!v->init) return !may_be_sizes(v);
    if (!is_small(v->init)) return true;
    if (!wml_tensor_bytes(m, v->init, &bytes, NULL)) return false;
    wml_buf_add(b, bytes.ptr, bytes.len);
    return true;
}

/* What a node looks like to type inference; false: more counts than can be said. */
static bool put_node(struct wml_buf *b, struct wml_model *m, const struct wml_node *n)
{
    wml_buf_clear(b);
    put_str(b, n->domain);
    put_str(b, n->op_type);
    put_str(b, n->overload);
    put(b, wml_model_opset(m, ""));
    if (!put_attrs(b, n)) return false;
    put(b, (int64_t)n->n_out);
    for (size_t i = 0; i < n->n_out; i++) put(b, n->out[i] != NULL);
    put(b, (int64_t)n->n_in);
    for (size_t i = 0; i < n->n_in; i++)
        if (!put_input(b, m, n->in[i])) return false;
    return true;
}

/* Types of the node's outputs from a node like it. */
static bool recall(struct question *q, struct wml_buf *b, struct wml_node *n)
{
    const struct wml_str *known = put_node(b, q->m, n) ? wml_map_get(&q->o->answer, wml_buf_view(b)) : NULL;
    if (!known) return false;
    struct wml_str s = *known;
    for (size_t i = 0; i < n->n_out; i++) {
        if (!n->out[i]) continue;
        struct wml_type *t = get_type(q->m, &s);
        if (!is_better(q->o, t, n->out[i])) continue;
        wml_value_set_type(n->out[i], t);
        ++*q->n_set;
    }
    return true;
}

/* --- a run of nodes --- */

struct run {
    struct question q;
    uint64_t mark; /* on nodes: in the run; on values: looked at */
    struct values todo;
    size_t n_nodes, room; /* room: how many nodes before the run may come along */
};

static bool has_open(const struct wml_node *n)
{
    bool open = false;
    for (size_t i = 0; i < n->n_out; i++) open = open || is_open(n->out[i]);
    return open;
}

/* A value that the run reads: given by its type, unless it may be sizes; then what makes it comes along. */
static void need(struct run *r, struct wml_value *v)
{
    if (!v || !v->def || v->graph != r->q.m->graph || v->mark == r->mark || v->def->mark == r->mark) return;
    v->mark = r->mark;
    bool known = v->type && v->type->tensor;
    if (known && (!may_be_sizes(v) || !r->room)) {
        WML_PUSH(&r->q.given.v, v);
        return;
    }
    if (r->room) r->room--;
    v->def->mark = r->mark;
    WML_PUSH(&r->todo.v, v);
}

static bool need_inputs(void *arg, struct wml_node *n)
{
    struct run *r = arg;
    struct wml_graph *sub;
    for (size_t i = 0; i < n->n_in; i++) need(r, n->in[i]);
    for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++)
        for (size_t i = 0; i < sub->outputs.len; i++) need(r, sub->outputs.at[i]);
    return true;
}

static void need_all(struct run *r, struct wml_node *n)
{
    struct wml_graph *sub;
    need_inputs(r, n);
    for (size_t k = 0; (sub = wml_node_subgraph(n, k)); k++) wml_graph_walk(sub, need_inputs, r);
}

/* More may be known of its inputs once the run is answered. */
static bool reads_run(const struct run *r, const struct wml_node *n)
{
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->def && n->in[i]->def->mark == r->mark) return true;
    return false;
}

/* Nodes from `from` on that have open outputs; returns where the next run begins. */
static struct wml_node *collect(struct run *r, struct wml_node *from, struct wml_buf *key)
{
    struct wml_node *n = from;
    r->mark = wml_model_mark(r->q.m);
    r->room = RUN;
    for (; n && r->n_nodes < RUN; n = n->next) {
        if (!has_open(n) || (!reads_run(r, n) && recall(&r->q, key, n))) continue;
        n->mark = r->mark;
        r->n_nodes++;
        for (size_t i = 0; i < n->n_out; i++)
            if (is_open(n->out[i])) WML_PUSH(&r->q.asked.v, n->out[i]);
    }
    for (struct wml_node *p = from; p != n; p = p->next)
        if (p->mark == r->mark) need_all(r, p);
    while (r->todo.v.len) need_all(r, r->todo.v.at[--r->todo.v.len]->def);
    return n;
}

/* Remembers what ORT said about a node, unless it knew more about an input than the node shows. */
static void learn(struct run *r, struct wml_buf *key, const struct wml_node *n, struct wml_type *const *said)
{
    struct wml_flow_oracle *o = r->q.o;
    struct wml_buf b = {0};
    bool sure = true;
    for (size_t i = 0; i < n->n_in; i++) sure = sure && (!n->in[i] || !n->in[i]->def || n->in[i]->mark == r->mark);
    for (size_t i = 0, k = 0; sure && i < n->n_out; i++) sure = !n->out[i] || put_type(&b, said[k++]);
    if (sure && put_node(key, r->q.m, n) && !wml_map_has(&o->answer, wml_buf_view(key))) {
        struct wml_str *answer = WML_NEW(&o->arena, struct wml_str);
        *answer = wml_arena_str(&o->arena, wml_buf_view(&b));
        wml_map_put(&o->answer, wml_arena_str(&o->arena, wml_buf_view(key)), answer);
    }
    wml_buf_release(&b);
}

static void learn_all(struct run *r, struct wml_buf *key)
{
    struct question *q = &r->q;
    r->mark = wml_model_mark(q->m); /* on values: ORT knew what we know */
    for (size_t i = 0; i < q->given.v.len; i++) q->given.v.at[i]->mark = r->mark;
    for (size_t i = 0; i < q->asked.v.len; i++)
        if (q->said.at[i] && wml_type_eq(q->said.at[i], q->asked.v.at[i]->type)) q->asked.v.at[i]->mark = r->mark;
    for (size_t i = 0, end; i < q->asked.v.len; i = end) {
        const struct wml_node *n = q->asked.v.at[i]->def;
        size_t n_out = 0;
        for (end = i; end < q->asked.v.len && q->asked.v.at[end]->def == n;) end++;
        for (size_t k = 0; k < n->n_out; k++) n_out += n->out[k] != NULL;
        if (n_out == end - i) learn(r, key, n, q->said.at + i);
    }
}

static bool ask_run(struct question *q, struct wml_buf *key, struct wml_node **from, struct wml_err *err)
{
    struct run r = {.q = {.o = q->o, .m = q->m, .n_set = q->n_set}};
    *from = collect(&r, *from, key);
    struct wml_skeleton_opts opts = {.only = r.q.asked.v.at, .n_only = r.q.asked.v.len, .given = r.q.given.v.at,
                                     .n_given = r.q.given.v.len, .types_only = true};
    bool ok = ask(&r.q, &opts, err);
    if (ok) learn_all(&r, key);
    release(&r.q);
    WML_VEC_RELEASE(&r.todo.v);
    return ok;
}

static bool ask_in_runs(struct question *q, struct wml_err *err)
{
    struct wml_buf key = {0};
    bool ok = true;
    for (struct wml_node *n = q->m->graph->first; ok && n;) {
        if (!has_open(n) || recall(q, &key, n)) n = n->next;
        else ok = ask_run(q, &key, &n, err) && wml_check_cancel(q->o->cx, err);
    }
    wml_buf_release(&key);
    return ok;
}

static bool ask_at_once(struct question *q, struct wml_err *err)
{
    struct wml_skeleton_opts opts = {.also = q->asked.v.at, .n_also = q->asked.v.len, .types_only = true};
    return ask(q, &opts, err);
}

bool wml_flow_infer_types(void *arg, struct wml_model *m, size_t *n_set, struct wml_err *err)
{
    struct wml_flow_oracle *o = arg;
    struct question q = {.o = o, .m = m, .n_set = n_set};
    bool ok = true;
    find_open(m, &q.asked);
    /* The same question about the same graph has the same answer. */
    if (q.asked.v.len && (q.asked.v.len != o->open || m->graph->n_nodes != o->nodes)) {
        bool all = m->graph->n_nodes <= RUN && q.asked.v.len * FEW >= m->graph->n_nodes;
        ok = all ? ask_at_once(&q, err) : ask_in_runs(&q, err);
        q.asked.v.len = 0;
        if (ok) find_open(m, &q.asked);
        o->open = q.asked.v.len;
        o->nodes = m->graph->n_nodes;
    }
    release(&q);
    return ok;
}

void wml_flow_oracle_release(struct wml_flow_oracle *o)
{
    wml_map_release(&o->answer);
    wml_arena_release(&o->arena);
}
