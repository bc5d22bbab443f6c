/* Checks of output paths, made before any work is done. */
#include "flow/output.h"

#include "os/file.h"
#include "os/path.h"

bool wml_output_check(const char *label, const char *path, bool overwrite, const char *input,
                      struct wml_err *err)
{
    struct wml_file_info info = wml_file_info(path);
    struct wml_str dir = wml_path_dir(wml_str(path));
    if (info.kind == WML_FILE_DIR) {
        wml_fail(err, WML_E_EXISTS, "%s '%s' is a folder.", label, path);
        return wml_hint(err, "give the name of a file");
    }
    if (info.kind != WML_FILE_NONE && !overwrite) {
        const char *what = input && wml_file_same(path, input) ? " is the input and" : "";
        return wml_fail(err, WML_E_EXISTS, "%s '%s'%s already exists. Re-run with --overwrite to replace it.",
                        label, path, what);
    }
    struct wml_buf parent = {0};
    wml_buf_str(&parent, dir);
    bool ok = wml_dir_make(wml_buf_text(&parent), err);
    wml_buf_release(&parent);
    return ok;
}

bool wml_output_check_model(const char *path, bool overwrite, const char *input, struct wml_err *err)
{
    enum { NAME_MAX_BYTES = 255, ROOM = 5 }; /* ".data" for the weights beside it */
    struct wml_str name = wml_path_name(wml_str(path));
    if (!name.len) {
        wml_fail(err, WML_E_EXISTS, "Output file '%s' names no file.", path);
        return wml_hint(err, "give the name of a file");
    }
    if (name.len > NAME_MAX_BYTES - ROOM) {
        wml_fail(err, WML_E_IO, "Output file: its name has %zu bytes, file systems take %d.", name.len, NAME_MAX_BYTES - ROOM);
        return wml_hint(err, "give a shorter name with -o");
    }
    /* A model is renamed into place, and that would destroy a device. */
    if (wml_file_info(path).kind == WML_FILE_OTHER) {
        wml_fail(err, WML_E_EXISTS, "Output file '%s' is a device or a pipe.", path);
        return wml_hint(err, "give the name of a file");
    }
    return wml_output_check("Output file", path, overwrite, input, err);
}

static bool same_path(const char *a, const char *b)
{
    struct wml_buf x = {0}, y = {0};
    struct wml_err ignored = {0};
    bool same = wml_file_same(a, b) || (wml_path_absolute(&x, wml_str(a), &ignored) && wml_path_absolute(&y, wml_str(b), &ignored) &&
                                        wml_str_eq(wml_buf_view(&x), wml_buf_view(&y)));
    wml_buf_release(&x);
    wml_buf_release(&y);
    return same;
}

bool wml_output_check_other(const char *option, const char *path, const struct wml_output_name *taken, size_t n, struct wml_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!taken[i].path || !same_path(path, taken[i].path)) continue;
        wml_fail(err, WML_E_USAGE, "%s: '%s' is %s", option, path, taken[i].what);
        return wml_hint(err, "give another name");
    }
    return true;
}

static void replace_all(char *text, size_t size, const char *what, const char *by)
{
    struct wml_buf out = {0};
    size_t n = strlen(what);
    for (const char *p = text; *p;) {
        bool here = strncmp(p, what, n) == 0;
        if (here) wml_buf_cstr(&out, by);
        else wml_buf_char(&out, *p);
        p += here ? n : 1;
    }
    snprintf(text, size, "%s", wml_buf_text(&out));
    wml_buf_release(&out);
}

void wml_output_unstage(struct wml_err *err, const char *stage, const char *dir)
{
    if (!err || !stage || !*stage) return;
    replace_all(err->msg, sizeof err->msg, stage, dir);
    replace_all(err->hint, sizeof err->hint, stage, dir);
}

void wml_output_beside(struct wml_buf *out, const char *model, const char *dir, const char *suffix)
{
    struct wml_buf name = {0};
    wml_buf_str(&name, wml_path_stem(wml_str(model)));
    wml_buf_cstr(&name, suffix);
    wml_path_join(out, dir ? wml_str(dir) : wml_path_dir(wml_str(model)), wml_buf_view(&name));
    wml_buf_release(&name);
}
