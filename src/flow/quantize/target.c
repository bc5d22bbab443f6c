/* Asking the target about the quantised model, and what follows from its answers. */
#include "flow/quantize/internal.h"

#include "flow/output.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "onnx/onnx.h"

/* Answers change little after the second: what is refused then is refused for its neighbours' sake. */
enum { ROUNDS_MAX = 5 };

static bool is_quantizer(struct wml_str op)
{
    return wml_str_is(op, "QuantizeLinear") || wml_str_is(op, "DequantizeLinear");
}

/* Converts an input or an output of the model itself. */
static bool is_boundary(const struct wml_node *n)
{
    const struct wml_value *in = wml_node_in(n, 0), *out = wml_node_out(n, 0);
    return n->n_in && n->n_out && ((in && in->n_inputs) || (out && out->n_outputs));
}

static void read_elsewhere(struct wml_quantize_run *r, struct wml_model *m, const struct wml_json_val *list)
{
    struct wml_quantize_target *t = &r->target;
    struct wml_map by_name = {0};
    for (struct wml_node *n = m->graph->first; n; n = n->next) wml_map_put(&by_name, n->name, n);
    for (size_t i = 0; i < wml_json_len(list); i++) {
        const struct wml_json_val *e = wml_json_at(list, i);
        struct wml_str op = wml_json_get_str(e, "op"), name = wml_json_get_str(e, "name");
        const struct wml_node *n = wml_map_get(&by_name, name);
        if (is_quantizer(op)) {
            t->boundary += n && is_boundary(n);
            continue;
        }
        struct wml_refused_node row = {wml_arena_cstr(&r->arena, name), wml_arena_cstr(&r->arena, op)};
        WML_PUSH_IN(&r->arena, &t->other, row);
    }
    wml_map_release(&by_name);
}

/* Some EPs ask for a node in their layout, get it, and refuse it then, which is an error of the whole load: ORT says
 * "Node 'lrn_token_7' OpType:LRN ... inserted using the NHWC format ...". What holds for one node of an operator is taken to
 * hold for all of them, since only the first is named. */
static void read_blame(struct wml_quantize_run *r, const struct wml_model *m, const char *why)
{
    const char *from = strstr(why, "Node '"), *to = from ? strstr(from, "_token_") : NULL;
    struct wml_str op = WML_NO_STR;
    if (!to) return;
    from += strlen("Node '");
    struct wml_str name = {from, (size_t)(to - from)};
    for (const struct wml_node *n = m->graph->first; n; n = n->next)
        if (wml_str_eq(n->name, name)) op = n->op_type;
    for (const struct wml_node *n = m->graph->first; op.len && n; n = n->next) {
        struct wml_refused_node row = {wml_arena_cstr(&r->arena, n->name), wml_arena_cstr(&r->arena, n->op_type)};
        if (wml_str_eq(n->op_type, op) && !is_quantizer(op)) WML_PUSH_IN(&r->arena, &r->target.other, row);
    }
    r->target.blamed = r->target.other.len > 0;
}

/* A failure speaks of the user's folder. */
static const char *in_users_words(struct wml_quantize_run *r, const char *note)
{
    struct wml_err err = {0};
    if (!note) return NULL;
    snprintf(err.msg, sizeof err.msg, "%s", note);
    wml_output_unstage(&err, r->staged.stage, r->staged.dir);
    return wml_arena_cstr(&r->arena, wml_str(err.msg));
}

/* Loads the file that was written of m on the target. false: cancelled. */
static bool ask(struct wml_quantize_run *r, struct wml_model *m, struct wml_err *err)
{
    struct wml_quantize_target *t = &r->target;
    struct wml_target_load load;
    wml_note_progress(r->cx, "Loading on the target", r->staged.name, 0, 0, NULL);
    wml_target_load(r->cx, &r->args->target, r->staged.path, r->args->timeout_ms, &r->arena, &load);
    wml_json_free(t->reply);
    struct wml_placed_count n = load.ok ? wml_target_count(wml_json_root(load.reply)) : (struct wml_placed_count){-1, -1};
    t->reply = load.reply;
    t->status = load.ok ? "asked" : load.absent ? "not asked" : "failed";
    t->note = in_users_words(r, load.note);
    t->on = n.on;
    t->elsewhere = n.elsewhere;
    t->boundary = 0;
    t->other.len = 0;
    t->blamed = false;
    if (!load.ok && !load.absent) read_blame(r, m, load.note);
    if (load.ok) read_elsewhere(r, m, wml_json_get(wml_json_root(load.reply), "elsewhere"));
    return wml_check_cancel(r->cx, err);
}

bool wml_quantize_write(struct wml_quantize_run *r, struct wml_err *err)
{
    if (r->is_written) return true;
    wml_note_progress(r->cx, "Saving", r->staged.name, 0, 0, NULL);
    if (!wml_staged_write(&r->staged, r->model, ".winml-quantize-", r->cx, err)) return false;
    r->is_written = true;
    return !wml_quantize_asks(r) || ask(r, r->model, err);
}

bool wml_quantize_asks(const struct wml_quantize_run *r)
{
    return r->args->has_target && r->args->verify_target;
}

void wml_quantize_adopt(struct wml_quantize_run *r, struct wml_model *m)
{
    WML_PUSH_IN(&r->arena, &r->base, r->model);
    r->model = m;
}

/* --- leaving out what is refused --- */

struct trial { /* the model, quantised without what was refused so far */
    struct wml_model *model;
    struct wml_quant_result result;
};

static bool make(struct wml_quantize_run *r, const struct wml_quantize_step *s, const struct wml_quant_run *run, struct trial *t, struct wml_err *err)
{
    struct wml_quant_run copy = *run;
    *t = (struct trial){.result = s->result, .model = wml_onnx_clone(r->model, err)};
    t->result.note.cap = t->result.note.len; /* what is added goes to new memory */
    if (!t->model) return false;
    copy.model = t->model;
    copy.result = &t->result;
    wml_note_progress(r->cx, s->method->label, r->staged.name, 0, 0, NULL);
    return s->method->apply(&copy, err) && wml_staged_write(&r->staged, t->model, ".winml-quantize-", r->cx, err) && ask(r, t->model, err);
}

/* Whether integers come or go at n. */
static bool has_integers(const struct wml_node *n)
{
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->def && wml_str_is(n->in[i]->def->op_type, "DequantizeLinear")) return true;
    for (size_t i = 0; i < n->n_out; i++)
        for (const struct wml_use *u = n->out[i] ? n->out[i]->uses : NULL; u; u = u->next)
            if (wml_str_is(u->node->op_type, "QuantizeLinear")) return true;
    return false;
}

static bool is_left(const struct wml_quantize_target *t, struct wml_str name)
{
    for (size_t i = 0; i < t->left.len; i++)
        if (wml_str_is(name, t->left.at[i].name)) return true;
    return false;
}

/* Puts nodes that are refused as integers on the list of those left float; how many. */
static size_t leave_refused(struct wml_quantize_run *r, const struct wml_quantize_step *s, const struct wml_model *m)
{
    struct wml_quantize_target *t = &r->target;
    size_t before = t->left.len;
    struct wml_map refused = {0};
    for (size_t i = 0; i < t->other.len; i++) wml_map_put(&refused, wml_str(t->other.at[i].name), &t->other.at[i]);
    for (const struct wml_node *n = m->graph->first; n; n = n->next) {
        const struct wml_refused_node *row = n->name.len ? wml_map_get(&refused, n->name) : NULL;
        if (!row || !has_integers(n) || is_left(t, n->name) || !wml_quant_selects(&s->opts, n) || wml_node_is(n, "Cast")) continue;
        WML_PUSH_IN(&r->arena, &t->left, *row);
    }
    wml_map_release(&refused);
    return t->left.len - before;
}

static void set_left(struct wml_quantize_run *r, struct wml_quantize_step *s)
{
    struct wml_str *name = WML_NEW_ARRAY(&r->arena, struct wml_str, r->target.left.len + 1);
    for (size_t i = 0; i < r->target.left.len; i++) name[i] = wml_str(r->target.left.at[i].name);
    s->opts.leave = (struct wml_patterns){name, r->target.left.len};
}

/* A node that stays float can need a range of a value that had none: what a Relu cuts off, for example. */
static bool measure_more(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, struct wml_err *err)
{
    struct wml_quant_values want = {0};
    size_t n = 0;
    if (!s->method->wanted(run, &want, err)) return false;
    for (size_t i = 0; i < want.v.len; i++)
        if (!wml_ranges_find(&r->calibration.ranges, want.v.at[i]->name)) want.v.at[n++] = want.v.at[i];
    return !n || wml_quantize_calibrate(r, s, want.v.at, n, err);
}

struct answer { bool loads, blamed; size_t other; };

static struct answer answer_of(const struct wml_quantize_target *t)
{
    return (struct answer){strcmp(t->status, "asked") == 0, t->blamed, t->other.len};
}

/* Whether leaving more nodes float got the target further: a model that loads, or another obstacle. */
static bool is_better(const struct answer *before, const struct answer *after)
{
    if (!before->loads) return after->loads || after->blamed;
    return after->loads && after->other <= before->other;
}

/* One more round; *better: its model is no worse on the target. */
static bool again(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, struct trial *best, bool *better,
                  struct wml_err *err)
{
    struct trial t = {0};
    struct answer before = answer_of(&r->target), after;
    set_left(r, s);
    bool ok = measure_more(r, s, run, err) && make(r, s, run, &t, err);
    after = answer_of(&r->target);
    *better = ok && is_better(&before, &after);
    wml_model_free(*better ? best->model : t.model);
    if (*better) *best = t;
    return ok;
}

/* What is left out is taken back to the first `keep`, and the file and the answer are those of that model again. */
static bool go_back(struct wml_quantize_run *r, struct wml_quantize_step *s, size_t keep, const struct trial *best, struct wml_err *err)
{
    r->target.left.len = keep;
    set_left(r, s);
    return wml_staged_write(&r->staged, best->model, ".winml-quantize-", r->cx, err) && ask(r, best->model, err);
}

static bool rounds(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, struct trial *best, struct wml_err *err)
{
    if (!make(r, s, run, best, err)) return false;
    size_t all = best->result.nodes;
    for (size_t i = 1; i < ROUNDS_MAX && (r->target.on > 0 || r->target.blamed); i++) {
        size_t keep = r->target.left.len, n = leave_refused(r, s, best->model);
        bool better;
        if (!n) break;
        if (2 * r->target.left.len > all) { /* it is the model that does not suit the target, not some nodes */
            r->target.refuses_most = true;
            r->target.left.len = keep;
            break;
        }
        if (!again(r, s, run, best, &better, err)) return false;
        if (!better) return go_back(r, s, keep, best, err);
    }
    if (strcmp(r->target.status, "failed") != 0 || !r->target.left.len) return true;
    r->target.left.len = 0; /* it did not help */
    set_left(r, s);
    wml_model_free(best->model);
    return make(r, s, run, best, err);
}

bool wml_quantize_by_placement(struct wml_quantize_run *r, struct wml_quantize_step *s, struct wml_quant_run *run, struct wml_err *err)
{
    struct trial best = {0};
    if (!rounds(r, s, run, &best, err)) {
        wml_model_free(best.model);
        return false;
    }
    if (r->args->mixed) { /* it starts from the float model, with the same nodes left out */
        wml_model_free(best.model);
        return true;
    }
    wml_quantize_adopt(r, best.model);
    s->result = best.result;
    r->is_written = s == &r->step[r->n_steps - 1];
    return true;
}

void wml_quantize_target_release(struct wml_quantize_target *t)
{
    wml_json_free(t->reply);
    *t = (struct wml_quantize_target){0};
}
