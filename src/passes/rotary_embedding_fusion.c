/* Rotary position embedding (Su et al.: RoFormer, 2021) as decoders write it, over [batch, heads, length, size]:
 *
 *     x * cos + concat(-x[size/2:], x[:size/2]) * sin          tables of the whole size, both halves equal
 *     concat(x1 * cos - x2 * sin, x2 * cos + x1 * sin)         tables of half the size
 *
 * also over the first columns only, the others passed on by a Concat. It becomes ONNX's RotaryEmbedding (opset 23),
 * which reads the rows of the tables as they are; when asked for below that, com.microsoft's, which picks rows of a
 * table: those the model gathers, or else the rows themselves, numbered. */
#include "passes/doubled.h"
#include "passes/pattern.h"
#include "passes/slice_info.h"

struct rotary {
    struct wml_value *x;         /* [batch, heads, length, size] */
    int64_t width, rotated;      /* size, and how much of it is rotated */
    struct wml_value *cos, *sin; /* as found */
    bool doubled;                /* of the rotated size, else half of it */
};

static bool same_axis(const struct wml_value *a, size_t i, const struct wml_value *b, size_t j)
{
    struct wml_axis x = wml_value_axis(a, i), y = wml_value_axis(b, j);
    return x.size >= 0 ? x.size == y.size : y.size < 0 && x.symbol.len && wml_str_eq(x.symbol, y.symbol);
}

/* cos or sin: one row for each position, the same for every head. */
static bool is_table(struct wml_match *m, const struct rotary *t, struct wml_value *v)
{
    int64_t rank = wml_value_rank(v), columns = t->doubled ? t->rotated : t->rotated / 2;
    if (rank < 2 || rank > 4 || wml_value_elem(v) != wml_value_elem(t->x)) return wml_match_refuse(m, "rank or type of a table");
    if (wml_value_axis(v, (size_t)rank - 1).size != columns) return wml_match_refuse(m, "a table has not the size of a head");
    if (!same_axis(v, (size_t)rank - 2, t->x, 2)) return wml_match_refuse(m, "a table has not one row for each position");
    if (rank > 2 && wml_value_axis(v, (size_t)rank - 3).size != 1) return wml_match_refuse(m, "a table differs between heads");
    if (rank == 4 && wml_value_axis(v, 0).size != 1 && !same_axis(v, 0, t->x, 0)) return wml_match_refuse(m, "a table has another batch");
    if (t->doubled && !wml_is_doubled(m->r, v)) return wml_match_refuse(m, "the halves of a table may differ");
    return true;
}

static bool one_batch(const struct wml_value *table)
{
    return wml_value_rank(table) < 4 || wml_value_axis(table, 0).size == 1;
}

/* -- the tables as the operators want them -- */

static struct wml_value *typed(struct wml_match *m, struct wml_value *v, enum wml_dtype dtype, size_t rank, const struct wml_axis *axis)
{
    wml_value_set_type(v, wml_type_tensor(m->r->model, dtype, (int64_t)rank, axis));
    return v;
}

/* The input of an Unsqueeze by this one axis. */
static struct wml_value *before_unsqueeze(struct wml_match *m, struct wml_value *v, int64_t axis)
{
    const int64_t *axes;
    size_t len;
    int64_t rank = wml_value_rank(v);
    if (!v->def || !wml_node_is(v->def, "Unsqueeze") || !wml_axes_of(m->r, v->def, &axes, &len) || len != 1) return NULL;
    return axes[0] == axis || axes[0] + rank == axis ? v->def->in[0] : NULL;
}

/* [batch, length, size/2]. */
static struct wml_value *rows(struct wml_match *m, const struct rotary *t, struct wml_value *table)
{
    struct wml_value *v = t->doubled ? wml_half_of(m->r, table) : table, *in[2], *short_cut;
    size_t rank = (size_t)wml_value_rank(v);
    struct wml_axis axis[3] = {{.size = 1}, wml_value_axis(v, rank - 2), wml_value_axis(v, rank - 1)};
    int64_t at = 1, dims[3] = {1, axis[1].size, axis[2].size};
    if (rank == 3) return v;
    if (rank == 4) axis[0] = wml_value_axis(v, 0);
    dims[0] = axis[0].size;
    if (wml_constant_of(v)) return wml_reshaped_constant(m->r, v, 3, dims);
    if (rank == 4 && (short_cut = before_unsqueeze(m, v, 1))) return short_cut;
    if (rank == 2) at = 0;
    in[0] = v, in[1] = wml_match_ints(m, "rotary_axis", 1, &at);
    return typed(m, wml_match_add(m, rank == 2 ? "Unsqueeze" : "Squeeze", "rotary_rows", 2, in), wml_value_elem(v), 3, axis);
}

/* Rows that are gathered: the whole table and which rows. */
static bool gathered(const struct rotary *t, struct wml_value *rows, struct wml_value **table, struct wml_value **ids)
{
    const struct wml_node *n = rows->def;
    if (!n || !wml_node_is(n, "Gather") || wml_attr_int(n, "axis", 0) != 0 || wml_value_rank(n->in[0]) != 2) return false;
    *table = n->in[0], *ids = n->in[1];
    if (wml_value_elem(*ids) != WML_I64 || wml_value_rank(*ids) != 2 || !same_axis(*ids, 0, t->x, 0) || !same_axis(*ids, 1, t->x, 2)) return false;
    return true;
}

/* rows as a table [batch * length, size/2]. */
static struct wml_value *as_table(struct wml_match *m, struct wml_value *rows)
{
    struct wml_axis axis[2] = {{.size = -1}, wml_value_axis(rows, 2)};
    int64_t to[2] = {-1, axis[1].size}, dims[2] = {wml_value_axis(rows, 1).size, axis[1].size};
    struct wml_value *in[2] = {rows};
    if (wml_value_axis(rows, 0).size == 1) axis[0] = wml_value_axis(rows, 1);
    if (wml_constant_of(rows) && wml_value_axis(rows, 0).size == 1) return wml_reshaped_constant(m->r, rows, 2, dims);
    in[1] = wml_match_ints(m, "rotary_shape", 2, to);
    return typed(m, wml_match_add(m, "Reshape", "rotary_table", 2, in), wml_value_elem(rows), 2, axis);
}

/* The numbers of those rows: from 0 on for one batch, 0, 1, 2, ... as [batch, length] for more. */
static struct wml_value *numbers(struct wml_match *m, struct wml_value *rows)
{
    int64_t zero = 0;
    struct wml_value *shape, *in[3];
    struct wml_axis axis[2] = {wml_value_axis(rows, 0), wml_value_axis(rows, 1)};
    if (axis[0].size == 1) return wml_match_ints(m, "rotary_first", 1, &zero);
    shape = wml_match_add(m, "Shape", "rotary_shape", 1, &rows);
    wml_attr_set_int(shape->def, "end", 2);
    in[0] = shape;
    struct wml_value *count = wml_match_add(m, "ReduceProd", "rotary_count", 1, in);
    wml_attr_set_int(count->def, "keepdims", 0);
    in[0] = wml_match_scalar(m, "rotary_first", WML_I64, 0);
    in[1] = count;
    in[2] = wml_match_scalar(m, "rotary_step", WML_I64, 1);
    in[0] = wml_match_add(m, "Range", "rotary_ids", 3, in);
    in[1] = shape;
    return typed(m, wml_match_add(m, "Reshape", "rotary_ids", 2, in), WML_I64, 2, axis);
}

/* -- the rewrite -- */

static bool to_onnx(struct wml_match *m, const struct rotary *t)
{
    struct wml_value *in[3] = {t->x};
    in[1] = rows(m, t, t->cos);
    in[2] = rows(m, t, t->sin);
    struct wml_node *n = wml_match_replace(m, "", "RotaryEmbedding", 3, in);
    if (t->rotated != t->width) wml_attr_set_int(n, "rotary_embedding_dim", t->rotated);
    return true;
}

static bool to_microsoft(struct wml_match *m, const struct rotary *t)
{
    struct wml_value *in[4] = {t->x}, *cos = rows(m, t, t->cos), *sin = rows(m, t, t->sin), *other = NULL;
    if (!gathered(t, cos, &in[2], &in[1]) || !gathered(t, sin, &in[3], &other) || other != in[1]) {
        in[1] = numbers(m, cos);
        in[2] = as_table(m, cos);
        in[3] = as_table(m, sin);
    }
    struct wml_node *n = wml_match_replace(m, "com.microsoft", "RotaryEmbedding", 4, in);
    if (t->rotated == t->width) return true;
    wml_attr_set_int(n, "num_heads", wml_value_axis(t->x, 1).size);
    wml_attr_set_int(n, "rotary_embedding_dim", t->rotated);
    return true;
}

static bool rewrite(struct wml_match *m, struct rotary *t)
{
    bool standard = wml_model_opset(m->r->model, "") >= 23;
    if (wml_value_elem(t->x) != WML_F32 && wml_value_elem(t->x) != WML_F16) return wml_match_refuse(m, "neither float nor half float");
    if (!is_table(m, t, t->cos) || !is_table(m, t, t->sin)) return false;
    if (one_batch(t->cos) != one_batch(t->sin)) return wml_match_refuse(m, "the tables have different batches");
    bool batches = !one_batch(t->cos) || wml_value_axis(t->x, 0).size == 1;
    if (standard && batches) return to_onnx(m, t);
    if (!m->r->asked) return wml_match_refuse(m, standard ? "one table for all of the batch" : "standard RotaryEmbedding exists from opset 23");
    if (t->rotated != t->width && wml_value_axis(t->x, 1).size < 0) return wml_match_refuse(m, "the number of heads is not known");
    if (wml_model_opset(m->r->model, "") < 15 && !one_batch(t->cos)) return wml_match_refuse(m, "a part of a shape needs opset 15");
    return to_microsoft(m, t);
}

/* a and b are the first and the second half of x (or of the piece of something that x is). */
static bool are_halves(struct wml_match *m, struct wml_value *a, struct wml_value *b, struct wml_value *x)
{
    struct wml_piece pa, pb, px;
    if (wml_value_rank(x) != 4 || wml_value_rank(a) != 4 || wml_value_rank(b) != 4) return false;
    if (!wml_piece_of(m->r, x, 3, &px) || !wml_piece_of(m->r, a, 3, &pa) || !wml_piece_of(m->r, b, 3, &pb)) return false;
    return pa.of == px.of && pb.of == px.of && pa.start == px.start && pb.start == px.start + pa.count && pa.count == pb.count &&
           pa.count + pb.count == px.count;
}

/* v, or what v was cut from, that is just these columns of p.of; NULL: no such value. */
static struct wml_value *columns(struct wml_match *m, struct wml_value *v, const struct wml_piece *p)
{
    struct wml_piece q;
    while (wml_value_rank(v) == 4 && wml_piece_of(m->r, v, 3, &q) && q.of == p->of) {
        if (q.start == p->start && q.count == p->count) return v;
        if (v == p->of || q.count > p->count) return NULL;
        v = wml_node_in(v->def, 0);
    }
    return NULL;
}

/* What a and b are the halves of; NULL: of no one value. */
static struct wml_value *whole_of(struct wml_match *m, struct wml_value *a, struct wml_value *b)
{
    struct wml_piece p;
    if (wml_value_rank(a) != 4 || !wml_piece_of(m->r, a, 3, &p)) return NULL;
    p.count *= 2;
    struct wml_value *x = columns(m, a, &p);
    return x && are_halves(m, a, b, x) ? x : NULL;
}

static bool last_axis(const struct wml_node *n)
{
    int64_t axis = wml_attr_int(n, "axis", 0);
    return axis == -1 || axis == 3;
}

/* x is the first columns of something, of which `rest` has all the others: rotary over a part of it. */
static bool widen(struct wml_match *m, struct rotary *t, struct wml_value *rest)
{
    struct wml_piece px, pr;
    if (!wml_piece_of(m->r, t->x, 3, &px) || wml_value_rank(rest) != 4 || !wml_piece_of(m->r, rest, 3, &pr)) return false;
    if (pr.of != px.of || pr.start != px.start + px.count) return wml_match_refuse(m, "what is joined is not the rest of the columns");
    px.count += pr.count;
    struct wml_value *x = columns(m, t->x, &px);
    if (!x) return wml_match_refuse(m, "no value has the columns that are joined");
    t->x = x;
    t->width = px.count;
    return true;
}

enum { PARTIAL = 1, HALF_TABLES = 2 };

static bool whole_tables(struct wml_match *m)
{
    struct rotary t = {.x = wml_match_value(m, "x"), .cos = wml_match_value(m, "cos"), .sin = wml_match_value(m, "sin"), .doubled = true};
    struct wml_value *a = wml_match_value(m, "a"), *b = wml_match_value(m, "b");
    if (!last_axis(wml_match_node(m, "turned"))) return wml_match_refuse(m, "halves of another axis");
    if (!are_halves(m, a, b, t.x)) {
        struct wml_value *x = t.x; /* the product has no order */
        t.x = t.cos, t.cos = x;
        if (!are_halves(m, a, b, t.x)) return wml_match_refuse(m, "not the halves of one value of rank 4");
    }
    t.width = t.rotated = wml_value_axis(t.x, 3).size;
    if (m->rule->variant & PARTIAL && (!last_axis(m->root) || !widen(m, &t, wml_match_value(m, "rest")))) return false;
    return rewrite(m, &t);
}

static bool half_tables(struct wml_match *m)
{
    struct rotary t = {.cos = wml_match_value(m, "cos"), .sin = wml_match_value(m, "sin")};
    struct wml_value *a = wml_match_value(m, "a"), *b = wml_match_value(m, "b");
    if (!last_axis(m->root)) return wml_match_refuse(m, "joined along another axis");
    t.x = whole_of(m, a, b);
    if (!t.x) { /* with data and tables exchanged the products are the same */
        t.x = whole_of(m, t.cos, t.sin);
        if (!t.x) return wml_match_refuse(m, "not the halves of one value of rank 4");
        t.cos = a, t.sin = b;
    }
    t.width = t.rotated = wml_value_axis(t.x, 3).size;
    if (m->rule->variant & PARTIAL && !widen(m, &t, wml_match_value(m, "rest"))) return false;
    return rewrite(m, &t);
}

#define WHOLE "Add(Mul(x, cos), Mul(turned:Concat(Neg(b), a), sin))"
#define FIRST "Sub(Mul(a, cos), Mul(b, sin))"
#define SECOND "Add(Mul(b, cos), Mul(a, sin))"
static const struct wml_rule partial[] = {
    {"Concat(" WHOLE ", rest)", whole_tables, PARTIAL, 0},
    {"Concat(" FIRST ", " SECOND ", rest)", half_tables, PARTIAL, 0},
};
static const struct wml_rule whole[] = {
    {WHOLE, whole_tables, 0, 0},
    {"Concat(" FIRST ", " SECOND ")", half_tables, 0, 0},
};

static bool run(struct wml_pass_run *r, struct wml_err *err)
{
    wml_doubled_begin(r);
    return wml_rules_run(r, partial, WML_COUNT(partial), err) && wml_rules_run(r, whole, WML_COUNT(whole), err);
}

const struct wml_pass wml_pass_rotary_embedding_fusion = {
    .name = "rotary-embedding-fusion", .category = "attention", .on = true, .wider = true, .makes = WML_MAKES_CONTRIB, .run = run,
    .summary = "Turn rotary embeddings written out into RotaryEmbedding from opset 23, into that of com.microsoft when asked for",
};
