/* Which EP a bundle runs on: what the command line says, what the bundle says, what this machine has. Everything that loads a
 * library to find out is a child's work. */
#include "flow/genai/internal.h"

#include "flow/target.h"
#include "os/file.h"
#include "os/path.h"

static bool is_config(const char *device)
{
    return !device || strcmp(device, "config") == 0;
}

static const struct wml_json_val *target_in(const struct wml_json_doc *doc)
{
    return wml_json_get(wml_json_root(doc), "target");
}

const struct wml_json_val *wml_genai_target_of(const struct wml_genai_run *r, const struct wml_ep *ep)
{
    for (size_t i = 0; i < r->target.len; i++)
        if (r->target.at[i].ep == ep) return target_in(r->target.at[i].doc);
    return NULL;
}

/* Each EP is asked for once. NULL: not to be had, as err says. */
static const struct wml_genai_target *find(struct wml_genai_run *r, const char *ep, const char *device, struct wml_err *err)
{
    struct wml_genai_target t = {.spec = {.ep = ep, .device = device}};
    wml_note_progress(r->cx, "Finding the target", ep, 0, 0, NULL);
    t.doc = wml_target_ask(r->cx, &t.spec, WML_TARGET_ASK_MS, false, err);
    if (!t.doc) return NULL;
    t.ep = wml_ep_find(wml_json_get_str(target_in(t.doc), "ep"));
    t.name = t.ep ? wml_bundle_provider_name(t.ep) : wml_arena_cstr(&r->arena, wml_json_get_str(target_in(t.doc), "ep"));
    if (t.ep) t.spec.ep = ep && strchr(ep, '@') ? ep : t.ep->name;
    if (!device) t.spec.device = wml_arena_cstr(&r->arena, wml_json_get_str(target_in(t.doc), "device"));
    WML_PUSH(&r->target, t);
    return &r->target.at[r->target.len - 1];
}

/* An EP that the bundle was made for, when it has that kind of device and is to be had. */
static const struct wml_genai_target *own_ep(struct wml_genai_run *r, const char *device)
{
    const struct wml_bundle *b = &r->bundle;
    for (size_t i = 0; i < b->n_stages; i++)
        for (size_t k = 0; k < b->stage[i].n_providers; k++) {
            struct wml_err ignored = {0};
            const struct wml_ep *ep = b->stage[i].provider[k].ep;
            struct wml_target_spec spec = {.ep = ep ? ep->name : NULL, .device = device};
            if (!ep || !wml_target_check(&spec, &ep, &ignored)) continue;
            const struct wml_genai_target *t = find(r, spec.ep, device, &ignored);
            if (t) return t;
        }
    return NULL;
}

static bool by_device(struct wml_genai_run *r, const char *device, const struct wml_genai_target **out, struct wml_err *err)
{
    const char *wanted = strcmp(device, "auto") == 0 ? NULL : device;
    *out = own_ep(r, wanted);
    if (!*out) *out = find(r, NULL, wanted, err);
    if (*out) return true;
    if (err->code != WML_E_CANCELLED) err->code = WML_E_USAGE;
    return wml_wrap(err, "--device %s", device);
}

static bool choose(struct wml_genai_run *r, const struct wml_ep **cpu, const struct wml_genai_target **out, struct wml_err *err)
{
    const struct wml_target_spec *t = &r->args->target;
    const char *device = is_config(t->device) ? NULL : t->device;
    struct wml_target_spec plain = {.ep = t->ep, .device = device && strcmp(device, "auto") == 0 ? NULL : device};
    const struct wml_ep *ep = NULL;
    *out = NULL;
    *cpu = NULL;
    if (!t->ep && !device) return true;
    if (!wml_target_check(&plain, &ep, err)) {
        if (err->code == WML_E_NOT_FOUND && t->ep) err->code = WML_E_USAGE;
        return false;
    }
    if (wml_ep_is_cpu(ep) || (!t->ep && strcmp(device, "cpu") == 0)) {
        *cpu = wml_ep_find(WML_STR("cpu"));
        return true;
    }
    if (t->ep) return (*out = find(r, t->ep, plain.device, err)) != NULL;
    if (!by_device(r, device, out, err)) return false;
    if (wml_ep_is_cpu((*out)->ep)) {
        *cpu = (*out)->ep;
        *out = NULL;
    }
    return true;
}

static bool override(struct wml_genai_run *r, struct wml_err *err)
{
    const struct wml_genai_target *t;
    struct wml_bundle_override o = {0};
    struct wml_pair *defaults = NULL;
    r->ep = "config";
    if (!choose(r, &o.ep, &t, err)) return false;
    if (!o.ep && !t) return true;
    if (t) {
        o.ep = t->ep;
        o.ep_name = t->name;
        o.device = t->spec.device;
        o.n_defaults = wml_json_pairs(wml_json_get(target_in(t->doc), "options"), &r->arena, &defaults);
        o.defaults = defaults;
    }
    if (wml_bundle_route(&r->bundle, &o)) r->ep = wml_arena_cstr(&r->arena, wml_str(o.ep ? o.ep->alias[0] : o.ep_name));
    else wml_genai_warn(r, "no stage of the bundle runs on %s: all are made for the CPU and stay there", o.ep ? o.ep->label : o.ep_name);
    return true;
}

static bool set_options(struct wml_genai_run *r, struct wml_err *err)
{
    const struct wml_target_spec *t = &r->args->target;
    bool several;
    const struct wml_ep *ep = wml_bundle_ep(&r->bundle, &several);
    if (!t->n_options) return true;
    if (several && strcmp(r->ep, "config") == 0) {
        wml_fail(err, WML_E_USAGE, "--ep-options: the stages of this bundle run on several EPs");
        return wml_hint(err, "say whose options they are with --ep");
    }
    if (!several && !ep && wml_bundle_runs_on(&r->bundle, wml_ep_find(WML_STR("cpu")))) {
        wml_genai_warn(r, "--ep-options is ignored: all stages run on the CPU");
        return true;
    }
    wml_bundle_set_options(&r->bundle, several ? wml_ep_find(wml_str(r->ep)) : ep, t->option, t->n_options);
    return true;
}

static bool is_file_of(const char *library, const char *name)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_path_dir(wml_str(library)), wml_str(name));
    bool there = wml_file_exists(wml_buf_text(&path));
    wml_buf_release(&path);
    return there;
}

/* A bundle made for another system names that system's back end ("QnnHtp.dll"): here another file does the same. */
static void fix_backend(struct wml_genai_run *r, const struct wml_bundle_provider *p, const struct wml_json_val *target)
{
    const char *library = wml_arena_cstr(&r->arena, wml_json_get_str(target, "library"));
    const char *typed = wml_pair_find(p->option, p->n_options, "backend_path");
    struct wml_pair backend = {"backend_path", wml_arena_cstr(&r->arena, wml_json_get_str(wml_json_get(target, "options"), "backend_path"))};
    if (wml_pair_find(p->option, p->n_options, "backend_type")) return;
    if (!*backend.value || !*library || (typed && (wml_file_exists(typed) || is_file_of(library, typed)))) return;
    if (typed) wml_log(r->cx, WML_LOG_INFO, "%s is not on this system: %s is used", typed, backend.value);
    wml_bundle_set_options(&r->bundle, p->ep, &backend, 1);
}

/* Every EP that stages name now. One that cannot be had is a warning: the library will say what it means. */
static void find_eps(struct wml_genai_run *r)
{
    struct wml_bundle *b = &r->bundle;
    for (size_t i = 0; i < b->n_stages; i++)
        for (size_t k = 0; k < b->stage[i].n_providers; k++) {
            const struct wml_bundle_provider *p = &b->stage[i].provider[k];
            struct wml_err err = {0};
            bool known = false;
            for (size_t n = 0; n < r->target.len; n++) known = known || (p->ep ? r->target.at[n].ep == p->ep : strcmp(r->target.at[n].name, p->name) == 0);
            if (!known && !find(r, p->ep ? p->ep->name : p->name, NULL, &err)) {
                struct wml_genai_target lost = {.ep = p->ep, .name = p->name, .spec = {.ep = p->ep ? p->ep->name : p->name}};
                WML_PUSH(&r->target, lost);
                wml_genai_warn(r, "stage '%s' runs on %s, which cannot be had here: %s", b->stage[i].name, p->name, err.msg);
            }
            fix_backend(r, p, wml_genai_target_of(r, p->ep));
        }
}

bool wml_genai_route(struct wml_genai_run *r, struct wml_err *err)
{
    if (!override(r, err) || !set_options(r, err)) return false;
    find_eps(r);
    return wml_check_cancel(r->cx, err);
}
