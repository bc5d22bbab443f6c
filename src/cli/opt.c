/* cli/opt.c - the parser: words of the command line, texts of defaults and of config files, all stored
 * through the same rows. Long names are exact; letters may be joined; the last occurrence wins. */
#include "cli/opt.h"

#include "cli/rows.h"

struct parser {
    const struct wml_opt *rows;
    void *args;
    int argc, at;
    char *const *argv;
    struct wml_arena *arena;
    struct wml_parse *parse;
    struct wml_err *err;
    bool only_words; /* after "--" */
};

static bool no_such_option(struct parser *p, struct wml_str typed)
{
    struct wml_names names = {0};
    struct wml_buf more = {0};
    if (wml_str_starts(typed, "--")) {
        wml_row_names(p->rows, p->arena, &names);
        wml_did_you_mean(typed, &names, &more);
    }
    p->parse->unknown = typed;
    wml_fail(p->err, WML_E_USAGE, "No such option '%.*s'.%s", WML_ARG(typed), wml_buf_text(&more));
    wml_buf_release(&more);
    WML_VEC_RELEASE(&names.v);
    return false;
}

/* A word that names an option is not taken as the value of another one: `-m -o x` forgot the model. */
static bool is_option(const struct parser *p, const char *word)
{
    struct wml_str s = wml_str(word);
    if (!wml_str_starts(s, "-") || s.len < 2) return false;
    if (!wml_str_starts(s, "--")) return s.len == 2 && wml_row_by_letter(p->rows, NULL, s.ptr[1]).opt;
    struct wml_str name = wml_str_sub(s, 2, wml_str_find(s, '='));
    return wml_str_is(name, "help") || wml_row_by_name(p->rows, NULL, name).opt;
}

/* value absent: the next word is it. */
static bool take(struct parser *p, const struct wml_row *row, struct wml_str typed, struct wml_str value)
{
    if (row->opt->flags & WML_OPT_IGNORED)
        WML_PUSH(&p->parse->ignored, wml_arena_fmt(p->arena, "%.*s", WML_ARG(typed)).ptr);
    if (wml_row_takes_value(row->opt)) {
        if (!value.ptr) {
            if (p->at >= p->argc || is_option(p, p->argv[p->at]))
                return wml_fail(p->err, WML_E_USAGE, "Option '%.*s' requires an argument.", WML_ARG(typed));
            value = wml_str(p->argv[p->at++]);
        }
        return wml_row_store(row, value, WML_FROM_COMMAND_LINE, p->arena, p->err);
    }
    if (value.ptr)
        return wml_fail(p->err, WML_E_USAGE, "Option '%.*s' does not take a value.", WML_ARG(typed));
    return wml_row_store(row, row->opt->kind == WML_KIND_COUNT ? WML_STR("1") : WML_STR("yes"),
                         WML_FROM_COMMAND_LINE, p->arena, p->err);
}

static bool take_long(struct parser *p, struct wml_str word)
{
    size_t equals = wml_str_find(word, '=');
    struct wml_str typed = wml_str_sub(word, 0, equals), value = WML_NO_STR;
    if (equals != SIZE_MAX) value = wml_str_sub(word, equals + 1, word.len);
    struct wml_str name = wml_str_sub(typed, 2, typed.len);
    if (wml_str_is(name, "help")) {
        p->parse->help = true;
        return true;
    }
    struct wml_row row = wml_row_by_name(p->rows, p->args, name);
    return row.opt ? take(p, &row, typed, value) : no_such_option(p, typed);
}

static bool take_letters(struct parser *p, struct wml_str word)
{
    for (size_t i = 1; i < word.len && !p->parse->help; i++) {
        struct wml_row row = wml_row_by_letter(p->rows, p->args, word.ptr[i]);
        struct wml_str typed = wml_arena_fmt(p->arena, "-%c", word.ptr[i]);
        if (!row.opt && word.ptr[i] == 'h') {
            p->parse->help = true;
            return true;
        }
        /* A joined word that fails at its first letter is shown whole: "-é" is not one byte. */
        if (!row.opt) return no_such_option(p, i == 1 ? word : typed);
        if (!wml_row_takes_value(row.opt)) {
            if (!take(p, &row, typed, WML_NO_STR)) return false;
            continue;
        }
        struct wml_str value = wml_str_sub(word, i + 1, word.len);
        if (value.len && value.ptr[0] == '=') value = wml_str_sub(value, 1, value.len);
        return take(p, &row, typed, i + 1 < word.len ? value : WML_NO_STR);
    }
    return true;
}

static bool check_required(struct parser *p)
{
    size_t offset;
    const struct wml_opt *o;
    for (size_t i = 0; (o = wml_opt_row(p->rows, i, &offset)); i++) {
        if (!(o->flags & WML_OPT_REQUIRED)) continue;
        const void *member = (const char *)p->args + offset;
        bool given = o->kind == WML_KIND_STR    ? ((const struct wml_opt_str *)member)->v != NULL
                     : o->kind == WML_KIND_LIST ? ((const struct wml_opt_list *)member)->v.len > 0
                     : o->kind == WML_KIND_INT  ? ((const struct wml_opt_int *)member)->set
                     : o->kind == WML_KIND_NUM  ? ((const struct wml_opt_num *)member)->set
                                                : true;
        if (given) continue;
        struct wml_buf title = {0};
        wml_row_title(o, &title);
        wml_fail(p->err, WML_E_USAGE, "Missing option %s.", wml_buf_text(&title));
        wml_buf_release(&title);
        return false;
    }
    return true;
}

static bool extra_words(struct parser *p, const struct wml_names *extra)
{
    struct wml_buf words = {0};
    for (size_t i = 0; i < extra->v.len; i++)
        wml_buf_fmt(&words, "%s%s", i ? " " : "", extra->v.at[i]);
    wml_fail(p->err, WML_E_USAGE, "Got unexpected extra argument%s (%s)", extra->v.len > 1 ? "s" : "",
             wml_buf_text(&words));
    if (wml_row_by_name(p->rows, NULL, WML_STR("model")).opt)
        wml_hint(p->err, "every value has its option; a model is given with -m %s", extra->v.at[0]);
    wml_buf_release(&words);
    return false;
}

static bool parse_words(struct parser *p, struct wml_names *extra)
{
    while (p->at < p->argc && !p->parse->help) {
        struct wml_str word = wml_str(p->argv[p->at++]);
        bool ok = true;
        if (p->only_words || word.len < 2 || word.ptr[0] != '-')
            WML_PUSH(&extra->v, word.ptr);
        else if (wml_str_is(word, "--"))
            p->only_words = true;
        else if (word.ptr[1] == '-')
            ok = take_long(p, word);
        else
            ok = take_letters(p, word);
        if (!ok) return false;
    }
    return true;
}

bool wml_opt_parse(const struct wml_opt *rows, void *args, int argc, char *const *argv,
                   struct wml_arena *arena, struct wml_parse *parse, struct wml_err *err)
{
    struct parser p = {.rows = rows, .args = args, .argc = argc, .argv = argv, .arena = arena,
                       .parse = parse, .err = err};
    struct wml_names extra = {0};
    bool ok = wml_opt_defaults(rows, args, arena, err) && parse_words(&p, &extra);
    if (ok && !parse->help) {
        ok = extra.v.len ? extra_words(&p, &extra) : check_required(&p);
    }
    WML_VEC_RELEASE(&extra.v);
    return ok;
}

static bool is_set(const struct wml_row *row)
{
    switch (row->opt->kind) {
    case WML_KIND_STR: return ((const struct wml_opt_str *)row->member)->v != NULL;
    case WML_KIND_INT: return ((const struct wml_opt_int *)row->member)->set;
    case WML_KIND_NUM: return ((const struct wml_opt_num *)row->member)->set;
    case WML_KIND_FLAG: return ((const struct wml_opt_flag *)row->member)->set;
    default: return true; /* lists and counts have no defaults */
    }
}

bool wml_opt_defaults(const struct wml_opt *rows, void *args, struct wml_arena *arena, struct wml_err *err)
{
    size_t offset;
    const struct wml_opt *o;
    for (size_t i = 0; (o = wml_opt_row(rows, i, &offset)); i++) {
        struct wml_row row = {o, (char *)args + offset, false};
        if (!o->fallback || is_set(&row)) continue;
        if (!wml_row_store(&row, wml_str(o->fallback), WML_FROM_DEFAULT, arena, err)) return false;
    }
    return true;
}

bool wml_opt_set(const struct wml_opt *rows, void *args, struct wml_str name, struct wml_str value,
                 enum wml_opt_source from, struct wml_arena *arena, bool *known, struct wml_err *err)
{
    struct wml_str dashed = wml_str(wml_arena_cstr(arena, name));
    char *text = wml_arena_cstr(arena, name);
    for (size_t i = 0; i < name.len; i++)
        if (text[i] == '_') text[i] = '-';
    dashed.ptr = text;
    struct wml_row row = wml_row_by_name(rows, args, dashed);
    *known = row.opt != NULL;
    if (!row.opt || wml_row_source(&row) > from) return true;
    return wml_row_store(&row, value, from, arena, err);
}

bool wml_opt_is_typed(const struct wml_opt *rows, const void *args, const char *name)
{
    struct wml_row row = wml_row_by_name(rows, (void *)(uintptr_t)args, wml_str(name));
    return row.opt && wml_row_source(&row) == WML_FROM_COMMAND_LINE;
}

void wml_opt_release(const struct wml_opt *rows, void *args)
{
    size_t offset;
    const struct wml_opt *o;
    for (size_t i = 0; (o = wml_opt_row(rows, i, &offset)); i++) {
        if (o->kind != WML_KIND_LIST) continue;
        struct wml_opt_list *list = (struct wml_opt_list *)(void *)((char *)args + offset);
        WML_VEC_RELEASE(&list->v);
    }
}

const struct wml_opt wml_opts_common[] = {
#define ARGS struct wml_common_args
    WML_OPT_STR('f', "format", format, "FORMAT", 0, NULL, "how the result is printed"),
    WML_OPT_COUNT('v', "verbose", verbose, "log more; twice: everything"),
    WML_OPT_FLAG('q', "quiet", quiet, WML_OPT_SWITCH, NULL, "only the result and errors"),
    WML_OPT_FLAG(0, "no-color", no_color, WML_OPT_SWITCH, NULL, "no colours"),
#undef ARGS
    WML_OPT_END,
};

#define ARGS struct wml_target_args
#define TARGET_ROWS(devices, about)                                                                                     \
    {.kind = WML_KIND_STR, .name = "ep", .alias = "execution-provider",                                                 \
     .offset = WML_OPT_AT_(ep, struct wml_opt_str), .value = "NAME",                                                    \
     .help = "execution provider: full name or alias, auto, or NAME@SOURCE (see winml sys --list-ep)"},                 \
    WML_OPT_STR('d', "device", device, devices, WML_OPT_NUMBERED, NULL, about),                                         \
    WML_OPT_LIST(0, "ep-options", ep_options, "KEY=VALUE", 0, "option for the execution provider"),                     \
    WML_OPT_END
const struct wml_opt wml_opts_target[] = {TARGET_ROWS("auto|npu|gpu|cpu", "kind of device; gpu:1 is the second one")};
const struct wml_opt wml_opts_bundle_target[] = {
    TARGET_ROWS("auto|config|npu|gpu|cpu", "kind of device; gpu:1 is the second one; config: as a GenAI bundle says")};
#undef ARGS
