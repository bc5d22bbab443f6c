/* What the target thinks of the result: a child loads the saved file on it and tells where the nodes went; another one
 * does so with the source, for comparison. Every outcome is a note in the report, the file is there already; but what
 * was done only because the target wants it is undone when the target took more nodes before. */
#include "flow/optimize/internal.h"

#include <inttypes.h>

#include "os/path.h"
#include "worker/target.h"
#include "worker/worker.h"

/* A load that took longer is not repeated for the source when every node of the result is on the target anyway. */
enum { BEFORE_LIMIT_MS = 20000 };

static void hint_for(struct wml_optimize_run *r)
{
    const struct wml_target_spec *t = &r->args->target;
    struct wml_str target = wml_arena_fmt(&r->arena, "%s%s%s%s", t->ep ? " --ep " : "", t->ep ? t->ep : "",
                                          t->device ? " --device " : "", t->device ? t->device : "");
    r->target_hint = wml_arena_fmt(&r->arena, "the optimized model is written; try `winml compile -m %s%.*s`, or "
                                   "`winml perf -m %s%.*s -v` to see what the EP says", r->staged.output, WML_ARG(target),
                                   r->staged.output, WML_ARG(target)).ptr;
}

/* The source on the target. It is not asked when that would tell nothing. */
static void look_at_source(struct wml_optimize_run *r, const struct wml_target_load *after)
{
    struct wml_target_load before = {0};
    if (r->placed_before.on >= 0 || after->absent) return;
    if (after->ok && (r->placed_after.on < 0 || (!r->placed_after.elsewhere && after->wall_ms > BEFORE_LIMIT_MS))) return;
    wml_note_progress(r->cx, "Loading the source on the target", r->args->model, 0, 0, NULL);
    wml_target_load(r->cx, &r->args->target, r->args->model, r->args->timeout_ms, &r->arena, &before);
    if (before.ok) r->placed_before = wml_target_count(wml_json_root(before.reply));
    wml_json_free(before.reply);
}

/* Why the target was better off before; NULL: it was not. */
static const char *worse(struct wml_optimize_run *r, const struct wml_target_load *after)
{
    const struct wml_placed_count *a = &r->placed_before, *b = &r->placed_after;
    if (a->on < 0 || after->absent) return NULL;
    if (!after->ok) return wml_arena_fmt(&r->arena, "the target loads the source, but not the result").ptr;
    if (b->on < 0 || b->elsewhere <= a->elsewhere) return NULL;
    return wml_arena_fmt(&r->arena, "the target leaves %" PRId64 " nodes of the result to others, of the source %" PRId64,
                         b->elsewhere, a->elsewhere).ptr;
}

bool wml_optimize_check_target(struct wml_optimize_run *r, const char **why_worse)
{
    struct wml_target_load after;
    wml_note_progress(r->cx, "Loading on the target", r->staged.name, 0, 0, NULL);
    wml_json_free(r->placement);
    wml_target_load(r->cx, &r->args->target, r->staged.output, r->args->timeout_ms, &r->arena, &after);
    r->placement = after.reply;
    r->target_status = after.ok ? "loads" : after.absent ? "not verified" : "failed";
    r->target_note = after.note;
    r->target_hint = NULL;
    if (!after.ok && !after.absent) hint_for(r);
    r->placed_after = after.ok ? wml_target_count(wml_json_root(after.reply)) : (struct wml_placed_count){-1, -1};
    look_at_source(r, &after);
    *why_worse = worse(r, &after);
    return !*why_worse;
}
