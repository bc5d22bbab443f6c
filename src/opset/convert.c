/* The way from one operator set to another, a version at a time: every node is checked against the rows of its operator
 * and adapted. What cannot be said is collected for the message, and ends the way at the version before. */
#include "opset/opset.h"

#include <inttypes.h>

#include "graph/parts.h"
#include "opset/adapt.h"

struct part { /* of the model with an import of its own */
    struct wml_graph *graph;
    struct wml_function *function; /* NULL: the graph */
    int64_t version;
};

struct walk {
    struct wml_opset_step step;
    bool down;
    size_t n_bad;
    char first[512]; /* the first node that cannot be said, and why */
};

static bool has_foreign_attr(const struct wml_node *n)
{
    for (size_t i = 0; i < n->attr.len; i++)
        if (n->attr.at[i]->ref.len) return true;
    return false;
}

static bool type_refused(struct wml_opset_step *s, const struct wml_value *v)
{
    const char *name = v->type && v->type->sequence ? "sequences" : v->type && v->type->optional ? "optionals" : wml_dtype_name((int)wml_opset_elem(v));
    return wml_opset_refuse(s, "it has no %s ('%.*s') below opset %" PRId64, name, WML_ARG(v->name), s->from);
}

static bool check_types(struct wml_opset_step *s, const struct wml_node *n, const struct wml_opset_row *row)
{
    bool unsure = false;
    for (size_t out = 0; out < 2; out++) {
        for (size_t i = 0; i < (out ? n->n_out : n->n_in); i++) {
            const struct wml_value *v = out ? n->out[i] : n->in[i];
            if (!v || !wml_opset_slot(row->what, out, i)) continue;
            uint32_t bit = wml_opset_type_bit(v);
            unsure = unsure || !bit;
            if (bit & row->types) return type_refused(s, v);
        }
    }
    s->n_unsure += unsure;
    return true;
}

static bool all_equal(const struct wml_attr *a, int64_t x)
{
    if (wml_attr_kind(a) == WML_ATTR_INT) return a->i == x;
    for (size_t i = 0; i < a->ints.len; i++)
        if (a->ints.at[i] != x) return false;
    return true;
}

static bool drop(struct wml_opset_step *s, struct wml_node *n, const struct wml_opset_row *row)
{
    const struct wml_attr *a = wml_attr_find(n, row->what);
    if (!a) return true;
    if (a->ref.len) return wml_opset_refuse(s, "its %s is left to the caller of the function", row->what);
    if (row->word ? !wml_str_is(a->s, row->word) : !all_equal(a, row->number)) {
        if (row->word) return wml_opset_refuse(s, "%s = '%.*s' needs opset %" PRId64, row->what, WML_ARG(a->s), s->from);
        return wml_opset_refuse(s, "its %s needs opset %" PRId64, row->what, s->from);
    }
    wml_attr_remove(n, row->what);
    return true;
}

static bool check_word(struct wml_opset_step *s, const struct wml_node *n, const struct wml_opset_row *row)
{
    if (!wml_str_is(wml_attr_str(n, row->what, WML_STR("")), row->word)) return true;
    if (row->kind == WML_OPSET_WORD) return wml_opset_refuse(s, "%s = '%s' needs opset %" PRId64, row->what, row->word, s->from);
    return wml_opset_refuse(s, "%s = '%s' is gone from opset %" PRId64, row->what, row->word, s->to);
}

static bool adapt(struct wml_opset_step *s, struct wml_node *n, wml_opset_adapter *f)
{
    if (f == wml_opset_none) return true;
    if (has_foreign_attr(n)) return wml_opset_refuse(s, "its attributes are left to the caller of the function");
    return (wml_node_is(n, "Constant") || wml_opset_has(s, n, 1)) && f(s, n);
}

/* From the row's version to the one before. */
static bool go_down(struct wml_opset_step *s, struct wml_node *n, const struct wml_opset_row *row)
{
    switch (row->kind) {
    case WML_OPSET_TYPES: return check_types(s, n, row);
    case WML_OPSET_INPUT: return !wml_node_in(n, (size_t)row->number) || wml_opset_refuse(s, "its input %d needs opset %" PRId64, row->number, s->from);
    case WML_OPSET_DROP: return drop(s, n, row);
    case WML_OPSET_WORD: return check_word(s, n, row);
    case WML_OPSET_ADAPT: return adapt(s, n, row->down);
    default: return true;
    }
}

static bool go_up(struct wml_opset_step *s, struct wml_node *n, const struct wml_opset_row *row)
{
    if (row->kind == WML_OPSET_WORD_GONE) return check_word(s, n, row);
    return row->kind != WML_OPSET_ADAPT || adapt(s, n, row->up);
}

/* An adapter may remove the node: it is the last row of its operator and version. */
static bool visit_rows(struct walk *w, struct wml_node *n, const struct wml_opset_row *row, size_t n_rows)
{
    int version = (int)(w->down ? w->step.from : w->step.to);
    bool is_new = false, can = true;
    for (size_t i = 0; i < n_rows; i++) {
        if (row[i].version != version) continue;
        is_new = is_new || row[i].kind == WML_OPSET_NEW;
        if (row[i].kind == WML_OPSET_ADAPT) is_new = is_new && row[i].down == wml_opset_none;
    }
    if (w->down && is_new) return wml_opset_refuse(&w->step, "%s came with opset %" PRId64, row->op, w->step.from);
    for (size_t i = 0; i < n_rows && can; i++)
        if (row[i].version == version) can = w->down ? go_down(&w->step, n, &row[i]) : go_up(&w->step, n, &row[i]);
    return can;
}

static bool visit(void *arg, struct wml_node *n)
{
    struct walk *w = arg;
    size_t n_rows = 0;
    if (n->domain.len && !wml_str_is(n->domain, "ai.onnx")) return true;
    const struct wml_opset_row *row = wml_opset_find(n->op_type, &n_rows);
    if (!row || visit_rows(w, n, row, n_rows)) return true;
    if (!w->n_bad++) snprintf(w->first, sizeof w->first, "%.200s: %s", wml_node_label(n), w->step.why);
    return true;
}

static void set_version(struct wml_model *m, struct part *p, int64_t version)
{
    p->version = version;
    if (!p->function) {
        wml_model_set_opset(m, "", version);
        return;
    }
    for (size_t i = 0; i < p->function->opset.len; i++) {
        struct wml_opset *o = &p->function->opset.at[i];
        if (!o->domain.len || wml_str_is(o->domain, "ai.onnx")) o->version = version;
    }
}

static bool way_ends(const struct walk *w, const struct part *p, int64_t target, struct wml_err *err)
{
    const char *where = p->function ? " in a function" : "";
    char more[40] = "";
    if (w->n_bad > 1) snprintf(more, sizeof more, " (and %zu more node%s)", w->n_bad - 1, w->n_bad > 2 ? "s" : "");
    wml_fail(err, WML_E_UNSUPPORTED, "cannot be converted to opset %" PRId64 "%s: %s%s", target, where, w->first, more);
    return wml_hint(err, "the nearest opset that works is %" PRId64, p->version);
}

static bool convert(struct wml_model *m, struct part *p, int64_t target, size_t *n_unsure, struct wml_err *err)
{
    while (p->version != target) {
        struct walk w = {.step = {.model = m, .from = p->version}, .down = target < p->version};
        w.step.to = p->version + (w.down ? -1 : 1);
        wml_graph_walk(p->graph, visit, &w);
        if (w.n_bad) return way_ends(&w, p, target, err);
        *n_unsure += w.step.n_unsure;
        set_version(m, p, w.step.to);
    }
    return true;
}

static bool in_reach(int64_t version, const char *what, struct wml_err *err)
{
    if (version >= WML_OPSET_FIRST && version <= WML_OPSET_LAST) return true;
    wml_fail(err, WML_E_UNSUPPORTED, "%s uses opset %" PRId64 ", and conversion knows %d to %d", what, version, WML_OPSET_FIRST, WML_OPSET_LAST);
    return wml_hint(err, "export the model again with an opset in that range");
}

int64_t wml_opset_ir(int64_t opset)
{
    static const struct { int opset, ir; } came[] = {{12, 7}, {15, 8}, {19, 9}, {21, 10}, {23, 11}, {24, 12}, {25, 13}};
    int64_t ir = 6;
    for (size_t i = 0; i < WML_COUNT(came); i++)
        if (opset >= came[i].opset) ir = came[i].ir;
    return ir;
}

static int64_t ir_of_type(int dtype)
{
    switch (dtype) {
    case WML_F8E4M3FN: case WML_F8E4M3FNUZ: case WML_F8E5M2: case WML_F8E5M2FNUZ: return 9;
    case WML_U4: case WML_I4: return 10;
    case WML_F4E2M1: return 11;
    case WML_F8E8M0: return 12;
    case WML_U2: case WML_I2: return 13;
    default: return 0;
    }
}

static bool tensor_ir(void *arg, struct wml_tensor *t)
{
    int64_t *ir = arg;
    *ir = WML_MAX(*ir, ir_of_type(t->dtype));
    return true;
}

static bool graph_ir(void *arg, struct wml_graph *g)
{
    int64_t *ir = arg;
    for (const struct wml_value *v = g->first_value; v; v = v->next) *ir = WML_MAX(*ir, ir_of_type((int)wml_value_elem(v)));
    return true;
}

/* Runtimes that know an opset know the IR that came with it; older ones refuse a newer IR. */
static void fit_ir(struct wml_model *m, int64_t target, bool down)
{
    int64_t ir = wml_opset_ir(target);
    if (m->training.len) ir = WML_MAX(ir, 7);
    for (size_t i = 0; i < m->function.len; i++) ir = WML_MAX(ir, m->function.at[i]->overload.len ? 10 : 8);
    if (m->device.len) ir = WML_MAX(ir, 11);
    wml_model_each_tensor(m, tensor_ir, &ir);
    wml_model_each_graph(m, graph_ir, &ir);
    if (m->ir_version < ir) wml_model_raise_ir(m, ir);
    else if (down) m->ir_version = ir;
}

bool wml_opset_convert(struct wml_model *m, int64_t target, size_t *n_unsure, struct wml_err *err)
{
    int64_t old = wml_model_opset(m, "");
    struct part main_part = {.graph = m->graph, .version = old};
    *n_unsure = 0;
    if (!old) return wml_fail(err, WML_E_UNSUPPORTED, "the model imports no operators of ONNX: it has no opset to convert");
    if (!in_reach(old, "the model", err)) return false;
    if (!in_reach(target, "the result", err)) return false;
    if (!convert(m, &main_part, target, n_unsure, err)) return false;
    for (size_t i = 0; i < m->function.len; i++) {
        struct part p = {.graph = &m->function.at[i]->body, .function = m->function.at[i]};
        for (size_t k = 0; k < p.function->opset.len; k++) {
            const struct wml_opset *o = &p.function->opset.at[k];
            if (!o->domain.len || wml_str_is(o->domain, "ai.onnx")) p.version = o->version;
        }
        if (p.version && (!in_reach(p.version, "a function", err) || !convert(m, &p, target, n_unsure, err))) return false;
    }
    if (old == target) return true;
    wml_model_drop_unused(m);
    fit_ir(m, target, target < old);
    return true;
}
