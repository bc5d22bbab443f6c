/* The EP half of `sys`: every library is loaded in a child process of its own, so a driver that crashes
 * is a row that says so, and two versions of one EP never meet in a process. */
#include "flow/sys/internal.h"

#include "os/thread.h"
#include "text/json.h"
#include "worker/worker.h"

enum { LOAD_LIMIT_MS = 30000, AT_ONCE = 4 };

static void probe(struct wml_sys_ep *e, struct wml_ctx *cx)
{
    struct wml_buf request = {0};
    struct wml_json j = {.out = &request};
    struct wml_worker_reply reply;
    struct wml_err err = {0};
    wml_json_begin(&j, '{');
    wml_json_key(&j, "name");
    wml_json_put_cstr(&j, e->library->name);
    if (e->library->path) {
        wml_json_key(&j, "library");
        wml_json_put_cstr(&j, e->library->path);
    }
    wml_json_end(&j, '}');
    struct wml_worker_call call = {.job = "devices", .request = wml_buf_view(&request),
                                   .timeout_ms = LOAD_LIMIT_MS};
    if (wml_worker_call(cx, &call, &reply, &err)) {
        e->reply = reply.json;
        reply.json = NULL;
        if (reply.salvaged) snprintf(e->error, sizeof e->error, "its process %s", reply.ended);
    } else {
        snprintf(e->error, sizeof e->error, "%s", err.msg);
    }
    wml_worker_reply_release(&reply);
    wml_buf_release(&request);
}

struct lane {
    struct wml_sys_eps *eps;
    struct wml_ctx cx; /* silent: sinks belong to the main thread */
    size_t first, step;
    struct wml_thread *thread;
};

static void run_lane(void *arg)
{
    struct lane *l = arg;
    for (size_t i = l->first; i < l->eps->v.len; i += l->step) probe(&l->eps->v.at[i], &l->cx);
}

static const struct wml_json_val *devices_of(const struct wml_sys_ep *e)
{
    return wml_json_get(wml_json_root(e->reply), "devices");
}

/* The devices of a built-in EP are those that carry its name in the answer for all built-in ones. */
size_t wml_sys_ep_devices(const struct wml_sys_ep *e, const struct wml_json_val **at, size_t max)
{
    const struct wml_json_val *list = devices_of(e);
    size_t n = 0;
    for (size_t i = 0; i < wml_json_len(list); i++) {
        const struct wml_json_val *d = wml_json_at(list, i);
        if (wml_str_is(wml_json_get_str(d, "ep"), e->library->name) && n < max) at[n++] = d;
    }
    return n;
}

static void judge(struct wml_sys_eps *eps)
{
    for (size_t i = 0; i < eps->v.len; i++) {
        struct wml_sys_ep *e = &eps->v.at[i];
        const struct wml_json_val *one[1];
        bool taken = false;
        for (size_t k = 0; k < i; k++)
            taken = taken || (strcmp(eps->v.at[k].library->name, e->library->name) == 0 &&
                              eps->v.at[k].status == WML_EP_PRIMARY);
        if (!e->reply) e->status = WML_EP_FAILED;
        else if (!wml_sys_ep_devices(e, one, 1)) {
            e->status = WML_EP_INCOMPATIBLE;
            snprintf(e->error, sizeof e->error, "it offers no device on this machine");
        } else e->status = taken ? WML_EP_SHADOWED : WML_EP_PRIMARY;
    }
}

bool wml_sys_eps_find(struct wml_ctx *cx, struct wml_sys_eps *out, struct wml_err *err)
{
    struct lane lane[AT_ONCE] = {0};
    *out = (struct wml_sys_eps){0};
    if (!wml_ep_discover(cx, &out->libraries, err)) return false;
    for (size_t i = 0; i < out->libraries.v.len; i++) {
        struct wml_sys_ep e = {.library = &out->libraries.v.at[i]};
        WML_PUSH(&out->v, e);
    }
    wml_note_progress(cx, "Asking the EPs", NULL, 0, out->v.len, NULL);
    size_t n = WML_MIN((size_t)AT_ONCE, out->v.len);
    for (size_t i = 0; i < n; i++) {
        struct wml_err ignored = {0};
        lane[i] = (struct lane){.eps = out, .first = i, .step = n,
                                .cx = {.level = cx->level, .cancel = cx->cancel, .cache_dir = cx->cache_dir,
                                       .program = cx->program}};
        if (!wml_thread_start(&lane[i].thread, run_lane, &lane[i], &ignored)) run_lane(&lane[i]);
    }
    for (size_t i = 0; i < n; i++) wml_thread_join(lane[i].thread);
    wml_end_progress(cx);
    judge(out);
    return wml_check_cancel(cx, err);
}

void wml_sys_eps_release(struct wml_sys_eps *eps)
{
    for (size_t i = 0; i < eps->v.len; i++) wml_json_free(eps->v.at[i].reply);
    WML_VEC_RELEASE(&eps->v);
    wml_ep_libraries_release(&eps->libraries);
}

const char *wml_ep_status_name(enum wml_ep_status s)
{
    static const char *const name[] = {"primary", "shadowed", "failed", "incompatible"};
    return name[s];
}
