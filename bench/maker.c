/* bench/maker.c - values and single nodes of the models that are written for measuring. */
#include "maker.h"

WML_NORETURN void maker_give_up(const struct wml_err *err)
{
    fprintf(stderr, "make_model: %s\n", err->msg);
    exit(1);
}

struct wml_str maker_name(struct maker *k, const char *stem)
{
    return wml_arena_fmt(&k->m->arena, "%s_%d", stem, k->serial++);
}

struct wml_value *maker_weight(struct maker *k, const char *stem, size_t rank, const int64_t *dims, float scale,
                               float offset)
{
    struct wml_err err = {0};
    size_t n = 1;
    for (size_t i = 0; i < rank; i++) n *= (size_t)dims[i];
    float *data = malloc(n * sizeof *data);
    if (!data) abort();
    for (size_t i = 0; i < n; i++) {
        /* uniform with the deviation of a normal: much faster, and nobody looks at the values */
        double u = (double)(int64_t)wml_rng_u64(&k->rng) * 0x1p-63;
        data[i] = offset + scale * (float)u * 1.7320508f;
    }
    struct wml_tensor *t = wml_tensor_own(k->m, WML_F32, rank, dims, data, n * sizeof *data, &err);
    if (!t) maker_give_up(&err);
    return wml_graph_add_init(k->g, maker_name(k, stem), t);
}

static struct wml_value *constant(struct maker *k, struct wml_tensor *t)
{
    struct wml_node *n = wml_graph_append(k->g, "", "Constant");
    n->name = maker_name(k, "Constant");
    wml_attr_set_tensor(n, "value", t);
    return wml_node_add_output(n, maker_name(k, "c"));
}

struct wml_value *maker_scalar(struct maker *k, float v)
{
    return constant(k, wml_tensor_f32(k->m, v));
}

struct wml_value *maker_index(struct maker *k, int64_t v)
{
    struct wml_err err = {0};
    int64_t *data = malloc(sizeof *data);
    if (!data) abort();
    *data = v;
    struct wml_tensor *t = wml_tensor_own(k->m, WML_I64, 0, NULL, data, sizeof *data, &err);
    if (!t) maker_give_up(&err);
    return constant(k, t);
}

struct wml_value *maker_ints(struct maker *k, size_t n, const int64_t *v)
{
    return constant(k, wml_tensor_i64s(k->m, n, v));
}

struct wml_value *maker_op(struct maker *k, const char *type, struct wml_value *const *in)
{
    struct wml_node *n = wml_graph_append(k->g, "", type);
    n->name = maker_name(k, type);
    for (; *in; in++) wml_node_add_input(n, *in);
    return wml_node_add_output(n, maker_name(k, "v"));
}

void maker_output(struct maker *k, struct wml_value *v, const char *name, size_t rank, const struct wml_axis *axes)
{
    wml_value_rename(v, wml_str(name));
    wml_value_set_type(v, wml_type_tensor(k->m, WML_F32, rank, axes));
    wml_graph_add_output(k->g, v);
}
