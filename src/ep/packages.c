/* ep/packages.c - EP libraries in Python environments and in the NuGet cache. A package's version is read
 * from the name of a folder, nothing is executed. */
#include "ep/internal.h"

#include "base/num.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

/* "onnxruntime_qnn" and "2.7.0" from site/onnxruntime_qnn-2.7.0.dist-info; "" when there is none. */
static void find_version(struct wml_str site, const char *module, struct wml_buf *version)
{
    struct wml_buf dir = {0}, prefix = {0};
    struct wml_dir_list list = {0};
    wml_buf_str(&dir, site);
    wml_buf_fmt(&prefix, "%s-", module);
    if (wml_dir_list(wml_buf_text(&dir), &list, NULL))
        for (size_t i = 0; i < list.v.len && !version->len; i++) {
            struct wml_str name = list.v.at[i].name;
            if (!wml_str_starts(name, wml_buf_text(&prefix)) || !wml_str_ends(name, ".dist-info")) continue;
            wml_buf_str(version, wml_str_sub(name, prefix.len, name.len - strlen(".dist-info")));
        }
    wml_dir_list_release(&list);
    wml_buf_release(&dir);
    wml_buf_release(&prefix);
}

static void look_in_module(struct wml_ep_search *s, const struct wml_ep *ep, struct wml_str site)
{
    /* The module itself, or a folder per machine in it. */
    static const char *const below[] = {"", WML_EP_IS_X64 ? "amd64" : "arm64ec", "capi", "lib"};
    struct wml_buf module = {0}, dir = {0}, version = {0}, distribution = {0};
    wml_path_join(&module, site, wml_str(ep->python_module));
    if (!wml_dir_exists(wml_buf_text(&module))) goto done;
    find_version(site, ep->python_module, &version);
    for (const char *c = ep->python_module; *c; c++) wml_buf_char(&distribution, *c == '_' ? '-' : *c);
    s->distribution = wml_buf_text(&distribution);
    s->version = version.len ? wml_buf_text(&version) : NULL;
    s->root = wml_buf_text(&module);
    bool found = false;
    for (size_t i = 0; i < WML_COUNT(below) && !found; i++) {
        wml_buf_clear(&dir);
        if (below[i][0])
            wml_path_join(&dir, wml_buf_view(&module), wml_str(below[i]));
        else
            wml_buf_str(&dir, wml_buf_view(&module));
        found = wml_ep_look_in(s, ep, wml_buf_view(&dir));
    }
    if (!found)
        wml_log(s->cx, WML_LOG_WARN, "the package %s is installed in %.*s, but %s is not in it",
                wml_buf_text(&distribution), WML_ARG(site), ep->library[0]);
done:
    s->distribution = s->version = s->root = NULL;
    wml_buf_release(&module);
    wml_buf_release(&dir);
    wml_buf_release(&version);
    wml_buf_release(&distribution);
}

static void look_in_site(void *arg, struct wml_str site)
{
    struct wml_ep_search *s = arg;
    struct wml_buf dir = {0};
    wml_buf_str(&dir, site);
    wml_ep_note_place(s, wml_buf_text(&dir));
    if (wml_dir_exists(wml_buf_text(&dir)))
        for (size_t i = 0; i < wml_n_eps; i++)
            if (wml_eps[i]->python_module && wml_eps[i]->library) look_in_module(s, wml_eps[i], site);
    wml_buf_release(&dir);
}

void wml_ep_search_python(struct wml_ep_search *s)
{
    wml_ep_each_site(look_in_site, s);
}

/* --- NuGet --- */

/* Order of "1.10.2" and "1.9": number by number; a release is above its pre-releases. */
static int compare_versions(struct wml_str a, struct wml_str b)
{
    bool pre_a = wml_str_find(a, '-') != SIZE_MAX, pre_b = wml_str_find(b, '-') != SIZE_MAX;
    if (pre_a != pre_b) return pre_a ? -1 : 1;
    struct wml_str x, y;
    while (a.len || b.len) {
        uint64_t m = 0, n = 0;
        if (!wml_str_split(&a, '.', &x)) x = WML_STR("0");
        if (!wml_str_split(&b, '.', &y)) y = WML_STR("0");
        bool numbers = wml_parse_u64(x, &m) && wml_parse_u64(y, &n);
        int order = numbers ? (m > n) - (m < n) : wml_str_cmp(x, y);
        if (order) return order;
    }
    return 0;
}

static void look_in_nuget(struct wml_ep_search *s, const struct wml_ep *ep, struct wml_str cache)
{
    struct wml_buf id = {0}, package = {0}, best = {0}, path = {0}, dir = {0};
    struct wml_dir_list list = {0};
    for (const char *c = ep->nuget_id; *c; c++) wml_buf_char(&id, *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c);
    wml_path_join(&package, cache, wml_buf_view(&id));
    wml_ep_note_place(s, wml_buf_text(&package));
    if (!wml_dir_exists(wml_buf_text(&package)) || !wml_dir_list(wml_buf_text(&package), &list, NULL)) goto done;
    for (size_t i = 0; i < list.v.len; i++) {
        struct wml_str version = list.v.at[i].name;
        if (!list.v.at[i].is_dir || (best.len && compare_versions(version, wml_buf_view(&best)) <= 0)) continue;
        wml_buf_clear(&path);
        wml_buf_fmt(&path, "%s/%.*s/runtimes/%s/native/%s", wml_buf_text(&package), WML_ARG(version), wml_ep_nuget_rid,
                    ep->library[0]);
        if (!wml_file_exists(wml_buf_text(&path))) continue;
        wml_buf_clear(&best);
        wml_buf_str(&best, version);
    }
    if (!best.len) goto done;
    wml_buf_fmt(&dir, "%s/%s/runtimes/%s/native", wml_buf_text(&package), wml_buf_text(&best), wml_ep_nuget_rid);
    s->root = wml_buf_text(&package);
    s->distribution = ep->nuget_id;
    s->version = wml_buf_text(&best);
    wml_ep_look_in(s, ep, wml_buf_view(&dir));
done:
    s->root = s->distribution = s->version = NULL;
    wml_dir_list_release(&list);
    wml_buf_release(&id);
    wml_buf_release(&package);
    wml_buf_release(&best);
    wml_buf_release(&path);
    wml_buf_release(&dir);
}

void wml_ep_search_nuget(struct wml_ep_search *s)
{
    struct wml_buf cache = {0}, home = {0};
    if (wml_env_is_set("NUGET_PACKAGES"))
        wml_env("NUGET_PACKAGES", &cache);
    else if (wml_path_home(&home))
        wml_path_join(&cache, wml_buf_view(&home), WML_STR(".nuget/packages"));
    for (size_t i = 0; cache.len && i < wml_n_eps; i++)
        if (wml_eps[i]->nuget_id && wml_eps[i]->library) look_in_nuget(s, wml_eps[i], wml_buf_view(&cache));
    wml_buf_release(&cache);
    wml_buf_release(&home);
}
