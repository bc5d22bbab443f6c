/* A model file that appears whole or not at all. */
#include "flow/staged.h"

#include "flow/output.h"
#include "graph/edit.h"
#include "os/file.h"
#include "os/path.h"

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

bool wml_staged_write(struct wml_staged *s, struct wml_model *m, const char *prefix, struct wml_ctx *cx, struct wml_err *err)
{
    struct wml_onnx_save_opts opts = {.cx = cx};
    struct wml_buf path = {0};
    bool ok = s->stage || wml_dir_temp(s->dir, prefix, &path, err);
    if (ok && !s->stage) s->stage = wml_arena_cstr(&s->arena, wml_buf_view(&path));
    wml_buf_release(&path);
    if (!ok) return false;
    s->path = wml_path_in(&s->arena, s->stage, s->name);
    if (!wml_onnx_save(m, s->path, &opts, &s->saved, err)) return false;
    s->bytes_after = s->saved.model_bytes + s->saved.data_bytes;
    return true;
}

/* The data file may replace that of an output of the same name, not weights of the source or what else is there. */
static bool may_place_data(const struct wml_staged *s, const char *to, struct wml_err *err)
{
    bool source = is_source_data(s, to);
    if (wml_file_same(s->output, s->source) || (!source && (s->overwrite || !wml_file_exists(to)))) return true;
    wml_fail(err, WML_E_EXISTS, source ? "Data file '%s' holds weights of the source: it is not replaced."
                                       : "Data file '%s' already exists. Re-run with --overwrite to replace it.", to);
    return wml_hint(err, "or give another name with -o");
}

/* Whether the old output keeps weights in that file, which goes with it then. */
static bool keeps_weights_in(const struct wml_staged *s, const char *name, const char *path)
{
    struct wml_model *old = NULL;
    bool own = false;
    if (is_source_data(s, path) && !wml_file_same(s->output, s->source)) return false;
    if (!wml_onnx_load(s->output, &old, NULL)) return false;
    struct wml_onnx_files files = wml_onnx_files(old);
    for (size_t i = 0; i < files.len; i++) own = own || wml_str_is(files.location[i], name);
    wml_model_free(old);
    return own;
}

struct move { const char *from, *to; };

/* All renames or none. */
static bool move_all(const struct move *move, size_t n, struct wml_err *err)
{
    size_t done = 0;
    while (done < n && wml_file_rename(move[done].from, move[done].to, err)) done++;
    if (done == n) return true;
    while (done-- > 0) wml_file_rename(move[done].to, move[done].from, NULL);
    return false;
}

/* Two files cannot be replaced in one step. Where model and data both stand already, both go out of the way first: whoever
 * looks in between, or comes after a crash, finds no model, never one beside another's data. */
bool wml_staged_publish(struct wml_staged *s, struct wml_err *err)
{
    const char *name = wml_arena_fmt(&s->arena, "%s.data", s->name).ptr, *data = wml_path_in(&s->arena, s->dir, name);
    bool made = s->saved.data_name[0] != 0;
    struct move move[4];
    size_t n = 0;
    if (made && !may_place_data(s, data, err)) return false;
    if (wml_file_exists(s->output) && wml_file_exists(data) && (made || keeps_weights_in(s, name, data))) {
        move[n++] = (struct move){s->output, wml_path_in(&s->arena, s->stage, wml_arena_fmt(&s->arena, "%s.old", s->name).ptr)};
        move[n++] = (struct move){data, wml_path_in(&s->arena, s->stage, wml_arena_fmt(&s->arena, "%s.was", s->name).ptr)};
    }
    if (made) move[n++] = (struct move){wml_path_in(&s->arena, s->stage, name), data};
    move[n++] = (struct move){s->path, s->output};
    return move_all(move, n, err);
}

void wml_staged_release(struct wml_staged *s, struct wml_err *err)
{
    if (err && err->code && s->dir) wml_output_unstage(err, s->stage, s->dir);
    if (s->stage) wml_dir_remove(s->stage);
    wml_arena_release(&s->arena);
    *s = (struct wml_staged){0};
}
