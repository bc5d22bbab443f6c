/* optimize: passes over the graph, then the saved file is verified on the CPU and looked at on the target.
 * No EP but the CPU one ever takes part in making the file: EPs that compile cannot save what they
 * compiled, so they are only asked, in a child process, what they think of the result. */
#include <inttypes.h>

#include "flow/optimize/internal.h"
#include "flow/output.h"
#include "flow/source.h"
#include "graph/edit.h"
#include "graph/graph.h"
#include "os/file.h"
#include "os/sys.h"

static bool count_node(void *arg, struct wml_node *n)
{
    struct wml_op_counts *c = arg;
    bool plain = !n->domain.len || wml_str_is(n->domain, "ai.onnx");
    struct wml_str name = plain ? wml_arena_str(&c->arena, n->op_type)
                                : wml_arena_fmt(&c->arena, "%.*s::%.*s", WML_ARG(n->domain), WML_ARG(n->op_type));
    size_t *count = wml_map_get(&c->map, name);
    if (!count) wml_map_put(&c->map, name, count = WML_NEW(&c->arena, size_t));
    ++*count;
    c->all++;
    return true;
}

void wml_op_counts_fill(struct wml_op_counts *c, struct wml_model *m)
{
    c->top = m->graph->n_nodes;
    wml_graph_walk(m->graph, count_node, c);
}

void wml_op_counts_release(struct wml_op_counts *c)
{
    wml_map_release(&c->map);
    wml_arena_release(&c->arena);
}

void wml_optimize_warn(struct wml_optimize_run *r, struct wml_str text)
{
    for (size_t i = 0; i < r->warning.len; i++)
        if (wml_str_is(text, r->warning.at[i])) return;
    WML_PUSH(&r->warning, wml_arena_cstr(&r->arena, text));
}

/* Before IR 4 every weight is an input as well, so a pass could neither add nor drop one. */
static void separate_weights(struct wml_optimize_run *r)
{
    int64_t was = r->model->ir_version;
    if (was >= WML_IR_SEPARATE_WEIGHTS) return;
    wml_model_raise_ir(r->model, WML_IR_SEPARATE_WEIGHTS);
    struct wml_str text = wml_arena_fmt(&r->arena, "IR version %" PRId64 " became %d: weights are no longer inputs of the model",
                                        was, WML_IR_SEPARATE_WEIGHTS);
    wml_optimize_warn(r, text);
    wml_log(r->cx, WML_LOG_WARN, "%s", text.ptr);
}

static bool check_diff(const struct wml_optimize_run *r, struct wml_err *err)
{
    const struct wml_output_name taken[] = {{"the source model", r->args->model}, {"the resulting model", r->staged.output}};
    return wml_output_check_other("--diff", r->args->diff, taken, WML_COUNT(taken), err) &&
           wml_output_check("Comparison", r->args->diff, r->args->overwrite, NULL, err);
}

static bool prepare(struct wml_optimize_run *r, struct wml_err *err)
{
    const struct wml_optimize_args *a = r->args;
    struct wml_buf path = {0};
    if (a->output) wml_buf_cstr(&path, a->output);
    else wml_output_beside(&path, a->model, NULL, "_opt.onnx");
    const char *output = wml_arena_cstr(&r->arena, wml_buf_view(&path));
    wml_buf_release(&path);
    return wml_optimize_target(r, err) && wml_staged_prepare(&r->staged, a->model, output, a->overwrite, err) &&
           (!a->diff || check_diff(r, err));
}

void wml_optimize_release(struct wml_optimize_run *r, struct wml_err *err)
{
    wml_staged_release(&r->staged, err);
    wml_op_counts_release(&r->before);
    wml_op_counts_release(&r->after);
    wml_verify_release(&r->verify);
    wml_pass_log_release(&r->log);
    wml_json_free(r->placement);
    wml_model_free(r->model);
    wml_flow_oracle_release(&r->oracle);
    WML_VEC_RELEASE(&r->warning);
    wml_arena_release(&r->arena);
}

bool wml_optimize_choose(struct wml_optimize_run *r, struct wml_err *err)
{
    const struct wml_optimize_args *a = r->args;
    r->choice = WML_NEW_ARRAY(&r->arena, enum wml_pass_choice, wml_n_passes);
    r->undone = WML_NEW_ARRAY(&r->arena, const char *, wml_n_passes);
    r->result = WML_NEW_ARRAY(&r->arena, struct wml_pass_result, wml_n_passes);
    memcpy(r->choice, a->choice, wml_n_passes * sizeof *r->choice);
    wml_optimize_wants_choose(r);
    return wml_passes_settle(r->choice, r->ep ? r->ep->alias[0] : NULL, a->allow_unsafe, err);
}

bool wml_optimize_load(struct wml_optimize_run *r, const struct wml_env *env, struct wml_err *err)
{
    wml_model_free(r->model);
    r->model = NULL;
    r->oracle.open = r->oracle.nodes = 0;
    if (!wml_source_load(r->args->model, "optimize", &r->model, err)) return false;
    r->staged.source = r->args->model;
    if (!wml_staged_guard(&r->staged, r->model, err)) return false;
    if (r->args->diff && !wml_staged_guard_file(&r->staged, r->args->diff, err)) return false;
    separate_weights(r);
    if (!r->before.all) wml_op_counts_fill(&r->before, r->model);
    return wml_optimize_shapes(r, err) && wml_optimize_opset(r, env, err);
}

void wml_optimize_bounds(const struct wml_optimize_run *r, struct wml_env *env)
{
    env->clamp = r->args->clamp;
    env->clamp_min = r->args->clamp_min;
    env->clamp_max = r->args->clamp_max;
}

bool wml_optimize_make(struct wml_optimize_run *r, size_t max_steps, size_t *n_steps, size_t *last, struct wml_err *err)
{
    struct wml_env env = wml_flow_env(&r->oracle);
    wml_pass_log_release(&r->log);
    r->log = (struct wml_pass_log){0};
    if (!wml_optimize_load(r, &env, err)) return false;
    env.ort_level = r->args->ort_level;
    wml_optimize_bounds(r, &env);
    env.weights_stay = r->args->reference_weights;
    struct wml_passes_opts opts = {.env = &env, .choice = r->choice, .cx = r->cx, .now_ns = wml_now_ns, .max_steps = max_steps,
                                   .log = r->args->explain || r->args->verbose ? &r->log : NULL};
    if (!wml_passes_run(&r->model, &opts, r->result, err)) return false;
    wml_optimize_restore_types(r);
    if (n_steps) *n_steps = opts.n_steps;
    if (last) *last = opts.last;
    r->lossy = NULL;
    for (size_t i = 0; i < wml_n_passes; i++)
        if (wml_passes[i]->lossy && r->result[i].applied) r->lossy = wml_passes[i]->name;
    return true;
}

/* A pass whose work made the answers differ is undone and named, and the rest is done again. */
static bool save_or_undo(struct wml_optimize_run *r, struct wml_err *err)
{
    enum { MAX_UNDONE = 4 };
    for (size_t undone = 0; !wml_optimize_save(r, err); undone++) {
        size_t pass = SIZE_MAX;
        struct wml_err why = *err, ignored = {0};
        char *tail = strstr(why.msg, "; nothing was written");
        if (tail) *tail = 0;
        if (!r->differs || undone == MAX_UNDONE || !wml_optimize_blame(r, &pass, &ignored) || pass == SIZE_MAX) return false;
        r->differs = false;
        r->choice[pass] = WML_PASS_OFF;
        r->undone[pass] = wml_arena_fmt(&r->arena, "undone: with it %.180s", why.msg).ptr;
        WML_PUSH(&r->warning, wml_arena_fmt(&r->arena, "%s was undone: %.300s", wml_passes[pass]->name, why.msg).ptr);
        *err = (struct wml_err){0};
        if (!wml_optimize_make(r, 0, NULL, NULL, err)) return false;
    }
    return true;
}

/* What was done because the target wants it is taken back when the target took more of the source. */
static bool settle_target(struct wml_optimize_run *r, struct wml_err *err)
{
    const char *why;
    r->placed_before = r->placed_after = (struct wml_placed_count){-1, -1};
    if (!r->args->has_target || !r->args->verify_target || wml_optimize_check_target(r, &why)) return true;
    if (wml_optimize_wants_undo(r, why)) {
        if (!wml_optimize_make(r, 0, NULL, NULL, err) || !save_or_undo(r, err)) return false;
        if (wml_optimize_check_target(r, &why)) return true;
    }
    wml_optimize_warn(r, wml_str(why));
    return true;
}

/* A model that the target loads may hold operators that only this one has. */
static void warn_of_load(struct wml_optimize_run *r)
{
    if (!r->load_error || (r->target_status && strcmp(r->target_status, "loads") == 0)) return;
    wml_optimize_warn(r, wml_arena_fmt(&r->arena, "the source does not load in ONNX Runtime on the CPU: %s; the output was written unverified",
                                       r->load_error));
}

bool wml_flow_optimize(const struct wml_optimize_args *a, struct wml_ctx *cx, struct wml_report *out,
                       struct wml_err *err)
{
    struct wml_optimize_run r = {.args = a, .cx = cx, .oracle = {.cx = cx}};
    bool ok = false;
    if (!prepare(&r, err)) goto done;
    wml_optimize_wants_find(&r);
    if (!wml_optimize_choose(&r, err)) goto done;
    wml_note_progress(cx, "Reading", a->model, 0, 0, NULL);
    if (!wml_optimize_make(&r, 0, NULL, NULL, err) || !wml_optimize_wants_ask(&r, err)) goto done;
    if (!save_or_undo(&r, err)) goto done;
    if (!settle_target(&r, err)) goto done;
    warn_of_load(&r);
    wml_op_counts_fill(&r.after, r.model);
    if (a->diff && !wml_optimize_diff(&r, err)) goto done;
    wml_end_progress(cx);
    wml_optimize_report(&r, out);
    ok = true;
done:
    wml_end_progress(cx);
    wml_optimize_release(&r, ok ? NULL : err);
    return ok;
}
