/* Paths that the system knows, on POSIX. */
#include "os/path.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include "os/fail.h"
#include "os/sys.h"

bool wml_path_absolute(struct wml_buf *out, struct wml_str p, struct wml_err *err)
{
    char here[PATH_MAX];
    struct wml_buf full = {0};
    if (!wml_path_is_absolute(p)) {
        if (!getcwd(here, sizeof here)) return wml_fail_system(err, errno, "ask for the current folder of", "this process");
        wml_buf_cstr(&full, here);
        wml_buf_char(&full, '/');
    }
    wml_buf_str(&full, p);
    wml_path_normal(out, wml_buf_view(&full));
    wml_buf_release(&full);
    return true;
}

bool wml_path_real(struct wml_buf *out, struct wml_str p, struct wml_err *err)
{
    char real[PATH_MAX];
    struct wml_buf text = {0};
    wml_buf_str(&text, p);
    bool ok = realpath(wml_buf_text(&text), real) != NULL;
    if (ok) wml_buf_cstr(out, real);
    else wml_fail_system(err, errno, "find", wml_buf_text(&text));
    wml_buf_release(&text);
    return ok;
}

bool wml_path_home(struct wml_buf *out)
{
    return wml_env("HOME", out) && out->len;
}

bool wml_path_cache(struct wml_buf *out)
{
    if (wml_env_is_set("XDG_CACHE_HOME")) return wml_env("XDG_CACHE_HOME", out);
    if (!wml_path_home(out)) return false;
    wml_buf_cstr(out, "/.cache");
    return true;
}

void wml_path_temp(struct wml_buf *out)
{
    if (wml_env_is_set("TMPDIR")) wml_env("TMPDIR", out);
    else wml_buf_cstr(out, "/tmp");
}

bool wml_path_program(struct wml_buf *out)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0 || (size_t)n >= sizeof path) return false;
    wml_buf_add(out, path, (size_t)n);
    return true;
}
