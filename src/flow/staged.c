/* A model file that appears whole or not at all. */
#include "flow/staged.h"

#include "flow/output.h"
#include "os/file.h"
#include "os/path.h"

static const char *in_dir(struct wml_staged *s, const char *dir, const char *name)
{
    struct wml_buf path = {0};
    wml_path_join(&path, wml_str(dir), wml_str(name));
    const char *copy = wml_arena_cstr(&s->arena, wml_buf_view(&path));
    wml_buf_release(&path);
    return copy;
}

bool wml_staged_prepare(struct wml_staged *s, const char *source, const char *output, bool overwrite, struct wml_err *err)
{
    s->source = source;
    s->output = output;
    s->overwrite = overwrite;
    s->name = wml_arena_cstr(&s->arena, wml_path_name(wml_str(output)));
    s->dir = wml_arena_cstr(&s->arena, wml_path_dir(wml_str(output)));
    return wml_output_check_model(output, overwrite, source, err);
}

static bool is_source_data(const struct wml_staged *s, const char *path)
{
    for (size_t i = 0; i < s->source_data.len; i++)
        if (wml_file_same(path, s->source_data.at[i])) return true;
    return false;
}

static void note_files(struct wml_staged *s, struct wml_model *source)
{
    struct wml_onnx_files files = wml_onnx_files(source);
    s->bytes_before = wml_file_info(s->source).size;
    for (size_t i = 0; i < files.len; i++) {
        struct wml_buf full = {0};
        wml_path_join(&full, wml_path_dir(wml_str(s->source)), files.location[i]);
        if (wml_path_is_inside(files.location[i])) {
            s->bytes_before += wml_file_info(wml_buf_text(&full)).size;
            WML_PUSH_IN(&s->arena, &s->source_data, wml_arena_cstr(&s->arena, wml_buf_view(&full)));
        }
        wml_buf_release(&full);
    }
}

bool wml_staged_guard_file(const struct wml_staged *s, const char *path, struct wml_err *err)
{
    if (!is_source_data(s, path)) return true;
    wml_fail(err, WML_E_EXISTS, "'%s' holds weights of the source: it is not replaced.", path);
    return wml_hint(err, "give another name");
}

bool wml_staged_guard(struct wml_staged *s, struct wml_model *source, struct wml_err *err)
{
    if (!s->bytes_before) note_files(s, source);
    return !s->output || wml_staged_guard_file(s, s->output, err);
}

bool wml_staged_write(struct wml_staged *s, struct wml_model *m, const char *prefix, struct wml_err *err)
{
    struct wml_buf path = {0};
    bool ok = s->stage || wml_dir_temp(s->dir, prefix, &path, err);
    if (ok && !s->stage) s->stage = wml_arena_cstr(&s->arena, wml_buf_view(&path));
    wml_buf_release(&path);
    if (!ok) return false;
    s->path = in_dir(s, s->stage, s->name);
    if (!wml_onnx_save(m, s->path, NULL, &s->saved, err)) return false;
    s->bytes_after = s->saved.model_bytes + s->saved.data_bytes;
    return true;
}

/* The data file beside the model. It may replace that of an output of the same name, not weights of the source or
 * what else is there. */
static bool publish_data(struct wml_staged *s, struct wml_err *err)
{
    const char *to = in_dir(s, s->dir, s->saved.data_name);
    if (!wml_file_same(s->output, s->source)) {
        bool source = is_source_data(s, to);
        if (source || (wml_file_exists(to) && !s->overwrite)) {
            wml_fail(err, WML_E_EXISTS, source ? "Data file '%s' holds weights of the source: it is not replaced."
                                               : "Data file '%s' already exists. Re-run with --overwrite to replace it.", to);
            return wml_hint(err, "or give another name with -o");
        }
    }
    return wml_file_rename(in_dir(s, s->stage, s->saved.data_name), to, err);
}

bool wml_staged_publish(struct wml_staged *s, struct wml_err *err)
{
    return (!s->saved.data_name[0] || publish_data(s, err)) && wml_file_rename(s->path, s->output, err);
}

void wml_staged_release(struct wml_staged *s, struct wml_err *err)
{
    if (err && err->code && s->dir) wml_output_unstage(err, s->stage, s->dir);
    if (s->stage) wml_dir_remove(s->stage);
    wml_arena_release(&s->arena);
    *s = (struct wml_staged){0};
}
