/* Trying every capability on copies of the graph. See check_optim.h. */
#include "flow/optimize/check_optim.h"

#include "graph/edit.h"
#include "graph/graph.h"
#include "os/sys.h"

struct match { /* a copy on which a pass did something */
    struct wml_model *model; /* NULL: none */
    size_t round;
};

struct scope { /* one run of the passes, and what is tried along it */
    struct wml_check_optim *c;
    const enum wml_pass_choice *choice;
    struct wml_pass_result *result; /* of the run, so far */
    struct wml_pass_result *trial;  /* of a probe */
    bool *candidate;                /* passes that are tried */
    struct match *match;            /* one per pass */
    struct wml_model *copy;         /* as the run stood after `copied_at` changes; NULL: none */
    size_t copied_at;
    size_t parent;
};

static size_t changes(const struct wml_pass_result *result)
{
    size_t n = 0;
    for (size_t i = 0; i < wml_n_passes; i++) n += result[i].applied;
    return n;
}

/* The choice with one pass more, and what it needs. */
static enum wml_pass_choice *choice_with(struct wml_check_optim *c, const enum wml_pass_choice *choice, size_t pass)
{
    struct wml_err ignored = {0};
    enum wml_pass_choice *with = WML_NEW_ARRAY(&c->r->arena, enum wml_pass_choice, wml_n_passes);
    memcpy(with, choice, wml_n_passes * sizeof *with);
    with[pass] = WML_PASS_ON;
    wml_passes_settle(with, NULL, true, &ignored);
    return with;
}

static struct wml_passes_opts opts_for(struct wml_check_optim *c, const struct wml_env *env, const enum wml_pass_choice *choice)
{
    return (struct wml_passes_opts){.env = env, .choice = choice, .cx = &c->quiet, .now_ns = wml_now_ns};
}

static struct wml_env env_for(struct scope *s, bool with_ort)
{
    struct wml_env env = wml_flow_env(&s->c->r->oracle);
    if (!with_ort) env.ort_optimise = NULL;
    wml_optimize_bounds(s->c->r, &env);
    return env;
}

static void note_progress(struct wml_check_optim *c, const char *name)
{
    wml_note_progress(c->r->cx, "Checking", name, c->n_done, c->n_probed, "capabilities");
}

/* One pass on the copy, at the place where it would run. */
static bool probe(void *arg, struct wml_model *m, size_t round, size_t pass, struct wml_err *err)
{
    struct scope *s = arg;
    struct wml_check_optim *c = s->c;
    struct wml_finding *f = &c->finding[pass];
    size_t now = changes(s->result);
    if (!s->candidate[pass] || s->match[pass].model || f->kind == WML_FINDING_FAILED) return true;
    if (!wml_check_cancel(c->r->cx, err)) return false;
    if (s->copy && s->copied_at != now) {
        wml_model_free(s->copy);
        s->copy = NULL;
    }
    if (!s->copy && !(s->copy = wml_onnx_clone(m, err))) return false;
    s->copied_at = now;
    struct wml_env env = env_for(s, true);
    struct wml_passes_opts o = opts_for(c, &env, choice_with(c, s->choice, pass));
    o.max_steps = 1;
    o.from_round = round;
    o.from_pass = pass;
    o.from_late = wml_passes[pass]->late;
    struct wml_flow_oracle *oracle = &c->r->oracle;
    const size_t open = oracle->open, nodes = oracle->nodes;
    uint64_t start = wml_now_ns();
    bool ok = wml_passes_run(&s->copy, &o, s->trial, err);
    oracle->open = open; /* what it remembers is of the run, not of the copy */
    oracle->nodes = nodes;
    f->ms += (double)(wml_now_ns() - start) / 1e6;
    if (!ok) return false;
    const struct wml_pass_result *t = &s->trial[pass];
    snprintf(f->reason, sizeof f->reason, "%s", t->reason);
    f->kind = t->status == WML_PASS_FAILED ? WML_FINDING_FAILED : t->applied ? WML_FINDING_FOUND : WML_FINDING_NOTHING;
    if (t->status == WML_PASS_FAILED) {
        wml_model_free(s->copy);
        s->copy = NULL;
    } else if (t->applied) {
        f->matches = t->applied;
        s->match[pass] = (struct match){s->copy, round};
        s->copy = NULL;
    }
    return true;
}

static bool is_on(const enum wml_pass_choice *choice, size_t i)
{
    return choice[i] == WML_PASS_ON || (choice[i] == WML_PASS_DEFAULT && wml_passes[i]->on);
}

/* Switching it on by name changes something: it is off, or does more then. */
static bool is_switch(const enum wml_pass_choice *choice, size_t i)
{
    return !is_on(choice, i) || (wml_passes[i]->wider && choice[i] == WML_PASS_DEFAULT);
}

/* The pass whose run a dependant is compared with: the last it needs that is not on anyway. */
static size_t parent_of(const struct wml_check_optim *c, size_t pass)
{
    size_t parent = SIZE_MAX;
    const char *at = wml_passes[pass]->needs;
    while (at && *at) {
        size_t n = strcspn(at, " "), k = wml_pass_find((struct wml_str){at, n});
        if (k != SIZE_MAX && is_switch(c->r->choice, k)) parent = k;
        at += n + strspn(at + n, " ");
    }
    return parent;
}

static bool run_scope(struct scope *s, struct wml_model **m, size_t round, size_t pass, struct wml_err *err);

/* The rest of the run of one match, with what depends on it tried along it; then the comparison. */
static bool follow(struct scope *s, struct wml_model *end, size_t pass, struct wml_err *err)
{
    struct wml_check_optim *c = s->c;
    struct wml_finding *f = &c->finding[pass];
    struct match *match = &s->match[pass];
    struct scope inner = {.c = c, .choice = choice_with(c, s->choice, pass), .parent = pass,
                          .candidate = WML_NEW_ARRAY(&c->r->arena, bool, wml_n_passes)};
    uint64_t start = wml_now_ns();
    for (size_t i = 0; i < wml_n_passes; i++) {
        inner.candidate[i] = s->candidate[i] && i != pass && parent_of(c, i) == pass;
        if (!inner.candidate[i]) continue;
        c->finding[i] = (struct wml_finding){.kind = WML_FINDING_NOTHING, .parent = pass, .ms = c->finding[i].ms};
        wml_model_free(s->match[i].model);
        s->match[i] = (struct match){0};
    }
    note_progress(c, wml_passes[pass]->name);
    if (!run_scope(&inner, &match->model, match->round, pass + 1, err)) return false;
    f->matches += inner.result[pass].applied;
    f->parent = s->parent;
    f->ms += (double)(wml_now_ns() - start) / 1e6;
    wml_graph_diff(end, match->model, &f->diff);
    if (!wml_graph_diff_is_empty(&f->diff)) return true;
    f->kind = WML_FINDING_NOTHING;
    snprintf(f->reason, sizeof f->reason, "other passes come to the same graph");
    return true;
}

static void release_scope(struct scope *s)
{
    for (size_t i = 0; i < wml_n_passes; i++) wml_model_free(s->match[i].model);
    wml_model_free(s->copy);
}

/* Runs the passes over *m from there on, trying what stands beside them, then follows every match. */
static bool run_scope(struct scope *s, struct wml_model **m, size_t round, size_t pass, struct wml_err *err)
{
    struct wml_check_optim *c = s->c;
    struct wml_env env = env_for(s, false);
    struct wml_passes_opts o = opts_for(c, &env, s->choice);
    s->result = WML_NEW_ARRAY(&c->r->arena, struct wml_pass_result, wml_n_passes);
    s->trial = WML_NEW_ARRAY(&c->r->arena, struct wml_pass_result, wml_n_passes);
    s->match = WML_NEW_ARRAY(&c->r->arena, struct match, wml_n_passes);
    c->r->oracle.open = c->r->oracle.nodes = 0;
    o.from_round = round;
    o.from_pass = pass;
    o.changed = pass > 0;
    o.from_late = pass > 0 && wml_passes[pass - 1]->late;
    o.probe = probe;
    o.probe_arg = s;
    bool ok = wml_passes_run(m, &o, s->result, err);
    for (size_t i = 0; ok && i < wml_n_passes; i++) {
        if (!s->candidate[i]) continue;
        /* Those that depend on another match belong to that one's run. */
        size_t parent = parent_of(c, i);
        bool inner = parent != SIZE_MAX && parent != s->parent && s->match[parent].model;
        if (s->match[i].model && !inner) ok = follow(s, *m, i, err);
        c->n_done += ok && !inner;
    }
    release_scope(s);
    return ok;
}

/* Why a pass cannot be had for the target, whatever the model is; NULL: it can. */
static const char *unavailable(struct wml_check_optim *c, size_t i)
{
    enum wml_pass_choice *with = WML_NEW_ARRAY(&c->r->arena, enum wml_pass_choice, wml_n_passes);
    struct wml_err why = {0};
    if (wml_passes[i]->refused) return wml_passes[i]->refused;
    memcpy(with, c->r->choice, wml_n_passes * sizeof *with);
    with[i] = WML_PASS_ON;
    if (wml_passes_settle(with, c->r->ep ? c->r->ep->alias[0] : NULL, false, &why)) return NULL;
    size_t skip = strcspn(why.msg, " ");
    return wml_arena_fmt(&c->r->arena, "it%s", why.msg + skip).ptr;
}

/* Operators of other domains that the target does not take make a finding unsafe there. */
static void judge(struct wml_check_optim *c, struct wml_finding *f)
{
    const struct wml_diff_rows *rows[] = {&f->diff.added, &f->diff.modified};
    for (size_t k = 0; k < WML_COUNT(rows); k++)
        for (size_t i = 0; i < rows[k]->len; i++) {
            struct wml_str op = rows[k]->at[i].op_type;
            if (k && !rows[k]->at[i].was.len) continue;
            if (wml_optimize_target_takes(c->r, op)) continue;
            f->kind = WML_FINDING_SKIPPED;
            snprintf(f->reason, sizeof f->reason, "it makes %.*s, which %s is not known to have", WML_ARG(op),
                     c->r->ep ? c->r->ep->label : "the target");
            return;
        }
}

/* What needs a pass that is left out is left out too. */
static void leave_out_dependants(struct wml_check_optim *c)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < wml_n_passes; i++) {
            struct wml_finding *f = &c->finding[i];
            if (f->kind != WML_FINDING_FOUND || f->parent == SIZE_MAX || c->finding[f->parent].kind != WML_FINDING_SKIPPED) continue;
            f->kind = WML_FINDING_SKIPPED;
            struct wml_str why = wml_arena_fmt(&c->r->arena, "it needs %s: %s", wml_passes[f->parent]->name, c->finding[f->parent].reason);
            snprintf(f->reason, sizeof f->reason, "%s", why.ptr);
            again = true;
        }
    }
}

bool wml_check_optim_run(struct wml_check_optim *c, struct wml_err *err)
{
    struct wml_optimize_run *r = c->r;
    struct scope s = {.c = c, .choice = r->choice, .parent = SIZE_MAX,
                      .candidate = WML_NEW_ARRAY(&r->arena, bool, wml_n_passes)};
    struct wml_env env = env_for(&s, false);
    struct wml_model *source;
    uint64_t start = wml_now_ns();
    size_t ort = wml_pass_find(WML_STR("ort-graph-optimization"));
    c->quiet = *r->cx;
    c->quiet.progress = NULL;
    c->finding = WML_NEW_ARRAY(&r->arena, struct wml_finding, wml_n_passes);
    if (!wml_optimize_load(r, &env, err) || !(source = wml_onnx_clone(r->model, err))) return false;
    wml_model_unique_node_names(source);
    r->choice[ort] = WML_PASS_OFF; /* it is tried as the others are */
    for (size_t i = 0; i < wml_n_passes; i++) {
        struct wml_finding *f = &c->finding[i];
        f->parent = SIZE_MAX;
        f->kind = is_switch(r->choice, i) ? WML_FINDING_NOTHING : WML_FINDING_OFF;
        const char *why = f->kind == WML_FINDING_OFF ? NULL : unavailable(c, i);
        if (why) snprintf(f->reason, sizeof f->reason, "%s", why);
        if (why) f->kind = WML_FINDING_SKIPPED;
        s.candidate[i] = f->kind == WML_FINDING_NOTHING;
        c->n_probed += s.candidate[i];
    }
    note_progress(c, NULL);
    bool ok = run_scope(&s, &r->model, 0, 0, err);
    if (ok) {
        wml_optimize_restore_types(r);
        c->standard_result = s.result;
        wml_graph_diff(source, r->model, &c->standard);
        for (size_t i = 0; i < wml_n_passes; i++)
            if (c->finding[i].kind == WML_FINDING_FOUND) judge(c, &c->finding[i]);
        leave_out_dependants(c);
    }
    wml_model_free(source);
    c->ms = (double)(wml_now_ns() - start) / 1e6;
    return ok;
}

bool wml_flow_check_optim(const struct wml_optimize_args *a, struct wml_ctx *cx, struct wml_report *out, struct wml_err *err)
{
    struct wml_optimize_run r = {.args = a, .cx = cx, .oracle = {.cx = cx}};
    struct wml_check_optim c = {.r = &r};
    wml_note_progress(cx, "Reading", a->model, 0, 0, NULL);
    bool ok = wml_optimize_target(&r, err) && wml_optimize_choose(&r, err);
    if (ok) wml_optimize_wants_find(&r); /* not switched on: they are tried as the others are */
    ok = ok && wml_check_optim_run(&c, err);
    wml_end_progress(cx);
    if (ok) wml_op_counts_fill(&r.after, r.model);
    if (ok) wml_check_optim_report(&c, out);
    for (size_t i = 0; c.finding && i < wml_n_passes; i++) wml_graph_diff_release(&c.finding[i].diff);
    wml_graph_diff_release(&c.standard);
    wml_optimize_release(&r, NULL);
    return ok;
}
