/* graph/text_print.c - a graph as text: signature, constants, nodes, sub-graphs. Names that are not words
 * are quoted, numbers are the shortest that read back to the same bits, and what has no data at hand (an
 * external file that is not there) or too much of it is printed as {...}. */
#include "graph/text.h"

#include <inttypes.h>

#include "base/num.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "graph/text_lex.h"

enum { FEW_ELEMENTS = 16, LONG_STRING = 256, INDENT = 4 };

struct printer {
    struct wml_model *m;
    struct wml_buf *out;
    unsigned flags;
    unsigned depth; /* of the graph at hand */
};

static void print_graph(struct printer *p, const struct wml_graph *g);
static void print_type(struct printer *p, const struct wml_type *t);

static bool is_word(struct wml_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i && c >= '0' && c <= '9')) return false;
    }
    return s.len > 0;
}

/* Bytes of the UTF-8 character at s, 0 when it is none. */
static size_t utf8(struct wml_str s)
{
    const unsigned char *c = (const unsigned char *)s.ptr;
    size_t n = c[0] < 0x80 ? 1 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2 : c[0] >= 0xe0 && c[0] < 0xf0 ? 3 : 4;
    if (c[0] >= 0xf5 || (c[0] >= 0x80 && c[0] < 0xc2) || n > s.len) return 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    return n;
}

static void print_quoted(struct printer *p, struct wml_str s)
{
    wml_buf_char(p->out, '"');
    for (size_t i = 0, n; i < s.len; i += n) {
        unsigned char c = (unsigned char)s.ptr[i];
        n = utf8(wml_str_sub(s, i, s.len));
        if (c == '"' || c == '\\') wml_buf_char(p->out, '\\');
        if (c == '\n') wml_buf_cstr(p->out, "\\n");
        else if (c < 0x20 || c == 0x7f || !n) wml_buf_fmt(p->out, "\\x%02x", c);
        else wml_buf_add(p->out, s.ptr + i, n);
        if (!n) n = 1;
    }
    wml_buf_char(p->out, '"');
}

static void print_name(struct printer *p, struct wml_str s)
{
    if (is_word(s)) wml_buf_str(p->out, s);
    else print_quoted(p, s);
}

static void print_value_name(struct printer *p, const struct wml_value *v)
{
    print_name(p, v ? v->name : WML_STR(""));
}

/* ---- numbers and tensors ---- */

/* Bits of element 0 of `data`, printed so that reading gives them again. */
static void print_float(struct printer *p, int dtype, const void *data, size_t i)
{
    char text[40];
    double v = wml_dtype_load(dtype, data, i), again;
    for (int digits = 6; digits <= 17; digits++) {
        unsigned char bits[16] = {0};
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (!wml_parse_f64(wml_str(text), &again)) break;
        wml_dtype_store(dtype, bits, 0, again);
        again = wml_dtype_load(dtype, bits, 0);
        if (again == v) break;
    }
    if (v != v) snprintf(text, sizeof text, "nan");
    wml_buf_cstr(p->out, text);
    if (!strpbrk(text, ".ein")) wml_buf_cstr(p->out, ".0");
}

/* Floats of a byte and less are printed as their bits. */
static unsigned small_bits(int dtype, const unsigned char *data, size_t i)
{
    unsigned bits = wml_dtype_info(dtype)->bits;
    return (unsigned)data[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
}

static void print_integer(struct printer *p, int dtype, const unsigned char *data, size_t i)
{
    const struct wml_dtype_info *info = wml_dtype_info(dtype);
    uint64_t v = 0, sign = (uint64_t)1 << (info->bits - 1);
    if (info->bits < 8) v = small_bits(dtype, data, i);
    else
        for (size_t k = 0; k < info->bits / 8; k++) v |= (uint64_t)data[i * (info->bits / 8) + k] << (8 * k);
    if (info->cls == WML_CLASS_INT && (v & sign)) wml_buf_fmt(p->out, "%" PRId64, (int64_t)(v | ~(sign - 1)));
    else wml_buf_fmt(p->out, "%" PRIu64, v);
}

static void print_elements(struct printer *p, struct wml_tensor *t)
{
    struct wml_span s = {0};
    uint64_t n = 0;
    int dtype = t->dtype;
    enum wml_dclass cls = wml_dtype_info(dtype)->cls;
    bool known = wml_tensor_count(t, &n, NULL) && (n <= FEW_ELEMENTS || (p->flags & WML_TEXT_ALL_DATA));
    if (known && cls == WML_CLASS_STRING) known = t->string_data.len == n;
    else if (known) known = cls != WML_CLASS_NONE && wml_tensor_bytes(p->m, t, &s, NULL);
    if (!known) {
        wml_buf_cstr(p->out, "{...}");
        return;
    }
    if (cls == WML_CLASS_COMPLEX) {
        n *= 2; /* real and imaginary part by turns */
        dtype = dtype == WML_C64 ? WML_F32 : WML_F64;
    }
    wml_buf_char(p->out, '{');
    for (size_t i = 0; i < n; i++) {
        if (i) wml_buf_cstr(p->out, ", ");
        if (cls == WML_CLASS_STRING) print_quoted(p, t->string_data.at[i]);
        else if (cls == WML_CLASS_FLOAT && wml_dtype_info(dtype)->bits < 16)
            wml_buf_fmt(p->out, "0x%02x", small_bits(dtype, s.ptr, i));
        else if (cls == WML_CLASS_FLOAT || cls == WML_CLASS_COMPLEX) print_float(p, dtype, s.ptr, i);
        else print_integer(p, dtype, s.ptr, i);
    }
    wml_buf_char(p->out, '}');
}

static void print_dims(struct printer *p, size_t n, const int64_t *dims)
{
    if (!n) return;
    for (size_t i = 0; i < n; i++) wml_buf_fmt(p->out, "%c%" PRId64, i ? ',' : '[', dims[i]);
    wml_buf_char(p->out, ']');
}

static void print_tensor_type(struct printer *p, const struct wml_tensor *t)
{
    wml_buf_cstr(p->out, wml_dtype_info(t->dtype)->text);
    print_dims(p, t->dims.len, t->dims.at);
}

static void print_tensor(struct printer *p, struct wml_tensor *t)
{
    if (!t) {
        wml_buf_cstr(p->out, "{...}");
        return;
    }
    print_tensor_type(p, t);
    wml_buf_char(p->out, ' ');
    print_elements(p, t);
}

static void print_sparse(struct printer *p, const struct wml_sparse_tensor *s)
{
    wml_buf_cstr(p->out, "sparse(");
    print_tensor(p, s ? s->values : NULL);
    wml_buf_cstr(p->out, ", ");
    print_tensor(p, s ? s->indices : NULL);
    wml_buf_char(p->out, ')');
}

/* ---- types ---- */

static void print_dense(struct printer *p, const struct wml_type *t)
{
    int64_t rank = wml_type_rank(t);
    wml_buf_cstr(p->out, wml_dtype_info((int)wml_type_elem(t))->text);
    if (rank < 0) wml_buf_cstr(p->out, "[...]");
    for (int64_t i = 0; i < rank; i++) {
        struct wml_axis a = wml_type_axis(t, (size_t)i);
        wml_buf_char(p->out, i ? ',' : '[');
        if (a.size >= 0) wml_buf_fmt(p->out, "%" PRId64, a.size);
        else if (a.symbol.len) print_name(p, a.symbol);
        else wml_buf_char(p->out, '?');
    }
    if (rank > 0) wml_buf_char(p->out, ']');
}

/* Whether there is anything to print but "?". */
static bool is_told(const struct wml_type *t)
{
    return t && (t->tensor || t->sparse || t->sequence || t->optional || t->map || t->opaque);
}

static void print_type(struct printer *p, const struct wml_type *t)
{
    const char *open = "";
    if (t && t->tensor) {
        print_dense(p, t);
        return;
    }
    if (t && t->opaque) {
        wml_buf_cstr(p->out, "opaque(");
        print_quoted(p, t->opaque->domain);
        wml_buf_cstr(p->out, ", ");
        print_quoted(p, t->opaque->name);
        wml_buf_char(p->out, ')');
        return;
    }
    open = !t ? "" : t->sparse ? "sparse(" : t->sequence ? "seq(" : t->optional ? "optional(" : t->map ? "map(" : "";
    if (!*open) {
        wml_buf_char(p->out, '?');
        return;
    }
    wml_buf_cstr(p->out, open);
    if (t->map) wml_buf_fmt(p->out, "%s, ", wml_dtype_info(t->map->key)->text);
    if (t->sparse) print_dense(p, t);
    else print_type(p, t->sequence ? t->sequence->elem : t->optional ? t->optional->elem : t->map->value);
    wml_buf_char(p->out, ')');
}

/* ---- attributes ---- */

static void print_string(struct printer *p, struct wml_str s)
{
    bool cut = s.len > LONG_STRING && !(p->flags & WML_TEXT_ALL_DATA);
    print_quoted(p, cut ? wml_str_sub(s, 0, LONG_STRING) : s);
    if (cut) wml_buf_cstr(p->out, "...");
}

static void print_attr_sparse(struct printer *p, const struct wml_sparse_tensor *s)
{
    if (s && s->values) {
        wml_buf_cstr(p->out, wml_dtype_info(s->values->dtype)->text);
        print_dims(p, s->dims.len, s->dims.at);
        wml_buf_char(p->out, ' ');
    }
    print_sparse(p, s);
}

static void print_subgraph(struct printer *p, const struct wml_graph *g)
{
    if (!g) {
        wml_buf_cstr(p->out, "{...}");
        return;
    }
    p->depth++;
    print_graph(p, g);
    p->depth--;
}

/* How many entries the list has; SIZE_MAX for kinds that are no lists. */
static size_t list_len(const struct wml_attr *a, enum wml_attr_type kind)
{
    switch (kind) {
    case WML_ATTR_FLOATS: return a->floats.len;
    case WML_ATTR_INTS: return a->ints.len;
    case WML_ATTR_STRINGS: return a->strings.len;
    case WML_ATTR_TENSORS: return a->tensors.len;
    case WML_ATTR_GRAPHS: return a->graphs.len;
    case WML_ATTR_SPARSES: return a->sparses.len;
    case WML_ATTR_TYPES: return a->types.len;
    default: return SIZE_MAX;
    }
}

static void print_entry(struct printer *p, const struct wml_attr *a, enum wml_attr_type kind, size_t i)
{
    switch (kind) {
    case WML_ATTR_FLOAT: print_float(p, WML_F32, &a->f, 0); break;
    case WML_ATTR_INT: wml_buf_fmt(p->out, "%" PRId64, a->i); break;
    case WML_ATTR_STRING: print_string(p, a->s); break;
    case WML_ATTR_TENSOR: print_tensor(p, a->t); break;
    case WML_ATTR_GRAPH: print_subgraph(p, a->g); break;
    case WML_ATTR_SPARSE: print_attr_sparse(p, a->sparse); break;
    case WML_ATTR_TYPE: print_type(p, a->tp); break;
    case WML_ATTR_FLOATS: print_float(p, WML_F32, a->floats.at, i); break;
    case WML_ATTR_INTS: wml_buf_fmt(p->out, "%" PRId64, a->ints.at[i]); break;
    case WML_ATTR_STRINGS: print_string(p, a->strings.at[i]); break;
    case WML_ATTR_TENSORS: print_tensor(p, a->tensors.at[i]); break;
    case WML_ATTR_GRAPHS: print_subgraph(p, a->graphs.at[i]); break;
    case WML_ATTR_SPARSES: print_attr_sparse(p, a->sparses.at[i]); break;
    case WML_ATTR_TYPES: print_type(p, a->types.at[i]); break;
    case WML_ATTR_UNDEFINED: break;
    }
}

static void print_attr(struct printer *p, const struct wml_attr *a)
{
    enum wml_attr_type kind = wml_attr_kind(a);
    size_t len = list_len(a, kind);
    bool told = kind != WML_ATTR_UNDEFINED && !a->ref.len && len != 0 && kind != WML_ATTR_TYPE &&
                kind != WML_ATTR_TYPES && kind != WML_ATTR_SPARSE && kind != WML_ATTR_SPARSES;
    print_name(p, a->name);
    if (!told) wml_buf_fmt(p->out, ": %s", wml_text_attr_type[kind <= WML_ATTR_TYPES ? kind : 0]);
    if (a->ref.len) {
        wml_buf_cstr(p->out, " = @");
        print_name(p, a->ref);
        return;
    }
    if (kind == WML_ATTR_UNDEFINED) return;
    wml_buf_cstr(p->out, " = ");
    if (len == SIZE_MAX) {
        print_entry(p, a, kind, 0);
        return;
    }
    wml_buf_char(p->out, '[');
    for (size_t i = 0; i < len; i++) {
        if (i) wml_buf_cstr(p->out, ", ");
        print_entry(p, a, kind, i);
    }
    wml_buf_char(p->out, ']');
}

/* ---- nodes and graphs ---- */

static bool is_dotted(struct wml_str s)
{
    struct wml_str part;
    if (!s.len || s.ptr[s.len - 1] == '.') return false;
    while (wml_str_split(&s, '.', &part))
        if (!is_word(part)) return false;
    return true;
}

static void print_op(struct printer *p, const struct wml_node *n)
{
    if (n->domain.len) {
        if (is_dotted(n->domain)) wml_buf_str(p->out, n->domain);
        else print_quoted(p, n->domain);
        wml_buf_char(p->out, '.');
    }
    print_name(p, n->op_type);
    if (!n->overload.len) return;
    wml_buf_char(p->out, ':');
    print_name(p, n->overload);
}

static void print_node(struct printer *p, const struct wml_node *n)
{
    if (n->name.len) {
        wml_buf_char(p->out, '[');
        print_name(p, n->name);
        wml_buf_cstr(p->out, "] ");
    }
    for (size_t i = 0; i < n->n_out; i++) {
        if (i) wml_buf_cstr(p->out, ", ");
        print_value_name(p, n->out[i]);
    }
    if (n->n_out) wml_buf_cstr(p->out, " = ");
    print_op(p, n);
    for (size_t i = 0; i < n->attr.len; i++) {
        wml_buf_cstr(p->out, i ? ", " : " <");
        print_attr(p, n->attr.at[i]);
    }
    wml_buf_cstr(p->out, n->attr.len ? "> (" : "(");
    for (size_t i = 0; i < n->n_in; i++) {
        if (i) wml_buf_cstr(p->out, ", ");
        print_value_name(p, n->in[i]);
    }
    wml_buf_char(p->out, ')');
}

static void print_break(struct printer *p, unsigned depth)
{
    if (p->flags & WML_TEXT_ONE_LINE) {
        wml_buf_char(p->out, ' ');
        return;
    }
    wml_buf_char(p->out, '\n');
    for (unsigned i = 0; i < depth * INDENT; i++) wml_buf_char(p->out, ' ');
}

/* An initializer, or the default of an input: its own type only where the value's says something else. */
static void print_init(struct printer *p, const struct wml_value *v, const struct wml_type *declared)
{
    wml_buf_cstr(p->out, " = ");
    if (v->sparse) {
        print_sparse(p, v->sparse);
        return;
    }
    bool same = !declared || (declared->tensor && wml_type_elem(declared) == (enum wml_dtype)v->init->dtype &&
                              wml_type_rank(declared) == (int64_t)v->init->dims.len);
    for (size_t i = 0; same && declared && i < v->init->dims.len; i++)
        same = wml_type_axis(declared, i).size == v->init->dims.at[i];
    if (same) print_elements(p, v->init);
    else print_tensor(p, v->init);
}

static void print_signature(struct printer *p, struct wml_value *const *v, size_t n, bool inputs)
{
    wml_buf_char(p->out, '(');
    for (size_t i = 0; i < n; i++) {
        if (i) wml_buf_cstr(p->out, ", ");
        if (is_told(v[i]->type)) {
            print_type(p, v[i]->type);
            wml_buf_char(p->out, ' ');
        }
        print_value_name(p, v[i]);
        if (!inputs || (!v[i]->init && !v[i]->sparse)) continue;
        if (is_told(v[i]->type)) print_init(p, v[i], v[i]->type);
        else if (v[i]->init) {
            wml_buf_cstr(p->out, " = ");
            print_tensor(p, v[i]->init);
        }
    }
    wml_buf_char(p->out, ')');
}

static void print_constant(struct printer *p, const struct wml_value *v)
{
    if (v->init) print_tensor_type(p, v->init);
    else if (v->sparse->values) {
        wml_buf_cstr(p->out, wml_dtype_info(v->sparse->values->dtype)->text);
        print_dims(p, v->sparse->dims.len, v->sparse->dims.at);
    }
    wml_buf_char(p->out, ' ');
    print_value_name(p, v);
    print_init(p, v, NULL);
}

static void print_separator(struct printer *p, size_t *n)
{
    if (!(*n)++) wml_buf_cstr(p->out, " <");
    else {
        wml_buf_char(p->out, ',');
        print_break(p, p->depth + 1);
    }
}

/* Constants first, then types of inner values: the order in which reading defines them. */
static void print_values(struct printer *p, const struct wml_graph *g)
{
    size_t n = 0;
    for (int sparse = 0; sparse < 2; sparse++) {
        for (const struct wml_value *v = g->first_value; v; v = v->next) {
            if (v->n_inputs || (sparse ? !v->sparse || v->init : !v->init)) continue;
            print_separator(p, &n);
            print_constant(p, v);
        }
    }
    for (const struct wml_node *node = g->first; node && (p->flags & WML_TEXT_TYPES); node = node->next) {
        for (size_t i = 0; i < node->n_out; i++) {
            const struct wml_value *v = node->out[i];
            if (!v || !is_told(v->type) || v->n_outputs) continue;
            print_separator(p, &n);
            print_type(p, v->type);
            wml_buf_char(p->out, ' ');
            print_value_name(p, v);
        }
    }
    if (n) wml_buf_char(p->out, '>');
}

static void print_graph(struct printer *p, const struct wml_graph *g)
{
    print_name(p, g->name);
    wml_buf_char(p->out, ' ');
    print_signature(p, g->inputs.at, g->inputs.len, true);
    wml_buf_cstr(p->out, " => ");
    print_signature(p, g->outputs.at, g->outputs.len, false);
    print_values(p, g);
    wml_buf_cstr(p->out, " {");
    for (const struct wml_node *n = g->first; n; n = n->next) {
        print_break(p, p->depth + 1);
        print_node(p, n);
    }
    print_break(p, p->depth);
    wml_buf_char(p->out, '}');
}

static void print_header(struct printer *p)
{
    const struct wml_model *m = p->m;
    wml_buf_fmt(p->out, "<ir_version: %" PRId64 ", opset_import: [", m->ir_version);
    for (size_t i = 0; i < m->opset.len; i++) {
        if (i) wml_buf_cstr(p->out, ", ");
        print_quoted(p, m->opset.at[i].domain);
        wml_buf_fmt(p->out, " : %" PRId64, m->opset.at[i].version);
    }
    wml_buf_cstr(p->out, "]>");
    print_break(p, 0);
}

void wml_model_text(struct wml_model *m, unsigned flags, struct wml_buf *out)
{
    struct printer p = {.m = m, .out = out, .flags = flags};
    if (flags & WML_TEXT_HEADER) print_header(&p);
    print_graph(&p, m->graph);
    if (!(flags & WML_TEXT_ONE_LINE)) wml_buf_char(out, '\n');
}

void wml_node_text(const struct wml_node *n, struct wml_buf *out)
{
    struct printer p = {.m = n->graph->model, .out = out, .flags = WML_TEXT_ONE_LINE};
    print_node(&p, n);
}
