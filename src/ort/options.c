/* ort/options.c - session options from ours. Every session of winml is made here, so what is off by default
 * is off everywhere. */
#include "ort/internal.h"

#include "base/num.h"
#include "os/file.h"
#include "os/path.h"

const char *wml_opt_level_name(enum wml_opt_level l)
{
    static const char *const names[] = {
        [WML_LEVEL_DISABLED] = "disabled",
        [WML_LEVEL_BASIC] = "basic",
        [WML_LEVEL_EXTENDED] = "extended",
        [WML_LEVEL_ALL] = "all",
    };
    return (size_t)l < WML_COUNT(names) ? names[l] : "?";
}

GraphOptimizationLevel wml_ort_level(enum wml_opt_level l)
{
    switch (l) {
    case WML_LEVEL_BASIC: return ORT_ENABLE_BASIC;
    case WML_LEVEL_EXTENDED: return ORT_ENABLE_EXTENDED;
    case WML_LEVEL_ALL: return ORT_ENABLE_ALL;
    default: return ORT_DISABLE_ALL;
    }
}

bool wml_ort_config(const struct wml_ort *o, OrtSessionOptions *so, const char *key, const char *value,
                    struct wml_err *err)
{
    return wml_ort_ok(o, o->api->AddSessionConfigEntry(so, key, value), WML_E_RUNTIME, err) ||
           wml_wrap(err, "session option %s", key);
}

static bool add_ep(struct wml_ort *o, const struct wml_session_opts *opts, OrtSessionOptions *so, struct wml_err *err)
{
    if (!opts->n_devices) return true;
    struct wml_arena a = {0};
    const OrtEpDevice **device = WML_NEW_ARRAY(&a, const OrtEpDevice *, opts->n_devices);
    const char **key = WML_NEW_ARRAY(&a, const char *, opts->n_ep_options + 1);
    const char **value = WML_NEW_ARRAY(&a, const char *, opts->n_ep_options + 1);
    for (size_t i = 0; i < opts->n_devices; i++) device[i] = opts->device[i]->handle;
    for (size_t i = 0; i < opts->n_ep_options; i++) {
        key[i] = opts->ep_option[i].key;
        value[i] = opts->ep_option[i].value;
    }
    bool ok = wml_ort_ok(o,
                         o->api->SessionOptionsAppendExecutionProvider_V2(so, o->env, device, opts->n_devices, key,
                                                                          value, opts->n_ep_options),
                         WML_E_LOAD, err);
    wml_arena_release(&a);
    return ok || wml_wrap(err, "%s", opts->device[0]->ep);
}

static bool override_dims(struct wml_ort *o, const struct wml_session_opts *opts, OrtSessionOptions *so,
                          struct wml_err *err)
{
    for (size_t i = 0; i < opts->n_dim_overrides; i++) {
        const struct wml_pair *d = &opts->dim_override[i];
        int64_t size;
        if (!wml_parse_i64(wml_str(d->value), &size) || size < 0)
            return wml_fail(err, WML_E_USAGE, "dimension %s: \"%s\" is not a size", d->key, d->value);
        if (!wml_ort_ok(o, o->api->AddFreeDimensionOverrideByName(so, d->key, size), WML_E_RUNTIME, err))
            return wml_wrap(err, "dimension %s", d->key);
    }
    return true;
}

static bool add_config(struct wml_ort *o, const struct wml_model_source *m, const struct wml_session_opts *opts,
                       OrtSessionOptions *so, struct wml_err *err)
{
    if (!m->path && m->folder) {
        struct wml_buf dir = {0};
        bool ok =
            wml_path_absolute(&dir, wml_str(m->folder), err) &&
            wml_ort_config(o, so, "session.model_external_initializers_file_folder_path", wml_buf_text(&dir), err);
        wml_buf_release(&dir);
        if (!ok) return false;
    }
    if (opts->record_placement && !wml_ort_config(o, so, "session.record_ep_graph_assignment_info", "1", err))
        return false;
    if (opts->no_cpu_fallback && !wml_ort_config(o, so, "session.disable_cpu_ep_fallback", "1", err)) return false;
    for (size_t i = 0; i < opts->n_config; i++)
        if (!wml_ort_config(o, so, opts->config[i].key, opts->config[i].value, err)) return false;
    return true;
}

/* ORT says nothing when it cannot write the profile: the folder is checked here. */
static bool enable_profiling(struct wml_ort *o, const char *prefix, OrtSessionOptions *so, struct wml_err *err)
{
    struct wml_buf dir = {0};
    struct wml_ort_path path = {0};
    wml_buf_str(&dir, wml_path_dir(wml_str(prefix)));
    bool ok = wml_dir_exists(wml_buf_text(&dir)) ||
              wml_fail(err, WML_E_NOT_FOUND, "the folder for the profile does not exist: %s", wml_buf_text(&dir));
    ok = ok && wml_ort_path_init(&path, prefix, err) &&
         wml_ort_ok(o, o->api->EnableProfiling(so, path.ptr), WML_E_RUNTIME, err);
    wml_ort_path_release(&path);
    wml_buf_release(&dir);
    return ok;
}

bool wml_ort_options(struct wml_ort *o, const struct wml_model_source *m, const struct wml_session_opts *opts,
                     OrtSessionOptions **out, struct wml_err *err)
{
    const OrtApi *api = o->api;
    *out = NULL;
    if (!wml_ort_ok(o, api->CreateSessionOptions(out), WML_E_RUNTIME, err)) return false;
    OrtSessionOptions *so = *out;
    if (!wml_ort_ok(o, api->SetSessionGraphOptimizationLevel(so, wml_ort_level(opts->level)), WML_E_RUNTIME, err))
        return false;
    if (opts->threads &&
        !wml_ort_ok(o, api->SetIntraOpNumThreads(so, (int)WML_MIN(opts->threads, 1024u)), WML_E_RUNTIME, err))
        return false;
    if (opts->no_memory_plan && !wml_ort_ok(o, api->DisableMemPattern(so), WML_E_RUNTIME, err)) return false;
    if (opts->profile_prefix && !enable_profiling(o, opts->profile_prefix, so, err)) return false;
    return add_config(o, m, opts, so, err) && override_dims(o, opts, so, err) && add_ep(o, opts, so, err);
}
