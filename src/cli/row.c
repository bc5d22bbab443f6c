/* cli/row.c - option rows: finding one, its names, and storing one text into its member. The message forms
 * are those that scripts of the Python tool know. */
#include "cli/rows.h"

#include <inttypes.h>

#include "base/num.h"
#include "os/file.h"
#include "os/path.h"

/* Row i of the flattened table, counting through *i. */
static const struct wml_opt *walk(const struct wml_opt *rows, size_t base, size_t *i, size_t *offset)
{
    for (; rows->kind != WML_KIND_END; rows++) {
        if (rows->kind == WML_KIND_GROUP) {
            const struct wml_opt *found = walk(rows->group, base + rows->offset, i, offset);
            if (found) return found;
            continue;
        }
        if (*i == 0) {
            *offset = base + rows->offset;
            return rows;
        }
        --*i;
    }
    return NULL;
}

const struct wml_opt *wml_opt_row(const struct wml_opt *rows, size_t i, size_t *offset)
{
    size_t ignored;
    return walk(rows, 0, &i, offset ? offset : &ignored);
}

static struct wml_row make_row(const struct wml_opt *opt, void *args, size_t offset, bool off)
{
    return (struct wml_row){opt, args ? (char *)args + offset : NULL, off};
}

struct wml_row wml_row_by_letter(const struct wml_opt *rows, void *args, char letter)
{
    size_t offset;
    const struct wml_opt *o;
    for (size_t i = 0; letter && (o = wml_opt_row(rows, i, &offset)); i++)
        if (o->letter == letter || o->no_letter == letter) return make_row(o, args, offset, o->no_letter == letter);
    return (struct wml_row){0};
}

static bool has_name(const struct wml_opt *o, struct wml_str name)
{
    if (wml_str_is(name, o->name)) return true;
    struct wml_str rest = wml_str(o->alias), alias;
    while (wml_str_split(&rest, ' ', &alias))
        if (alias.len && wml_str_eq(name, alias)) return true;
    return false;
}

struct wml_row wml_row_by_name(const struct wml_opt *rows, void *args, struct wml_str name)
{
    size_t offset;
    const struct wml_opt *o;
    bool no = wml_str_starts(name, "no-");
    for (size_t i = 0; (o = wml_opt_row(rows, i, &offset)); i++) {
        if (has_name(o, name)) return make_row(o, args, offset, false);
        if (no && o->kind == WML_KIND_FLAG && !(o->flags & WML_OPT_SWITCH) &&
            has_name(o, wml_str_sub(name, 3, name.len)))
            return make_row(o, args, offset, true);
    }
    return (struct wml_row){0};
}

void wml_row_title(const struct wml_opt *o, struct wml_buf *out)
{
    if (o->letter) wml_buf_fmt(out, "'-%c' / ", o->letter);
    wml_buf_fmt(out, "'--%s'", o->name);
    struct wml_str rest = wml_str(o->alias), alias;
    while (wml_str_split(&rest, ' ', &alias))
        if (alias.len) wml_buf_fmt(out, " / '--%.*s'", WML_ARG(alias));
}

void wml_row_names(const struct wml_opt *rows, struct wml_arena *arena, struct wml_names *out)
{
    const struct wml_opt *o;
    for (size_t i = 0; (o = wml_opt_row(rows, i, NULL)); i++) {
        if (o->flags & (WML_OPT_HIDDEN | WML_OPT_IGNORED)) continue;
        WML_PUSH(&out->v, wml_arena_fmt(arena, "--%s", o->name).ptr);
        if (o->kind == WML_KIND_FLAG && !(o->flags & WML_OPT_SWITCH))
            WML_PUSH(&out->v, wml_arena_fmt(arena, "--no-%s", o->name).ptr);
        struct wml_str rest = wml_str(o->alias), alias;
        while (wml_str_split(&rest, ' ', &alias))
            if (alias.len) WML_PUSH(&out->v, wml_arena_fmt(arena, "--%.*s", WML_ARG(alias)).ptr);
    }
    WML_PUSH(&out->v, "--help");
}

const char *wml_row_choices(const struct wml_opt *o)
{
    return o->value && strchr(o->value, '|') ? o->value : NULL;
}

bool wml_row_takes_value(const struct wml_opt *o)
{
    return o->kind == WML_KIND_STR || o->kind == WML_KIND_INT || o->kind == WML_KIND_NUM ||
           o->kind == WML_KIND_LIST;
}

enum wml_opt_source wml_row_source(const struct wml_row *row)
{
    switch (row->opt->kind) {
    case WML_KIND_STR: return ((const struct wml_opt_str *)row->member)->from;
    case WML_KIND_INT: return ((const struct wml_opt_int *)row->member)->from;
    case WML_KIND_NUM: return ((const struct wml_opt_num *)row->member)->from;
    case WML_KIND_FLAG: return ((const struct wml_opt_flag *)row->member)->from;
    case WML_KIND_LIST: return ((const struct wml_opt_list *)row->member)->from;
    default: return WML_FROM_DEFAULT;
    }
}

static bool bad_value(const struct wml_opt *o, struct wml_err *err, const char *why)
{
    struct wml_buf title = {0};
    wml_row_title(o, &title);
    wml_fail(err, WML_E_USAGE, "Invalid value for %s: %s", wml_buf_text(&title), why);
    wml_buf_release(&title);
    return false;
}

enum { FEW = 6 }; /* choices that the eye compares by itself */

static bool bad_choice(const struct wml_opt *o, struct wml_str text, struct wml_arena *arena,
                       struct wml_err *err)
{
    struct wml_buf why = {0};
    struct wml_names names = {0};
    struct wml_str rest = wml_str(o->value), choice;
    wml_buf_fmt(&why, "'%.*s' is not one of", WML_ARG(text));
    for (const char *comma = " "; wml_str_split(&rest, '|', &choice); comma = ", ") {
        wml_buf_fmt(&why, "%s'%.*s'", comma, WML_ARG(choice));
        WML_PUSH(&names.v, wml_arena_cstr(arena, choice));
    }
    wml_buf_char(&why, '.');
    if (names.v.len > FEW) wml_did_you_mean(text, &names, &why);
    bad_value(o, err, wml_buf_text(&why));
    wml_buf_release(&why);
    WML_VEC_RELEASE(&names.v);
    return false;
}

/* The choice in its canonical case, with the ":N" of a numbered one. */
static const char *find_choice(const struct wml_opt *o, struct wml_str text, struct wml_arena *arena)
{
    struct wml_str rest = wml_str(o->value), choice, word = text, number = {0};
    size_t colon = wml_str_find(text, ':');
    uint64_t n;
    if ((o->flags & WML_OPT_NUMBERED) && colon != SIZE_MAX &&
        wml_parse_u64(wml_str_sub(text, colon + 1, text.len), &n)) {
        word = wml_str_sub(text, 0, colon);
        number = wml_str_sub(text, colon, text.len);
    }
    while (wml_str_split(&rest, '|', &choice))
        if (wml_str_ieq(choice, word))
            return wml_arena_fmt(arena, "%.*s%.*s", WML_ARG(choice), WML_ARG(number)).ptr;
    return NULL;
}

static const char *expand_home(struct wml_str text, struct wml_arena *arena)
{
    bool slash = text.len > 1 && (text.ptr[1] == '/' || text.ptr[1] == '\\');
    if (text.len == 0 || text.ptr[0] != '~' || (text.len > 1 && !slash)) return wml_arena_cstr(arena, text);
    struct wml_buf home = {0};
    const char *path = NULL;
    if (wml_path_home(&home))
        path = wml_arena_fmt(arena, "%s%.*s", wml_buf_text(&home), WML_ARG(wml_str_sub(text, 1, text.len))).ptr;
    wml_buf_release(&home);
    return path ? path : wml_arena_cstr(arena, text);
}

static bool read_text(const struct wml_opt *o, struct wml_str text, struct wml_arena *arena,
                      const char **out, struct wml_err *err)
{
    if (wml_row_choices(o)) {
        *out = find_choice(o, text, arena);
        return *out || bad_choice(o, text, arena, err);
    }
    *out = o->flags & (WML_OPT_PATH | WML_OPT_EXISTS) ? expand_home(text, arena) : wml_arena_cstr(arena, text);
    if (o->flags & WML_OPT_EXISTS && wml_file_info(*out).kind == WML_FILE_NONE)
        return bad_value(o, err, wml_arena_fmt(arena, "Path '%s' does not exist.", *out).ptr);
    return true;
}

/* Ranges beyond this bound are open on that side. */
static const double OPEN = 1e15;

static bool check_range(const struct wml_opt *o, double v, struct wml_str text, struct wml_arena *arena,
                        struct wml_err *err)
{
    if (!(o->low < o->high) || (v >= o->low && v <= o->high)) return true;
    struct wml_str range = o->high >= OPEN   ? wml_arena_fmt(arena, "x>=%.15g", o->low)
                           : o->low <= -OPEN ? wml_arena_fmt(arena, "x<=%.15g", o->high)
                                             : wml_arena_fmt(arena, "%.15g<=x<=%.15g", o->low, o->high);
    return bad_value(o, err, wml_arena_fmt(arena, "%.*s is not in the range %.*s.", WML_ARG(text), WML_ARG(range)).ptr);
}

static bool read_flag(struct wml_str text, bool *v)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (size_t i = 0; i < WML_COUNT(words); i++) {
        if (!wml_str_ieq(text, wml_str(words[i]))) continue;
        *v = i & 1;
        return true;
    }
    return false;
}

static bool store_list(const struct wml_row *row, struct wml_str text, enum wml_opt_source from,
                       struct wml_arena *arena, struct wml_err *err)
{
    struct wml_opt_list *list = row->member;
    const char *v;
    if (!read_text(row->opt, text, arena, &v, err)) return false;
    if (from > list->from) list->v.len = 0; /* a stronger source replaces, it does not add */
    WML_PUSH(&list->v, v);
    list->from = from;
    return true;
}

bool wml_row_store(const struct wml_row *row, struct wml_str text, enum wml_opt_source from,
                   struct wml_arena *arena, struct wml_err *err)
{
    const struct wml_opt *o = row->opt;
    int64_t whole;
    double num;
    bool flag;
    const char *s;
    switch (o->kind) {
    case WML_KIND_STR:
        if (!read_text(o, text, arena, &s, err)) return false;
        *(struct wml_opt_str *)row->member = (struct wml_opt_str){s, from};
        return true;
    case WML_KIND_LIST:
        return store_list(row, text, from, arena, err);
    case WML_KIND_INT:
        if (!wml_parse_i64(text, &whole))
            return bad_value(o, err, wml_arena_fmt(arena, "'%.*s' is not a valid integer.", WML_ARG(text)).ptr);
        *(struct wml_opt_int *)row->member = (struct wml_opt_int){whole, true, from};
        return check_range(o, (double)whole, text, arena, err);
    case WML_KIND_NUM:
        if (!wml_parse_f64(text, &num) || num != num)
            return bad_value(o, err, wml_arena_fmt(arena, "'%.*s' is not a valid number.", WML_ARG(text)).ptr);
        *(struct wml_opt_num *)row->member = (struct wml_opt_num){num, true, from};
        return check_range(o, num, text, arena, err);
    case WML_KIND_FLAG:
        if (!read_flag(text, &flag))
            return bad_value(o, err, wml_arena_fmt(arena, "'%.*s' is not yes or no.", WML_ARG(text)).ptr);
        *(struct wml_opt_flag *)row->member = (struct wml_opt_flag){flag != row->off, true, from};
        return true;
    case WML_KIND_COUNT:
        if (!wml_parse_i64(text, &whole) || whole < 0 || whole > 100)
            return bad_value(o, err, wml_arena_fmt(arena, "'%.*s' is not a count.", WML_ARG(text)).ptr);
        ((struct wml_opt_count *)row->member)->v += (int)whole;
        return true;
    default:
        return wml_fail(err, WML_E_INTERNAL, "option row '%s' has no kind", o->name ? o->name : "");
    }
}
