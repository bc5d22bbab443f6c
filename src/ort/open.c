/* ort/open.c - loads the ORT library and makes the one environment. A library that cannot be used does
 * not end the search, but it is named in the message when nothing better comes. */
#include "ort/internal.h"

#include "base/num.h"
#include "os/file.h"
#include "os/path.h"

static bool is_bare_name(const char *path)
{
    return wml_str_eq(wml_path_name(wml_str(path)), wml_str(path));
}

/* "1.29.0" -> 29. */
static bool minor_of(const char *version, unsigned *minor)
{
    struct wml_str rest = wml_str(version), part;
    uint64_t major, n;
    if (!wml_str_split(&rest, '.', &part) || !wml_parse_u64(part, &major)) return false;
    if (!wml_str_split(&rest, '.', &part) || !wml_parse_u64(part, &n)) return false;
    *minor = major > 1 ? 1000 : (unsigned)WML_MIN(n, 999);
    return true;
}

static void note_path(struct wml_ort *o, const char *path)
{
    struct wml_buf b = {0};
    if (!wml_dl_path(o->dl, &b)) {
        wml_buf_clear(&b);
        wml_buf_cstr(&b, path);
    }
    o->info.path = wml_arena_cstr(&o->arena, wml_buf_view(&b));
    struct wml_file_info file = wml_file_info(o->info.path);
    o->info.bytes = file.kind == WML_FILE_REGULAR ? (size_t)file.size : 0;
    wml_buf_release(&b);
}

/* On failure the library is closed again. */
static bool load(struct wml_ort *o, const char *path, struct wml_err *err)
{
    if (!wml_dl_open(path, &o->dl, err)) return false;
    const OrtApiBase *(ORT_API_CALL * get_base)(void) = NULL;
    void *symbol = wml_dl_symbol(o->dl, "OrtGetApiBase");
    memcpy(&get_base, &symbol, sizeof get_base);
    const OrtApiBase *base = symbol ? get_base() : NULL;
    if (!base) {
        wml_fail(err, WML_E_FORMAT, "%s is not ONNX Runtime: it has no OrtGetApiBase", path);
        goto fail;
    }
    const char *version = base->GetVersionString();
    if (!minor_of(version, &o->minor) || o->minor < WML_ORT_MIN_MINOR) {
        note_path(o, path);
        wml_fail(err, WML_E_UNSUPPORTED, "%s is ONNX Runtime %s, but winml needs 1.%d or newer", o->info.path, version,
                 (int)WML_ORT_MIN_MINOR);
        goto fail;
    }
    o->info.api_version = WML_MIN(o->minor, (unsigned)ORT_API_VERSION);
    o->api = base->GetApi(o->info.api_version);
    if (!o->api) {
        wml_fail(err, WML_E_UNSUPPORTED, "%s (ONNX Runtime %s) does not offer its C API version %u", path, version,
                 o->info.api_version);
        goto fail;
    }
    o->info.version = wml_arena_cstr(&o->arena, wml_str(version));
    note_path(o, path);
    wml_ort_pin(o->info.path);
    return true;
fail:
    wml_dl_close(o->dl);
    o->dl = NULL;
    return false;
}

static bool not_found(const struct wml_ort_places *p, const struct wml_buf *bad, struct wml_err *err)
{
    struct wml_buf b = {0};
    for (size_t i = 0; i < p->file.len; i++) {
        if (is_bare_name(p->file.at[i])) continue;
        wml_buf_fmt(&b, "%s%s", b.len ? ", " : "", p->file.at[i]);
    }
    if (bad->len)
        wml_fail(err, WML_E_NOT_FOUND, "no usable ONNX Runtime: %.*s", WML_ARG(wml_buf_view(bad)));
    else
        wml_fail(err, WML_E_NOT_FOUND, "ONNX Runtime not found; looked for %s and on the system's path",
                 wml_buf_text(&b));
    wml_buf_release(&b);
    return wml_hint(err, "run scripts/setup, or set WINML_ORT to the path of %s (1.%d or newer)",
                    wml_ort_library_names[0], (int)WML_ORT_MIN_MINOR);
}

static bool find_library(struct wml_ort *o, struct wml_err *err)
{
    struct wml_ort_places p = {0};
    wml_ort_places(o->cx, &o->arena, &p);
    if (p.only_first) {
        if (load(o, p.file.at[0], err)) return true;
        wml_wrap(err, "WINML_ORT");
        return wml_hint(err, "point WINML_ORT to %s 1.%d or newer, or unset it", wml_ort_library_names[0],
                        (int)WML_ORT_MIN_MINOR);
    }
    struct wml_buf bad = {.max = 700};
    bool found = false;
    for (size_t i = 0; i < p.file.len && !found; i++) {
        const char *path = p.file.at[i];
        bool bare = is_bare_name(path);
        if (!bare && !wml_file_exists(path)) continue;
        struct wml_err why = {0};
        found = load(o, path, &why);
        if (found || (bare && why.code != WML_E_UNSUPPORTED)) continue;
        wml_log(o->cx, WML_LOG_DEBUG, "%s", why.msg);
        wml_buf_fmt(&bad, "%s%s", bad.len ? "; " : "", why.msg);
    }
    if (!found) not_found(&p, &bad, err);
    wml_buf_release(&bad);
    return found;
}

static void free_ort(struct wml_ort *o)
{
    if (o->cpu) o->api->ReleaseMemoryInfo(o->cpu);
    if (o->env) o->api->ReleaseEnv(o->env);
    if (o->dl) wml_dl_close(o->dl);
    wml_mutex_free(o->log_lock);
    wml_buf_release(&o->log);
    wml_buf_release(&o->log_view);
    wml_buf_release(&o->refusal);
    wml_arena_release(&o->arena);
    free(o);
}

/* On Linux it writes a database in the user's cache, flushed to the disk, and a log, before the API can switch it off. */
static void no_telemetry(void)
{
    wml_env_set("ORT_DISABLE_TELEMETRY", "1");
}

bool wml_ort_open(struct wml_ctx *cx, struct wml_ort **out, struct wml_err *err)
{
    if (cx->ort) {
        *out = cx->ort;
        return true;
    }
    struct wml_ort *o = wml_xcalloc(1, sizeof *o);
    o->cx = cx;
    o->log_lock = wml_mutex_new();
    wml_ort_prepare_process();
    no_telemetry();
    if (!find_library(o, err)) goto fail;
    const OrtApi *api = o->api;
    o->compile = api->GetCompileApi();
    if (!wml_ort_ok(o, api->CreateEnvWithCustomLogger(wml_ort_log_line, o, ORT_LOGGING_LEVEL_WARNING, "winml", &o->env),
                    WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, api->DisableTelemetryEvents(o->env), WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, api->GetAllocatorWithDefaultOptions(&o->alloc), WML_E_RUNTIME, err) ||
        !wml_ort_ok(o, api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &o->cpu), WML_E_RUNTIME, err)) {
        wml_wrap(err, "start ONNX Runtime %s", o->info.version);
        goto fail;
    }
    wml_log(cx, WML_LOG_DEBUG, "ONNX Runtime %s from %s", o->info.version, o->info.path);
    *out = cx->ort = o;
    return true;
fail:
    free_ort(o);
    return false;
}

void wml_ort_close(struct wml_ctx *cx)
{
    if (!cx || !cx->ort) return;
    free_ort(cx->ort);
    cx->ort = NULL;
}

struct wml_ort_info wml_ort_info(const struct wml_ort *o)
{
    return o->info;
}

const char *const *wml_ort_builtin_eps(struct wml_ort *o)
{
    static const char *const none[] = {NULL};
    if (o->builtin) return o->builtin;
    char **names = NULL;
    int n = 0;
    if (!wml_ort_ok(o, o->api->GetAvailableProviders(&names, &n), WML_E_RUNTIME, NULL)) return none;
    const char **list = WML_NEW_ARRAY(&o->arena, const char *, (size_t)n + 1);
    for (int i = 0; i < n; i++) list[i] = wml_arena_cstr(&o->arena, wml_str(names[i]));
    wml_ort_ok(o, o->api->ReleaseAvailableProviders(names, n), WML_E_RUNTIME, NULL);
    o->builtin = list;
    return list;
}
