/* Texts as samples. */
#include "flow/samples_text.h"

#include "os/file.h"
#include "task/text.h"
#include "text/json.h"
#include "text/words.h"

static const uint64_t FILE_MAX = UINT64_C(1) << 30;

struct text { struct wml_str first, second; }; /* second absent: one text */

struct wml_texts {
    const char *path;
    struct wml_tok *tok;
    struct wml_arena arena;
    WML_VEC(struct text) v;
};

bool wml_texts_are(const char *path)
{
    struct wml_str p = wml_str(path);
    return wml_str_ends(p, ".txt") || wml_str_ends(p, ".jsonl");
}

static bool read_object(struct wml_texts *t, struct wml_str line, size_t number, struct text *out, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    if (!wml_json_parse(line, &doc, err)) return wml_wrap(err, "%s, line %zu", t->path, number);
    const struct wml_json_val *root = wml_json_root(doc), *v;
    struct wml_json_iter it = {0};
    struct wml_str key;
    *out = (struct text){.first = wml_json_get_str(root, "text")};
    while (!out->first.ptr && wml_json_is_object(root) && wml_json_next(root, &it, &key, &v)) out->first = wml_json_str(v);
    while (it.i && !out->second.ptr && wml_json_next(root, &it, &key, &v)) out->second = wml_json_str(v);
    bool found = out->first.ptr || wml_fail(err, WML_E_FORMAT, "%s, line %zu: no object with a string", t->path, number);
    if (found) out->first = wml_arena_str(&t->arena, out->first);
    if (found && out->second.ptr) out->second = wml_arena_str(&t->arena, out->second);
    wml_json_free(doc);
    return found;
}

/* UTF-16 has bytes of zero, other encodings are hardly ever valid UTF-8. */
static bool is_text(const struct wml_texts *t, struct wml_str line, size_t number, struct wml_err *err)
{
    if (wml_utf8_valid(line) && (!line.len || !memchr(line.ptr, 0, line.len))) return true;
    wml_fail(err, WML_E_FORMAT, "%s, line %zu: this is no UTF-8 text", t->path, number);
    return wml_hint(err, "save the file as UTF-8");
}

static bool read_lines(struct wml_texts *t, struct wml_str rest, size_t max, struct wml_err *err)
{
    bool objects = wml_str_ends(wml_str(t->path), ".jsonl");
    struct wml_str line;
    if (wml_str_starts(rest, "\xef\xbb\xbf")) rest = wml_str_sub(rest, 3, rest.len);
    for (size_t number = 1; t->v.len < max && wml_str_split(&rest, '\n', &line); number++) {
        struct text one = {.first = wml_str_trim(line)};
        if (!one.first.len) continue;
        if (!is_text(t, one.first, number, err)) return false;
        if (objects && !read_object(t, one.first, number, &one, err)) return false;
        if (!objects) one.first = wml_arena_str(&t->arena, one.first);
        WML_PUSH_IN(&t->arena, &t->v, one);
    }
    if (t->v.len) return true;
    wml_fail(err, WML_E_USAGE, "%s holds no text", t->path);
    return wml_hint(err, objects ? "one object per line is wanted, with a string as its member `text`" : "one text per line is wanted");
}

static bool takes_texts(const struct wml_io *input, size_t n, struct wml_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(input[i].name, "input_ids") == 0) return true;
    wml_fail(err, WML_E_USAGE, "texts do not fit: the model has no input 'input_ids'");
    return wml_hint(err, "`winml inspect -m MODEL` lists its inputs; --calibration-data takes arrays as well");
}

bool wml_texts_open(const char *path, const char *tokenizer, size_t max, const struct wml_io *input, size_t n, struct wml_texts **out,
                    struct wml_err *err)
{
    if (!takes_texts(input, n, err)) return false;
    struct wml_texts *t = wml_xcalloc(1, sizeof *t);
    struct wml_buf bytes = {0};
    t->path = path;
    bool ok = wml_tok_open(tokenizer, &t->tok, err) || wml_hint(err, "--tokenizer names the folder with the model's tokenizer.json");
    ok = ok && wml_file_read(path, FILE_MAX, &bytes, err) && read_lines(t, wml_buf_view(&bytes), max, err);
    wml_buf_release(&bytes);
    if (ok) *out = t;
    else wml_texts_close(t);
    return ok;
}

void wml_texts_close(struct wml_texts *t)
{
    if (!t) return;
    wml_tok_close(t->tok);
    wml_arena_release(&t->arena);
    free(t);
}

size_t wml_texts_count(const struct wml_texts *t)
{
    return t->v.len;
}

struct wml_str wml_texts_at(const struct wml_texts *t, size_t i)
{
    return t->v.at[i].first;
}

/* The model's inputs; the length of input_ids from a shape of the feed, where the model leaves it open. */
static struct wml_task_input *inputs_of(struct wml_arena *arena, const struct wml_io *input, size_t n, const struct wml_feed_spec *feed)
{
    struct wml_task_input *in = WML_NEW_ARRAY(arena, struct wml_task_input, n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t rank = input[i].has_shape ? input[i].rank : 0;
        int64_t *dim = WML_NEW_ARRAY(arena, int64_t, rank + 1);
        for (size_t d = 0; d < rank; d++) dim[d] = input[i].dim[d];
        for (size_t k = 0; k < feed->n_shapes; k++)
            if (wml_str_is(feed->shape[k].name, input[i].name) && feed->shape[k].rank == 2 && rank == 2 && dim[1] < 0) dim[1] = feed->shape[k].dim[1];
        in[i] = (struct wml_task_input){wml_str(input[i].name), input[i].dtype, dim, rank};
    }
    return in;
}

bool wml_texts_make(const struct wml_texts *t, size_t i, const struct wml_io *input, size_t n, const struct wml_feed_spec *feed,
                    struct wml_feed *out, struct wml_err *err)
{
    struct wml_arena arena = {0};
    struct wml_text_plan plan;
    struct wml_tok_ids ids = {0};
    struct wml_npys arrays = {0};
    const struct text *text = &t->v.at[i];
    bool ok = wml_text_plan_aim(&plan, t->tok, inputs_of(&arena, input, n, feed), n, err);
    ok = ok && (wml_text_make(&plan, text->first, text->second, &ids, &arrays, err) || wml_wrap(err, "%s, text %zu", t->path, i + 1));
    ok = ok && wml_feed_arrays(input, n, &arrays, t->path, out, err);
    wml_npys_release(&arrays);
    wml_tok_ids_release(&ids);
    wml_arena_release(&arena);
    return ok;
}
