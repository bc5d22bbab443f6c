/* ep/system_win.c - where Windows keeps Python packages and EP packages. The list of installed packages is
 * read from the registry, which needs no rights; the folder WindowsApps itself cannot be listed. */
#include "ep/internal.h"

#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

const char wml_ep_list_separator = ';';

#if defined(__aarch64__) || defined(_M_ARM64)
const char *const wml_ep_nuget_rid = "win-arm64";
#else
const char *const wml_ep_nuget_rid = "win-x64";
#endif

/* base/Python3*[/Lib]/site-packages */
static void each_python(struct wml_str base, const char *below, void (*f)(void *arg, struct wml_str dir), void *arg)
{
    struct wml_buf dir = {0}, site = {0};
    struct wml_dir_list list = {0};
    wml_buf_str(&dir, base);
    if (wml_dir_exists(wml_buf_text(&dir)) && wml_dir_list(wml_buf_text(&dir), &list, NULL))
        for (size_t i = 0; i < list.v.len; i++) {
            if (!wml_str_starts(list.v.at[i].name, "Python3") || !list.v.at[i].is_dir) continue;
            wml_buf_clear(&site);
            wml_buf_fmt(&site, "%s/%.*s/%s", wml_buf_text(&dir), WML_ARG(list.v.at[i].name), below);
            f(arg, wml_buf_view(&site));
        }
    wml_dir_list_release(&list);
    wml_buf_release(&dir);
    wml_buf_release(&site);
}

void wml_ep_each_site(void (*f)(void *arg, struct wml_str dir), void *arg)
{
    static const char *const active[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    static const struct {
        const char *env, *base, *below;
    } users[] = {
        {"APPDATA", "Python", "site-packages"},
        {"LOCALAPPDATA", "Programs/Python", "Lib/site-packages"},
        {"ProgramFiles", ".", "Lib/site-packages"},
    };
    struct wml_buf b = {0}, dir = {0};
    for (size_t i = 0; i < WML_COUNT(active); i++) {
        wml_buf_clear(&b);
        wml_buf_clear(&dir);
        if (!wml_env_is_set(active[i]) || !wml_env(active[i], &b)) continue;
        wml_path_join(&dir, wml_buf_view(&b), WML_STR("Lib/site-packages"));
        f(arg, wml_buf_view(&dir));
    }
    for (size_t i = 0; i < WML_COUNT(users); i++) {
        wml_buf_clear(&b);
        wml_buf_clear(&dir);
        if (!wml_env_is_set(users[i].env) || !wml_env(users[i].env, &b)) continue;
        wml_path_join(&dir, wml_buf_view(&b), wml_str(users[i].base));
        each_python(wml_buf_view(&dir), users[i].below, f, arg);
    }
    wml_buf_release(&b);
    wml_buf_release(&dir);
}

static void to_utf8(const wchar_t *w, struct wml_buf *out)
{
    char text[2048];
    int n = WideCharToMultiByte(CP_UTF8, 0, w, -1, text, (int)sizeof text, NULL, NULL);
    wml_buf_clear(out);
    if (n > 1) wml_buf_add(out, text, (size_t)n - 1);
}

/* "MicrosoftCorporationII.WinML.Qualcomm.QNN.EP.1.8_1.8.30.0_x64__8wekyb3d8bbwe": name, version, ... */
static void look_in_package(struct wml_ep_search *s, struct wml_str full_name, struct wml_str root)
{
    struct wml_str rest = full_name, family, version;
    if (!wml_str_starts(full_name, "MicrosoftCorporationII.WinML.") &&
        !wml_str_starts(full_name, "WindowsWorkload.EP."))
        return;
    if (!wml_str_split(&rest, '_', &family) || !wml_str_split(&rest, '_', &version)) return;
    struct wml_buf f = {0}, v = {0}, r = {0}, dir = {0};
    wml_buf_str(&f, family);
    wml_buf_str(&v, version);
    wml_buf_str(&r, root);
    s->distribution = wml_buf_text(&f);
    s->version = wml_buf_text(&v);
    s->root = wml_buf_text(&r);
    wml_path_join(&dir, root, WML_STR("ExecutionProvider"));
    if (!wml_ep_look_in(s, NULL, wml_buf_view(&dir))) wml_ep_look_in(s, NULL, root);
    s->distribution = s->version = s->root = NULL;
    wml_buf_release(&f);
    wml_buf_release(&v);
    wml_buf_release(&r);
    wml_buf_release(&dir);
}

void wml_ep_search_packages(struct wml_ep_search *s)
{
    static const wchar_t where[] = L"Software\\Classes\\Local Settings\\Software\\Microsoft\\Windows\\"
                                   L"CurrentVersion\\AppModel\\Repository\\Packages";
    HKEY key, package;
    struct wml_buf name = {0}, root = {0};
    wml_ep_note_place(s, "installed Windows packages (MicrosoftCorporationII.WinML.*)");
    if (RegOpenKeyExW(HKEY_CURRENT_USER, where, 0, KEY_READ, &key) != ERROR_SUCCESS) return;
    for (DWORD i = 0; i < 100000; i++) {
        wchar_t text[300], folder[1024];
        DWORD n = (DWORD)WML_COUNT(text), bytes = (DWORD)(sizeof folder - sizeof *folder), type = 0;
        LSTATUS st = RegEnumKeyExW(key, i, text, &n, NULL, NULL, NULL, NULL);
        if (st == ERROR_MORE_DATA) continue;
        if (st != ERROR_SUCCESS) break;
        to_utf8(text, &name);
        if (!wml_str_has(wml_buf_view(&name), "WinML") && !wml_str_has(wml_buf_view(&name), "Workload")) continue;
        if (RegOpenKeyExW(key, text, 0, KEY_READ, &package) != ERROR_SUCCESS) continue;
        st = RegQueryValueExW(package, L"PackageRootFolder", NULL, &type, (BYTE *)folder, &bytes);
        if (st == ERROR_SUCCESS && type == REG_SZ) {
            folder[bytes / sizeof *folder] = L'\0';
            to_utf8(folder, &root);
            look_in_package(s, wml_buf_view(&name), wml_buf_view(&root));
        }
        RegCloseKey(package);
    }
    RegCloseKey(key);
    wml_buf_release(&name);
    wml_buf_release(&root);
}
