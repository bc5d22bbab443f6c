/* The frame of a graph: its versions, its inputs, a number of steps, its outputs. */
#include "gen.h"

#include <math.h>

const struct gen_value gen_none;

int64_t gen_int(struct gen *g, int64_t low, int64_t high)
{
    return wml_rng_range(&g->rng, low, high + 1);
}

bool gen_chance(struct gen *g, int percent)
{
    return gen_int(g, 0, 99) < percent;
}

double gen_real(struct gen *g, double low, double high)
{
    return low + (high - low) * wml_rng_unit(&g->rng);
}

int64_t gen_dim(struct gen *g)
{
    static const int64_t size[] = {1, 2, 3, 4, 5, 7, 8, 1, 2, 3, 4};
    if (g->odd_sizes && gen_chance(g, 8)) return 0;
    if (g->batch && gen_chance(g, 10)) return g->batch;
    return size[gen_int(g, 0, WML_COUNT(size) - 1)];
}

/* --- one step --- */

static const struct {
    const struct gen_op *op;
    const size_t *n;
    int weight;
} family[] = {{gen_math_ops, &n_gen_math_ops, 32},  {gen_shape_ops, &n_gen_shape_ops, 26}, {gen_net_ops, &n_gen_net_ops, 12},
              {gen_form_ops, &n_gen_form_ops, 20}, {gen_flow_ops, &n_gen_flow_ops, 5},    {gen_quant_ops, &n_gen_quant_ops, 6},
              {gen_join_ops, &n_gen_join_ops, 14}, {gen_rare_ops, &n_gen_rare_ops, 10},   {gen_attention_ops, &n_gen_attention_ops, 4},
              {gen_encoder_ops, &n_gen_encoder_ops, 4}};

static const struct gen_op *choose(struct gen *g)
{
    int64_t all = 0, at;
    size_t f = 0;
    for (size_t i = 0; i < WML_COUNT(family); i++) all += family[i].weight;
    for (at = gen_int(g, 0, all - 1); at >= family[f].weight; f++) at -= family[f].weight;
    all = 0;
    for (size_t i = 0; i < *family[f].n; i++) all += family[f].op[i].weight;
    size_t i = 0;
    for (at = gen_int(g, 0, all - 1); at >= family[f].op[i].weight; i++) at -= family[f].op[i].weight;
    return &family[f].op[i];
}

bool gen_step(struct gen *g)
{
    if (g->n + 24 > GEN_POOL) return false;
    const struct gen_op *op = choose(g);
    return op->since <= g->opset && op->make(g);
}

/* --- the frame --- */

static void versions(struct gen *g)
{
    static const int64_t opset[] = {11, 12, 13, 14, 15, 16, 17, 17, 17, 18, 18, 19, 20, 21, 21, 22, 23};
    static const int64_t ir[] = {8, 8, 7, 6, 4, 9, 10};
    g->opset = opset[gen_int(g, 0, WML_COUNT(opset) - 1)];
    wml_model_set_opset(g->m, "", g->opset);
    g->m->ir_version = g->opset > 21 ? 11 : g->opset > 20 ? 10 : g->opset > 18 ? 9 : ir[gen_int(g, 0, WML_COUNT(ir) - 1)];
    g->m->msg.has |= 1u << 1;
}

static void first_inputs(struct gen *g)
{
    static const enum wml_dtype type[] = {WML_F32, WML_F32, WML_F32, WML_F32, WML_I64, WML_I32, WML_BOOL, WML_F64};
    int64_t n = gen_int(g, 1, 3);
    for (int64_t i = 0; i < n; i++) {
        enum wml_dtype t = i ? type[gen_int(g, 0, WML_COUNT(type) - 1)] : WML_F32;
        size_t rank = (size_t)(gen_chance(g, 70) ? gen_int(g, 2, 4) : gen_int(g, 0, 5));
        int64_t dim[GEN_RANK];
        for (size_t k = 0; k < rank; k++) dim[k] = gen_dim(g);
        gen_source(g, t, rank, dim);
    }
}

/* What is known of a value's sizes is only certain when no input has open ones. */
static void declare(struct gen *g, const struct gen_value *a, bool sizes)
{
    struct wml_axis axis[GEN_RANK];
    bool some = gen_chance(g, 15);
    for (size_t i = 0; i < a->rank; i++) axis[i] = (struct wml_axis){sizes && !(some && gen_chance(g, 50)) ? a->dim[i] : -1, WML_NO_STR};
    wml_value_set_type(a->v, wml_type_tensor(g->m, a->t, (int64_t)a->rank, axis));
}

static void add_outputs(struct gen *g)
{
    bool sizes = !g->batch && gen_chance(g, 80);
    size_t n = 0;
    for (size_t i = g->n; i-- > 0 && n < 10;) {
        const struct gen_value *a = &g->pool[i];
        bool leaf = !a->v->n_uses && a->v->def;
        if (a->v->n_outputs || !(leaf ? gen_chance(g, 85) || !n : gen_chance(g, a->v->def ? 12 : 4))) continue;
        if (!a->v->n_inputs) declare(g, a, sizes);
        wml_graph_add_output(g->m->graph, a->v);
        n++;
    }
    if (n) return;
    struct gen_value a = gen_pick(g, GEN_ANY, 0, GEN_RANK), y;
    y = gen_like(g, GEN_NODE(g, "Identity", &a), &a, a.most);
    declare(g, &y, sizes);
    wml_graph_add_output(g->m->graph, y.v);
}

static void name_nodes(struct gen *g)
{
    size_t i = 0;
    if (gen_chance(g, 40)) return;
    for (struct wml_node *n = g->m->graph->first; n; n = n->next)
        n->name = wml_arena_fmt(&g->m->arena, "node%zu", i++);
}

bool gen_graph(struct gen *g, uint64_t seed, struct wml_err *err)
{
    *g = (struct gen){.rng = {seed * 0x9E3779B97F4A7C15u + 12345}};
    g->m = wml_model_new();
    g->g = g->m->graph;
    g->m->graph->name = WML_STR("random");
    g->odd_sizes = gen_chance(g, 6);
    g->batch = gen_chance(g, 35) ? gen_int(g, 1, 3) : 0;
    versions(g);
    first_inputs(g);
    int64_t steps = gen_chance(g, 90) ? gen_int(g, 2, 14) : gen_int(g, 14, 30);
    for (int64_t i = 0, tries = 0; i < steps && tries < 200; tries++) i += gen_step(g);
    if (!g->batch && gen_chance(g, 30))
        for (size_t i = 0; i < g->n; i++)
            if (g->pool[i].v->def && gen_chance(g, 60)) declare(g, &g->pool[i], true);
    add_outputs(g);
    name_nodes(g);
    return wml_graph_sort(g->m->graph, err);
}

void gen_release(struct gen *g)
{
    wml_model_free(g->m);
    wml_arena_release(&g->arena);
}
