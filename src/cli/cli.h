/* cli/cli.h - the driver: finds the command, parses its options, runs it, renders its report, prints
 * errors, chooses the exit status. Only this folder prints. */
#ifndef WML_CLI_CLI_H
#define WML_CLI_CLI_H

#include "base/ctx.h"
#include "cli/opt.h"
#include "report/report.h"

struct wml_call { /* what a command's run gets */
    void *args;
    const struct wml_command *command;
    struct wml_ctx *cx;
    struct wml_report *report; /* shown on stdout at the end, also when run fails, unless it is empty */
    struct wml_arena *arena;
    bool json;                 /* the report will be JSON */
};

struct wml_command {
    const char *name, *group, *summary;
    const char *about;    /* a paragraph for --help */
    const char *examples; /* lines for --help, each "command  # comment" */
    const struct wml_opt *opts; /* must include wml_opts_common at offset 0 */
    size_t args_size;           /* args start with struct wml_common_args */
    const char *formats;        /* allowed --format values, the first is the default: "text|json" */
    /* NULL: a name that is known but not available in this version. */
    bool (*run)(const struct wml_call *call, struct wml_err *err);
    /* May say in err's hint what an option that does not exist was meant to be. NULL: names of the rows are compared. */
    void (*unknown)(struct wml_str typed, struct wml_err *err);
};

struct wml_program {
    const char *name, *version, *tagline;
    const struct wml_command *const *command;
    size_t n_commands;
    const char *absent; /* commands that users may know but this version lacks, by blanks; NULL: none */
};

/* argv is UTF-8. Fills the members of cx that commands need: log, progress, cancel, cache_dir, program;
 * they are void again at the end. Returns the exit status. */
int wml_cli_main(const struct wml_program *p, struct wml_ctx *cx, int argc, char **argv);

/* 0 ok, 2 usage, 3 load, 4 run or trace, 5 fallback, 130 Ctrl-C with results up to there, 1 everything else, Ctrl-C
 * included; a second Ctrl-C
 * ends at once, with 128 and its number. */
int wml_exit_status(enum wml_code code);
/* "usage", "model_load", "inference", "runtime", ... as JSON errors name them. */
const char *wml_exit_kind(enum wml_code code);

/* Help, from the rows. */
void wml_help_program(const struct wml_program *p, bool colour, struct wml_buf *out);
void wml_help_command(const struct wml_program *p, const struct wml_command *c, bool colour,
                      struct wml_buf *out);
/* shell: bash, zsh, fish, powershell; false: unknown. */
bool wml_completion(const struct wml_program *p, struct wml_str shell, struct wml_buf *out);

/* Outputs: refuses an existing file unless overwrite (WML_E_EXISTS, documented text), and a target that
 * is the input itself. label: "Output file". input may be NULL. Makes the parent folder. */
bool wml_check_output(const char *label, const char *path, bool overwrite, const char *input,
                      struct wml_err *err);
/* "KEY=VALUE" rows of a list option into parallel arrays in the arena, blanks trimmed; later duplicates
 * win. option: "--ep-options". */
struct wml_pairs { struct wml_str *key, *value; size_t len; };
bool wml_parse_pairs(const struct wml_opt_list *l, const char *option, struct wml_arena *arena,
                     struct wml_pairs *out, struct wml_err *err);

/* Options from the object `section` of a JSON file (NULL: its root): names as on the command line, with
 * dashes or underscores; lists as arrays. What was typed wins. Unknown names are logged as warnings.
 * WML_E_USAGE for a file that is missing, no JSON, not an object, or holds bad values. */
bool wml_cli_config(const struct wml_call *call, const char *path, const char *section, struct wml_err *err);

#endif
