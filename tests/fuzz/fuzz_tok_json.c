/* A tokenizer.json and a text, with a NUL between them. Whatever opens encodes or says why not; words remembered give the
 * same ids as words seen first; a maximum gives the beginning of the whole; decoding never fails on what encoding gave. */
#include <stddef.h>
#include <stdint.h>

#include "tok/tok.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) abort();
}

static void same(const struct wml_tok_ids *a, const struct wml_tok_ids *b, size_t n)
{
    must(a->len >= n && b->len >= n && (n == 0 || memcmp(a->id, b->id, n * sizeof *a->id) == 0));
}

static void use(const struct wml_tok *t, struct wml_str text)
{
    struct wml_tok_ids one = {0}, two = {0};
    struct wml_err err = {0};
    struct wml_buf back = {0};
    struct wml_tok_opts bare = {.bare = true}, few = {.bare = true, .max_length = 3}, full = {.pad_to = 5, .pad_left = true};
    if (wml_tok_encode(t, text, WML_NO_STR, &bare, &one, &err)) {
        must(wml_tok_encode(t, text, WML_NO_STR, &bare, &two, &err) && two.len == one.len);
        same(&one, &two, one.len);
        must(wml_tok_encode(t, text, text, &full, &two, &err));
        must(wml_tok_encode(t, text, WML_NO_STR, &few, &two, &err) && two.len <= 3 && two.len == WML_MIN(one.len, 3));
        must(two.cut == (one.len > 3));
        same(&one, &two, two.len);
        if (!wml_tok_decode(t, one.id, one.len, true, &back, &err)) must(err.msg[0] != '\0');
    } else {
        must(err.msg[0] && err.hint[0]);
    }
    wml_buf_release(&back);
    wml_tok_ids_release(&one);
    wml_tok_ids_release(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wml_str all = {(const char *)data, size};
    struct wml_tok *t = NULL;
    struct wml_err err = {0};
    size_t end = wml_str_find(all, '\0');
    if (!wml_tok_parse(wml_str_sub(all, 0, end), &t, &err)) {
        must(err.code && err.msg[0]);
        return 0;
    }
    use(t, end == SIZE_MAX ? WML_STR("a b") : wml_str_sub(all, end + 1, size));
    wml_tok_close(t);
    return 0;
}
