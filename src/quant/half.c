/* The conversion itself. Nodes are marked first; then every value is looked at once: in which type it is made, in which
 * types it is read, and what stands between. Names of Casts are those of the converter in ONNX Runtime's Python package. */
#include "quant/half.h"

#include "graph/graph.h"
#include "quant/derive.h"

struct wants { bool floats, half; };

/* --- where a value is made, and where it is read --- */

static size_t place_of(const struct wml_value *v, struct wml_value *const *list, size_t len)
{
    size_t i = 0;
    while (i < len && list[i] != v) i++;
    return i;
}

static bool is_top(const struct wml_graph *g)
{
    return !g->owner;
}

/* What may be absent cannot be cast: it stays float, and so do its readers. */
static bool is_optional(const struct wml_value *v)
{
    return (v->mark & WML_HALF_OPTIONAL) == WML_HALF_OPTIONAL;
}

static bool output_is_float(const struct wml_half *h, const struct wml_value *v)
{
    const struct wml_graph *g = v->graph;
    if (is_top(g)) return !h->run->opts->convert_io || is_optional(v);
    return wml_half_makes_float(h, g->owner, wml_half_slot_of_output(g->owner, place_of(v, g->outputs.at, g->outputs.len)));
}

static bool input_is_float(const struct wml_half *h, const struct wml_value *v)
{
    const struct wml_graph *g = v->graph;
    if (is_top(g)) return !h->run->opts->convert_io || is_optional(v);
    return wml_half_reads_float(h, g->owner, wml_half_slot_of_input(h, g->owner, place_of(v, g->inputs.at, g->inputs.len)));
}

static struct wants wants_of(const struct wml_half *h, const struct wml_value *v)
{
    struct wants w = {0};
    for (const struct wml_use *u = v->uses; u; u = u->next) {
        if (wml_half_reads_float(h, u->node, u->slot)) w.floats = true;
        else w.half = true;
    }
    if (v->n_outputs && output_is_float(h, v)) w.floats = true;
    else if (v->n_outputs) w.half = true;
    return w;
}

static bool is_made_float(const struct wml_half *h, const struct wml_value *v, const struct wants *w)
{
    if (v->n_inputs) return input_is_float(h, v);
    if (!v->def || wml_half_makes_float(h, v->def, v->def_slot)) return true; /* made by no node: sparse */
    return wml_half_chooses(v->def) && w->floats;
}

/* --- Casts --- */

struct cast_names { struct wml_str node, out; };

/* By the value that is cast. */
static struct cast_names names_by_value(struct wml_half *h, const struct wml_value *v, enum wml_dtype to)
{
    const char *type = to == WML_F32 ? "fp32" : to == WML_F16 ? "fp16" : "bf16";
    struct wml_str out = wml_arena_fmt(&h->model->arena, "%.*s_cast_to_%s", WML_ARG(v->name), type);
    return (struct cast_names){wml_arena_fmt(&h->model->arena, "%.*s_node", WML_ARG(out)), out};
}

/* By the place among inputs or outputs of the model. */
static struct cast_names names_by_place(struct wml_half *h, const char *prefix, size_t i)
{
    return (struct cast_names){wml_arena_fmt(&h->model->arena, "%s%zu", prefix, i), wml_arena_fmt(&h->model->arena, "%s_%zu", prefix, i)};
}

/* A Cast of v right after what makes it; of inputs: before `start`. Names that are taken get a number. */
static struct wml_value *cast(struct wml_half *h, struct wml_value *v, struct wml_node *start, enum wml_dtype to, struct cast_names names)
{
    struct wml_node *before = v->def ? v->def->next : start;
    struct wml_node *c = before ? wml_node_new(before, "", "Cast") : wml_graph_append(v->graph, "", "Cast");
    c->name = wml_model_unique(h->model, names.node);
    wml_attr_set_int(c, "to", to);
    wml_node_add_input(c, v);
    return wml_node_add_output(c, names.out);
}

/* What reads v in one of the types reads w instead. */
static void redirect(const struct wml_half *h, struct wml_value *v, struct wml_value *w, bool floats)
{
    struct wml_graph *g = v->graph;
    for (struct wml_use *u = v->uses, *next; u; u = next) {
        next = u->next;
        if (u->node != w->def && wml_half_reads_float(h, u->node, u->slot) == floats) wml_node_set_input(u->node, u->slot, w);
    }
    if (!v->n_outputs || is_top(g) || output_is_float(h, v) != floats) return;
    for (size_t i = 0; i < g->outputs.len; i++)
        if (g->outputs.at[i] == v) wml_graph_set_output(g, i, w);
}

/* v, made by a node, becomes the output of the Cast that makes w, and w what the node makes. */
static void swap_outputs(struct wml_value *v, struct wml_value *w)
{
    struct wml_node *maker = v->def, *c = w->def;
    size_t slot = v->def_slot;
    wml_node_take_output(c, 1, v);
    wml_node_take_output(maker, slot, w);
    wml_node_take_output(c, 0, v);
    wml_node_set_input(c, 0, w);
}

static void set_type(struct wml_half *h, struct wml_value *v, const struct wml_type *t, bool half)
{
    if (t) wml_value_set_type(v, half ? wml_half_type(h, t) : wml_type_copy(h->model, t));
}

/* Made half, and an output of the model that stays float: its name goes to a Cast. */
static void cast_output(struct wml_half *h, struct wml_value *v)
{
    size_t i = place_of(v, v->graph->outputs.at, v->graph->outputs.len);
    struct wml_value *w = cast(h, v, NULL, WML_F32, names_by_place(h, "graph_output_cast", i));
    swap_outputs(v, w);
    redirect(h, v, w, false);
    set_type(h, w, v->type, true);
}

/* Made half, read as float too. */
static void cast_to_float(struct wml_half *h, struct wml_value *v, struct wml_node *start)
{
    struct wml_value *w = cast(h, v, start, WML_F32, names_by_value(h, v, WML_F32));
    set_type(h, w, v->type, false);
    redirect(h, v, w, true);
    set_type(h, v, v->type, true);
}

/* Made float, read as half too. Where a node makes it and it is no float output, v becomes the half one. */
static void cast_to_half(struct wml_half *h, struct wml_value *v, struct wml_node *start)
{
    const bool keeps_name = !v->def || (v->n_outputs && output_is_float(h, v)), input = is_top(v->graph) && v->n_inputs;
    size_t i = place_of(v, v->graph->inputs.at, v->graph->inputs.len);
    struct wml_value *w = cast(h, v, start, h->to, input ? names_by_place(h, "graph_input_cast", i) : names_by_value(h, v, h->to));
    set_type(h, w, v->type, keeps_name);
    if (keeps_name) {
        redirect(h, v, w, false);
        return;
    }
    swap_outputs(v, w);
    redirect(h, v, w, true);
    set_type(h, v, v->type, true);
}

/* --- one value --- */

/* A constant that only some read as float is there in both types; outputs keep the name. */
static bool convert_constant(struct wml_half *h, struct wml_value *v, const struct wants *w, struct wml_err *err)
{
    struct wml_tensor *floats = v->init, *half = w->half ? wml_quant_derive_half(h->model, floats, h->to, err) : NULL;
    if (!w->half) return true;
    if (!half) return false;
    h->run->result->weights++;
    if (!w->floats) {
        wml_value_set_init(v, half);
        set_type(h, v, v->type, true);
        return true;
    }
    const bool other_is_half = !v->n_outputs || output_is_float(h, v);
    struct wml_str other_name = names_by_value(h, v, other_is_half ? h->to : WML_F32).out;
    struct wml_value *other = wml_graph_add_init(v->graph, other_name, other_is_half ? half : wml_tensor_share(h->model, floats));
    redirect(h, v, other, !other_is_half);
    if (other_is_half) return true;
    wml_value_set_init(v, half);
    set_type(h, v, v->type, true);
    return true;
}

static bool make_half(struct wml_half *h, struct wml_value *v, struct wml_err *err)
{
    if (v->def && wml_half_chooses(v->def)) return wml_half_follow(h, v->def, err);
    if (!v->init) return true;
    struct wml_tensor *half = wml_quant_derive_half(h->model, v->init, h->to, err); /* the default of an input */
    if (half) wml_value_set_init(v, half);
    return half != NULL;
}

static bool convert_value(struct wml_half *h, struct wml_value *v, struct wml_node *start, struct wml_err *err)
{
    const struct wants w = wants_of(h, v);
    if (!wml_half_is_float(v)) return true;
    if (v->init && !v->n_inputs) return convert_constant(h, v, &w, err);
    if (is_made_float(h, v, &w)) {
        if (w.half) cast_to_half(h, v, start);
        return true;
    }
    if (!make_half(h, v, err)) return false;
    if (!w.floats || v->mark & WML_HALF_SEQUENCE) set_type(h, v, v->type, true);
    else if (v->n_outputs && is_top(v->graph) && !h->run->opts->convert_io) cast_output(h, v);
    else cast_to_float(h, v, start);
    return true;
}

struct converting { struct wml_half *h; struct wml_err *err; };

static bool convert_graph(void *arg, struct wml_graph *g)
{
    struct converting *c = arg;
    struct wml_node *start = g->first;
    for (struct wml_value *v = g->first_value, *next; v; v = next) {
        next = v->next;
        if (!convert_value(c->h, v, start, c->err)) return false;
    }
    return true;
}

/* --- the model --- */

static bool mark(struct wml_half *h, struct wml_err *err)
{
    const struct wml_quant_env *env = h->run->env;
    size_t unknown = wml_half_mark_types(h), n_set = 0;
    struct wml_err why = {0};
    if (unknown && env->infer_types) {
        if (!env->infer_types(env->arg, h->model, &n_set, &why) && why.code == WML_E_CANCELLED) {
            *err = why;
            return false;
        }
        unknown = wml_half_mark_types(h);
    }
    if (unknown) wml_quant_note(h->run, WML_STR("types"), "%zu values have a type that cannot be told: taken as not float", unknown);
    h->n_convert = 0;
    h->opset = wml_model_opset(h->model, "");
    wml_half_mark_nodes(h);
    if (h->n_convert) return true;
    wml_fail(err, WML_E_UNSUPPORTED, "no operator with float values that could become %s", wml_dtype_name((int)h->to));
    return wml_hint(err, "the model is converted already, or its operators must stay float: `winml inspect` shows its types");
}

bool wml_half_apply(struct wml_quant_run *r, enum wml_dtype to, struct wml_err *err)
{
    struct wml_half h = {.run = r, .model = r->model, .to = to, .opset = wml_model_opset(r->model, "")};
    struct converting c = {&h, err};
    if (!mark(&h, err) || !wml_model_each_graph(r->model, convert_graph, &c)) return false;
    r->result->nodes = h.n_convert;
    return true;
}
