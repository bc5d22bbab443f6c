/* --compile of a bundle: stages in groups, each group in a child of its own that never loads what it made. A stage that cannot
 * be compiled keeps its source, and the report says why. */
#include "flow/genai/compile.h"

#include "flow/compile_steps.h"
#include "flow/target.h"
#include "graph/edit.h"
#include "onnx/epctx.h"
#include "onnx/onnx.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/path.h"
#include "os/sys.h"

struct groups { WML_VEC(struct wml_genai_group *) v; };

static const char *alias_of(const struct wml_bundle_provider *p)
{
    return p->ep ? p->ep->alias[0] : p->name;
}

static struct wml_genai_stage *note(struct wml_genai_run *r, size_t stage, const struct wml_bundle_provider *p, const char *status)
{
    struct wml_genai_stage s = {.index = stage, .ep = alias_of(p), .status = status};
    WML_PUSH(&r->stage, s);
    return &r->stage.at[r->stage.len - 1];
}

static bool same_options(const struct wml_bundle_provider *a, const struct wml_bundle_provider *b)
{
    size_t same = 0;
    for (size_t i = 0; i < a->n_options; i++)
        for (size_t k = 0; k < b->n_options; k++)
            same += strcmp(a->option[i].key, b->option[k].key) == 0 && strcmp(a->option[i].value, b->option[k].value) == 0;
    return a->ep == b->ep && a->n_options == b->n_options && same == a->n_options;
}

/* What a source is: 1 to be compiled, 0 compiled already, -1 not to be read. */
static int look(struct wml_genai_run *r, size_t stage, struct wml_err *err)
{
    struct wml_model *m = NULL;
    if (!wml_onnx_load(wml_path_in(&r->arena, r->dir, r->bundle.stage[stage].source), &m, err)) return -1;
    int plain = !wml_model_has_epctx(m);
    wml_model_free(m);
    return plain;
}

static void put_into_group(struct wml_genai_run *r, struct groups *gs, size_t stage, const struct wml_bundle_provider *p)
{
    struct wml_genai_group *g = NULL;
    for (size_t i = 0; i < gs->v.len && !g; i++)
        if (same_options(gs->v.at[i]->provider, p)) g = gs->v.at[i];
    if (!g) {
        g = WML_NEW(&r->arena, struct wml_genai_group);
        g->provider = p;
        WML_PUSH_IN(&r->arena, &gs->v, g);
    }
    g->stage[g->n++] = stage;
}

static void say(struct wml_genai_run *r, const struct wml_genai_stage *s)
{
    const char *name = r->bundle.stage[s->index].name;
    if (strcmp(s->status, "salvaged") == 0)
        wml_genai_warn(r, "stage '%s': the compiler's process ended with %s, but its finished result was kept", name, s->exit);
    else if (strcmp(s->status, "compiled") == 0 || strcmp(s->status, "cached") == 0)
        wml_log(r->cx, WML_LOG_INFO, "stage '%s': %s for %s", name, s->status, s->ep);
    else
        wml_genai_warn(r, "stage '%s' is not compiled and runs from its source: %s", name, s->note ? s->note : s->status);
}

static void find_groups(struct wml_genai_run *r, struct groups *gs)
{
    for (size_t i = 0; i < r->bundle.n_stages; i++) {
        const struct wml_bundle_stage *s = &r->bundle.stage[i];
        const struct wml_bundle_provider *p = s->n_providers ? &s->provider[0] : NULL;
        struct wml_err err = {0};
        if (!p || !s->source || !*s->source) continue;
        if (s->n_providers > 1 || !p->ep || !p->ep->compiles || !wml_genai_target_of(r, p->ep)) {
            struct wml_genai_stage *skipped = note(r, i, p, "skipped");
            skipped->note = s->n_providers > 1 ? "it names several EPs" : p->ep && p->ep->compiles ? "the EP cannot be had here" : "the EP does not compile";
            say(r, skipped);
            continue;
        }
        int plain = look(r, i, &err);
        if (plain > 0) put_into_group(r, gs, i, p);
        else if (!plain) note(r, i, p, "precompiled");
        else {
            struct wml_genai_stage *unread = note(r, i, p, "failed");
            unread->note = wml_arena_cstr(&r->arena, wml_str(err.msg));
            say(r, unread);
        }
    }
}

/* --- one group --- */

static const struct wml_target_spec *target_spec(const struct wml_genai_run *r, const struct wml_ep *ep)
{
    for (size_t i = 0; i < r->target.len; i++)
        if (r->target.at[i].ep == ep) return &r->target.at[i].spec;
    return NULL;
}

static const char *device_in(struct wml_genai_run *r, const struct wml_ep *ep)
{
    return wml_arena_cstr(&r->arena, wml_json_get_str(wml_genai_target_of(r, ep), "device"));
}

/* By the machinery of `winml compile`. */
static bool compile_stages(struct wml_genai_run *r, const struct wml_genai_group *g, const char *temp, struct wml_compile_run *c, struct wml_err *err)
{
    size_t n = g->n;
    const struct wml_target_spec *spec = target_spec(r, g->provider->ep);
    struct wml_compile_args args = {.compiler = "ort", .isolate = true, .overwrite = true, .timeout_ms = (uint64_t)(r->args->compile_timeout_s * 1000) * n,
                                    .target = {.ep = spec->ep, .device = device_in(r, g->provider->ep), .option = g->provider->option,
                                               .n_options = g->provider->n_options, .for_compile = true}};
    *c = (struct wml_compile_run){.args = &args, .cx = r->cx, .n = n, .ep = g->provider->ep, .dir = temp, .of_bundle = true};
    c->unit = WML_NEW_ARRAY(&r->arena, struct wml_compile_unit, n + 1);
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        struct wml_compile_unit *u = &c->unit[i];
        u->model = wml_path_in(&r->arena, r->dir, r->bundle.stage[g->stage[i]].source);
        u->name = wml_genai_artifact(r, g->stage[i], g->provider);
        u->output = wml_path_in(&r->arena, temp, u->name);
        ok = wml_compile_source_sha(u->model, u->source_sha, err);
    }
    ok = ok && wml_compile_stage(c, err) && wml_compile_publish(c, err);
    for (size_t i = 0; ok && i < n; i++) ok = wml_genai_write_meta(r, g, g->stage[i], c->unit[i].source_sha, temp, err);
    if (c->stage) wml_dir_remove(c->stage);
    c->args = NULL;
    return ok;
}

static void drop(struct wml_genai_run *r, const struct wml_genai_group *g, size_t stage, const char *temp)
{
    const char *artifact = wml_genai_artifact(r, stage, g->provider);
    wml_file_remove(wml_path_in(&r->arena, temp, artifact));
    wml_file_remove(wml_genai_meta_path(r, temp, artifact));
}

static void record(struct wml_genai_run *r, const struct wml_genai_group *g, const struct wml_compile_run *c, bool ok, double ms,
                   const struct wml_err *err)
{
    for (size_t i = 0; i < g->n; i++) {
        const char *status = !ok ? (err->code == WML_E_TIMEOUT ? "timeout" : "failed") : c->salvaged ? "salvaged" : "compiled";
        struct wml_genai_stage *s = note(r, g->stage[i], g->provider, status);
        s->shared = g->n > 1;
        s->ms = ok && c->unit[i].compile_ms > 0 ? c->unit[i].compile_ms : ms;
        s->exit = c->ended[0] && strcmp(c->ended, "exit status 0") != 0 ? wml_arena_cstr(&r->arena, wml_str(c->ended)) : NULL;
        s->note = ok ? c->salvaged ? wml_arena_cstr(&r->arena, wml_str(c->salvaged)) : NULL : wml_arena_cstr(&r->arena, wml_str(err->msg));
        if (ok) {
            s->artifact = wml_genai_artifact(r, s->index, g->provider);
            wml_bundle_set_file(&r->bundle, s->index, s->artifact);
        }
        say(r, s);
    }
}

static bool try(struct wml_genai_run *r, const struct wml_genai_group *g, bool last, const char *temp, struct wml_err *err)
{
    struct wml_compile_run c;
    uint64_t start = wml_now_ns();
    wml_note_progress(r->cx, "Compiling", r->bundle.stage[g->stage[0]].name, 0, 0, NULL);
    bool ok = compile_stages(r, g, temp, &c, err);
    double ms = (double)(wml_now_ns() - start) / 1e6;
    for (size_t i = 0; !ok && i < g->n; i++) drop(r, g, g->stage[i], temp);
    if (err->code != WML_E_CANCELLED && (ok || last)) record(r, g, &c, ok, ms, err);
    WML_VEC_RELEASE(&c.warning);
    wml_arena_release(&c.arena);
    return ok;
}

static struct wml_genai_group *alone(struct wml_genai_run *r, const struct wml_genai_group *g, size_t i)
{
    struct wml_genai_group *one = WML_NEW(&r->arena, struct wml_genai_group);
    one->provider = g->provider;
    one->stage[one->n++] = g->stage[i];
    wml_genai_make_key(r, one);
    return one;
}

/* All together first; when that fails, each alone, once. */
static bool compile_group(struct wml_genai_run *r, const struct wml_genai_group *g, const char *temp, struct wml_err *err)
{
    struct wml_err failed = {0};
    if (try(r, g, g->n == 1, temp, &failed)) return true;
    if (failed.code != WML_E_CANCELLED && g->n > 1) {
        wml_genai_warn(r, "the %zu stages on %s cannot be compiled together (%s): each is tried alone", g->n, alias_of(g->provider), failed.msg);
        for (size_t i = 0; i < g->n && failed.code != WML_E_CANCELLED; i++) {
            failed = (struct wml_err){0};
            try(r, alone(r, g, i), true, temp, &failed);
        }
    }
    if (failed.code != WML_E_CANCELLED) return true;
    *err = failed;
    return false;
}

/* --- all of them --- */

/* Fresh groups are taken over. In place: they stay where they are, since nothing is to be made. */
static bool take_fresh(struct wml_genai_run *r, const struct groups *gs, const char *dir, const char *temp, bool in_place, struct wml_err *err)
{
    for (size_t i = 0; i < gs->v.len; i++) {
        const struct wml_genai_group *g = gs->v.at[i];
        for (size_t k = 0; g->fresh && k < g->n; k++) {
            if (!in_place && !wml_genai_copy_stage(r, g, g->stage[k], dir, temp, err)) return false;
            struct wml_genai_stage *s = note(r, g->stage[k], g->provider, "cached");
            s->shared = g->n > 1;
            s->artifact = wml_genai_artifact(r, s->index, g->provider);
            r->reused = true;
        }
    }
    return true;
}

static bool any_compiled(const struct wml_genai_run *r)
{
    for (size_t i = 0; i < r->stage.len; i++)
        if (r->stage.at[i].artifact) return true;
    return false;
}

static int by_stage(const void *a, const void *b)
{
    size_t x = ((const struct wml_genai_stage *)a)->index, y = ((const struct wml_genai_stage *)b)->index;
    return x < y ? -1 : x > y;
}

/* What an earlier run left is taken, also where it had to compile each stage alone. */
static bool find_fresh(struct wml_genai_run *r, struct groups *gs, const char *dir, bool anew)
{
    struct groups all = {0};
    bool fresh = true;
    for (size_t i = 0; i < gs->v.len; i++) {
        struct wml_genai_group *g = gs->v.at[i], *one[WML_COUNT(g->stage)];
        bool apart = g->n > 1;
        wml_genai_make_key(r, g);
        g->fresh = !anew && !(r->apart && g->n > 1) && wml_genai_is_fresh(r, g, dir);
        for (size_t k = 0; apart && !g->fresh && k < g->n; k++) {
            one[k] = alone(r, g, k);
            one[k]->fresh = !anew && wml_genai_is_fresh(r, one[k], dir);
            apart = r->apart || one[k]->fresh;
        }
        if (!apart || g->fresh) WML_PUSH_IN(&r->arena, &all.v, g);
        for (size_t k = 0; apart && !g->fresh && k < g->n; k++) WML_PUSH_IN(&r->arena, &all.v, one[k]);
    }
    *gs = all;
    for (size_t i = 0; i < gs->v.len; i++) {
        const struct wml_genai_group *g = gs->v.at[i];
        fresh = fresh && g->fresh;
        for (size_t k = 0; g->fresh && k < g->n; k++) wml_bundle_set_file(&r->bundle, g->stage[k], wml_genai_artifact(r, g->stage[k], g->provider));
    }
    return fresh;
}

static bool make(struct wml_genai_run *r, struct groups *gs, bool anew, struct wml_err *err)
{
    const char *parent, *dir, *temp;
    bool ok = wml_genai_compiled_place(r, &parent, &dir, &temp, err);
    if (!ok) return false;
    bool all = find_fresh(r, gs, dir, anew);
    bool in_place = all && wml_genai_is_complete(r, dir);
    ok = take_fresh(r, gs, dir, temp, in_place, err);
    for (size_t i = 0; ok && i < gs->v.len; i++)
        if (!gs->v.at[i]->fresh) ok = compile_group(r, gs->v.at[i], temp, err);
    if (ok && any_compiled(r)) {
        ok = in_place || wml_genai_complete(r, parent, temp, dir, err);
        r->load_dir = r->compiled_dir = dir;
    }
    wml_dir_remove(temp);
    return ok;
}

/* Two runs over one bundle: the second waits, and finds what the first has made. */
static bool lock(struct wml_genai_run *r, struct wml_lock *l, struct wml_err *err)
{
    bool said = false;
    if (!r->cx->cache_dir) return true;
    const char *path = wml_arena_fmt(&r->arena, "%s.lock", wml_genai_cache_place(r)).ptr;
    if (!wml_dir_make(wml_arena_cstr(&r->arena, wml_path_dir(wml_str(path))), err)) return false;
    for (;; wml_sleep_ms(100)) {
        if (!wml_lock_try(l, path, err) || l->file) return l->file != 0;
        if (!said) wml_log(r->cx, WML_LOG_WARN, "another run compiles this bundle: waiting for it");
        said = true;
        if (!wml_check_cancel(r->cx, err)) return false;
    }
}

bool wml_genai_compile(struct wml_genai_run *r, bool anew, struct wml_err *err)
{
    struct groups gs = {0};
    struct wml_lock held = {0};
    uint64_t start = wml_now_ns();
    r->stage.len = 0;
    r->reused = false;
    r->compiled_dir = NULL;
    for (size_t i = 0; i < r->bundle.n_stages; i++) wml_bundle_set_file(&r->bundle, i, r->bundle.stage[i].source);
    find_groups(r, &gs);
    bool ok = !gs.v.len || (lock(r, &held, err) && make(r, &gs, anew, err));
    wml_lock_release(&held);
    if (r->stage.len) qsort(r->stage.at, r->stage.len, sizeof *r->stage.at, by_stage);
    if (ok && !r->stage.len) wml_log(r->cx, WML_LOG_WARN, "--compile: all stages run on the CPU, so there is nothing to compile");
    r->compile_ms = (double)(wml_now_ns() - start) / 1e6;
    wml_end_progress(r->cx);
    return ok;
}

void wml_genai_blame(struct wml_genai_run *r, struct wml_err *err)
{
    enum { LIMIT_MS = 60000 };
    for (size_t i = 0; r->compiled_dir && i < r->stage.len; i++) {
        const struct wml_genai_stage *s = &r->stage.at[i];
        const struct wml_bundle_provider *p = &r->bundle.stage[s->index].provider[0];
        struct wml_target_load load;
        if (!s->artifact) continue;
        struct wml_target_spec spec = {.ep = target_spec(r, p->ep)->ep, .device = device_in(r, p->ep), .option = p->option, .n_options = p->n_options};
        wml_note_progress(r->cx, "Looking for the stage", r->bundle.stage[s->index].name, 0, 0, NULL);
        wml_target_load(r->cx, &spec, wml_path_in(&r->arena, r->compiled_dir, s->artifact), LIMIT_MS, &r->arena, &load);
        wml_json_free(load.reply);
        if (load.ok || load.absent) continue;
        struct wml_err was = *err;
        wml_fail(err, was.code, "%s; compiled stage '%s' (%s in %s) does not load: %s", was.msg, r->bundle.stage[s->index].name, s->artifact, r->compiled_dir, load.note);
        wml_hint(err, "leave --compile out, or remove that folder; --device cpu runs all on the CPU");
        return;
    }
}
