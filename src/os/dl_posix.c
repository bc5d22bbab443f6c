/* Libraries on POSIX. */
#include "os/sys.h"

#include <dlfcn.h>
#include <link.h>
#include "base/arena.h"

struct wml_dl {
    void *handle;
};

bool wml_dl_open(const char *path, struct wml_dl **out, struct wml_err *err)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        return wml_fail(err, WML_E_NOT_FOUND, "cannot load the library %s: %s", path, why ? why : "no reason given");
    }
    *out = wml_xcalloc(1, sizeof **out);
    (*out)->handle = handle;
    return true;
}

void wml_dl_close(struct wml_dl *d)
{
    if (d) dlclose(d->handle);
    free(d);
}

void wml_dl_leave(struct wml_dl *d)
{
    free(d);
}

void *wml_dl_symbol(struct wml_dl *d, const char *name)
{
    return dlsym(d->handle, name);
}

bool wml_dl_path(struct wml_dl *d, struct wml_buf *out)
{
    struct link_map *map = NULL;
    if (dlinfo(d->handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name[0]) return false;
    wml_buf_cstr(out, map->l_name);
    return true;
}
