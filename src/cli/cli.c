/* cli/cli.c - the driver: global flags, the command, its options, its run, its result, its failure.
 *
 * The result is written to stdout once, at the end; everything else goes to stderr. A failure is a text
 * on stderr and, with --format json, an error object on stdout as well. */
#include "cli/cli.h"

#include "cli/console.h"
#include "cli/program.h"
#include "cli/rows.h"
#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"
#include "report/render.h"

struct driver {
    const struct wml_program *p;
    struct wml_ctx *cx;
    struct wml_arena arena;
    struct wml_console console;
    struct wml_global_args global;
    const struct wml_command *command; /* NULL: none named yet */
    struct wml_buf out;                /* what goes to stdout */
    bool json;
};

int wml_exit_status(enum wml_code code)
{
    switch (code) {
    case WML_OK: return 0;
    case WML_E_USAGE: return 2;
    case WML_E_LOAD: return 3;
    case WML_E_RUN:
    case WML_E_TRACE: return 4;
    case WML_E_FALLBACK: return 5;
    case WML_E_INTERRUPTED: return 130;
    default: return 1;
    }
}

const char *wml_exit_kind(enum wml_code code)
{
    switch (code) {
    case WML_E_USAGE:
    case WML_E_LOAD:
    case WML_E_RUN:
    case WML_E_TRACE:
    case WML_E_FALLBACK:
    case WML_E_CANCELLED:
    case WML_E_INTERRUPTED: return wml_code_name(code);
    default: return "runtime";
    }
}

/* --- failures --- */

/* Usage errors happen before the format is parsed, so the words themselves are asked. */
static bool wants_json(int argc, char *const *argv)
{
    bool json = false;
    for (int i = 1; i < argc; i++) {
        struct wml_str word = wml_str(argv[i]), value = WML_NO_STR;
        if (wml_str_is(word, "--format") || wml_str_is(word, "-f"))
            value = wml_str(i + 1 < argc ? argv[i + 1] : NULL);
        else if (wml_str_starts(word, "--format="))
            value = wml_str_sub(word, 9, word.len);
        else if (wml_str_starts(word, "-f"))
            value = wml_str_sub(word, word.len > 2 && word.ptr[2] == '=' ? 3 : 2, word.len);
        if (value.ptr) json = wml_str_ieq(value, WML_STR("json"));
    }
    return json;
}

static void say_usage(struct driver *d)
{
    const char *name = d->p->name;
    struct wml_str text =
        d->command ? wml_arena_fmt(&d->arena, "Usage: %s %s [OPTIONS]\nTry '%s %s --help' for help.\n", name,
                                   d->command->name, name, d->command->name)
                   : wml_arena_fmt(&d->arena, "Usage: %s [OPTIONS] COMMAND [ARGS]...\nTry '%s --help' for help.\n",
                                   name, name);
    wml_console_say(&d->console, NULL, NULL, text.ptr);
}

static void render(struct driver *d, struct wml_report *r, const char *renderer, unsigned indent)
{
    bool terminal = wml_term_is(1);
    struct wml_render_opts o = {.colour = wml_console_colour(terminal), .indent = indent};
    /* Elsewhere lines are not broken: scripts look for paths in them. */
    o.width = terminal ? WML_MAX(40u, WML_MIN(wml_term_width(1), 120u)) : 10000;
    wml_renderer_find(renderer)->render(r, &o, &d->out);
}

static void add_error(struct wml_item *root, const struct wml_err *err)
{
    struct wml_item *e = wml_item_object(root, "error", NULL);
    wml_item_int(e, "code", NULL, wml_exit_status(err->code), WML_SHOW_PLAIN);
    wml_item_cstr(e, "kind", NULL, wml_exit_kind(err->code));
    wml_item_cstr(e, "message", NULL, err->msg);
    wml_item_cstr(e, "hint", NULL, err->hint[0] ? err->hint : NULL);
}

static void say_error(struct wml_console *c, const struct wml_err *err)
{
    if (err->code == WML_E_CANCELLED || err->code == WML_E_INTERRUPTED) { /* with what a command adds to the word, if it does */
        bool more = wml_str_starts(wml_str(err->msg), "Aborted! ");
        wml_console_say(c, NULL, NULL, more ? err->msg : "Aborted!");
        return;
    }
    wml_console_say(c, "1;31", "Error:", err->msg);
    if (err->hint[0]) wml_console_say(c, "1;36", "Hint:", err->hint);
}

static void say_failure(struct driver *d, const struct wml_err *err)
{
    if (err->code == WML_E_USAGE) say_usage(d);
    say_error(&d->console, err);
}

/* A failure before a report exists. */
static int fail(struct driver *d, const struct wml_err *err)
{
    say_failure(d, err);
    if (d->json) {
        struct wml_report *r = wml_report_new();
        wml_item_int(wml_report_root(r), "schema_version", NULL, 1, WML_SHOW_PLAIN);
        add_error(wml_report_root(r), err);
        render(d, r, "json", 2);
        wml_report_free(r);
    }
    return wml_exit_status(err->code);
}

/* --- commands --- */

/* The format in its canonical case; the first one when none was typed. "table" is the name that text has in
 * the Python tool. */
static bool settle_format(struct driver *d, const struct wml_command *c, struct wml_common_args *args,
                          struct wml_err *err)
{
    struct wml_str all = wml_str(c->formats ? c->formats : "text|json"), format;
    struct wml_str typed = args->format.v ? wml_str(args->format.v) : wml_str_sub(all, 0, wml_str_find(all, '|'));
    bool known = wml_str_ieq(typed, WML_STR("table"));
    if (known) args->format.v = "text";
    for (struct wml_str rest = all; !known && wml_str_split(&rest, '|', &format);) {
        known = wml_str_ieq(format, typed);
        if (known) args->format.v = wml_arena_cstr(&d->arena, format);
    }
    if (known) return true;
    struct wml_opt row = wml_opts_common[0];
    row.value = wml_arena_cstr(&d->arena, all);
    return wml_row_store(&(struct wml_row){&row, &args->format, false}, typed, WML_FROM_COMMAND_LINE, &d->arena,
                         err);
}

static bool is_json(const char *format)
{
    return strcmp(format, "json") == 0;
}

/* Effective verbosity: the larger of before and after the command; quiet wins. The command sees it as its own. */
static void settle(struct driver *d, struct wml_common_args *args)
{
    int verbose = WML_MAX(d->global.verbose.v, args->verbose.v);
    if (d->global.debug.v) verbose = WML_MAX(verbose, 2);
    bool quiet = d->global.quiet.v || args->quiet.v;
    args->verbose.v = verbose;
    args->quiet.v = quiet;
    if (d->global.no_color.v || args->no_color.v) wml_env_set("NO_COLOR", "1");
    wml_console_close(&d->console);
    wml_console_open(&d->console, quiet, d->json);
    d->cx->level = quiet         ? WML_LOG_ERROR
                   : verbose > 1 ? WML_LOG_DEBUG
                   : verbose     ? WML_LOG_INFO
                                 : WML_LOG_WARN;
    struct wml_buf all = {0};
    bool truthy = wml_env("WINMLCLI_SHOW_ALL_WARNINGS", &all) &&
                  (wml_str_is(wml_buf_view(&all), "1") || wml_str_ieq(wml_buf_view(&all), WML_STR("true")) ||
                   wml_str_ieq(wml_buf_view(&all), WML_STR("yes")) || wml_str_ieq(wml_buf_view(&all), WML_STR("on")));
    d->cx->show_native = truthy || (verbose && !quiet);
    wml_buf_release(&all);
}

static void warn_ignored(struct driver *d, const struct wml_parse *parse)
{
    if (d->console.quiet || !parse->ignored.len) return;
    struct wml_buf text = {0};
    for (size_t i = 0; i < parse->ignored.len; i++)
        wml_buf_fmt(&text, "%s%s", i ? ", " : "", parse->ignored.at[i]);
    wml_buf_cstr(&text, parse->ignored.len > 1 ? " are accepted for old scripts and have no effect here"
                                               : " is accepted for old scripts and has no effect here");
    wml_console_say(&d->console, "33", "Warning:", wml_buf_text(&text));
    wml_buf_release(&text);
}

static void set_surroundings(struct driver *d)
{
    struct wml_buf path = {0};
    d->cx->sink = &d->console;
    d->cx->log = wml_console_log;
    d->cx->progress = wml_console_progress;
    d->cx->cancel = wml_interrupt_watch();
    if (wml_path_program(&path)) d->cx->program = wml_arena_cstr(&d->arena, wml_buf_view(&path));
    wml_buf_clear(&path);
    if (!wml_env_is_set("WINML_CACHE_DIR") || !wml_env("WINML_CACHE_DIR", &path)) {
        wml_buf_clear(&path);
        if (!wml_path_cache(&path)) wml_path_temp(&path);
        wml_buf_cstr(&path, "/winml");
    }
    d->cx->cache_dir = wml_arena_cstr(&d->arena, wml_buf_view(&path));
    wml_buf_release(&path);
}

/* What stdout gets in JSON mode when the program crashes. */
static const char fatal_document[] =
    "{\n  \"schema_version\": 1,\n  \"error\": {\n    \"code\": 1,\n    \"kind\": \"crash\",\n"
    "    \"message\": \"stopped by a crash, in winml or in ONNX Runtime\",\n    \"hint\": null\n  }\n}\n";

static int run(struct driver *d, void *args, const char *format)
{
    struct wml_err err = {0};
    struct wml_report *report = wml_report_new();
    struct wml_call call = {.args = args, .command = d->command, .cx = d->cx, .report = report,
                            .arena = &d->arena, .json = d->json};
    set_surroundings(d);
    wml_fatal_watch(d->json ? fatal_document : NULL);
    bool ok = d->command->run(&call, &err);
    wml_end_progress(d->cx);
    if (!ok && err.code == WML_OK) wml_fail(&err, WML_E_INTERNAL, "%s failed without a reason", d->command->name);
    if (!ok && d->cx->cancel && atomic_load(d->cx->cancel) && err.code != WML_E_INTERRUPTED) err.code = WML_E_CANCELLED;
    int status = ok ? 0 : wml_exit_status(err.code);
    if (!ok && wml_report_is_empty(report)) {
        fail(d, &err);
    } else {
        if (!ok) say_failure(d, &err);
        if (!ok && d->json) {
            wml_report_list(report, NULL);
            add_error(wml_report_root(report), &err);
        }
        const char *name = is_json(format) ? "json" : wml_renderer_find(format) ? format : "text";
        bool told = d->console.quiet && !d->json && wml_report_is_about_file(report);
        if (!wml_report_is_empty(report) && !told) render(d, report, name, 2);
    }
    wml_report_free(report);
    return status;
}

static bool print_completion(struct driver *d, const char *shell, struct wml_err *err)
{
    if (!shell)
        wml_fail(err, WML_E_USAGE, "Missing argument 'SHELL'.");
    else if (wml_completion(d->p, wml_str(shell), &d->out))
        return true;
    else
        wml_fail(err, WML_E_USAGE, "Invalid value for 'SHELL': '%s' is not one of 'bash', 'zsh', 'fish', 'powershell'.",
                 shell);
    return wml_hint(err, "%s completion bash", d->p->name);
}

static int run_command(struct driver *d, int argc, char **argv)
{
    const struct wml_command *c = d->command;
    struct wml_err err = {0};
    struct wml_parse parse = {0};
    const char *word = NULL; /* of completion, the only command that has one */
    if (c == &wml_command_completion && argc > 0 && argv[0][0] != '-') {
        word = argv[0];
        argc--;
        argv++;
    }
    struct wml_common_args *args = wml_xcalloc(1, WML_MAX(c->args_size, sizeof *args));
    int status = 0;
    bool ok = wml_opt_parse(c->opts, args, argc, argv, &d->arena, &parse, &err);
    if (parse.unknown.len && c->unknown) c->unknown(parse.unknown, &err);
    if (ok && !parse.help) ok = settle_format(d, c, args, &err);
    d->json = ok && !parse.help ? is_json(args->format.v) : d->json;
    settle(d, args);
    if (ok && parse.help) {
        wml_help_command(d->p, c, wml_console_colour(wml_term_is(1)), &d->out);
    } else if (ok && c == &wml_command_completion) {
        ok = print_completion(d, word, &err);
    } else if (ok) {
        warn_ignored(d, &parse);
        status = run(d, args, args->format.v);
    }
    if (!ok) status = fail(d, &err);
    WML_VEC_RELEASE(&parse.ignored);
    wml_opt_release(c->opts, args);
    free(args);
    return status;
}

static bool find_command(struct driver *d, const char *name, struct wml_err *err)
{
    const struct wml_command *c = wml_program_find(d->p, wml_str(name));
    if (c && (c->run || c == &wml_command_completion)) {
        d->command = c;
        return true;
    }
    struct wml_commands all = {0};
    struct wml_names names = {0};
    struct wml_buf text = {0};
    wml_program_commands(d->p, &all);
    for (size_t i = 0; i < all.v.len; i++) WML_PUSH(&names.v, all.v.at[i]->name);
    if (c || wml_program_lacks(d->p, wml_str(name))) {
        wml_fail(err, WML_E_USAGE, "Command '%s' is not available in this version.", name);
        for (size_t i = 0; i < names.v.len; i++) wml_buf_fmt(&text, "%s%s", i ? ", " : "", names.v.at[i]);
        wml_hint(err, "available: %s", wml_buf_text(&text));
    } else {
        wml_did_you_mean(wml_str(name), &names, &text);
        wml_fail(err, WML_E_USAGE, "No such command '%s'.%s", name, wml_buf_text(&text));
        if (wml_str_ends(wml_str(name), ".onnx") && wml_program_find(d->p, WML_STR("inspect")))
            wml_hint(err, "say what to do with it: %s inspect -m %s", d->p->name, name);
    }
    wml_buf_release(&text);
    WML_VEC_RELEASE(&names.v);
    WML_VEC_RELEASE(&all.v);
    return false;
}

static void program_help(struct driver *d)
{
    settle(d, &(struct wml_common_args){0});
    if (!d->console.quiet) {
        struct wml_buf banner = {0};
        wml_banner(d->p, d->console.err_colour, wml_term_width(2), &banner);
        wml_term_write(2, wml_buf_view(&banner));
        wml_buf_release(&banner);
    }
    wml_help_program(d->p, wml_console_colour(wml_term_is(1)), &d->out);
}

static int drive(struct driver *d, int argc, char **argv)
{
    struct wml_err err = {0};
    struct wml_parse parse = {0};
    int n = 1; /* words before the command */
    while (n < argc && argv[n][0] == '-') n++;
    bool ok = wml_opt_parse(wml_opts_global, &d->global, n - 1, argv + 1, &d->arena, &parse, &err);
    WML_VEC_RELEASE(&parse.ignored);
    settle(d, &(struct wml_common_args){0});
    if (!ok) {
        if (n < argc && wml_row_by_name(wml_opts_common, NULL, WML_STR("format")).opt && d->json)
            wml_hint(&err, "--format stands after the command");
        return fail(d, &err);
    }
    bool asks_help = n < argc && strcmp(argv[n], "help") == 0 && !wml_program_find(d->p, WML_STR("help"));
    if (d->global.version.v && !parse.help) {
        wml_buf_fmt(&d->out, "%s, version %s\n", d->p->name, d->p->version);
        return 0;
    }
    if (parse.help || n == argc || (asks_help && n + 1 == argc)) {
        program_help(d);
        return 0;
    }
    if (!find_command(d, argv[asks_help ? n + 1 : n], &err)) return fail(d, &err);
    if (asks_help) {
        char help[] = "--help", *only_help[] = {help, NULL};
        return run_command(d, 1, only_help);
    }
    return run_command(d, argc - n - 1, argv + n + 1);
}

int wml_cli_run(const struct wml_program *p, struct wml_ctx *cx, int argc, char **argv, struct wml_buf *out)
{
    struct driver d = {.p = p, .cx = cx, .json = wants_json(argc, argv)};
    wml_console_open(&d.console, false, d.json);
    int status = drive(&d, argc, argv);
    wml_console_close(&d.console);
    wml_buf_str(out, wml_buf_view(&d.out));
    wml_buf_release(&d.out);
    wml_arena_release(&d.arena);
    *cx = (struct wml_ctx){.ort = cx->ort};
    return status;
}

int wml_cli_main(const struct wml_program *p, struct wml_ctx *cx, int argc, char **argv)
{
    struct wml_buf out = {0};
    struct wml_err err = {0};
    bool broken;
    int status = 0;
    wml_stdio_prepare();
    wml_term_prepare();
    wml_interrupt_watch(); /* from now on a closed pipe is an error of the write, not a signal */
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        wml_buf_fmt(&out, "%s, version %s\n", p->name, p->version);
    else
        status = wml_cli_run(p, cx, argc, argv, &out);
    if (!wml_console_result(wml_buf_view(&out), &broken, &err)) {
        if (!broken) {
            struct wml_console console;
            wml_console_open(&console, false, false);
            say_error(&console, &err);
            wml_console_close(&console);
        }
        status = status ? status : 1;
    }
    wml_buf_release(&out);
    return status;
}
