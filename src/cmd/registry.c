/* The list of commands, and what several of them read the same way. */
#include "cmd/cmd.h"

const struct wml_command *const wml_commands[] = {
#define COMMAND(name) &wml_command_##name,
#include "cmd/commands.def"
#undef COMMAND
};
const size_t wml_n_commands = WML_COUNT(wml_commands);

bool wml_cmd_target(const struct wml_target_args *a, struct wml_arena *arena, struct wml_target_spec *out,
                    struct wml_err *err)
{
    struct wml_pairs pairs;
    if (!wml_parse_pairs(&a->ep_options, "--ep-options", arena, &pairs, err)) return false;
    struct wml_pair *option = WML_NEW_ARRAY(arena, struct wml_pair, pairs.len + 1);
    for (size_t i = 0; i < pairs.len; i++) {
        option[i].key = wml_arena_cstr(arena, pairs.key[i]);
        option[i].value = wml_arena_cstr(arena, pairs.value[i]);
    }
    *out = (struct wml_target_spec){.ep = a->ep.v, .device = a->device.v, .option = option,
                                    .n_options = pairs.len};
    return true;
}
