/* ep/discover.c - finds EP libraries by looking at files, in order of precedence; nothing is loaded. A few
 * dozen file checks: milliseconds. */
#include "ep/internal.h"

#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

static const char *keep(struct wml_ep_search *s, const char *text)
{
    return text ? wml_arena_cstr(&s->out->arena, wml_str(text)) : NULL;
}

void wml_ep_note_place(struct wml_ep_search *s, const char *place)
{
    for (size_t i = 0; i < s->out->looked.len; i++)
        if (!strcmp(s->out->looked.at[i], place)) return;
    const char *copy = keep(s, place);
    WML_PUSH_IN(&s->out->arena, &s->out->looked, copy);
}

/* A file VERSION beside a library, as scripts/setup leaves it. */
static const char *version_beside(struct wml_ep_search *s, const char *library)
{
    struct wml_buf path = {0}, text = {0};
    const char *version = NULL;
    wml_path_join(&path, wml_path_dir(wml_str(library)), WML_STR("VERSION"));
    if (wml_file_read(wml_buf_text(&path), 4096, &text, NULL)) {
        struct wml_str line = wml_str_trim(wml_buf_view(&text));
        if (line.len && line.len < 40 && wml_str_find(line, '\n') == SIZE_MAX) version = wml_arena_cstr(&s->out->arena, line);
    }
    wml_buf_release(&path);
    wml_buf_release(&text);
    return version;
}

void wml_ep_add(struct wml_ep_search *s, const struct wml_ep *ep, const char *path)
{
    struct wml_buf full = {0};
    if (path && !wml_path_absolute(&full, wml_str(path), NULL)) {
        wml_buf_release(&full);
        return;
    }
    const char *file = path ? wml_buf_text(&full) : NULL;
    bool there = false;
    for (size_t i = 0; i < s->out->v.len && !there; i++) {
        const struct wml_ep_library *l = &s->out->v.at[i];
        if (l->ep != ep) continue;
        there = file && l->path ? !strcmp(l->path, file) || wml_file_same(l->path, file) : !file && !l->path;
    }
    if (!there) {
        struct wml_ep_library l = {
            .ep = ep,
            .name = ep->name,
            .path = keep(s, file),
            .source_kind = s->kind,
            .source_tag = s->tag,
            .root = keep(s, s->root),
            .env_var = keep(s, s->env_var),
            .distribution = keep(s, s->distribution),
            .version = s->version || !file ? keep(s, s->version) : version_beside(s, file),
        };
        WML_PUSH_IN(&s->out->arena, &s->out->v, l);
    }
    wml_buf_release(&full);
}

static bool look_for(struct wml_ep_search *s, const struct wml_ep *ep, struct wml_str dir)
{
    struct wml_buf path = {0};
    bool found = false;
    for (const char *const *file = ep->library; file && *file && !found; file++) {
        wml_buf_clear(&path);
        wml_path_join(&path, dir, wml_str(*file));
        found = wml_file_exists(wml_buf_text(&path));
        if (found) wml_ep_add(s, ep, wml_buf_text(&path));
    }
    wml_buf_release(&path);
    return found;
}

bool wml_ep_look_in(struct wml_ep_search *s, const struct wml_ep *only, struct wml_str dir)
{
    struct wml_buf base = {0}, below = {0};
    wml_buf_str(&base, dir);
    wml_ep_note_place(s, wml_buf_text(&base));
    bool found = false;
    if (!wml_dir_exists(wml_buf_text(&base))) goto done;
    for (size_t i = 0; i < wml_n_eps; i++) {
        const struct wml_ep *ep = wml_eps[i];
        if ((only && ep != only) || !ep->library) continue;
        if (look_for(s, ep, dir)) {
            found = true;
            continue;
        }
        wml_buf_clear(&below);
        wml_path_join(&below, dir, wml_str(ep->alias[0]));
        found = (wml_dir_exists(wml_buf_text(&below)) && look_for(s, ep, wml_buf_view(&below))) || found;
    }
done:
    wml_buf_release(&base);
    wml_buf_release(&below);
    return found;
}

static void begin(struct wml_ep_search *s, const char *kind, const char *tag)
{
    s->kind = kind;
    s->tag = tag;
    s->root = s->env_var = s->distribution = s->version = NULL;
}

/* Folders, or library files, of a variable that users set. */
static void search_variable(struct wml_ep_search *s, const char *name)
{
    struct wml_buf value = {0}, entry = {0};
    begin(s, "DirectorySource", "directory");
    s->env_var = name;
    if (wml_env_is_set(name)) wml_env(name, &value);
    struct wml_str rest = wml_buf_view(&value), part;
    while (wml_str_split(&rest, wml_ep_list_separator, &part)) {
        part = wml_str_trim(part);
        if (!part.len) continue;
        wml_buf_clear(&entry);
        wml_buf_str(&entry, part);
        s->root = wml_buf_text(&entry);
        if (wml_file_info(wml_buf_text(&entry)).kind == WML_FILE_DIR) {
            wml_ep_look_in(s, NULL, part);
            continue;
        }
        bool known = false;
        for (size_t i = 0; i < wml_n_eps && !known; i++)
            for (const char *const *file = wml_eps[i]->library; file && *file && !known; file++)
                if (wml_str_is(wml_path_name(part), *file) && wml_file_exists(wml_buf_text(&entry))) {
                    wml_ep_add(s, wml_eps[i], wml_buf_text(&entry));
                    known = true;
                }
        if (!known) {
            wml_ep_note_place(s, wml_buf_text(&entry));
            wml_log(s->cx, WML_LOG_WARN, "%s: %s is neither a folder nor an EP library", name, wml_buf_text(&entry));
        }
    }
    wml_buf_release(&value);
    wml_buf_release(&entry);
}

static void search_folder(struct wml_ep_search *s, struct wml_str dir, const char *below)
{
    struct wml_buf joined = {0}, normal = {0};
    wml_path_join(&joined, dir, wml_str(below));
    wml_path_normal(&normal, wml_buf_view(&joined));
    begin(s, "DirectorySource", "directory");
    s->root = wml_buf_text(&normal);
    wml_ep_look_in(s, NULL, wml_buf_view(&normal));
    wml_buf_release(&joined);
    wml_buf_release(&normal);
}

/* <program>/ep, <prefix>/lib/winml/ep, the build cache. */
static void search_own(struct wml_ep_search *s)
{
    struct wml_buf b = {0};
    if (s->cx && s->cx->program)
        wml_buf_cstr(&b, s->cx->program);
    else
        wml_path_program(&b);
    if (b.len) {
        struct wml_str dir = wml_path_dir(wml_buf_view(&b));
        search_folder(s, dir, "ep");
        search_folder(s, dir, "../lib/winml/ep");
    }
    wml_buf_clear(&b);
    if (wml_ort_build_cache(&b)) search_folder(s, wml_buf_view(&b), "ep");
    wml_buf_release(&b);
}

/* RYZEN_AI_INSTALLATION_PATH and its like. */
static void search_vendors(struct wml_ep_search *s)
{
    struct wml_buf value = {0}, dir = {0};
    for (size_t i = 0; i < wml_n_eps; i++) {
        const struct wml_ep *ep = wml_eps[i];
        wml_buf_clear(&value);
        if (!ep->vendor_env || !wml_env_is_set(ep->vendor_env) || !wml_env(ep->vendor_env, &value)) continue;
        begin(s, "DirectorySource", "directory");
        s->env_var = ep->vendor_env;
        wml_buf_clear(&dir);
        if (ep->vendor_below)
            wml_path_join(&dir, wml_buf_view(&value), wml_str(ep->vendor_below));
        else
            wml_buf_str(&dir, wml_buf_view(&value));
        s->root = wml_buf_text(&dir);
        wml_ep_look_in(s, ep, wml_buf_view(&dir));
    }
    wml_buf_release(&value);
    wml_buf_release(&dir);
}

/* The CPU EP is in every ORT; what else is built in is known once ORT is open. */
static void search_builtin(struct wml_ep_search *s)
{
    begin(s, "BuiltinSource", "bundled");
    const char *const *name = s->cx && s->cx->ort ? wml_ort_builtin_eps(s->cx->ort) : NULL;
    for (; name && *name; name++) {
        const struct wml_ep *ep = wml_ep_find(wml_str(*name));
        bool found = !ep || wml_ep_is_cpu(ep);
        for (size_t i = 0; i < s->out->v.len && !found; i++) found = s->out->v.at[i].ep == ep;
        if (!found) wml_ep_add(s, ep, NULL);
    }
    wml_ep_add(s, &wml_ep_cpu, NULL);
}

bool wml_ep_discover(struct wml_ctx *cx, struct wml_ep_libraries *out, struct wml_err *err)
{
    memset(out, 0, sizeof *out);
    struct wml_ep_search s = {.cx = cx, .out = out};
    search_variable(&s, "WINML_EP_PATH");
    search_variable(&s, "WINMLCLI_EP_PATH");
    search_own(&s);
    begin(&s, "PyPISource", "pypi");
    wml_ep_search_python(&s);
    begin(&s, "NuGetSource", "nuget");
    wml_ep_search_nuget(&s);
    search_vendors(&s);
    begin(&s, "MSIXPackageSource", "msix");
    wml_ep_search_packages(&s);
    search_builtin(&s);
    if (wml_check_cancel(cx, err)) return true;
    wml_ep_libraries_release(out);
    return false;
}

void wml_ep_libraries_release(struct wml_ep_libraries *l)
{
    wml_arena_release(&l->arena);
    memset(l, 0, sizeof *l);
}

void wml_ep_missing_reason(const struct wml_ep *ep, const struct wml_ep_libraries *l, struct wml_buf *out)
{
    if (!ep->library)
        wml_buf_cstr(out, "no library of it is known for this system, and it is not built into this ONNX Runtime");
    else
        wml_buf_fmt(out, "%s not found in %zu places", ep->library[0], l ? l->looked.len : (size_t)0);
    if (ep->install) wml_buf_fmt(out, "; %s", ep->install);
    if (ep->library) wml_buf_cstr(out, ", or set WINML_EP_PATH to its folder");
}
