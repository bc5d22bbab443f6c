/* graph/text_parse.c - text to a linked model. The parser fills the file face, as the ONNX reader does,
 * and leaves names, uses and order to wml_model_link. Refuses what is no text form, nesting beyond
 * WML_TEXT_DEPTH, constants whose elements do not fit their type. */
#include "graph/text.h"

#include "graph/attr.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/text_lex.h"

enum { HAS_TYPE = 1u << 20, HAS_F = 1u << 2, HAS_I = 1u << 3, HAS_VERSION = 1u << 2, HAS_MODEL_VERSION = 1u << 5 };

static bool parse_graph(struct wml_lex *l, struct wml_graph **out);

/* ---- attributes ---- */

/* The list kind of entries of a kind, and back. UNDEFINED: there is none. */
static enum wml_attr_type list_of(enum wml_attr_type kind)
{
    static const enum wml_attr_type list[] = {
        [WML_ATTR_FLOAT] = WML_ATTR_FLOATS, [WML_ATTR_INT] = WML_ATTR_INTS, [WML_ATTR_STRING] = WML_ATTR_STRINGS,
        [WML_ATTR_TENSOR] = WML_ATTR_TENSORS, [WML_ATTR_GRAPH] = WML_ATTR_GRAPHS,
        [WML_ATTR_SPARSE] = WML_ATTR_SPARSES, [WML_ATTR_TYPE] = WML_ATTR_TYPES, [WML_ATTR_TYPES] = WML_ATTR_UNDEFINED};
    return list[kind];
}

static enum wml_attr_type entry_of(enum wml_attr_type list)
{
    for (int kind = 1; kind <= WML_ATTR_TYPE; kind++)
        if (list_of((enum wml_attr_type)kind) == list && list) return (enum wml_attr_type)kind;
    return WML_ATTR_UNDEFINED;
}

/* What the next literal is, told from its start. Leaves the cursor where it is. */
static enum wml_attr_type kind_of_next(struct wml_lex *l)
{
    struct wml_lex ahead = *l;
    struct wml_err ignored = {0};
    struct wml_str word = {0};
    struct wml_lex_number number;
    char c = wml_lex_peek(&ahead);
    ahead.err = &ignored;
    if (c == '(') return WML_ATTR_GRAPH;
    if (c == '"') {
        const char *p = ahead.p + 1;
        for (; p < ahead.end && *p != '"'; p++)
            if (*p == '\\' && p + 1 < ahead.end) p++;
        ahead.p = p < ahead.end ? p + 1 : p;
        return wml_lex_peek(&ahead) == '(' ? WML_ATTR_GRAPH : WML_ATTR_STRING;
    }
    if (!wml_lex_at_word(&ahead)) return wml_lex_number(&ahead, &number) && number.is_int ? WML_ATTR_INT : WML_ATTR_FLOAT;
    wml_lex_word(&ahead, &word, "");
    if (wml_lex_peek(&ahead) == '(') return WML_ATTR_GRAPH;
    return wml_str_is(word, "inf") || wml_str_is(word, "nan") ? WML_ATTR_FLOAT : WML_ATTR_TENSOR;
}

static bool attr_float(struct wml_lex *l, float *out)
{
    struct wml_lex_number n;
    if (!wml_lex_number(l, &n)) return false;
    *out = (float)n.d;
    return true;
}

static bool attr_sparse(struct wml_lex *l, struct wml_sparse_tensor **out)
{
    struct wml_type *type;
    return wml_lex_type(l, &type) && wml_lex_sparse(l, type, out);
}

static bool attr_type(struct wml_lex *l, struct wml_type **out)
{
    if (!wml_lex_type(l, out)) return false;
    if (!*out) *out = WML_NEW(&l->m->arena, struct wml_type);
    return true;
}

static bool parse_single(struct wml_lex *l, struct wml_attr *a, enum wml_attr_type kind)
{
    switch (kind) {
    case WML_ATTR_FLOAT: return attr_float(l, &a->f);
    case WML_ATTR_INT: return wml_lex_int(l, &a->i);
    case WML_ATTR_STRING: return wml_lex_string(l, &a->s);
    case WML_ATTR_TENSOR: return wml_lex_tensor(l, &a->t);
    case WML_ATTR_GRAPH: return parse_graph(l, &a->g);
    case WML_ATTR_SPARSE: return attr_sparse(l, &a->sparse);
    case WML_ATTR_TYPE: return attr_type(l, &a->tp);
    default: return wml_lex_expected(l, "one value");
    }
}

/* One entry is read as a single value and then moved to the list. */
static bool parse_entry(struct wml_lex *l, struct wml_attr *a, enum wml_attr_type kind)
{
    struct wml_arena *arena = &l->m->arena;
    struct wml_attr one = {0};
    if (!parse_single(l, &one, kind)) return false;
    switch (kind) {
    case WML_ATTR_FLOAT: WML_PUSH_IN(arena, &a->floats, one.f); break;
    case WML_ATTR_INT: WML_PUSH_IN(arena, &a->ints, one.i); break;
    case WML_ATTR_STRING: WML_PUSH_IN(arena, &a->strings, one.s); break;
    case WML_ATTR_TENSOR: WML_PUSH_IN(arena, &a->tensors, one.t); break;
    case WML_ATTR_GRAPH: WML_PUSH_IN(arena, &a->graphs, one.g); break;
    case WML_ATTR_SPARSE: WML_PUSH_IN(arena, &a->sparses, one.sparse); break;
    default: WML_PUSH_IN(arena, &a->types, one.tp);
    }
    return true;
}

/* [1, 2.5]: a list becomes one of floats with its first float. */
static bool parse_list(struct wml_lex *l, struct wml_attr *a, enum wml_attr_type kind, bool told)
{
    enum wml_attr_type entry = told ? entry_of(kind) : WML_ATTR_UNDEFINED;
    if (wml_lex_take(l, "]"))
        return told || wml_lex_fail(l, l->p, "an empty list needs a type, as in `k: ints = []`");
    do {
        enum wml_attr_type next = told ? entry : kind_of_next(l);
        if (!told && entry == WML_ATTR_INT && next == WML_ATTR_FLOAT) {
            for (size_t i = 0; i < a->ints.len; i++) WML_PUSH_IN(&l->m->arena, &a->floats, (float)a->ints.at[i]);
            a->ints.len = 0;
            entry = next;
        }
        if (!entry) entry = next;
        if (!parse_entry(l, a, entry)) return false;
    } while (wml_lex_take(l, ","));
    a->type = (int32_t)list_of(entry);
    return wml_lex_want(l, "]", "after the list");
}

static bool parse_value(struct wml_lex *l, struct wml_attr *a, bool told)
{
    enum wml_attr_type kind = (enum wml_attr_type)a->type;
    const char *at = (wml_lex_peek(l), l->p);
    if (wml_lex_take(l, "@")) {
        if (!told) return wml_lex_fail(l, at, "a reference needs the attribute's type, as in `k: float = @r`");
        return wml_lex_name(l, &a->ref, "the name of an attribute");
    }
    if (told && entry_of(kind)) {
        return wml_lex_want(l, "[", "before the list") && parse_list(l, a, kind, true);
    }
    if (!told && wml_lex_take(l, "[")) return parse_list(l, a, kind, false);
    if (!told) a->type = (int32_t)(kind = kind_of_next(l));
    if (!parse_single(l, a, kind)) return false;
    a->msg.has |= kind == WML_ATTR_FLOAT ? HAS_F : kind == WML_ATTR_INT ? HAS_I : 0u;
    return true;
}

static bool parse_attr_type(struct wml_lex *l, int32_t *out)
{
    struct wml_str word;
    const char *at = (wml_lex_peek(l), l->p);
    if (!wml_lex_word(l, &word, "the attribute's type")) return false;
    for (size_t i = 0; i < WML_COUNT(wml_text_attr_type); i++) {
        *out = (int32_t)i;
        if (wml_str_is(word, wml_text_attr_type[i])) return true;
    }
    return wml_lex_fail(l, at, "'%.*s' is no type of attributes: int, float, string, tensor, graph, ints, ...",
                        WML_ARG(word));
}

/* After '<'. */
static bool parse_attrs(struct wml_lex *l, struct wml_node *n)
{
    if (wml_lex_take(l, ">")) return true;
    do {
        struct wml_attr *a = WML_NEW(&l->m->arena, struct wml_attr);
        if (!wml_lex_name(l, &a->name, "the name of an attribute")) return false;
        bool told = wml_lex_take(l, ":");
        if (told && !parse_attr_type(l, &a->type)) return false;
        if (!told || a->type != WML_ATTR_UNDEFINED) {
            if (!wml_lex_want(l, "=", "after the attribute's name") || !parse_value(l, a, told)) return false;
            a->msg.has |= HAS_TYPE;
        }
        WML_PUSH_IN(&l->m->arena, &n->attr, a);
    } while (wml_lex_take(l, ","));
    return wml_lex_want(l, ">", "after the attributes");
}

/* ---- nodes ---- */

/* Names, where nothing between commas is an empty slot. Ends before `stop`. */
static bool parse_inputs(struct wml_lex *l, struct wml_node *n)
{
    if (!wml_lex_want(l, "(", "before the inputs")) return false;
    if (wml_lex_take(l, ")")) return true;
    do {
        struct wml_str name = WML_STR("");
        char c = wml_lex_peek(l);
        if (c != ',' && c != ')' && !wml_lex_name(l, &name, "the name of an input")) return false;
        WML_PUSH_IN(&l->m->arena, &n->input, name);
    } while (wml_lex_take(l, ","));
    return wml_lex_want(l, ")", "after the inputs");
}

/* The outputs and '=', or for a node without outputs the first part of the operator's name. */
static bool parse_outputs(struct wml_lex *l, struct wml_node *n, struct wml_str *op_part)
{
    for (;;) {
        struct wml_str name = WML_STR("");
        char c = wml_lex_peek(l);
        if (c != ',' && c != '=' && !wml_lex_name(l, &name, "the name of an output or an operator")) return false;
        c = wml_lex_peek(l);
        if (!n->output.len && c != ',' && c != '=') {
            *op_part = name;
            return true;
        }
        WML_PUSH_IN(&l->m->arena, &n->output, name);
        if (!wml_lex_take(l, ",")) return wml_lex_want(l, "=", "after the outputs");
    }
}

/* com.microsoft.FusedMatMul:overload; the last part is the operator. */
static bool parse_op(struct wml_lex *l, struct wml_node *n, struct wml_str part)
{
    struct wml_buf domain = {0};
    bool ok = part.ptr || wml_lex_name(l, &part, "an operator");
    while (ok && wml_lex_take(l, ".")) {
        if (domain.len) wml_buf_char(&domain, '.');
        wml_buf_str(&domain, part);
        ok = wml_lex_name(l, &part, "an operator after the domain");
    }
    if (ok) n->op_type = part;
    if (domain.len) n->domain = wml_arena_str(&l->m->arena, wml_buf_view(&domain));
    wml_buf_release(&domain);
    return ok && (!wml_lex_take(l, ":") || wml_lex_name(l, &n->overload, "an overload"));
}

static bool parse_node(struct wml_lex *l, struct wml_graph *g)
{
    struct wml_node *n = WML_NEW(&l->m->arena, struct wml_node);
    struct wml_str op_part = {0};
    WML_PUSH_IN(&l->m->arena, &g->node, n);
    if (wml_lex_take(l, "[") &&
        (!wml_lex_name(l, &n->name, "the node's name") || !wml_lex_want(l, "]", "after the node's name")))
        return false;
    if (!parse_outputs(l, n, &op_part) || !parse_op(l, n, op_part)) return false;
    if (wml_lex_take(l, "<") && !parse_attrs(l, n)) return false;
    if (!parse_inputs(l, n)) return false;
    return n->attr.len || !wml_lex_take(l, "<") || parse_attrs(l, n);
}

/* ---- graphs ---- */

/* `float[2] x` or `x`: a word that a name follows is a type. */
static bool parse_declared(struct wml_lex *l, struct wml_value_info *info)
{
    struct wml_str word;
    const char *from = (wml_lex_peek(l), l->p);
    bool typed = wml_lex_peek(l) != '"';
    if (wml_lex_at_word(l)) {
        wml_lex_word(l, &word, "");
        char c = wml_lex_peek(l);
        typed = c && !strchr(",)=>", c);
        l->p = from;
    }
    if (typed && !wml_lex_type(l, &info->type)) return false;
    return wml_lex_name(l, &info->name, "the name of a value");
}

/* `= {1.0}`, `= float[1] {1.0}` or `= sparse(...)`. */
static bool parse_constant(struct wml_lex *l, struct wml_graph *g, const struct wml_value_info *info)
{
    struct wml_lex ahead = *l;
    struct wml_tensor *t = NULL;
    if (wml_lex_take(&ahead, "sparse(")) {
        struct wml_sparse_tensor *s;
        if (!wml_lex_sparse(l, info->type, &s)) return false;
        s->values->name = info->name;
        WML_PUSH_IN(&l->m->arena, &g->sparse_initializer, s);
        return true;
    }
    if (!(wml_lex_at_word(l) ? wml_lex_tensor(l, &t) : wml_lex_elements(l, info->type, &t))) return false;
    t->name = info->name;
    WML_PUSH_IN(&l->m->arena, &g->initializer, t);
    return true;
}

static bool parse_signature(struct wml_lex *l, struct wml_graph *g, bool inputs)
{
    if (!wml_lex_want(l, "(", inputs ? "before the graph's inputs" : "before the graph's outputs")) return false;
    if (wml_lex_take(l, ")")) return true;
    do {
        struct wml_value_info *info = WML_NEW(&l->m->arena, struct wml_value_info);
        if (!parse_declared(l, info)) return false;
        if (inputs && wml_lex_take(l, "=") && !parse_constant(l, g, info)) return false;
        if (inputs) WML_PUSH_IN(&l->m->arena, &g->input, info);
        else WML_PUSH_IN(&l->m->arena, &g->output, info);
    } while (wml_lex_take(l, ","));
    return wml_lex_want(l, ")", inputs ? "after the graph's inputs" : "after the graph's outputs");
}

/* After '<': constants and types of inner values. */
static bool parse_values(struct wml_lex *l, struct wml_graph *g)
{
    if (wml_lex_take(l, ">")) return true;
    do {
        struct wml_value_info *info = WML_NEW(&l->m->arena, struct wml_value_info);
        if (!parse_declared(l, info)) return false;
        if (wml_lex_take(l, "=")) {
            if (!parse_constant(l, g, info)) return false;
        } else WML_PUSH_IN(&l->m->arena, &g->value_info, info);
    } while (wml_lex_take(l, ","));
    return wml_lex_want(l, ">", "after the constants");
}

static bool parse_body(struct wml_lex *l, struct wml_graph *g)
{
    g->name = WML_STR("");
    if (wml_lex_at_name(l) && !wml_lex_name(l, &g->name, "the graph's name")) return false;
    if (!parse_signature(l, g, true) || !wml_lex_want(l, "=>", "after the graph's inputs")) return false;
    if (!parse_signature(l, g, false)) return false;
    if (wml_lex_take(l, "<") && !parse_values(l, g)) return false;
    if (!wml_lex_want(l, "{", "before the nodes")) return false;
    while (!wml_lex_take(l, "}")) {
        if (!wml_lex_peek(l)) return wml_lex_expected(l, "'}' after the nodes");
        if (!parse_node(l, g)) return false;
    }
    return true;
}

static bool parse_graph(struct wml_lex *l, struct wml_graph **out)
{
    struct wml_graph *g = *out = WML_NEW(&l->m->arena, struct wml_graph);
    if (!wml_lex_enter(l) || !parse_body(l, g)) return false;
    l->depth--;
    return true;
}

/* ---- the model ---- */

static bool parse_opsets(struct wml_lex *l)
{
    if (!wml_lex_want(l, "[", "before the opsets")) return false;
    if (wml_lex_take(l, "]")) return true;
    do {
        struct wml_opset o = {.msg.has = HAS_VERSION};
        if (!wml_lex_string(l, &o.domain) || !wml_lex_want(l, ":", "after the domain")) return false;
        if (!wml_lex_int(l, &o.version)) return false;
        WML_PUSH_IN(&l->m->arena, &l->m->opset, o);
    } while (wml_lex_take(l, ","));
    return wml_lex_want(l, "]", "after the opsets");
}

static bool parse_header_entry(struct wml_lex *l, bool *has_opsets)
{
    struct wml_model *m = l->m;
    struct wml_str key;
    const char *at = (wml_lex_peek(l), l->p);
    if (!wml_lex_word(l, &key, "a key of the header") || !wml_lex_want(l, ":", "after the key")) return false;
    if (wml_str_is(key, "ir_version")) return wml_lex_int(l, &m->ir_version);
    if (wml_str_is(key, "opset_import")) return *has_opsets = true, parse_opsets(l);
    if (wml_str_is(key, "producer_name")) return wml_lex_string(l, &m->producer_name);
    if (wml_str_is(key, "producer_version")) return wml_lex_string(l, &m->producer_version);
    if (wml_str_is(key, "domain")) return wml_lex_string(l, &m->domain);
    if (wml_str_is(key, "doc_string")) return wml_lex_string(l, &m->doc);
    if (wml_str_is(key, "model_version")) {
        m->msg.has |= HAS_MODEL_VERSION;
        return wml_lex_int(l, &m->model_version);
    }
    return wml_lex_fail(l, at, "'%.*s' is no key of the header: ir_version, opset_import, producer_name, ...",
                        WML_ARG(key));
}

static bool parse_header(struct wml_lex *l, bool *has_opsets)
{
    if (!wml_lex_take(l, "<")) return true;
    do {
        if (!parse_header_entry(l, has_opsets)) return false;
    } while (wml_lex_take(l, ","));
    return wml_lex_want(l, ">", "after the header");
}

struct domains {
    struct wml_model *m;
    struct wml_map seen;
};

static bool import_domain(void *arg, struct wml_node *n)
{
    struct domains *d = arg;
    if (!n->domain.len || wml_str_is(n->domain, "ai.onnx") || wml_map_has(&d->seen, n->domain)) return true;
    wml_map_put(&d->seen, n->domain, n);
    struct wml_opset o = {.msg.has = HAS_VERSION, .domain = n->domain, .version = 1};
    WML_PUSH_IN(&d->m->arena, &d->m->opset, o);
    return true;
}

static void import_used(struct wml_model *m)
{
    struct domains d = {.m = m};
    wml_model_set_opset(m, "", 21);
    wml_graph_walk(m->graph, import_domain, &d);
    wml_map_release(&d.seen);
}

bool wml_model_parse(struct wml_str text, struct wml_model **out, struct wml_err *err)
{
    struct wml_model *m = wml_model_new();
    const char *start = text.ptr ? text.ptr : "";
    struct wml_lex l = {.p = start, .end = start + text.len, .start = start, .m = m, .err = err};
    bool has_opsets = false;
    bool ok = parse_header(&l, &has_opsets) && parse_graph(&l, &m->graph);
    if (ok && wml_lex_peek(&l)) ok = wml_lex_expected(&l, "the end of the text after the graph");
    ok = ok && wml_model_link(m, err);
    if (ok && !has_opsets) import_used(m);
    if (!ok) wml_model_free(m);
    *out = ok ? m : NULL;
    return ok;
}
