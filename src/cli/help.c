/* cli/help.c - help texts, made from the rows of the program and its commands, for 80 columns. */
#include "cli/program.h"
#include "cli/rows.h"
#include "text/words.h"

enum { WIDTH = 80, OPTION_LEFT = 26, COMMAND_LEFT = 14 };

struct help {
    struct wml_buf *out;
    bool colour;
    struct wml_arena arena;
};

static void styled(struct help *h, const char *code, struct wml_str s)
{
    if (h->colour) wml_buf_fmt(h->out, "\x1b[%sm", code);
    wml_buf_str(h->out, s);
    if (h->colour) wml_buf_cstr(h->out, "\x1b[0m");
}

static void blanks(struct help *h, size_t n)
{
    for (size_t i = 0; i < n; i++) wml_buf_char(h->out, ' ');
}

/* Words of s between the columns; the first line has begun already. Newlines in s start paragraphs. */
static void wrapped(struct help *h, struct wml_str s, size_t column)
{
    struct wml_str line;
    for (bool first = true; wml_str_split(&s, '\n', &line); first = false) {
        if (!first) blanks(h, line.len ? column : 0);
        size_t at = column;
        bool begun = false;
        struct wml_str word;
        while (wml_str_split(&line, ' ', &word)) {
            size_t width = wml_utf8_width(word);
            if (begun && at + 1 + width > WIDTH) {
                wml_buf_char(h->out, '\n');
                blanks(h, column);
                at = column;
            } else if (begun) {
                wml_buf_char(h->out, ' ');
                at++;
            }
            wml_buf_str(h->out, word);
            at += width;
            begun = true;
        }
        wml_buf_char(h->out, '\n');
    }
}

static void paragraph(struct help *h, const char *text)
{
    wml_buf_cstr(h->out, "\n  ");
    wrapped(h, wml_str(text), 2);
}

static void heading(struct help *h, const char *title)
{
    wml_buf_char(h->out, '\n');
    styled(h, "1", wml_arena_fmt(&h->arena, "%s:", title));
    wml_buf_char(h->out, '\n');
}

/* Two columns, the right one beginning at `column`; a long left part takes a line of its own. */
static void entry(struct help *h, size_t column, struct wml_str left, struct wml_str right)
{
    wml_buf_cstr(h->out, "  ");
    styled(h, "36", left);
    size_t width = wml_utf8_width(left) + 2;
    if (width + 2 > column) {
        wml_buf_char(h->out, '\n');
        width = 0;
    }
    blanks(h, column - width);
    wrapped(h, right, column);
}

static void option(struct help *h, const struct wml_command *c, const struct wml_opt *o)
{
    struct wml_buf left = {0}, right = {0};
    if (o->letter && (!c || wml_row_by_letter(c->opts, NULL, o->letter).opt == o)) /* a command's own letter hides a common one */
        wml_buf_fmt(&left, "-%c, ", o->letter);
    else
        wml_buf_cstr(&left, "    ");
    wml_buf_fmt(&left, "--%s", o->name);
    if (o->no_letter) wml_buf_fmt(&left, " / -%c, --no-%s", o->no_letter, o->name);
    else if (o->kind == WML_KIND_FLAG && !(o->flags & WML_OPT_SWITCH)) wml_buf_fmt(&left, " / --no-%s", o->name);
    const char *choices = c ? wml_command_choices(c, o) : wml_row_choices(o);
    if (wml_row_takes_value(o)) wml_buf_fmt(&left, " %s", choices ? choices : o->value ? o->value : "VALUE");

    wml_buf_cstr(&right, o->help ? o->help : "");
    struct wml_str rest = wml_str(o->alias), alias;
    while (wml_str_split(&rest, ' ', &alias))
        if (alias.len) wml_buf_fmt(&right, " (also --%.*s)", WML_ARG(alias));
    const char *fallback = c ? wml_command_default(c, o, &h->arena) : o->fallback;
    if (o->flags & WML_OPT_REQUIRED) wml_buf_cstr(&right, " [required]");
    if (o->kind == WML_KIND_LIST && !wml_str_has(wml_str(o->help), "repeat")) wml_buf_cstr(&right, " [repeatable]");
    if (fallback) wml_buf_fmt(&right, " [default: %s]", fallback);
    entry(h, OPTION_LEFT, wml_buf_view(&left), wml_buf_view(&right));
    wml_buf_release(&left);
    wml_buf_release(&right);
}

static void options(struct help *h, const struct wml_command *c, const struct wml_opt *rows, bool common)
{
    for (; rows->kind != WML_KIND_END; rows++) {
        bool is_common = rows->kind == WML_KIND_GROUP && rows->group == wml_opts_common;
        if (is_common && !common) continue;
        if (rows->kind == WML_KIND_GROUP)
            options(h, c, rows->group, common);
        else if (!(rows->flags & (WML_OPT_HIDDEN | WML_OPT_IGNORED)))
            option(h, c, rows);
    }
}

static bool has_own_options(const struct wml_opt *rows)
{
    for (; rows->kind != WML_KIND_END; rows++)
        if (rows->kind != WML_KIND_GROUP || rows->group != wml_opts_common) return true;
    return false;
}

static void example(struct help *h, struct wml_str line)
{
    size_t mark = 0;
    while (mark < line.len && !wml_str_starts(wml_str_sub(line, mark, line.len), "  # ")) mark++;
    wml_buf_cstr(h->out, "  ");
    wml_buf_str(h->out, wml_str_sub(line, 0, mark));
    if (mark < line.len) styled(h, "2", wml_str_sub(line, mark, line.len));
    wml_buf_char(h->out, '\n');
}

static void synopsis(struct help *h, const struct wml_program *p, const struct wml_command *c)
{
    const struct wml_opt *o;
    styled(h, "1", WML_STR("Usage:"));
    wml_buf_fmt(h->out, " %s %s", p->name, c->name);
    if (c == &wml_command_completion) wml_buf_cstr(h->out, " SHELL");
    for (size_t i = 0; (o = wml_opt_row(c->opts, i, NULL)); i++) {
        if (!(o->flags & WML_OPT_REQUIRED)) continue;
        const char *value = o->value ? o->value : "VALUE";
        if (o->letter)
            wml_buf_fmt(h->out, " -%c %s", o->letter, value);
        else
            wml_buf_fmt(h->out, " --%s %s", o->name, value);
    }
    wml_buf_cstr(h->out, " [OPTIONS]\n");
}

void wml_help_command(const struct wml_program *p, const struct wml_command *c, bool colour, struct wml_buf *out)
{
    struct help h = {.out = out, .colour = colour};
    synopsis(&h, p, c);
    paragraph(&h, c->summary);
    if (c->about) paragraph(&h, c->about);
    if (has_own_options(c->opts)) {
        heading(&h, "Options");
        options(&h, c, c->opts, false);
    }
    heading(&h, "General options");
    options(&h, c, wml_opts_common, true);
    entry(&h, OPTION_LEFT, WML_STR("-h, --help"), WML_STR("this text"));
    if (c->examples) {
        heading(&h, "Examples");
        struct wml_str rest = wml_str(c->examples), line;
        while (wml_str_split(&rest, '\n', &line))
            if (line.len) example(&h, line);
    }
    wml_arena_release(&h.arena);
}

static void command_group(struct help *h, const struct wml_commands *all, const char *group)
{
    heading(h, group);
    for (size_t i = 0; i < all->v.len; i++) {
        const struct wml_command *c = all->v.at[i];
        if (strcmp(c->group ? c->group : "Commands", group) == 0)
            entry(h, COMMAND_LEFT, wml_str(c->name), wml_str(c->summary));
    }
}

void wml_help_program(const struct wml_program *p, bool colour, struct wml_buf *out)
{
    struct help h = {.out = out, .colour = colour};
    struct wml_commands all = {0};
    struct wml_names groups = {0};
    wml_program_commands(p, &all);
    styled(&h, "1", WML_STR("Usage:"));
    wml_buf_fmt(out, " %s [OPTIONS] COMMAND [ARGS]...\n", p->name);
    heading(&h, "Options");
    options(&h, NULL, wml_opts_global, true);
    entry(&h, OPTION_LEFT, WML_STR("-h, --help"), WML_STR("this text; after a command: about the command"));
    /* Groups in the order in which the program names them, the driver's own last. */
    for (size_t i = 0; i <= p->n_commands; i++) {
        const struct wml_command *c = i < p->n_commands ? p->command[i] : &wml_command_completion;
        const char *group = c->group ? c->group : "Commands";
        size_t k = 0;
        while (k < groups.v.len && strcmp(groups.v.at[k], group) != 0) k++;
        if (!c->run || k < groups.v.len) continue;
        WML_PUSH(&groups.v, group);
        command_group(&h, &all, group);
    }
    wml_buf_fmt(out, "\nAbout a command: %s COMMAND --help\n", p->name);
    WML_VEC_RELEASE(&groups.v);
    WML_VEC_RELEASE(&all.v);
    wml_arena_release(&h.arena);
}
