/* cli/program.c - the commands of a program, its global flags, and its banner. */
#include "cli/program.h"

#include "cli/rows.h"

const struct wml_opt wml_opts_global[] = {
#define ARGS struct wml_global_args
    WML_OPT_COUNT('v', "verbose", verbose, "log more; twice: everything"),
    WML_OPT_FLAG('q', "quiet", quiet, WML_OPT_SWITCH, NULL, "only the result and errors"),
    WML_OPT_FLAG(0, "no-color", no_color, WML_OPT_SWITCH, NULL, "no colours"),
    WML_OPT_FLAG(0, "debug", debug, WML_OPT_SWITCH | WML_OPT_HIDDEN, NULL, "same as -vv"),
    WML_OPT_FLAG(0, "version", version, WML_OPT_SWITCH, NULL, "print the version"),
#undef ARGS
    WML_OPT_END,
};

static int by_name(const void *a, const void *b)
{
    const struct wml_command *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

void wml_program_commands(const struct wml_program *p, struct wml_commands *out)
{
    for (size_t i = 0; i < p->n_commands; i++)
        if (p->command[i]->run) WML_PUSH(&out->v, p->command[i]);
    WML_PUSH(&out->v, &wml_command_completion);
    qsort(out->v.at, out->v.len, sizeof *out->v.at, by_name);
}

const struct wml_command *wml_program_find(const struct wml_program *p, struct wml_str name)
{
    for (size_t i = 0; i < p->n_commands; i++)
        if (wml_str_is(name, p->command[i]->name)) return p->command[i];
    return wml_str_is(name, wml_command_completion.name) ? &wml_command_completion : NULL;
}

bool wml_program_lacks(const struct wml_program *p, struct wml_str name)
{
    struct wml_str rest = wml_str(p->absent), word;
    while (wml_str_split(&rest, ' ', &word))
        if (word.len && wml_str_eq(word, name)) return true;
    return false;
}

const char *wml_command_choices(const struct wml_command *c, const struct wml_opt *o)
{
    return o == &wml_opts_common[0] ? c->formats : wml_row_choices(o);
}

const char *wml_command_default(const struct wml_command *c, const struct wml_opt *o, struct wml_arena *arena)
{
    if (o != &wml_opts_common[0] || !c->formats) return o->fallback;
    struct wml_str all = wml_str(c->formats);
    return wml_arena_cstr(arena, wml_str_sub(all, 0, wml_str_find(all, '|')));
}

/* Five rows of pixels; every pixel is two columns wide on the screen. */
static const char *const word[] = {
    "#   # # #  # #   # #  ",
    "#   # # ## # ## ## #  ",
    "# # # # ## # # # # #  ",
    "## ## # # ## #   # #  ",
    "#   # # #  # #   # ###",
};

void wml_banner(const struct wml_program *p, bool colour, unsigned width, struct wml_buf *out)
{
    static const unsigned char shade[] = {33, 39, 45, 44, 80, 111, 105, 99}; /* blue, cyan, violet */
    size_t n = strlen(word[0]);
    bool art = colour && strcmp(p->name, "winml") == 0 && width >= 2 * n + 4;
    if (!art) {
        wml_buf_fmt(out, "%s v%s: %s\n\n", p->name, p->version, p->tagline);
        return;
    }
    wml_buf_char(out, '\n');
    for (size_t row = 0; row < WML_COUNT(word); row++) {
        wml_buf_cstr(out, "  ");
        for (size_t i = 0; i < n; i++) {
            unsigned colour_of = shade[i * WML_COUNT(shade) / n];
            if (word[row][i] == '#')
                wml_buf_fmt(out, "\x1b[38;5;%um██\x1b[0m", colour_of);
            else
                wml_buf_cstr(out, "  ");
        }
        wml_buf_char(out, '\n');
    }
    wml_buf_fmt(out, "\n  %s\n  \x1b[2mv%s · CPU · GPU · NPU\x1b[0m\n\n", p->tagline, p->version);
}
