/* Patterns: the expression is compiled to a table of terms; a node is matched against it by working off a list
 * of pairs (term, value). Where the operands of a commutative operator can stand in either order, both are
 * tried, with everything that is still open behind them: matching is complete, not greedy. */
#include "passes/pattern.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

enum term_kind { TERM_ANY, TERM_CONST, TERM_NUMBER, TERM_OP, TERM_ABSENT };
enum { MAX_INPUTS = 12 };

struct term {
    enum term_kind kind;
    bool optional, open; /* `?x`; `...` after the inputs */
    int name;            /* index, or -1 */
    double number;
    struct wml_str domain, op; /* op: alternatives with '|' between */
    size_t n_in;
    int in[MAX_INPUTS];
};

struct wml_pattern {
    struct term term[WML_PATTERN_TERMS];
    size_t n_terms, n_names;
    struct wml_str name[WML_PATTERN_NAMES];
    int root;
};

/* -- compiling: patterns are ours, so mistakes in them are asserted -- */

struct reader {
    struct wml_pattern *p;
    const char *at;
};

static void blanks(struct reader *r)
{
    while (isspace((unsigned char)*r->at)) r->at++;
}

static bool take(struct reader *r, char c)
{
    blanks(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static struct wml_str word(struct reader *r)
{
    blanks(r);
    const char *start = r->at;
    while (isalnum((unsigned char)*r->at) || *r->at == '_' || *r->at == '|' ||
           (*r->at == '.' && isalnum((unsigned char)r->at[1])))
        r->at++;
    return (struct wml_str){start, (size_t)(r->at - start)};
}

static int name_index(struct wml_pattern *p, struct wml_str name)
{
    for (size_t i = 0; i < p->n_names; i++)
        if (wml_str_eq(p->name[i], name)) return (int)i;
    assert(p->n_names < WML_PATTERN_NAMES);
    p->name[p->n_names] = name;
    return (int)p->n_names++;
}

static int expression(struct reader *r)
{
    struct wml_pattern *p = r->p;
    assert(p->n_terms < WML_PATTERN_TERMS);
    int index = (int)p->n_terms++;
    struct term t = {.kind = TERM_ANY, .name = -1};
    blanks(r);
    if (isdigit((unsigned char)*r->at) || *r->at == '-') {
        char *end;
        t.kind = TERM_NUMBER;
        t.number = strtod(r->at, &end);
        r->at = end;
        p->term[index] = t;
        return index;
    }
    t.optional = take(r, '?');
    if (take(r, '$')) t.kind = TERM_CONST;
    struct wml_str w = word(r);
    assert(w.len);
    if (take(r, ':')) {
        if (*r->at == ':') { /* domain::Op */
            r->at++;
            t.domain = w;
        } else {
            t.name = name_index(p, w);
        }
        w = word(r);
        if (r->at[0] == ':' && r->at[1] == ':') { /* name:domain::Op */
            r->at += 2;
            t.domain = w;
            w = word(r);
        }
    }
    if (take(r, '(')) {
        t.kind = TERM_OP;
        t.op = w;
        while (!take(r, ')')) {
            blanks(r);
            if (strncmp(r->at, "...", 3) == 0) {
                r->at += 3;
                t.open = true;
                continue;
            }
            assert(t.n_in < MAX_INPUTS);
            t.in[t.n_in++] = expression(r);
            take(r, ',');
        }
    } else if (w.len == 1 && w.ptr[0] == '_') {
        t.kind = TERM_ABSENT;
    } else {
        t.name = name_index(p, w);
    }
    p->term[index] = t;
    return index;
}

static struct wml_pattern *compile(struct wml_arena *a, const char *text)
{
    struct wml_pattern *p = WML_NEW(a, struct wml_pattern);
    struct reader r = {p, text};
    p->root = expression(&r);
    blanks(&r);
    assert(*r.at == 0 && p->term[p->root].kind == TERM_OP);
    return p;
}

/* -- matching -- */

struct pair {
    int term;
    struct wml_value *value;
    struct wml_value *beside; /* the other operand, for the rank of a number */
};

struct search {
    struct wml_match m; /* bindings so far */
    struct pair todo[WML_PATTERN_TERMS];
    size_t n_todo;
};

static bool op_fits(const struct term *t, const struct wml_node *n)
{
    bool onnx = !n->domain.len || wml_str_is(n->domain, "ai.onnx");
    if (t->domain.len ? !wml_str_eq(n->domain, t->domain) : !onnx) return false;
    const char *at = t->op.ptr, *end = t->op.ptr + t->op.len;
    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        size_t len = bar ? (size_t)(bar - at) : (size_t)(end - at);
        if (len == n->op_type.len && memcmp(at, n->op_type.ptr, len) == 0) return true;
        at += len + 1;
    }
    return false;
}

static bool is_number(struct wml_pass_run *r, const struct wml_value *v, double want, const struct wml_value *beside)
{
    struct wml_tensor *t = wml_constant_of(v);
    struct wml_span bytes;
    uint64_t n = 0;
    if (!t || !wml_tensor_count(t, &n, NULL) || n != 1) return false;
    if (!wml_dtype_is_float(t->dtype) && !wml_dtype_is_integer(t->dtype)) return false;
    if (t->dims.len && (!beside || wml_value_rank(beside) < (int64_t)t->dims.len)) return false;
    if (!wml_tensor_bytes(r->model, t, &bytes, NULL)) return false;
    double x = wml_dtype_load(t->dtype, bytes.ptr, 0);
    double tolerance = !wml_dtype_is_float(t->dtype) ? 0 : wml_dtype_info(t->dtype)->bits <= 16 ? 1e-3 : 1e-5;
    return fabs(x - want) <= tolerance * fabs(want);
}

static bool bind(struct wml_match *m, int name, struct wml_value *v)
{
    if (name < 0) return true;
    if (m->value[name]) return m->value[name] == v;
    m->value[name] = v;
    return true;
}

static bool add_node(struct wml_match *m, struct wml_node *n)
{
    for (size_t i = 0; i < m->n_nodes; i++)
        if (m->node[i] == n) return true;
    if (m->n_nodes == WML_PATTERN_TERMS) return false;
    m->node[m->n_nodes++] = n;
    return true;
}

static bool solve(struct search *s);

static bool push_inputs(struct search *s, const struct term *t, const struct wml_node *n, bool swapped)
{
    for (size_t i = t->n_in; i-- > 0;) {
        size_t slot = swapped ? 1 - i : i;
        struct wml_value *beside = t->n_in == 2 ? wml_node_in(n, 1 - slot) : NULL;
        if (s->n_todo == WML_PATTERN_TERMS) return false;
        s->todo[s->n_todo++] = (struct pair){t->in[i], wml_node_in(n, slot), beside};
    }
    return true;
}

/* The node fits the term's operator; on with its inputs, in one order or the other. */
static bool solve_node(struct search *s, const struct term *t, struct wml_node *n)
{
    size_t n_in = n->n_in;
    while (n_in && !n->in[n_in - 1]) n_in--;
    if (!op_fits(t, n) || (n_in > t->n_in && !t->open)) return false;
    if (!wml_node_out(n, 0) || !bind(&s->m, t->name, n->out[0]) || !add_node(&s->m, n)) return false;
    bool both = t->n_in == 2 && n->n_in == 2 && wml_op_has(n, WML_OP_COMMUTATIVE);
    if (!both) return push_inputs(s, t, n, false) && solve(s);
    struct search saved = *s;
    if (push_inputs(s, t, n, false) && solve(s)) return true;
    *s = saved;
    return push_inputs(s, t, n, true) && solve(s);
}

static bool solve(struct search *s)
{
    if (!s->n_todo) return true;
    struct pair p = s->todo[--s->n_todo];
    const struct term *t = &s->m.pattern->term[p.term];
    struct wml_node *n;
    if (t->kind == TERM_ABSENT) return !p.value && solve(s);
    if (!p.value) return t->optional && t->kind != TERM_OP && (t->name < 0 || !s->m.value[t->name]) && solve(s);
    switch (t->kind) {
    case TERM_NUMBER: return is_number(s->m.r, p.value, t->number, p.beside) && solve(s);
    case TERM_CONST: return wml_constant_of(p.value) && bind(&s->m, t->name, p.value) && solve(s);
    case TERM_OP:
        n = p.value->def;
        return n && n->graph == s->m.root->graph && n->out[0] == p.value && solve_node(s, t, n);
    case TERM_ANY: return bind(&s->m, t->name, p.value) && solve(s);
    case TERM_ABSENT: break;
    }
    return false;
}

static bool is_inside(const struct wml_match *m, const struct wml_node *n)
{
    for (size_t i = 0; i < m->n_nodes; i++)
        if (m->node[i] == n) return true;
    return false;
}

/* Nothing but the match reads its inner values. */
static bool is_closed(const struct wml_match *m)
{
    for (size_t i = 0; i < m->n_nodes; i++) {
        const struct wml_node *n = m->node[i];
        if (n == m->root) continue;
        for (size_t k = 0; k < n->n_out; k++) {
            const struct wml_value *v = n->out[k];
            if (!v) continue;
            if (v->n_outputs || v->pinned) return false;
            for (const struct wml_use *u = v->uses; u; u = u->next)
                if (!is_inside(m, u->node)) return false;
        }
    }
    for (size_t k = 1; k < m->root->n_out; k++)
        if (m->root->out[k] && !wml_value_is_unused(m->root->out[k])) return false;
    return true;
}

static bool match(struct wml_pass_run *r, const struct wml_rule *rule, const struct wml_pattern *p,
                  struct wml_node *root, struct wml_match *out)
{
    if (!op_fits(&p->term[p->root], root)) return false;
    struct search s;
    s.m = (struct wml_match){.r = r, .rule = rule, .root = root, .pattern = p};
    s.n_todo = 0;
    if (!solve_node(&s, &p->term[p->root], root)) return false;
    *out = s.m;
    if (is_closed(out)) return true;
    wml_pass_refuse(r, root, "an inner value has other readers or is an output");
    return false;
}

/* -- rewriting -- */

struct wml_value *wml_match_value(const struct wml_match *m, const char *name)
{
    for (size_t i = 0; i < m->pattern->n_names; i++)
        if (wml_str_is(m->pattern->name[i], name)) return m->value[i];
    assert(!"a name that the pattern has");
    return NULL;
}

struct wml_node *wml_match_node(const struct wml_match *m, const char *name)
{
    struct wml_value *v = wml_match_value(m, name);
    return v ? v->def : NULL;
}

bool wml_match_refuse(struct wml_match *m, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    wml_pass_refuse(m->r, m->root, "%s", text);
    return false;
}

static void connect(struct wml_node *n, size_t n_in, struct wml_value *const *in)
{
    for (size_t i = 0; i < n_in; i++) wml_node_set_input(n, i, in[i]);
}

struct wml_value *wml_match_add(struct wml_match *m, const char *op, const char *like, size_t n_in,
                                struct wml_value *const *in)
{
    struct wml_node *n = wml_node_new(m->root, "", op);
    n->name = wml_model_unique(m->r->model, wml_str(like));
    connect(n, n_in, in);
    return wml_node_add_output(n, wml_str(like));
}

struct wml_node *wml_match_replace(struct wml_match *m, const char *domain, const char *op, size_t n_in,
                                   struct wml_value *const *in)
{
    struct wml_node *old = m->root, *n = wml_node_new(old, domain, op);
    if (*domain && !wml_model_opset(m->r->model, domain)) wml_model_set_opset(m->r->model, domain, 1);
    connect(n, n_in, in);
    wml_node_take_output(n, 0, old->out[0]);
    n->name = old->name;
    n->metadata = old->metadata;
    old->name = WML_STR("");
    return n;
}

bool wml_match_bypass(struct wml_match *m, struct wml_value *v)
{
    if (!wml_bypass(m->root, v)) return false;
    for (size_t i = 0; i < m->n_nodes; i++)
        if (m->node[i] == m->root) m->node[i] = NULL;
    return true;
}

struct wml_value *wml_match_const(struct wml_match *m, const char *name, struct wml_tensor *t)
{
    return wml_graph_add_init(m->root->graph, wml_str(name), t);
}

struct wml_value *wml_match_scalar(struct wml_match *m, const char *name, enum wml_dtype dtype, double x)
{
    unsigned char bytes[16] = {0};
    wml_dtype_store(dtype, bytes, 0, x);
    return wml_match_const(m, name, wml_tensor_copy(m->r->model, dtype, 0, NULL, bytes, wml_dtype_info(dtype)->bits / 8, NULL));
}

struct wml_value *wml_match_ints(struct wml_match *m, const char *name, size_t n, const int64_t *v)
{
    return wml_match_const(m, name, wml_tensor_i64s(m->r->model, n, v));
}

/* Inner nodes that nothing reads, the last first. The new root's next in the walk must not be among them. */
static struct wml_node *sweep(struct wml_match *m, struct wml_node *next)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < m->n_nodes; i++) {
            struct wml_node *n = m->node[i];
            bool used = !n;
            for (size_t k = 0; n && k < n->n_out; k++) used = used || (n->out[k] && !wml_value_is_unused(n->out[k]));
            if (used) continue;
            if (n == next) next = n->next;
            wml_node_remove(n);
            m->node[i] = NULL;
            changed = true;
        }
    }
    return next;
}

struct rules {
    struct wml_pass_run *r;
    const struct wml_rule *rule;
    struct wml_pattern **pattern;
    size_t n;
    int64_t opset;
};

static bool each_graph(void *arg, struct wml_graph *g)
{
    const struct rules *s = arg;
    for (struct wml_node *n = g->first, *next; n; n = next) {
        next = n->next;
        for (size_t i = 0; i < s->n; i++) {
            struct wml_match m;
            if (s->opset < s->rule[i].min_opset || !match(s->r, &s->rule[i], s->pattern[i], n, &m)) continue;
            struct wml_str op = n->op_type, name = n->name; /* the node may be gone afterwards */
            if (!s->rule[i].rewrite(&m)) continue;
            wml_pass_applied(s->r, op, name);
            next = sweep(&m, next);
            break;
        }
    }
    return true;
}

bool wml_rules_run(struct wml_pass_run *r, const struct wml_rule *rule, size_t n, struct wml_err *err)
{
    struct rules s = {r, rule, WML_NEW_ARRAY(r->scratch, struct wml_pattern *, n), n, wml_model_opset(r->model, "")};
    (void)err;
    for (size_t i = 0; i < n; i++) s.pattern[i] = compile(r->scratch, rule[i].pattern);
    return wml_model_each_graph(r->model, each_graph, &s);
}
