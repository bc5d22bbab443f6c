/* The engine: runs the passes round by round until a round changes nothing, and keeps the account. */
#include "passes/passes.h"

#include <stdarg.h>

#include "graph/edit.h"
#include "graph/graph.h"
#include "passes/match.h"
#include "passes/pattern.h"

enum { MAX_ROUNDS = 8, MAX_EVENTS = 100000 };

const struct wml_pass *const wml_passes[] = {
#define PASS(id, name) &wml_pass_##id,
#include "passes/passes.def"
#undef PASS
};
const size_t wml_n_passes = WML_COUNT(wml_passes);

const char *wml_pass_status_name(enum wml_pass_status s)
{
    static const char *const name[] = {"nothing to do", "applied", "skipped", "failed"};
    return name[s];
}

size_t wml_pass_find(struct wml_str name)
{
    for (size_t i = 0; i < wml_n_passes; i++) {
        struct wml_str have = wml_str(wml_passes[i]->name);
        bool same = have.len == name.len;
        for (size_t k = 0; same && k < name.len; k++)
            same = have.ptr[k] == name.ptr[k] || (have.ptr[k] == '-' && name.ptr[k] == '_');
        if (same) return i;
    }
    return SIZE_MAX;
}

bool wml_pass_skip(struct wml_pass_run *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->skipped, sizeof r->skipped, fmt, ap);
    va_end(ap);
    return true;
}

void wml_pass_log_release(struct wml_pass_log *log)
{
    WML_VEC_RELEASE(&log->v);
    wml_arena_release(&log->arena);
}

static void record(struct wml_pass_run *r, struct wml_str op_type, struct wml_str node, struct wml_str reason)
{
    struct wml_pass_log *log = r->log;
    if (!log || log->v.len >= MAX_EVENTS) return;
    struct wml_pass_event e = {r->pass, wml_arena_str(&log->arena, op_type), wml_arena_str(&log->arena, node),
                               wml_arena_str(&log->arena, reason), r->round};
    WML_PUSH(&log->v, e);
}

void wml_pass_applied(struct wml_pass_run *r, struct wml_str op_type, struct wml_str node)
{
    r->applied++;
    record(r, op_type, node, (struct wml_str){0});
}

void wml_pass_refuse(struct wml_pass_run *r, const struct wml_node *n, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (!r->log) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    record(r, n->op_type, n->name, wml_str(text));
}

/* The last round's refusals are those that count: before, types were less known and parts not yet put together. */
static void forget_refusals(struct wml_pass_log *log, const struct wml_pass *p)
{
    size_t kept = 0;
    for (size_t i = 0; log && i < log->v.len; i++)
        if (log->v.at[i].pass != p || !log->v.at[i].reason.ptr) log->v.at[kept++] = log->v.at[i];
    if (log) log->v.len = kept;
}

static bool work(const struct wml_pass *p, struct wml_pass_run *r, struct wml_err *err)
{
    if (p->visit) return wml_pass_each(r, p->visit);
    if (p->rules) return wml_rules_run(r, p->rules, p->n_rules, err);
    return p->run(r, err);
}

/* One pass once. How many changes it made. */
static size_t run_one(const struct wml_pass *p, struct wml_pass_run *r, struct wml_pass_result *result,
                      uint64_t (*now_ns)(void))
{
    struct wml_err err = {0};
    size_t before = wml_model_count_nodes(r->model);
    uint64_t start = now_ns();
    r->applied = 0;
    r->skipped[0] = 0;
    r->pass = p;
    r->before = result->rounds;
    if (r->round) forget_refusals(r->log, p);
    bool ok = work(p, r, &err);
    if (r->replacement) {
        wml_model_free(r->model);
        r->model = r->replacement;
        r->replacement = NULL;
    }
    wml_arena_reset(r->scratch);
    result->ms += (double)(now_ns() - start) / 1e6;
    result->nodes_removed += (int64_t)before - (int64_t)wml_model_count_nodes(r->model);
    result->applied += r->applied;
    result->rounds++;
    if (!ok) {
        result->status = WML_PASS_FAILED;
        snprintf(result->reason, sizeof result->reason, "%.255s", err.msg);
    } else if (result->status != WML_PASS_FAILED) {
        if (result->applied) result->status = WML_PASS_APPLIED;
        else if (r->skipped[0]) result->status = WML_PASS_SKIPPED;
        if (r->skipped[0]) snprintf(result->reason, sizeof result->reason, "%s", r->skipped);
    }
    return r->applied;
}

static bool is_on(size_t i, const enum wml_pass_choice *choice)
{
    return !wml_passes[i]->refused && (choice[i] == WML_PASS_ON || (choice[i] == WML_PASS_DEFAULT && wml_passes[i]->on));
}

static void begin_account(const struct wml_passes_opts *o, struct wml_pass_result *result)
{
    for (size_t i = 0; i < wml_n_passes; i++) {
        result[i] = (struct wml_pass_result){0};
        if (is_on(i, o->choice)) continue;
        result[i].status = WML_PASS_SKIPPED;
        snprintf(result[i].reason, sizeof result[i].reason, "%s",
                 o->choice[i] == WML_PASS_OFF ? "switched off" : wml_passes[i]->refused ? wml_passes[i]->refused : "off by default");
    }
}

/* One round, from pass `first`, of the late passes or of the others. *changed: something was done. */
static bool run_round(struct wml_pass_run *r, struct wml_passes_opts *o, size_t first, bool late, struct wml_pass_result *result,
                      bool *changed, bool *stopped, struct wml_err *err)
{
    for (size_t i = first; i < wml_n_passes; i++) {
        if (wml_passes[i]->late != late) continue;
        if (!is_on(i, o->choice)) {
            if (o->probe && !o->probe(o->probe_arg, r->model, r->round, i, err)) return false;
            continue;
        }
        if (result[i].status == WML_PASS_FAILED) continue;
        *stopped = o->max_steps && o->n_steps >= o->max_steps;
        if (*stopped) return true;
        o->n_steps++;
        o->last = i;
        r->asked = o->choice[i] == WML_PASS_ON;
        wml_note_progress(o->cx, "Optimizing", wml_passes[i]->name, 0, 0, NULL);
        *changed = run_one(wml_passes[i], r, &result[i], o->now_ns) > 0 || *changed;
        if (!wml_check_cancel(o->cx, err)) return false;
        bool more = o->probe && wml_passes[i]->wider && o->choice[i] == WML_PASS_DEFAULT;
        if (more && !o->probe(o->probe_arg, r->model, r->round, i, err)) return false;
    }
    return true;
}

bool wml_passes_run(struct wml_model **m, struct wml_passes_opts *o, struct wml_pass_result *result, struct wml_err *err)
{
    struct wml_arena scratch = {0};
    struct wml_pass_run r = {.model = *m, .env = o->env, .scratch = &scratch, .log = o->log, .round = o->from_round};
    bool ok = true, changed = o->changed, stopped = false, late = o->from_late;
    size_t first = o->from_pass;
    o->n_steps = 0;
    begin_account(o, result);
    for (bool again = true; ok && again && !stopped; r.round++, first = 0) {
        ok = run_round(&r, o, first, late, result, &changed, &stopped, err);
        late = !changed && !late; /* the late ones, when all is settled; what they change the others see again */
        again = (changed || late) && r.round + 1 < MAX_ROUNDS;
        changed = false;
    }
    wml_arena_release(&scratch);
    *m = r.model;
    return ok && wml_graph_sort(r.model->graph, err);
}
