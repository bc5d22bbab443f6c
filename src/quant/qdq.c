/* The method "qdq": static quantisation. Float values get a QuantizeLinear/DequantizeLinear pair, constants become
 * integers, exactly as ONNX Runtime's quantizer does it with every operator selected (docs/differences.md says where not).
 * Nodes of sub-graphs, and what the source quantises already, stay as they are. */
#include "quant/qdq_internal.h"

#include <inttypes.h>

#include "graph/graph.h"
#include "ops/ops.h"

enum { OPSET_FIRST = 11 /* that converters know */ };

static enum wml_dtype type_or_u8(enum wml_dtype t)
{
    return t ? t : WML_U8;
}

static bool is_wide(enum wml_dtype t)
{
    return wml_dtype_info((int)t)->bits != 8;
}

static bool check_types(const struct wml_quant_opts *o, struct wml_err *err)
{
    enum wml_dtype w = type_or_u8(o->weight), a = type_or_u8(o->activation);
    if (!wml_qtype_is_known(w) || !wml_qtype_is_known(a) || wml_dtype_info((int)a)->bits == 4) {
        wml_fail(err, WML_E_USAGE, "weights of %s and activations of %s: not a pair that can be had", wml_dtype_name((int)w), wml_dtype_name((int)a));
        return wml_hint(err, "weights: uint8, int8, uint16, int16, uint4, int4; activations: uint8, int8, uint16, int16");
    }
    if (a == WML_I8 && w == WML_U8) {
        wml_fail(err, WML_E_USAGE, "activations of int8 need weights of int8: ONNX Runtime has no kernels for uint8 weights beside them");
        return wml_hint(err, "add --weight-type int8, or use --activation-type uint8");
    }
    return true;
}

static bool asks_wide(const struct wml_quant_overrides *o)
{
    bool wide = false;
    for (size_t i = 0; o && i < o->tensor.len; i++) {
        for (size_t k = 0; k < o->tensor.at[i].channel.len; k++)
            wide |= o->tensor.at[i].channel.at[k].type && is_wide(o->tensor.at[i].channel.at[k].type);
        wide |= o->tensor.at[i].converts && is_wide(o->tensor.at[i].convert.type);
    }
    for (size_t i = 0; o && i < o->node.len; i++)
        wide |= (o->node.at[i].weight && is_wide(o->node.at[i].weight)) || (o->node.at[i].activation && is_wide(o->node.at[i].activation));
    for (size_t i = 0; o && i < o->op.len; i++)
        wide |= (o->op.at[i].weight && is_wide(o->op.at[i].weight)) || (o->op.at[i].activation && is_wide(o->op.at[i].activation));
    return wide;
}

static bool asks_channels(const struct wml_quant_opts *o)
{
    bool channels = o->per_channel;
    for (size_t i = 0; o->overrides && i < o->overrides->tensor.len; i++) channels |= o->overrides->tensor.at[i].channel.at->has_axis;
    for (size_t i = 0; o->overrides && i < o->overrides->node.len; i++) channels |= o->overrides->node.at[i].per_channel == 1;
    for (size_t i = 0; o->overrides && i < o->overrides->op.len; i++) channels |= o->overrides->op.at[i].per_channel == 1;
    return channels;
}

/* The opset in which ONNX's own QuantizeLinear and DequantizeLinear can do what is asked. */
static int64_t needed_opset(const struct wml_model *m, const struct wml_quant_opts *o)
{
    int64_t need = asks_channels(o) ? 13 : 10;
    if (o->wide || is_wide(type_or_u8(o->weight)) || is_wide(type_or_u8(o->activation)) || asks_wide(o->overrides)) return 21;
    for (const struct wml_value *v = m->graph->first_value; v; v = v->next)
        if (wml_value_elem(v) == WML_F16) return 19;
    return need;
}

/* Where the opset cannot be raised, ONNX Runtime's own QuantizeLinear takes every type in any of them. */
static void raise_opset(struct wml_quant_run *r)
{
    struct wml_err why = {.msg = "no conversion is at hand"};
    int64_t now = wml_model_opset(r->model, ""), need = needed_opset(r->model, r->opts);
    if (r->opts->contrib || now >= need) return;
    need = WML_MAX(need, OPSET_FIRST);
    if (r->env->set_opset && r->env->set_opset(r->env->arg, r->model, need, &why))
        wml_quant_note(r, WML_STR("model"), "raised from opset %" PRId64 " to %" PRId64 ", which these integers need", now, need);
    else
        wml_quant_note(r, WML_STR("model"), "its integers need opset %" PRId64 ", and it has %" PRId64 " (%.200s): QuantizeLinear of com.microsoft is used",
                       need, now, why.msg);
}

/* The tensor that a Constant node holds, whatever attribute holds it; NULL: not floats. */
static struct wml_tensor *constant_floats(struct wml_model *m, const struct wml_node *n)
{
    struct wml_tensor *t = wml_attr_tensor(n, "value");
    size_t len;
    const float *f = wml_attr_floats(n, "value_floats", &len);
    int64_t dim = (int64_t)len;
    if (t) return wml_dtype_is_float(t->dtype) ? t : NULL;
    if (f) return wml_tensor_copy(m, WML_F32, 1, &dim, f, len * sizeof *f, NULL);
    return wml_attr_find(n, "value_float") ? wml_tensor_f32(m, wml_attr_float(n, "value_float", 0)) : NULL;
}

/* What Constant nodes hold are weights like any others. */
static void hoist_constants(struct wml_model *m)
{
    struct wml_node *next;
    for (struct wml_node *n = m->graph->first; n; n = next) {
        struct wml_value *v = wml_node_out(n, 0);
        struct wml_tensor *t;
        next = n->next;
        if (!wml_node_is(n, "Constant") || !v || v->n_outputs || v->pinned || !(t = constant_floats(m, n))) continue;
        struct wml_str name = v->name;
        struct wml_value *init = wml_graph_add_init(m->graph, name, wml_tensor_share(m, t));
        wml_value_replace_uses(v, init);
        wml_node_remove(n);
        wml_value_rename(init, name);
    }
}

static bool prepare(struct wml_quant_run *r, struct wml_err *err)
{
    size_t n_set;
    if (!check_types(r->opts, err)) return false;
    hoist_constants(r->model);
    wml_model_unique_node_names(r->model);
    if (r->env->infer_types && !r->env->infer_types(r->env->arg, r->model, &n_set, err)) return false;
    raise_opset(r);
    return true;
}

/* The source quantises v: a DequantizeLinear makes it, or only QuantizeLinear reads it. */
static bool is_given(const struct wml_value *v)
{
    if (v->def && wml_str_is(v->def->op_type, "DequantizeLinear")) return true;
    for (const struct wml_use *u = v->uses; u; u = u->next)
        if (!wml_str_is(u->node->op_type, "QuantizeLinear")) return false;
    return v->n_uses > 0;
}

/* The scale with which the source's DequantizeLinear makes t, where it can be read and has one value. */
static void read_given(struct wml_qdq *q, struct wml_qdq_tensor *t)
{
    struct wml_node *n = t->value->def;
    struct wml_value *sv, *zv;
    double *scale, *zero;
    size_t n_scale, n_zero;
    if (!n || !wml_str_is(n->op_type, "DequantizeLinear")) return;
    sv = wml_node_in(n, 1);
    zv = wml_node_in(n, 2);
    if (!sv || !zv || !wml_value_is_constant(sv) || !wml_value_is_constant(zv) || wml_attr_int(n, "block_size", 0)) return;
    if (!wml_tensor_doubles(q->model, sv->init, &scale, &n_scale, NULL) || !wml_tensor_doubles(q->model, zv->init, &zero, &n_zero, NULL)) return;
    if (!n_scale || n_scale != n_zero) return;
    struct wml_qdq_scale *s = WML_NEW(q->arena, struct wml_qdq_scale);
    *s = (struct wml_qdq_scale){.type = wml_value_elem(zv), .real = wml_value_elem(sv), .axis = -1, .n = n_scale, .scale = scale,
                                .scale_value = sv, .zero_value = zv};
    if (n_scale > 1) {
        s->axis = wml_attr_int(n, "axis", 1);
        if (s->axis < 0) s->axis += wml_value_rank(t->value);
    }
    s->zero = WML_NEW_ARRAY(q->arena, int32_t, n_zero);
    for (size_t i = 0; i < n_zero; i++) s->zero[i] = (int32_t)zero[i];
    t->scale = s;
}

static void take_range(struct wml_qdq *q, struct wml_qdq_tensor *t)
{
    const struct wml_range *r = q->opts->ranges ? wml_ranges_find(q->opts->ranges, t->value->name) : NULL;
    if (r) t->range = *r;
}

static void open_tensors(struct wml_qdq *q)
{
    size_t n = 0, given = 0;
    for (struct wml_value *v = q->graph->first_value; v; v = v->next) n++;
    q->tensor = WML_NEW_ARRAY(q->arena, struct wml_qdq_tensor, n);
    for (struct wml_value *v = q->graph->first_value; v; v = v->next) {
        struct wml_qdq_tensor *t = &q->tensor[q->n_tensors++];
        enum wml_dtype elem = wml_value_elem(v);
        v->mark = q->n_tensors;
        *t = (struct wml_qdq_tensor){.value = v, .axis = -1};
        t->constant = v->init && wml_value_is_constant(v);
        t->real = (elem == WML_F32 || elem == WML_F16) && !v->pinned && !v->sparse && !(v->type && !v->type->tensor);
        t->given = t->real && is_given(v);
        if (t->given) read_given(q, t);
        given += t->given;
        take_range(q, t);
    }
    q->n_given = given;
}

struct wml_qdq_tensor *wml_qdq_of(const struct wml_qdq *q, const struct wml_value *v)
{
    return v && v->graph == q->graph && v->mark && v->mark <= q->n_tensors && q->tensor[v->mark - 1].value == v ? &q->tensor[v->mark - 1] : NULL;
}

struct wml_str wml_qdq_subject(struct wml_qdq *q, const struct wml_value *v)
{
    return wml_arena_fmt(q->arena, "tensor '%.*s'", WML_ARG(v->name));
}

/* Integers for inputs alone serve nobody. */
static bool has_work(const struct wml_qdq *q)
{
    for (size_t i = 0; i < q->order.len; i++) {
        const struct wml_qdq_tensor *t = q->order.at[i];
        if (t->marked && !t->given && (t->constant || t->value->def)) return true;
    }
    return q->bias.len > 0;
}

/* Everything that can be known without ranges. */
static bool plan(struct wml_quant_run *r, struct wml_qdq *q, struct wml_err *err)
{
    *q = (struct wml_qdq){.run = r, .opts = r->opts, .model = r->model, .graph = r->model->graph, .arena = &r->model->arena};
    q->opset = wml_model_opset(r->model, "");
    q->ep = wml_qdq_ep_find(r->opts->ep);
    q->force = !q->ep || !q->ep->moves_follow;
    q->symmetric = r->opts->symmetric_activation == WML_SYMMETRY_ON;
    q->weight = type_or_u8(r->opts->weight);
    q->activation = type_or_u8(r->opts->activation);
    q->min_range = r->opts->min_real_range > 0 || !q->ep ? r->opts->min_real_range : q->ep->min_range;
    q->domain = r->opts->contrib || q->opset < needed_opset(r->model, r->opts) ? "com.microsoft" : "";
    open_tensors(q);
    if (!wml_qdq_ask(q, err) || !wml_qdq_mix(q, err)) return false;
    if (q->ep && q->ep->ask) q->ep->ask(q);
    wml_qdq_mark(q);
    if (has_work(q)) return true;
    wml_fail(err, WML_E_UNSUPPORTED, q->n_given ? "everything that could be quantised is quantised already" : "no operator that is selected has float values: nothing can be quantised");
    return wml_hint(err, "see the types with: winml inspect; look at --op-type and --exclude");
}

static bool wanted(struct wml_quant_run *r, struct wml_quant_values *out, struct wml_err *err)
{
    struct wml_qdq q;
    struct wml_quant_result unheard = {0}; /* apply will note the same */
    struct wml_quant_run silent = *r;
    silent.result = &unheard;
    if (!plan(&silent, &q, err)) return false;
    for (size_t i = 0; i < q.n_tensors; i++) q.tensor[i].value->mark = 0;
    for (size_t i = 0; i < q.order.len; i++) {
        struct wml_qdq_tensor *t = q.order.at[i];
        if (!wml_qdq_needs_range(&q, t)) continue;
        struct wml_value *v = t->range_from ? t->range_from->value : t->value;
        if (!v->mark) WML_PUSH_IN(q.arena, &out->v, v);
        v->mark = 1;
    }
    return true;
}

static bool check_ranges(const struct wml_qdq *q, struct wml_err *err)
{
    size_t missing = 0;
    struct wml_str first = WML_NO_STR;
    for (size_t i = 0; i < q->order.len; i++) {
        const struct wml_qdq_tensor *t = q->order.at[i];
        const struct wml_qdq_tensor *from = wml_qdq_ranged(q, t);
        if (!wml_qdq_needs_range(q, t) || from->range.dtype || from->unit) continue;
        if (!missing++) first = from->value->name;
    }
    if (!missing) return true;
    wml_fail(err, WML_E_NOT_FOUND, "no range is known of %zu values, such as '%.*s'", missing, WML_ARG(first));
    return wml_hint(err, "the calibration cache is that of another model or of other options: let it be made again");
}

static bool count_inner(void *arg, struct wml_node *n)
{
    struct wml_qdq *q = arg;
    q->n_inner += n->graph != q->graph;
    return true;
}

static void note_rest(struct wml_qdq *q)
{
    struct wml_str model = WML_STR("model");
    if (q->ep && q->ep->wide_note && wml_dtype_info((int)q->activation)->bits == 16) wml_quant_note(q->run, model, "%s", q->ep->wide_note);
    if (q->n_given) wml_quant_note(q->run, model, "%zu of its values are quantised already and stay as they are", q->n_given);
    if (q->n_flat)
        wml_quant_note(q->run, model, "%zu value%s the range 0 to 0 (the first: '%.*s'), so the scale is 1: other samples may show more",
                       q->n_flat, q->n_flat > 1 ? "s have" : " has", WML_ARG(q->flat));
    wml_graph_walk(q->graph, count_inner, q);
    if (q->n_inner) wml_quant_note(q->run, model, "%zu node%s in branches and loops stay%s float: what is computed there has no range", q->n_inner,
                                   q->n_inner > 1 ? "s" : "", q->n_inner > 1 ? "" : "s");
}

static size_t count_nodes(const struct wml_qdq *q)
{
    size_t n = 0;
    for (const struct wml_node *node = q->graph->first; node; node = node->next) {
        bool any = false;
        for (size_t i = 0; i < node->n_out; i++) {
            const struct wml_qdq_tensor *t = wml_qdq_of(q, node->out[i]);
            any |= t && t->marked && !t->given;
        }
        n += any && wml_qdq_takes(q, node);
    }
    return n;
}

static bool apply(struct wml_quant_run *r, struct wml_err *err)
{
    struct wml_qdq q;
    if (!plan(r, &q, err) || !check_ranges(&q, err)) return false;
    if (!wml_qdq_measure(&q, err)) return false;
    wml_qdq_masks(&q);
    wml_qdq_params(&q);
    if (!wml_qdq_fit_biases(&q, err)) return false;
    note_rest(&q);
    r->result->nodes = count_nodes(&q);
    r->result->clipped = q.n_clipped;
    if (!wml_qdq_insert(&q, err) || !wml_qdq_insert_biases(&q, err)) return false;
    if (*q.domain) wml_model_set_opset(r->model, q.domain, 1);
    wml_model_drop_unused(r->model);
    return true;
}

const struct wml_quant_method wml_quant_qdq = {.name = "qdq", .label = "Quantization", .prepare = prepare, .wanted = wanted, .apply = apply};
