/* Paths as text. */
#include "os/path.h"

static bool is_sep(char c)
{
#ifdef _WIN32
    if (c == '\\') return true;
#endif
    return c == '/';
}

/* Whether the system takes the two for one. */
static bool same(char a, char b)
{
#ifdef _WIN32
    if (is_sep(a) && is_sep(b)) return true;
    if (a >= 'A' && a <= 'Z') a = (char)(a - 'A' + 'a');
    if (b >= 'A' && b <= 'Z') b = (char)(b - 'A' + 'a');
#endif
    return a == b;
}

/* Length of "C:" at the start, 0 elsewhere. */
static size_t drive(struct wml_str p)
{
#ifdef _WIN32
    if (p.len >= 2 && p.ptr[1] == ':') return 2;
#endif
    (void)p;
    return 0;
}

bool wml_path_is_absolute(struct wml_str p)
{
    size_t d = drive(p);
    return p.len > d && is_sep(p.ptr[d]);
}

static size_t name_start(struct wml_str p)
{
    size_t i = p.len;
    while (i > drive(p) && !is_sep(p.ptr[i - 1])) i--;
    return i;
}

struct wml_str wml_path_name(struct wml_str p)
{
    return wml_str_sub(p, name_start(p), p.len);
}

struct wml_str wml_path_dir(struct wml_str p)
{
    size_t n = name_start(p);
    if (n == 0) return WML_STR(".");
    while (n > drive(p) + 1 && is_sep(p.ptr[n - 1])) n--;
    return wml_str_sub(p, 0, n);
}

struct wml_str wml_path_ext(struct wml_str p)
{
    struct wml_str name = wml_path_name(p);
    size_t dot = wml_str_rfind(name, '.');
    return dot == SIZE_MAX || dot == 0 ? WML_STR("") : wml_str_sub(name, dot, name.len);
}

struct wml_str wml_path_stem(struct wml_str p)
{
    struct wml_str name = wml_path_name(p);
    return wml_str_sub(name, 0, name.len - wml_path_ext(p).len);
}

void wml_path_join(struct wml_buf *out, struct wml_str dir, struct wml_str name)
{
    if (dir.len && !wml_str_is(dir, ".") && !wml_path_is_absolute(name)) {
        wml_buf_str(out, dir);
        if (!is_sep(dir.ptr[dir.len - 1])) wml_buf_char(out, '/');
    }
    wml_buf_str(out, name);
}

const char *wml_path_in(struct wml_arena *a, const char *dir, const char *name)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(dir), wml_str(name));
    const char *copy = wml_arena_cstr(a, wml_buf_view(&path));
    wml_buf_release(&path);
    return copy;
}

void wml_path_normal(struct wml_buf *out, struct wml_str p)
{
    size_t d = drive(p), at = d, floor;
    wml_buf_add(out, p.ptr, d);
    bool absolute = wml_path_is_absolute(p);
    if (absolute) wml_buf_char(out, '/');
#ifdef _WIN32
    /* "//server/share" and "//?/C:/x" keep both. */
    if (d == 0 && p.len > 2 && is_sep(p.ptr[0]) && is_sep(p.ptr[1]) && !is_sep(p.ptr[2])) wml_buf_char(out, '/');
#endif
    floor = out->len;
    while (at < p.len) {
        size_t end = at;
        while (end < p.len && !is_sep(p.ptr[end])) end++;
        struct wml_str part = wml_str_sub(p, at, end);
        at = end + 1;
        if (!part.len || wml_str_is(part, ".")) continue;
        if (wml_str_is(part, "..")) {
            struct wml_str sofar = {out->ptr + floor, out->len - floor};
            size_t start = name_start(sofar);
            bool inner = sofar.len && !wml_str_is(wml_str_sub(sofar, start, sofar.len), "..");
            if (inner) {
                out->len = floor + (start ? start - 1 : 0);
                out->ptr[out->len] = 0;
                continue;
            }
            if (absolute) continue;
        }
        if (out->len > floor) wml_buf_char(out, '/');
        wml_buf_str(out, part);
    }
    if (out->len == floor && !absolute) wml_buf_char(out, '.');
}

void wml_path_relative(struct wml_buf *out, struct wml_str p, struct wml_str dir)
{
    size_t common = 0, i = 0;
    if (drive(p) && !wml_str_ieq(wml_str_sub(p, 0, 2), wml_str_sub(dir, 0, 2))) {
        wml_buf_str(out, p);
        return;
    }
    for (i = 0; i < p.len && i < dir.len && same(p.ptr[i], dir.ptr[i]); i++)
        if (is_sep(p.ptr[i])) common = i + 1;
    if (i == dir.len && (i == p.len || is_sep(p.ptr[i]))) common = i + (i < p.len);
    else if (i == p.len && is_sep(dir.ptr[i])) common = i;
    bool first = true;
    for (size_t k = common; k < dir.len;) {
        size_t end = k;
        while (end < dir.len && !is_sep(dir.ptr[end])) end++;
        if (end > k) {
            wml_buf_cstr(out, first ? ".." : "/..");
            first = false;
        }
        k = end + 1;
    }
    struct wml_str rest = wml_str_sub(p, common, p.len);
    if (rest.len && !first) wml_buf_char(out, '/');
    wml_buf_str(out, rest);
    if (first && !rest.len) wml_buf_char(out, '.');
}

bool wml_path_is_inside(struct wml_str p)
{
    if (!p.len || memchr(p.ptr, 0, p.len)) return false;
    /* Both separators and drives are refused on every system: the file may travel. */
    if (p.ptr[0] == '/' || p.ptr[0] == '\\' || (p.len > 1 && p.ptr[1] == ':')) return false;
    for (size_t at = 0; at <= p.len;) {
        size_t end = at;
        while (end < p.len && p.ptr[end] != '/' && p.ptr[end] != '\\') end++;
        if (end - at == 2 && p.ptr[at] == '.' && p.ptr[at + 1] == '.') return false;
        at = end + 1;
    }
    return true;
}
