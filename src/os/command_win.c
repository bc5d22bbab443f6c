/* Command line and environment block of a child on Windows. */
#include "os/spawn_win.h"

#include <inttypes.h>
#include "base/arena.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static const char channel_name[] = "WINML_CHANNEL=";

/* Backslashes count only before a quote: there they are doubled, and the quote gets one of its own. */
static void quote(struct wml_buf *out, const char *arg)
{
    if (*arg && !strpbrk(arg, " \t\n\v\"")) {
        wml_buf_cstr(out, arg);
        return;
    }
    wml_buf_char(out, '"');
    for (;;) {
        size_t slashes = strspn(arg, "\\");
        char next = arg[slashes];
        for (size_t i = 0; i < slashes; i++) wml_buf_cstr(out, next == '"' || !next ? "\\\\" : "\\");
        arg += slashes;
        if (!next) break;
        if (next == '"') wml_buf_char(out, '\\');
        wml_buf_char(out, next);
        arg++;
    }
    wml_buf_char(out, '"');
}

wchar_t *wml_command_line(const char *const *argv)
{
    struct wml_buf line = {0};
    for (size_t i = 0; argv[i]; i++) {
        if (i) wml_buf_char(&line, ' ');
        quote(&line, argv[i]);
    }
    wchar_t *wide = wml_wide(wml_buf_text(&line));
    wml_buf_release(&line);
    return wide;
}

/* Whether two NAME=VALUE set the same name; names of Windows have no case. */
static bool same_name(struct wml_str a, struct wml_str b)
{
    size_t x = wml_str_find(a, '='), y = wml_str_find(b, '=');
    return x != SIZE_MAX && x == y && wml_str_ieq(wml_str_sub(a, 0, x), wml_str_sub(b, 0, y));
}

static bool is_replaced(struct wml_str entry, const char *const *env)
{
    if (same_name(entry, wml_str(channel_name))) return true;
    for (size_t i = 0; env && env[i]; i++)
        if (same_name(entry, wml_str(env[i]))) return true;
    return false;
}

wchar_t *wml_environment(const char *const *env, intptr_t channel)
{
    struct wml_buf block = {0}, entry = {0};
    wchar_t *ours = GetEnvironmentStringsW();
    for (const wchar_t *p = ours; p && *p; p += wcslen(p) + 1) {
        wml_buf_clear(&entry);
        wml_narrow(p, &entry);
        /* "=C:=C:\dir" is how the system remembers the folder of a drive. */
        if (is_replaced(wml_buf_view(&entry), env)) continue;
        wml_buf_add(&block, entry.ptr, entry.len + 1);
    }
    if (ours) FreeEnvironmentStringsW(ours);
    for (size_t i = 0; env && env[i]; i++) wml_buf_add(&block, env[i], strlen(env[i]) + 1);
    if (channel) {
        wml_buf_fmt(&block, "%s%" PRIdPTR, channel_name, channel);
        wml_buf_char(&block, '\0');
    }
    wml_buf_char(&block, '\0');
    int n = MultiByteToWideChar(CP_UTF8, 0, block.ptr, (int)block.len, NULL, 0);
    wchar_t *wide = wml_xcalloc((size_t)WML_MAX(n, 0) + 2, sizeof *wide);
    MultiByteToWideChar(CP_UTF8, 0, block.ptr, (int)block.len, wide, n);
    wml_buf_release(&block);
    wml_buf_release(&entry);
    return wide;
}
