/* LayerNormalization of a sum of embeddings -> com.microsoft::EmbedLayerNormalization: words, positions and perhaps
 * segments, each a Gather of rows of a constant table. Positions that are looked up by constants were folded to a
 * constant [1, length, hidden]; that is a table whose rows are taken in order.
 * The operator takes ids as int32 and no negative ones, which Gather counts from the end: ids of words, segments and
 * positions never are. */
#include "passes/attention_form.h"

#include <math.h>

enum { MAX_TERMS = 6, MAX_BYTES = 64 << 20 };

struct lookup {
    struct wml_value *table, *ids; /* ids: [batch, length]; of positions also [1, length] or [length] */
    int64_t rows;
    bool in_order; /* ids are 0, 1, 2, ... */
};

struct embedding {
    struct wml_pass_run *r;
    struct wml_node *norm;
    struct wml_value *sum;
    struct wml_value *like; /* the ids of words, [batch, length]: nothing in the sum is larger */
    int64_t hidden;
    struct lookup by_ids[3];      /* ids of [batch, length] */
    struct lookup position;       /* other ids */
    struct wml_value *constant[MAX_TERMS];
    size_t n_by_ids, n_positions, n_constants;
};

static bool refuse(const struct embedding *e, const char *why)
{
    wml_pass_refuse(e->r, e->norm, "%s", why);
    return false;
}

static bool is_row(const struct embedding *e, const struct wml_value *v)
{
    const struct wml_tensor *t = wml_constant_of(v);
    return t && t->dims.len == 1 && t->dims.at[0] == e->hidden && t->dtype == (int32_t)wml_value_elem(e->sum);
}

static bool is_lookup(const struct embedding *e, const struct wml_value *v, struct lookup *out)
{
    const struct wml_node *n = v->def;
    if (!n || !wml_node_is(n, "Gather") || wml_attr_int(n, "axis", 0) != 0) return false;
    const struct wml_tensor *t = wml_constant_of(wml_node_in(n, 0));
    if (!t || t->dims.len != 2 || t->dims.at[1] != e->hidden || t->dtype != (int32_t)wml_value_elem(e->sum)) return false;
    *out = (struct lookup){.table = n->in[0], .ids = wml_node_in(n, 1), .rows = t->dims.at[0]};
    return out->ids != NULL;
}

/* The terms of the sum: products of the tree of Adds below v, whose inner values nothing else reads. */
static bool collect(struct wml_value *v, bool root, struct wml_value **term, size_t *n)
{
    const struct wml_node *add = v->def;
    bool inner = root || (v->n_uses == 1 && !v->n_outputs && !v->pinned);
    if (add && wml_node_is(add, "Add") && add->n_in == 2 && inner) return collect(add->in[0], false, term, n) && collect(add->in[1], false, term, n);
    if (*n == MAX_TERMS) return false;
    term[(*n)++] = v;
    return true;
}

static bool counts_up(struct wml_pass_run *r, const struct wml_value *v, size_t at_least)
{
    int64_t *id;
    size_t n;
    if (!wml_constant_of(v) || !wml_constant_ints(r, v, &id, &n) || n < at_least) return false;
    for (size_t i = 0; i < n; i++)
        if (id[i] != (int64_t)i) return false;
    return true;
}

/* The number is the length of the ids. */
static bool is_length(const struct embedding *e, const struct wml_value *v)
{
    size_t axis;
    const struct wml_value *y = v ? wml_shape_source(e->r, v, &axis) : NULL;
    return y && ((y == e->like && axis == 1) || wml_same_axis(y, axis, e->like, 1));
}

/* Computed ids 0, 1, 2, ... as many as the length: a Slice of such a constant, or Range. */
static bool is_counted(const struct embedding *e, const struct wml_value *v)
{
    const struct wml_node *n = v->def;
    int64_t *at;
    size_t len;
    double from, step;
    while (n && (wml_node_is(n, "Cast") || wml_node_is(n, "Unsqueeze")) && wml_node_in(n, 0)) v = n->in[0], n = v->def;
    if (!n) return false;
    if (wml_node_is(n, "Range"))
        return wml_constant_scalar(e->r, wml_node_in(n, 0), &from) && from == 0 && is_length(e, wml_node_in(n, 1)) &&
               wml_constant_scalar(e->r, wml_node_in(n, 2), &step) && step == 1;
    int64_t rank = wml_node_in(n, 0) ? wml_value_rank(n->in[0]) : -1;
    if (!wml_node_is(n, "Slice") || !wml_constant_of(n->in[0]) || rank < 1 || !counts_up(e->r, n->in[0], 1)) return false;
    for (int64_t i = 0; i + 1 < rank; i++)
        if (wml_value_axis(n->in[0], (size_t)i).size != 1) return false;
    if (!wml_constant_scalar(e->r, wml_node_in(n, 1), &from) || from != 0 || !is_length(e, wml_node_in(n, 2))) return false;
    if (wml_node_in(n, 4) && !wml_constant_is(e->r, n->in[4], 1)) return false;
    if (!wml_node_in(n, 3)) return rank == 1;
    return wml_constant_ints(e->r, n->in[3], &at, &len) && len == 1 && (at[0] < 0 ? at[0] + rank : at[0]) == rank - 1;
}

static bool is_wide(const struct embedding *e, const struct wml_value *ids)
{
    return wml_value_rank(ids) == 2 && wml_same_axis(ids, 0, e->like, 0) && wml_same_axis(ids, 1, e->like, 1);
}

/* Ids of positions: one row for all, or one per batch. */
static bool is_position(struct embedding *e, struct lookup *l)
{
    int64_t rank = wml_value_rank(l->ids);
    if (rank < 1 || rank > 2) return false;
    if ((l->in_order = is_counted(e, l->ids))) return true;
    if (rank == 2 && wml_value_axis(l->ids, 0).size != 1) return false;
    bool fits = wml_same_axis(l->ids, (size_t)rank - 1, e->like, 1);
    int64_t length = wml_value_axis(e->like, 1).size;
    l->in_order = fits && length >= 0 && counts_up(e->r, l->ids, (size_t)length);
    return fits;
}

/* [1, length, hidden], or with fewer rows by broadcasting. */
static bool is_constant_term(const struct embedding *e, const struct wml_value *v)
{
    const struct wml_tensor *t = wml_constant_of(v);
    int64_t length = wml_value_axis(e->like, 1).size, rank = t ? (int64_t)t->dims.len : -1;
    if (rank < 1 || rank > 3 || length < 0 || t->dtype != (int32_t)wml_value_elem(e->sum) || t->dims.at[rank - 1] != e->hidden) return false;
    return (rank < 3 || t->dims.at[0] == 1) && (rank < 2 || t->dims.at[rank - 2] == 1 || t->dims.at[rank - 2] == length);
}

/* The ids of the largest table, those that are the same for the whole batch last. */
static void find_words(struct embedding *e, struct wml_value *const *term, size_t n)
{
    struct lookup l;
    int64_t most = -1;
    bool best_is_wide = false;
    for (size_t i = 0; i < n; i++) {
        if (!is_lookup(e, term[i], &l) || wml_value_rank(l.ids) != 2 || wml_constant_of(l.ids)) continue;
        bool is_wide = wml_value_axis(l.ids, 0).size != 1;
        if (is_wide < best_is_wide || (is_wide == best_is_wide && l.rows <= most)) continue;
        e->like = l.ids;
        most = l.rows;
        best_is_wide = is_wide;
    }
}

static bool classify(struct embedding *e)
{
    struct wml_value *term[MAX_TERMS];
    struct lookup l;
    size_t n = 0;
    if (!collect(e->sum, true, term, &n) || n < 2) return false;
    find_words(e, term, n);
    if (!e->like) return false; /* some other sum */
    for (size_t i = 0; i < n; i++) {
        if (is_constant_term(e, term[i])) {
            e->constant[e->n_constants++] = term[i];
            continue;
        }
        if (!is_lookup(e, term[i], &l)) return refuse(e, "a term of the sum is no embedding");
        if (is_wide(e, l.ids)) {
            if (e->n_by_ids == 3) return refuse(e, "more than three embeddings");
            e->by_ids[e->n_by_ids++] = l;
            continue;
        }
        if (e->n_positions++ || !is_position(e, &l)) return refuse(e, "the ids of positions have not the length of the words, or there are two of them");
        e->position = l;
    }
    return true;
}

/* Words have the largest table, segments the smallest. What is by ids and neither is positions. */
static bool assign(struct embedding *e, struct lookup *word, struct lookup *segment)
{
    size_t n = e->n_by_ids;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (e->by_ids[k].rows > e->by_ids[i].rows) {
                struct lookup t = e->by_ids[i];
                e->by_ids[i] = e->by_ids[k];
                e->by_ids[k] = t;
            }
    bool has_position = e->n_positions || e->n_constants;
    *word = e->by_ids[0];
    *segment = (struct lookup){0};
    if (e->n_positions && e->n_constants) return refuse(e, "two terms for positions");
    if (has_position ? n > 2 : n < 2) return refuse(e, has_position ? "more than three embeddings" : "no embedding of positions");
    if (!has_position) e->position = e->by_ids[1];
    if (n == 3 || (has_position && n == 2)) *segment = e->by_ids[n - 1];
    return true;
}

/* The constant terms as a table of one row per position; NULL: they cannot be read. */
static struct wml_value *constant_table(struct embedding *e)
{
    int64_t dims[2] = {wml_value_axis(e->like, 1).size, e->hidden};
    size_t count = (size_t)(dims[0] * dims[1]), n, width = wml_dtype_info((int)wml_value_elem(e->sum))->bits / 8;
    const struct wml_tensor *t = wml_constant_of(e->constant[0]);
    if (e->n_constants == 1 && t->dims.len > 1 && t->dims.at[t->dims.len - 2] == dims[0]) return wml_reshaped_constant(e->r, e->constant[0], 2, dims);
    if (dims[0] > MAX_BYTES / dims[1] || count * sizeof(double) > MAX_BYTES) return NULL;
    double *total = WML_NEW_ARRAY(e->r->scratch, double, count), *v;
    for (size_t i = 0; i < e->n_constants; i++) {
        if (!wml_tensor_doubles(e->r->model, wml_constant_of(e->constant[i]), &v, &n, NULL) || (n != count && n != (size_t)e->hidden)) return NULL;
        for (size_t k = 0; k < count; k++) total[k] += v[k % n];
    }
    unsigned char *bytes = WML_NEW_ARRAY(e->r->scratch, unsigned char, count * width);
    for (size_t k = 0; k < count; k++) {
        wml_dtype_store((int)wml_value_elem(e->sum), bytes, k, total[k]);
        if (!isfinite(wml_dtype_load((int)wml_value_elem(e->sum), bytes, k))) return NULL;
    }
    return wml_graph_add_init(e->norm->graph, WML_STR("position_embedding"),
                              wml_tensor_copy(e->r->model, wml_value_elem(e->sum), 2, dims, bytes, count * width, NULL));
}

static struct wml_value *node(const struct embedding *e, const char *op, const char *name, struct wml_value *a, struct wml_value *b)
{
    struct wml_node *n = wml_node_new(e->norm, "", op);
    n->name = wml_model_unique(e->r->model, wml_str(name));
    wml_node_set_input(n, 0, a);
    if (b) wml_node_set_input(n, 1, b);
    return wml_node_add_output(n, wml_str(name));
}

/* The ids as int32, of rank 2. */
static struct wml_value *as_ids(const struct embedding *e, struct wml_value *v)
{
    static const int64_t front = 0;
    if (wml_value_rank(v) == 1) {
        bool is_input = wml_model_opset(e->r->model, "") >= 13;
        struct wml_value *axes = is_input ? wml_graph_add_init(e->norm->graph, WML_STR("axes"), wml_tensor_i64s(e->r->model, 1, &front)) : NULL;
        enum wml_dtype elem = wml_value_elem(v);
        v = node(e, "Unsqueeze", "position_ids", v, axes);
        if (!is_input) wml_attr_set_ints(v->def, "axes", 1, &front);
        if (elem == WML_I32) return v;
    }
    if (wml_value_elem(v) == WML_I32) return v;
    if (v->def && wml_node_is(v->def, "Cast") && wml_node_in(v->def, 0) && wml_value_elem(v->def->in[0]) == WML_I32) return v->def->in[0];
    v = node(e, "Cast", "ids", v, NULL);
    wml_attr_set_int(v->def, "to", WML_I32);
    return v;
}

static struct wml_value *zero_row(const struct embedding *e)
{
    size_t bytes = (size_t)e->hidden * (wml_dtype_info((int)wml_value_elem(e->sum))->bits / 8);
    unsigned char *zeros = WML_NEW_ARRAY(e->r->scratch, unsigned char, bytes + 1);
    return wml_graph_add_init(e->norm->graph, WML_STR("layer_norm_bias"),
                              wml_tensor_copy(e->r->model, wml_value_elem(e->sum), 1, &e->hidden, zeros, bytes, NULL));
}

static void replace(struct embedding *e, const struct lookup *word, const struct lookup *segment, struct wml_value *positions)
{
    struct wml_node *old = e->norm, *n = wml_node_new(old, "com.microsoft", "EmbedLayerNormalization");
    wml_pass_use_contrib(e->r);
    n->name = old->name;
    old->name = WML_STR("");
    n->metadata = old->metadata;
    wml_attr_set_float(n, "epsilon", wml_attr_float(old, "epsilon", 1e-5f));
    /* In the order in which new nodes are made, before n. */
    e->norm = n;
    wml_node_set_input(n, 0, as_ids(e, word->ids));
    if (segment->ids) wml_node_set_input(n, 1, as_ids(e, segment->ids));
    wml_node_set_input(n, 2, word->table);
    wml_node_set_input(n, 3, positions);
    if (segment->ids) wml_node_set_input(n, 4, segment->table);
    wml_node_set_input(n, 5, old->in[1]);
    wml_node_set_input(n, 6, wml_node_in(old, 2) ? old->in[2] : zero_row(e));
    if (!e->n_constants && !e->position.in_order) wml_node_set_input(n, 8, as_ids(e, e->position.ids));
    wml_pass_applied(e->r, old->op_type, n->name);
    wml_node_take_output(n, 0, old->out[0]);
    wml_node_add_output(n, WML_STR("mask_index")); /* nobody reads it, and yet ORT refuses the operator without */
    struct wml_node *add = e->sum->def;
    wml_node_remove(old);
    if (!wml_value_is_unused(e->sum)) wml_node_take_output(n, 2, e->sum);
    wml_prune(add);
}

static void visit(void *arg, struct wml_node *norm)
{
    struct wml_pass_run *r = arg;
    struct embedding e = {.r = r, .norm = norm, .sum = wml_node_in(norm, 0)};
    struct lookup word, segment;
    if (!e.sum || !e.sum->def || !wml_node_is(e.sum->def, "Add") || e.sum->def->graph != norm->graph || wml_value_rank(e.sum) != 3) return;
    enum wml_dtype dtype = wml_value_elem(e.sum);
    int64_t axis = wml_attr_int(norm, "axis", -1);
    e.hidden = wml_value_axis(e.sum, 2).size;
    if (e.hidden <= 0 || !classify(&e)) return;
    if (dtype != WML_F32 && dtype != WML_F16) refuse(&e, "neither float nor half float");
    else if (axis != -1 && axis != 2) refuse(&e, "LayerNormalization is not over the last axis alone");
    else if (!is_row(&e, wml_node_in(norm, 1)) || (wml_node_in(norm, 2) && !is_row(&e, norm->in[2]))) refuse(&e, "scale or bias are no constants of the hidden size");
    else if ((wml_node_out(norm, 1) && !wml_value_is_unused(norm->out[1])) || (wml_node_out(norm, 2) && !wml_value_is_unused(norm->out[2])))
        refuse(&e, "its mean or deviation is read");
    else if (assign(&e, &word, &segment)) {
        struct wml_value *positions = e.n_constants ? constant_table(&e) : e.position.table;
        if (positions) replace(&e, &word, &segment, positions);
        else refuse(&e, "the constant terms cannot be added");
    }
}

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    wml_sweep(r);
    return wml_pass_each_of(r, "LayerNormalization", visit, r, err);
}

const struct wml_pass wml_pass_embed_layer_norm_fusion = {
    .name = "embed-layer-norm-fusion", .category = "layer_norm", .pipe = "ort_fusion", .ort_name = "EmbedLayerNormFusion", .level = 2,
    .makes = WML_MAKES_CONTRIB, .needs = "layer-norm-fusion", .run = run,
    .summary = "Turn embeddings, their sum and LayerNormalization into EmbedLayerNormalization of com.microsoft",
};
