/* cmd/cmd.h - the commands: one file each, listed in commands.def. A command holds option rows and one
 * call of a flow function; it never prints. */
#ifndef WML_CMD_CMD_H
#define WML_CMD_CMD_H

#include "cli/cli.h"
#include "ep/ep.h"

#define COMMAND(name) extern const struct wml_command wml_command_##name;
#include "cmd/commands.def"
#undef COMMAND

extern const struct wml_command *const wml_commands[];
extern const size_t wml_n_commands;

/* The target that --ep, --device and --ep-options name. Strings live in the arena or in argv. */
bool wml_cmd_target(const struct wml_target_args *a, struct wml_arena *arena, struct wml_target_spec *out,
                    struct wml_err *err);
/* A text that is typed into a file: UTF-8, not trimmed, at most 16 MiB. In the arena. */
bool wml_cmd_text_file(const char *path, struct wml_arena *arena, struct wml_str *out, struct wml_err *err);

#endif
