/* cli/program.h - the commands of a program as help, completion and the driver see them. */
#ifndef WML_CLI_PROGRAM_H
#define WML_CLI_PROGRAM_H

#include "cli/cli.h"
#include "cli/near.h"

/* Built into the driver: prints the completion script of a shell. Its one word is no option. */
extern const struct wml_command wml_command_completion;

struct wml_commands { WML_VEC(const struct wml_command *) v; }; /* heap */

/* Commands that can run, the driver's own included, sorted by name. */
void wml_program_commands(const struct wml_program *p, struct wml_commands *out);
/* By exact name, also those that cannot run. NULL: unknown. */
const struct wml_command *wml_program_find(const struct wml_program *p, struct wml_str name);
/* A name of p->absent. */
bool wml_program_lacks(const struct wml_program *p, struct wml_str name);

/* Flags that stand before the command. */
struct wml_global_args {
    struct wml_opt_count verbose;
    struct wml_opt_flag quiet, no_color, debug, version;
};
extern const struct wml_opt wml_opts_global[];

/* The choices of a row of this command: --format depends on it. NULL: any text. */
const char *wml_command_choices(const struct wml_command *c, const struct wml_opt *o);
/* The default as text, NULL: none. */
const char *wml_command_default(const struct wml_command *c, const struct wml_opt *o, struct wml_arena *arena);

/* wml_cli_main without the write to stdout: the result is added to out. */
int wml_cli_run(const struct wml_program *p, struct wml_ctx *cx, int argc, char **argv, struct wml_buf *out);

/* The block-letter name with version and tagline, for help of the program on stderr. */
void wml_banner(const struct wml_program *p, bool colour, unsigned width, struct wml_buf *out);

#endif
