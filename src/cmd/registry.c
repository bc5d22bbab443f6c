/* The list of commands, and what several of them read the same way. */
#include "cmd/cmd.h"

#include "os/file.h"
#include "text/words.h"

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

bool wml_cmd_text_file(const char *path, struct wml_arena *arena, struct wml_str *out, struct wml_err *err)
{
    enum { TEXT_MAX = 16 << 20 };
    struct wml_buf text = {0};
    bool ok = wml_file_read(path, TEXT_MAX, &text, err);
    if (ok && !wml_utf8_valid(wml_buf_view(&text))) ok = wml_fail(err, WML_E_FORMAT, "%s is not UTF-8", path);
    if (ok) *out = text.len ? wml_arena_str(arena, wml_buf_view(&text)) : WML_STR("");
    wml_buf_release(&text);
    return ok;
}
