/* Finds and loads the library. It needs ORT at once, and ends the process when it finds none: so ORT comes first, and
 * its path is told in the environment. */
#include "genai/internal.h"

#include "ep/ep.h"
#include "os/file.h"
#include "os/path.h"

#if defined(_WIN32)
static const char library[] = "onnxruntime-genai.dll";
#elif defined(__APPLE__)
static const char library[] = "libonnxruntime-genai.dylib";
#else
static const char library[] = "libonnxruntime-genai.so";
#endif

struct search {
    struct wml_buf found, looked;
};

/* dir/below/library. */
static void look(struct search *s, struct wml_str dir, const char *below)
{
    struct wml_buf folder = {0}, plain = {0}, path = {0};
    if (!s->found.len) {
        wml_path_join(&folder, dir, wml_str(below));
        wml_path_normal(&plain, wml_buf_view(&folder));
        wml_path_join(&path, wml_buf_view(&plain), wml_str(library));
        if (wml_file_exists(wml_buf_text(&path))) wml_buf_str(&s->found, wml_buf_view(&path));
        wml_buf_fmt(&s->looked, "%s%s", s->looked.len ? ", " : "", wml_buf_text(&plain));
    }
    wml_buf_release(&folder);
    wml_buf_release(&plain);
    wml_buf_release(&path);
}

static void look_at_site(void *arg, struct wml_str dir)
{
    look(arg, dir, "onnxruntime_genai_core/bin");
    look(arg, dir, "onnxruntime_genai");
}

/* WINML_GENAI wins, and nothing else is tried then. */
static bool named(struct search *s, struct wml_err *err)
{
    struct wml_buf value = {0};
    bool ok = true;
    if (!wml_env_is_set("WINML_GENAI") || !wml_env("WINML_GENAI", &value)) return true;
    if (wml_file_exists(wml_buf_text(&value))) wml_buf_str(&s->found, wml_buf_view(&value));
    else look(s, wml_buf_view(&value), "");
    if (!s->found.len) {
        wml_fail(err, WML_E_NOT_FOUND, "WINML_GENAI: there is no %s at %s", library, wml_buf_text(&value));
        ok = wml_hint(err, "name the library or the folder that holds it, or unset the variable");
    }
    wml_buf_release(&value);
    return ok;
}

static bool find(struct wml_ctx *cx, struct search *s, struct wml_err *err)
{
    struct wml_buf b = {0};
    if (!named(s, err)) return false;
    if (!s->found.len) {
        if (cx->program ? (wml_buf_cstr(&b, cx->program), true) : wml_path_program(&b)) {
            look(s, wml_path_dir(wml_buf_view(&b)), "../lib/winml");
            look(s, wml_path_dir(wml_buf_view(&b)), "");
        }
        if (wml_ort_build_cache(&b)) look(s, wml_buf_view(&b), "genai");
        wml_ep_each_site(look_at_site, s);
    }
    wml_buf_release(&b);
    return true;
}

/* The library has no function that tells it: a file VERSION beside it, as scripts/setup leaves one. */
static void version_beside(const char *path, struct wml_buf *out)
{
    struct wml_buf file = {0}, text = {0};
    wml_path_join(&file, wml_path_dir(wml_str(path)), WML_STR("VERSION"));
    if (wml_file_read(wml_buf_text(&file), 4096, &text, NULL)) {
        struct wml_str line = wml_str_trim(wml_buf_view(&text));
        if (line.len && line.len < 40 && wml_str_find(line, '\n') == SIZE_MAX) wml_buf_str(out, line);
    }
    wml_buf_release(&file);
    wml_buf_release(&text);
}

static bool hint_install(struct wml_err *err)
{
    return wml_hint(err, "scripts/setup --only genai, or pip install onnxruntime-genai-core, or set WINML_GENAI to the library");
}

bool wml_genai_find(struct wml_ctx *cx, struct wml_buf *path, struct wml_buf *version, struct wml_err *err)
{
    struct search s = {0};
    bool ok = find(cx, &s, err);
    if (ok && !s.found.len) {
        wml_fail(err, WML_E_NOT_FOUND, "not found");
        ok = hint_install(err);
    }
    if (ok) {
        wml_buf_str(path, wml_buf_view(&s.found));
        version_beside(wml_buf_text(&s.found), version);
    }
    wml_buf_release(&s.found);
    wml_buf_release(&s.looked);
    return ok;
}

/* What is missing is named: the library is then too old, or not this library at all. */
static bool resolve(struct wml_genai *g, struct wml_err *err)
{
    void *symbol;
#define RESOLVE(name)                                                                                                  \
    symbol = wml_dl_symbol(g->dl, "Oga" #name);                                                                        \
    memcpy(&g->name, &symbol, sizeof g->name);
#define OPTIONAL(name, result, parameters) RESOLVE(name)
#define SYMBOL(name, result, parameters)                                                                               \
    RESOLVE(name)                                                                                                      \
    if (!symbol)                                                                                                       \
        return wml_fail(err, WML_E_UNSUPPORTED, "%s has no function Oga" #name ": its version is not one that winml knows", g->path);
#include "genai/symbols.def"
#undef RESOLVE
#undef OPTIONAL
#undef SYMBOL
    if (!g->Generator_GetNextTokens || !g->TokenizerStreamDecode || !g->CreateTokenizerStream)
        wml_log(g->cx, WML_LOG_DEBUG, "this onnxruntime-genai cannot stream: text comes at the end of a request");
    return true;
}

bool wml_genai_open(struct wml_ctx *cx, struct wml_genai **out, struct wml_err *err)
{
    struct search s = {0};
    struct wml_buf version = {0};
    struct wml_ort *ort = NULL;
    struct wml_genai *g = wml_xcalloc(1, sizeof *g);
    bool ok = false;
    g->cx = cx;
    if (!find(cx, &s, err) || !wml_ort_open(cx, &ort, err)) goto done;
    wml_env_set("ORT_LIB_PATH", wml_ort_info(ort).path);
    g->path = wml_xstrdup(s.found.len ? wml_buf_text(&s.found) : library);
    if (!wml_dl_open(g->path, &g->dl, err)) {
        if (s.found.len) goto done;
        wml_fail(err, WML_E_NOT_FOUND, "onnxruntime-genai not found; looked for %s in %s, and on the system's path", library,
                 wml_buf_text(&s.looked));
        hint_install(err);
        goto done;
    }
    if (!resolve(g, err)) goto done;
    if (g->SetTelemetryEnabled) g->SetTelemetryEnabled(false);
    version_beside(g->path, &version);
    if (version.len) g->version = wml_xstrdup(wml_buf_text(&version));
    wml_log(cx, WML_LOG_DEBUG, "onnxruntime-genai from %s", g->path);
    *out = g;
    ok = true;
done:
    if (!ok) wml_genai_close(g);
    wml_buf_release(&version);
    wml_buf_release(&s.found);
    wml_buf_release(&s.looked);
    return ok;
}

void wml_genai_close(struct wml_genai *g)
{
    if (!g) return;
    if (g->dl && g->Shutdown) g->Shutdown();
    if (g->dl) wml_dl_leave(g->dl); /* threads of it may still run */
    free(g->path);
    free(g->version);
    free(g);
}

const char *wml_genai_path(const struct wml_genai *g)
{
    return g->path;
}

const char *wml_genai_version(const struct wml_genai *g)
{
    return g->version;
}

bool wml_genai_ok(const struct wml_genai *g, struct OgaResult *r, enum wml_code code, struct wml_err *err)
{
    if (!r) return true;
    const char *text = g->ResultGetError(r);
    struct wml_buf line = {0};
    wml_ort_clean_message(text ? text : "no message", &line);
    wml_fail(err, code, "%.*s", WML_ARG(wml_str_sub(wml_str_trim(wml_buf_view(&line)), 0, 700)));
    wml_buf_release(&line);
    g->DestroyResult(r);
    return false;
}
