/* ep/system_posix.c - where Python keeps packages on Linux and macOS. */
#include "ep/internal.h"

#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

const char wml_ep_list_separator = ':';

#if defined(__APPLE__)
#define SYSTEM "osx"
#else
#define SYSTEM "linux"
#endif
#if defined(__aarch64__)
const char *const wml_ep_nuget_rid = SYSTEM "-arm64";
#else
const char *const wml_ep_nuget_rid = SYSTEM "-x64";
#endif

/* prefix/lib/python3.x/<folder> for every x that is there. */
static void each_python(struct wml_str prefix, const char *folder, void (*f)(void *arg, struct wml_str dir), void *arg)
{
    struct wml_buf lib = {0}, site = {0};
    struct wml_dir_list list = {0};
    wml_path_join(&lib, prefix, wml_str("lib"));
    if (wml_dir_exists(wml_buf_text(&lib)) && wml_dir_list(wml_buf_text(&lib), &list, NULL))
        for (size_t i = 0; i < list.v.len; i++) {
            if (!wml_str_starts(list.v.at[i].name, "python3") || !list.v.at[i].is_dir) continue;
            wml_buf_clear(&site);
            wml_buf_fmt(&site, "%s/%.*s/%s", wml_buf_text(&lib), WML_ARG(list.v.at[i].name), folder);
            f(arg, wml_buf_view(&site));
        }
    wml_dir_list_release(&list);
    wml_buf_release(&lib);
    wml_buf_release(&site);
}

void wml_ep_each_site(void (*f)(void *arg, struct wml_str dir), void *arg)
{
    static const char *const active[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    struct wml_buf b = {0}, local = {0};
    for (size_t i = 0; i < WML_COUNT(active); i++) {
        wml_buf_clear(&b);
        if (wml_env_is_set(active[i]) && wml_env(active[i], &b)) each_python(wml_buf_view(&b), "site-packages", f, arg);
    }
    wml_buf_clear(&b);
    if (wml_path_home(&b)) {
        wml_path_join(&local, wml_buf_view(&b), wml_str(".local"));
        each_python(wml_buf_view(&local), "site-packages", f, arg);
    }
    each_python(WML_STR("/usr/local"), "site-packages", f, arg);
    each_python(WML_STR("/usr/local"), "dist-packages", f, arg);
    f(arg, WML_STR("/usr/lib/python3/dist-packages"));
    wml_buf_release(&b);
    wml_buf_release(&local);
}

void wml_ep_search_packages(struct wml_ep_search *s)
{
    (void)s; /* a Windows notion */
}
