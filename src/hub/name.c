/* Names: ids, revisions, files. The hub's rules for ids; for the rest what can be a path on every system and can never
 * leave its folder, since both come from outside. */
#include "hub/internal.h"

#include "os/path.h"

enum { LONGEST_NAME = 96, LONGEST_REVISION = 255, LONGEST_WORD = 128 };

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters, digits, "-_.", none of "-." at an end, no "--" or "..". */
static bool is_part(struct wml_str s)
{
    if (!s.len || s.len > LONGEST_NAME) return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool edge = i == 0 || i + 1 == s.len, punct = c == '-' || c == '.';
        if (!is_alnum(c) && c != '_' && (!punct || edge || s.ptr[i - 1] == c)) return false;
    }
    return true;
}

static bool is_bare_id(struct wml_str s)
{
    size_t slash = wml_str_find(s, '/');
    if (wml_str_ends(s, ".git")) return false;
    if (slash == SIZE_MAX) return is_part(s);
    return is_part(wml_str_sub(s, 0, slash)) && is_part(wml_str_sub(s, slash + 1, s.len));
}

/* What git allows and every file system can hold as a path. */
static bool is_revision(struct wml_str s)
{
    if (!s.len || s.len > LONGEST_REVISION || !wml_hub_is_file_name(s) || s.ptr[0] == '-') return false;
    for (size_t i = 0; i < s.len; i++)
        if (strchr(" ~^:?*[\"<>|@{", s.ptr[i])) return false;
    return !wml_str_ends(s, ".lock") && !wml_str_ends(s, ".");
}

bool wml_hub_is_id(struct wml_str text)
{
    size_t at = wml_str_find(text, '@');
    if (at == SIZE_MAX) return is_bare_id(text);
    return is_bare_id(wml_str_sub(text, 0, at)) && is_revision(wml_str_sub(text, at + 1, text.len));
}

bool wml_hub_is_word(struct wml_str s)
{
    if (!s.len || s.len > LONGEST_WORD || s.ptr[0] == '.') return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.ptr[i]) && s.ptr[i] != '-' && s.ptr[i] != '_' && s.ptr[i] != '.') return false;
    return true;
}

bool wml_hub_is_commit(struct wml_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f'))) return false;
    return s.len == 40;
}

bool wml_hub_is_file_name(struct wml_str name)
{
    struct wml_str rest = name, part;
    if (name.len > 1024 || !wml_path_is_inside(name) || wml_str_find(name, '\\') != SIZE_MAX || wml_str_ends(name, "/")) return false;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f) return false;
    while (wml_str_split(&rest, '/', &part))
        if (!part.len || wml_str_is(part, ".")) return false;
    return true;
}

bool wml_hub_take_id(struct wml_hub *h, const char *id, const char *revision, struct wml_err *err)
{
    struct wml_str text = wml_str(id), said = WML_NO_STR;
    size_t at = wml_str_find(text, '@');
    if (at != SIZE_MAX) {
        said = wml_str_sub(text, at + 1, text.len);
        text = wml_str_sub(text, 0, at);
    }
    if (!is_bare_id(text)) {
        wml_fail(err, WML_E_USAGE, "'%s' is no model id", id);
        return wml_hint(err, "an id is org/name or name, of letters, digits, '-', '_' and '.', as microsoft/resnet-50");
    }
    if (said.ptr && revision && !wml_str_is(said, revision))
        return wml_fail(err, WML_E_USAGE, "'%s' names another revision than %s", id, revision);
    if (!said.ptr) said = wml_str(revision ? revision : "main");
    if (!is_revision(said)) {
        wml_fail(err, WML_E_USAGE, "'%.*s' is no revision of a model", WML_ARG(said));
        return wml_hint(err, "a revision is a branch, a tag, a commit, or refs/pr/N");
    }
    h->id = wml_arena_cstr(&h->arena, text);
    h->revision = wml_arena_cstr(&h->arena, said);
    return true;
}

void wml_hub_escape(struct wml_buf *out, struct wml_str s, bool keep_slashes)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (is_alnum(c) || strchr("-_.~", c) || (c == '/' && keep_slashes)) wml_buf_char(out, c);
        else wml_buf_fmt(out, "%%%02X", (unsigned char)c);
    }
}

void wml_hub_file_url(const struct wml_hub *h, const char *commit, struct wml_str name, struct wml_buf *out)
{
    wml_buf_clear(out);
    wml_buf_fmt(out, "%s/%s/resolve/", wml_buf_text(&h->http.endpoint), h->id);
    wml_hub_escape(out, wml_str(commit), false);
    wml_buf_char(out, '/');
    wml_hub_escape(out, name, true);
}
