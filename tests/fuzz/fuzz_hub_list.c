/* A hub's header lines, a NUL, its list of files. What is taken from either can only be a path inside the cache. */
#include <stddef.h>
#include <stdint.h>

#include "hub/internal.h"
#include "os/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) abort();
}

static void read_headers(struct wml_str text)
{
    struct wml_http_answer a = {0};
    struct wml_str line;
    while (wml_str_split(&text, '\n', &line)) wml_http_answer_line(&a, line);
    must(a.status >= 0 && a.status < 1000);
    for (size_t i = 0; i < a.error_message.len; i++) must((unsigned char)a.error_message.ptr[i] >= 0x20);
    wml_http_answer_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_str all = {(const char *)data, size};
    size_t end = wml_str_find(all, '\0');
    struct wml_hub h = {.id = "org/name"};
    struct wml_hub_names names = {0};
    struct wml_err err = {0};
    const char *commit = NULL;
    read_headers(wml_str_sub(all, 0, end));
    if (end != SIZE_MAX && wml_hub_read_list(&h, wml_str_sub(all, end + 1, size), &commit, &names, &err)) {
        must(wml_hub_is_word(wml_str(commit)));
        for (size_t i = 0; i < names.v.len; i++) must(wml_path_is_inside(names.v.at[i]));
    } else if (end != SIZE_MAX) {
        must(err.msg[0] && err.hint[0]);
    }
    WML_VEC_RELEASE(&names.v);
    wml_arena_release(&h.arena);
    return 0;
}
