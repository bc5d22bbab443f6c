/* What the target wants beyond the defaults: rows of its EP, switched on unless the user switched them off. Those with a
 * question are asked of the installed EP once they did something, with a graph of a few nodes in a child process: an EP
 * that takes such nodes by itself gets the model without that rewrite. */
#include "ep/want.h"
#include "flow/optimize/internal.h"
#include "graph/edit.h"
#include "graph/text.h"
#include "os/file.h"
#include "os/path.h"
#include "worker/target.h"
#include "worker/worker.h"

enum { ASK_LIMIT_MS = 60000 };

bool wml_optimize_target(struct wml_optimize_run *r, struct wml_err *err)
{
    const struct wml_optimize_args *a = r->args;
    if (!a->has_target) return true;
    if (!wml_target_check(&a->target, &r->ep, err)) return false;
    if (!r->ep && (!a->target.ep || !*a->target.ep || strcmp(a->target.ep, "auto") == 0)) r->ep = wml_target_ask_ep(r->cx, &r->args->target);
    return true;
}

bool wml_optimize_target_takes(const struct wml_optimize_run *r, struct wml_str op)
{
    return !r->args->has_target || wml_ep_has_op(r->ep, op);
}

static enum wml_device_type device_of(const struct wml_optimize_run *r)
{
    const char *text = r->args->target.device;
    if (text)
        for (enum wml_device_type t = WML_DEVICE_CPU; t <= WML_DEVICE_NPU; t++) {
            size_t n = strcspn(text, ":");
            if (wml_str_ieq((struct wml_str){text, n}, wml_str(wml_device_type_name(t)))) return t;
        }
    return r->ep->device[0].type;
}

/* Where the plugin lies, looked for among files only; NULL: nowhere here. */
static const char *library_of(struct wml_optimize_run *r)
{
    const char *at = r->args->target.ep ? strchr(r->args->target.ep, '@') : NULL, *path = NULL;
    struct wml_ep_libraries found = {0};
    struct wml_err ignored = {0};
    if (at && wml_file_exists(at + 1)) return at + 1;
    if (wml_ep_discover(r->cx, &found, &ignored))
        for (size_t i = 0; i < found.v.len && !path; i++)
            if (found.v.at[i].ep == r->ep && found.v.at[i].path) path = wml_arena_cstr(&r->arena, wml_str(found.v.at[i].path));
    wml_ep_libraries_release(&found);
    return path;
}

/* Whether the runtime under the EP is as old as the want needs it. */
static bool is_old(struct wml_optimize_run *r, struct wml_want_state *w)
{
    char version[64];
    const char *library = library_of(r);
    const char *name = r->ep->label;
    if (!library || !r->ep->runtime_version || !r->ep->runtime_version(library, version))
        w->reason = wml_arena_fmt(&r->arena, "the version of %s is not known here", name).ptr;
    else if (wml_version_below(version, w->want->before)) return true;
    else w->reason = wml_arena_fmt(&r->arena, "%s here is %s, it is mended since %s", name, version, w->want->before).ptr;
    return false;
}

void wml_optimize_wants_find(struct wml_optimize_run *r)
{
    if (!r->args->has_target || !r->ep) return;
    enum wml_device_type device = device_of(r);
    r->want = WML_NEW_ARRAY(&r->arena, struct wml_want_state, r->ep->n_wants + 1);
    for (size_t i = 0; i < r->ep->n_wants; i++) {
        const struct wml_ep_want *want = &r->ep->want[i];
        size_t pass = wml_pass_find(wml_str(want->pass));
        if (want->device != device || pass == SIZE_MAX) continue;
        struct wml_want_state *w = &r->want[r->n_wants++];
        *w = (struct wml_want_state){.want = want, .pass = pass};
        w->on = !want->before || is_old(r, w);
        if (w->on && r->args->choice[pass] == WML_PASS_OFF) {
            w->on = false;
            w->reason = "switched off";
        }
    }
}

void wml_optimize_wants_choose(struct wml_optimize_run *r)
{
    for (size_t i = 0; i < r->n_wants; i++)
        if (r->want[i].on) r->choice[r->want[i].pass] = WML_PASS_ON;
}

/* The EP takes every node of the question by itself. false also when it cannot be asked. */
static bool takes(struct wml_optimize_run *r, const char *question)
{
    struct wml_model *m = NULL;
    struct wml_buf dir = {0}, path = {0};
    struct wml_target_load load = {0};
    struct wml_err ignored = {0};
    bool ok = wml_model_parse(wml_str(question), &m, &ignored) && wml_dir_temp(NULL, "winml-ask-", &dir, &ignored);
    if (ok) wml_path_join(&path, wml_buf_view(&dir), WML_STR("ask.onnx"));
    ok = ok && wml_onnx_save(m, wml_buf_text(&path), NULL, NULL, &ignored);
    if (ok) wml_target_load(r->cx, &r->args->target, wml_buf_text(&path), ASK_LIMIT_MS, &r->arena, &load);
    struct wml_placed_count n = load.ok ? wml_target_count(wml_json_root(load.reply)) : (struct wml_placed_count){-1, -1};
    if (dir.len) wml_dir_remove(wml_buf_text(&dir));
    wml_json_free(load.reply);
    wml_model_free(m);
    wml_buf_release(&dir);
    wml_buf_release(&path);
    return n.on > 0 && !n.elsewhere;
}

bool wml_optimize_wants_ask(struct wml_optimize_run *r, struct wml_err *err)
{
    bool again = false;
    if (!r->args->verify_target) return true;
    for (size_t i = 0; i < r->n_wants; i++) {
        struct wml_want_state *w = &r->want[i];
        if (!w->on || !w->want->ask || !r->result[w->pass].applied || r->args->choice[w->pass] == WML_PASS_ON) continue;
        wml_note_progress(r->cx, "Asking the target", w->want->pass, 0, 0, NULL);
        if (!takes(r, w->want->ask)) continue;
        w->on = false;
        w->reason = wml_arena_fmt(&r->arena, "%s here takes such nodes by itself", r->ep->label).ptr;
        r->choice[w->pass] = r->args->choice[w->pass];
        again = true;
        if (!wml_check_cancel(r->cx, err)) return false;
    }
    return !again || wml_optimize_make(r, 0, NULL, NULL, err);
}

bool wml_optimize_wants_undo(struct wml_optimize_run *r, const char *why)
{
    bool any = false;
    for (size_t i = 0; i < r->n_wants; i++) {
        struct wml_want_state *w = &r->want[i];
        if (!w->on || !r->result[w->pass].applied || r->args->choice[w->pass] == WML_PASS_ON) continue;
        w->on = false;
        w->reason = wml_arena_fmt(&r->arena, "undone: %s", why).ptr;
        r->choice[w->pass] = WML_PASS_OFF;
        any = true;
    }
    return any;
}

void wml_optimize_wants_report(const struct wml_optimize_run *r, struct wml_item *target, struct wml_item *root)
{
    static const struct wml_column columns[] = {{.key = "capability", .label = "Wanted by the target"}, {.key = "status", .label = "Status"},
                                                {.key = "changes", .label = "Changes", .right = true},
                                                {.key = "why", .label = "Why"}, {.key = "reason"}};
    struct wml_item *list = wml_item_array(target, "wants", NULL);
    struct wml_item *table = r->n_wants ? wml_item_table(root, NULL, NULL, columns, WML_COUNT(columns)) : NULL;
    for (size_t i = 0; i < r->n_wants; i++) {
        const struct wml_want_state *w = &r->want[i];
        struct wml_item *both[] = {wml_item_object(list, NULL, NULL), wml_table_row(table)};
        const char *status = !w->on ? "not applied" : r->result ? wml_pass_status_name(r->result[w->pass].status) : "wanted";
        const char *why = w->reason ? w->reason : w->want->why;
        for (size_t k = 0; k < WML_COUNT(both); k++) {
            wml_item_cstr(both[k], "capability", NULL, w->want->pass);
            wml_item_cstr(both[k], "status", NULL, status);
            wml_item_int(both[k], "changes", NULL, w->on && r->result ? (int64_t)r->result[w->pass].applied : 0, WML_SHOW_COUNT);
            wml_item_cstr(both[k], "why", NULL, k ? why : w->want->why);
        }
        wml_item_cstr(both[0], "reason", NULL, w->reason);
    }
}
