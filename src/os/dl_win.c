/* Libraries on Windows. */
#include "os/sys.h"

#include "base/arena.h"
#include "os/fail.h"
#include "os/path.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

struct wml_dl {
    HMODULE module;
};

static bool explain(const char *path, DWORD code, struct wml_err *err)
{
    struct wml_err why = {0};
    wml_fail_system(&why, (int)code, "cannot load the library", path);
    const char *more = code == ERROR_MOD_NOT_FOUND    ? " (it, or a library that it needs, is not there)"
                     : code == ERROR_BAD_EXE_FORMAT ? " (it is made for another kind of processor, or damaged)" : "";
    /* No hint, as on POSIX: the caller knows which setting named the library. */
    return wml_fail(err, WML_E_NOT_FOUND, "%s%s", why.msg, more);
}

bool wml_dl_open(const char *path, struct wml_dl **out, struct wml_err *err)
{
    /* Libraries that it needs are looked for beside it; that takes a full path. */
    bool full = wml_path_is_absolute(wml_str(path));
    wchar_t *wide = wml_wide_path(path);
    for (wchar_t *c = wide; *c; c++)
        if (*c == L'/') *c = L'\\';
    HMODULE module = LoadLibraryExW(wide, NULL, full ? LOAD_WITH_ALTERED_SEARCH_PATH : 0);
    DWORD code = GetLastError();
    free(wide);
    if (!module) return explain(path, code, err);
    *out = wml_xcalloc(1, sizeof **out);
    (*out)->module = module;
    return true;
}

void wml_dl_close(struct wml_dl *d)
{
    if (d) FreeLibrary(d->module);
    free(d);
}

void wml_dl_leave(struct wml_dl *d)
{
    free(d);
}

void *wml_dl_symbol(struct wml_dl *d, const char *name)
{
    FARPROC f = GetProcAddress(d->module, name);
    void *p;
    memcpy(&p, &f, sizeof p);
    return p;
}

bool wml_dl_path(struct wml_dl *d, struct wml_buf *out)
{
    wchar_t path[4096];
    DWORD n = GetModuleFileNameW(d->module, path, WML_COUNT(path));
    if (!n || n >= WML_COUNT(path)) return false;
    wml_narrow(path, out);
    return true;
}
