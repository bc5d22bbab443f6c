/* winml_tok TOKENIZER: answers requests, one JSON object a line, until the input ends.
 *
 *     {"text": s, "pair": s, "max": n, "cut": "only_first", "cut_left": b, "pad_to": n, "pad_left": b, "pad_id": n, "bare": b}
 *         -> {"ids": [...], "mask": [...], "types": [...], "cut": b}      {"defaults": true, "text": s} takes the file's limits
 *     {"decode": [...], "special": b}  -> {"text": s}
 *     {"about": true}                  -> {"algorithm", "vocab_size", "special": [...], "opened_ms"}
 *     anything that fails              -> {"error": s, "hint": s}
 *
 * winml_tok TOKENIZER --time FILE: milliseconds to open, and MB/s over the lines of a file, encoded until a second
 * has passed. */
#include <inttypes.h>

#include "os/file.h"
#include "os/sys.h"
#include "text/json.h"
#include "tok/tok.h"

static void put_ids(struct wml_json *j, const char *name, const int64_t *id, size_t n)
{
    wml_json_key(j, name);
    wml_json_begin(j, '[');
    for (size_t i = 0; i < n; i++) wml_json_put_int(j, id[i]);
    wml_json_end(j, ']');
}

static bool encode(const struct wml_tok *t, const struct wml_json_val *v, struct wml_tok_ids *ids, struct wml_json *j,
                   struct wml_err *err)
{
    struct wml_tok_opts o = {0};
    struct wml_str cut = wml_json_get_str(v, "cut");
    if (wml_json_get_bool(v, "defaults", false)) wml_tok_defaults(t, &o);
    o.max_length = (size_t)wml_json_get_int(v, "max", (int64_t)o.max_length);
    if (cut.ptr) o.cut = wml_str_is(cut, "only_first") ? WML_TOK_ONLY_FIRST : wml_str_is(cut, "only_second") ? WML_TOK_ONLY_SECOND : WML_TOK_LONGEST_FIRST;
    o.cut_left = wml_json_get_bool(v, "cut_left", o.cut_left);
    o.pad_to = (size_t)wml_json_get_int(v, "pad_to", (int64_t)o.pad_to);
    o.pad_left = wml_json_get_bool(v, "pad_left", o.pad_left);
    o.pad_id = wml_json_get_int(v, "pad_id", o.pad_id);
    o.bare = wml_json_get_bool(v, "bare", false);
    if (!wml_tok_encode(t, wml_json_get_str(v, "text"), wml_json_get_str(v, "pair"), &o, ids, err)) return false;
    put_ids(j, "ids", ids->id, ids->len);
    put_ids(j, "mask", ids->mask, ids->len);
    put_ids(j, "types", ids->type, ids->len);
    wml_json_key(j, "cut");
    wml_json_put_bool(j, ids->cut);
    return true;
}

static bool decode(const struct wml_tok *t, const struct wml_json_val *v, struct wml_json *j, struct wml_err *err)
{
    const struct wml_json_val *list = wml_json_get(v, "decode"), *one;
    struct wml_json_iter it = {0};
    struct wml_str key;
    size_t n = 0;
    int64_t *id = wml_xcalloc(wml_json_len(list) + 1, sizeof *id);
    struct wml_buf text = {0};
    while (wml_json_next(list, &it, &key, &one)) id[n++] = wml_json_int(one, -1);
    bool ok = wml_tok_decode(t, id, n, wml_json_get_bool(v, "special", false), &text, err);
    if (ok) {
        wml_json_key(j, "text");
        wml_json_put_str(j, wml_buf_view(&text));
    }
    wml_buf_release(&text);
    free(id);
    return ok;
}

static void about(const struct wml_tok *t, double ms, struct wml_json *j)
{
    int64_t role[WML_TOK_N_ROLES];
    for (int i = 0; i < WML_TOK_N_ROLES; i++) role[i] = wml_tok_special(t, (enum wml_tok_role)i);
    wml_json_key(j, "algorithm");
    wml_json_put_cstr(j, wml_tok_algorithm(t));
    wml_json_key(j, "vocab_size");
    wml_json_put_uint(j, wml_tok_vocab_size(t));
    put_ids(j, "special", role, WML_TOK_N_ROLES);
    wml_json_key(j, "opened_ms");
    wml_json_put_fixed(j, ms, 2);
}

static void put_error(struct wml_json *j, const struct wml_err *err)
{
    wml_json_key(j, "error");
    wml_json_put_cstr(j, err->msg);
    wml_json_key(j, "hint");
    wml_json_put_cstr(j, err->hint);
}

static void answer(const struct wml_tok *t, double ms, struct wml_str line, struct wml_tok_ids *ids)
{
    struct wml_json_doc *doc = NULL;
    struct wml_err err = {0};
    struct wml_buf inner = {0};
    struct wml_json j = {.out = &inner};
    bool ok = wml_json_parse(line, &doc, &err);
    const struct wml_json_val *v = wml_json_root(doc);
    wml_json_begin(&j, '{');
    if (ok && wml_json_get(v, "decode")) ok = decode(t, v, &j, &err);
    else if (ok && wml_json_get(v, "about")) about(t, ms, &j);
    else if (ok) ok = encode(t, v, ids, &j, &err);
    if (!ok) put_error(&j, &err);
    wml_json_end(&j, '}');
    wml_buf_char(&inner, '\n');
    fwrite(inner.ptr, 1, inner.len, stdout);
    fflush(stdout);
    wml_buf_release(&inner);
    wml_json_free(doc);
}

static void serve(const struct wml_tok *t, double ms)
{
    struct wml_buf line = {0};
    struct wml_tok_ids ids = {0};
    for (int c; (c = getchar()) != EOF;) {
        if (c != '\n') {
            wml_buf_char(&line, (char)c);
            continue;
        }
        answer(t, ms, wml_buf_view(&line), &ids);
        wml_buf_clear(&line);
    }
    wml_buf_release(&line);
    wml_tok_ids_release(&ids);
}

static bool measure(const struct wml_tok *t, double ms, const char *path, struct wml_err *err)
{
    struct wml_buf file = {0};
    struct wml_tok_ids ids = {0};
    uint64_t begin = wml_cpu_ns(), bytes = 0, tokens = 0;
    if (!wml_file_read(path, 0, &file, err)) return false;
    do {
        struct wml_str rest = wml_buf_view(&file), line;
        while (wml_str_split(&rest, '\n', &line)) {
            if (!wml_tok_encode(t, line, WML_NO_STR, NULL, &ids, err)) return false;
            bytes += line.len + 1;
            tokens += ids.len;
        }
    } while (wml_cpu_ns() - begin < 1000000000);
    double s = (double)(wml_cpu_ns() - begin) / 1e9;
    printf("open %.2f ms, %.1f MB/s, %.2f million tokens/s\n", ms, (double)bytes / 1e6 / s, (double)tokens / 1e6 / s);
    wml_buf_release(&file);
    wml_tok_ids_release(&ids);
    return true;
}

int main(int argc, char **argv)
{
    struct wml_tok *t = NULL;
    struct wml_err err = {0};
    if (argc != 2 && argc != 4) return 2;
    uint64_t begin = wml_now_ns();
    if (!wml_tok_open(argv[1], &t, &err)) {
        struct wml_buf text = {0};
        struct wml_json j = {.out = &text};
        wml_json_begin(&j, '{');
        put_error(&j, &err);
        wml_json_end(&j, '}');
        puts(wml_buf_text(&text));
        wml_buf_release(&text);
        return 1;
    }
    double ms = (double)(wml_now_ns() - begin) / 1e6;
    bool ok = true;
    if (argc == 4) ok = measure(t, ms, argv[3], &err);
    else serve(t, ms);
    if (!ok) fprintf(stderr, "%s\n", err.msg);
    wml_tok_close(t);
    return ok ? 0 : 1;
}
