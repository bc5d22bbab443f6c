/* The mask of an attention as one value to add. Operators want its last two axes written out, which exporters leave
 * to broadcasting: Expand makes [batch, 1, 1, keys] a [batch, 1, length, keys], once for all layers that share it. */
#include "passes/attention_form.h"

struct building {
    const struct wml_attention *a;
    struct wml_node *at;
    int64_t rank; /* of the whole; the last axes count */
    struct wml_value *source[4]; /* of the product's axis i: a part that is as long; NULL: every part has 1 there */
    size_t source_axis[4];
};

/* The axes of one part, right-aligned, are 1 or those of the product. */
static bool add_part(struct building *b, struct wml_value *v)
{
    int64_t rank = wml_value_rank(v);
    if (rank < 0 || rank > 4) return false;
    if (rank > b->rank) b->rank = rank;
    for (int64_t i = 0; i < rank; i++) {
        size_t axis = (size_t)(i + 4 - rank);
        bool same = wml_attention_same_axis(b->a, v, (size_t)i, axis);
        if (!same && wml_value_axis(v, (size_t)i).size != 1) return false;
        if (!same) continue;
        b->source[axis] = v;
        b->source_axis[axis] = (size_t)i;
    }
    return true;
}

static struct wml_value *node(struct building *b, const char *op, const char *name, size_t n_in, struct wml_value *const *in)
{
    struct wml_node *n = wml_node_new(b->at, "", op);
    n->name = wml_model_unique(b->a->r->model, wml_str(name));
    for (size_t i = 0; i < n_in; i++) wml_node_set_input(n, i, in[i]);
    return wml_node_add_output(n, wml_str(name));
}

static struct wml_value *ints(struct building *b, const char *name, size_t n, const int64_t *v)
{
    return wml_graph_add_init(b->at->graph, wml_str(name), wml_tensor_i64s(b->a->r->model, n, v));
}

/* All steps in one value. */
static struct wml_value *combine(struct building *b)
{
    const struct wml_attention *a = b->a;
    struct wml_model *m = a->r->model;
    struct wml_value *whole = NULL;
    for (size_t i = 0; i < a->n_mask; i++) {
        const struct wml_mask_step *s = &a->mask[i];
        if (s->kind == WML_MASK_ADD) {
            struct wml_value *in[] = {whole, s->value};
            whole = whole ? node(b, "Add", "attention_mask", 2, in) : s->value;
            continue;
        }
        if (!whole) {
            unsigned char zero[8] = {0};
            enum wml_dtype dtype = wml_value_elem(s->fill);
            whole = wml_graph_add_init(b->at->graph, WML_STR("attention_kept"),
                                       wml_tensor_copy(m, dtype, 0, NULL, zero, wml_dtype_info(dtype)->bits / 8, NULL));
        }
        struct wml_value *in[] = {s->value, s->kind == WML_MASK_KEEP ? whole : s->fill, s->kind == WML_MASK_KEEP ? s->fill : whole};
        whole = node(b, "Where", "attention_mask", 3, in);
    }
    return whole;
}

/* The length of the product's axis as [1]: from a part of the mask when it has an axis of that length, since layers
 * share masks and not their operands. */
static struct wml_value *length(struct building *b, size_t axis)
{
    const struct wml_attention *a = b->a;
    struct wml_value *from = a->product;
    int64_t i = (int64_t)axis;
    for (size_t k = 0; k < 4; k++)
        if (b->source[k] && wml_attention_same_axis(a, b->source[k], b->source_axis[k], axis)) {
            from = b->source[k];
            i = (int64_t)b->source_axis[k];
        }
    if (from == a->product && axis == 2) from = a->q.flat ? a->q.flat : a->q.bnsh, i = a->q.flat ? 1 : 2;
    else if (from == a->product) from = a->k.flat ? a->k.flat : a->k.bnsh ? a->k.bnsh : a->k.bsnh, i = from == a->k.bnsh ? 2 : 1;
    struct wml_value *shape = node(b, "Shape", "attention_shape", 1, &from);
    if (wml_model_opset(a->r->model, "") >= 15) {
        wml_attr_set_int(shape->def, "start", i);
        wml_attr_set_int(shape->def, "end", i + 1);
        return shape;
    }
    struct wml_value *in[] = {shape, ints(b, "axis", 1, &i)};
    return node(b, "Gather", "attention_length", 2, in);
}

/* Axes 2 and 3 as long as those of the product. */
static struct wml_value *expand(struct building *b, struct wml_value *mask)
{
    static const int64_t one = 1;
    struct wml_value *part[4], *in[2] = {mask, NULL};
    int64_t dim[4] = {1, 1, 1, 1};
    bool open = false;
    for (size_t i = 2; i < 4; i++) {
        if (!b->source[i]) dim[i] = wml_value_axis(b->a->product, i).size;
        open = open || dim[i] < 0;
    }
    if (!open) in[1] = ints(b, "attention_mask_shape", 4, dim);
    for (size_t i = 0; open && i < 4; i++) part[i] = dim[i] < 0 ? length(b, i) : ints(b, "one", 1, dim[i] > 0 ? &dim[i] : &one);
    if (open) {
        in[1] = node(b, "Concat", "attention_mask_shape", 4, part);
        wml_attr_set_int(in[1]->def, "axis", 0);
    }
    return node(b, "Expand", "attention_mask", 2, in);
}

/* Ones in front, up to rank 4. */
static struct wml_value *raise(struct building *b, struct wml_value *mask)
{
    static const int64_t axes[] = {0, 1};
    size_t more = (size_t)(4 - b->rank);
    const struct wml_tensor *t = wml_constant_of(mask);
    if (t) {
        int64_t dim[4] = {1, 1, 1, 1};
        for (size_t i = 0; i < t->dims.len; i++) dim[more + i] = t->dims.at[i];
        return wml_reshaped_constant(b->a->r, mask, 4, dim);
    }
    bool is_input = wml_model_opset(b->a->r->model, "") >= 13;
    struct wml_value *in[] = {mask, is_input ? ints(b, "axes", more, axes) : NULL};
    struct wml_value *v = node(b, "Unsqueeze", "attention_mask", is_input ? 2 : 1, in);
    if (!is_input) wml_attr_set_ints(v->def, "axes", more, axes);
    return v;
}

static bool add_parts(struct building *b)
{
    for (size_t i = 0; i < b->a->n_mask; i++)
        if (!b->a->product || !add_part(b, b->a->mask[i].value)) return false;
    return true;
}

bool wml_attention_mask_fits(const struct wml_attention *a)
{
    struct building b = {.a = a};
    if (add_parts(&b)) return true;
    wml_pass_refuse(a->r, a->softmax, "the axes of the mask are not known to be 1 or those of the product");
    return false;
}

struct wml_value *wml_attention_mask(const struct wml_attention *a, struct wml_node *at, bool full)
{
    struct building b = {.a = a, .at = at};
    if (!a->n_mask || !add_parts(&b)) return NULL;
    struct wml_value *mask = combine(&b);
    bool is_short = false;
    for (size_t i = 2; i < 4; i++) is_short = is_short || (!b.source[i] && wml_value_axis(a->product, i).size != 1);
    if (is_short || b.rank < 2) return expand(&b, mask);
    return full && b.rank < 4 ? raise(&b, mask) : mask;
}
