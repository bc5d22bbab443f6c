/* cli/output.c - checks and conversions that several commands need before they start. */
#include "cli/cli.h"

#include "cli/rows.h"
#include "os/file.h"
#include "os/path.h"
#include "text/json.h"

static bool is_empty_dir(const char *path)
{
    struct wml_dir_list list = {0};
    bool empty = wml_dir_list(path, &list, NULL) && list.v.len == 0;
    wml_dir_list_release(&list);
    return empty;
}

bool wml_check_output(const char *label, const char *path, bool overwrite, const char *input,
                      struct wml_err *err)
{
    if (!path) return true;
    if (!*path) return wml_fail(err, WML_E_USAGE, "%s has an empty name.", label);
    struct wml_file_info there = wml_file_info(path);
    if (input && there.kind != WML_FILE_NONE && wml_file_same(path, input)) {
        wml_fail(err, WML_E_EXISTS, "%s '%s' is the input itself.", label, path);
        return wml_hint(err, "choose another name with -o");
    }
    if (there.kind == WML_FILE_DIR && !overwrite && !is_empty_dir(path))
        return wml_fail(err, WML_E_EXISTS,
                        "%s directory '%s' already exists and is not empty. "
                        "Re-run with --overwrite to replace its contents.", label, path);
    if (there.kind != WML_FILE_NONE && there.kind != WML_FILE_DIR && !overwrite)
        return wml_fail(err, WML_E_EXISTS, "%s '%s' already exists. Re-run with --overwrite to replace it.",
                        label, path);
    if (there.kind != WML_FILE_NONE) return true;
    struct wml_str dir = wml_path_dir(wml_str(path));
    struct wml_arena arena = {0};
    const char *name = wml_arena_cstr(&arena, dir);
    bool ok = dir.len == 0 || wml_str_is(dir, ".") || wml_dir_make(name, err);
    wml_arena_release(&arena);
    return ok ? true : wml_wrap(err, "%s '%s'", label, path);
}

bool wml_parse_pairs(const struct wml_opt_list *l, const char *option, struct wml_arena *arena,
                     struct wml_pairs *out, struct wml_err *err)
{
    *out = (struct wml_pairs){WML_NEW_ARRAY(arena, struct wml_str, l->v.len),
                              WML_NEW_ARRAY(arena, struct wml_str, l->v.len), 0};
    for (size_t i = 0; i < l->v.len; i++) {
        struct wml_str row = wml_str(l->v.at[i]);
        size_t equals = wml_str_find(row, '=');
        struct wml_str key = wml_str_trim(wml_str_sub(row, 0, equals));
        if (equals == SIZE_MAX || key.len == 0)
            return wml_fail(err, WML_E_USAGE, "Invalid value for '%s': '%s' is not KEY=VALUE.", option,
                            l->v.at[i]);
        size_t k = 0;
        while (k < out->len && !wml_str_eq(out->key[k], key)) k++;
        out->key[k] = wml_arena_str(arena, key);
        out->value[k] = wml_arena_str(arena, wml_str_trim(wml_str_sub(row, equals + 1, row.len)));
        out->len = WML_MAX(out->len, k + 1);
    }
    return true;
}

static bool set_one(const struct wml_call *call, const char *path, struct wml_str name,
                    const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_buf text = {0};
    bool known = true;
    if (wml_json_is_string(v))
        wml_buf_str(&text, wml_json_str(v));
    else
        wml_json_print(v, &text);
    bool ok = wml_opt_set(call->command->opts, call->args, name, wml_buf_view(&text), WML_FROM_CONFIG,
                          call->arena, &known, err);
    wml_buf_release(&text);
    if (!known)
        wml_log(call->cx, WML_LOG_WARN, "%s: '%.*s' is no option of %s; ignored", path, WML_ARG(name),
                call->command->name);
    return ok ? true : wml_wrap(err, "%s", path);
}

static bool set_all(const struct wml_call *call, const char *path, const struct wml_json_val *object,
                    struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str name;
    const struct wml_json_val *v;
    while (wml_json_next(object, &it, &name, &v)) {
        if (wml_json_is_null(v)) continue;
        if (!wml_json_is_array(v)) {
            if (!set_one(call, path, name, v, err)) return false;
            continue;
        }
        struct wml_json_iter element = {0};
        struct wml_str no_name;
        const struct wml_json_val *e;
        while (wml_json_next(v, &element, &no_name, &e))
            if (!set_one(call, path, name, e, err)) return false;
    }
    return true;
}

bool wml_cli_config(const struct wml_call *call, const char *path, const char *section, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    bool ok = false;
    if (!wml_json_load(path, &doc, err)) {
        if (err && err->code == WML_E_FORMAT) wml_wrap(err, "Invalid JSON in --config");
        if (err) err->code = WML_E_USAGE;
        return false;
    }
    const struct wml_json_val *object = wml_json_root(doc);
    if (!wml_json_is_object(object)) {
        wml_fail(err, WML_E_USAGE, "--config must contain a JSON object: %s", path);
        goto done;
    }
    if (section) object = wml_json_get(object, section);
    if (object && !wml_json_is_object(object)) {
        wml_fail(err, WML_E_USAGE, "--config: '%s' must be an object: %s", section, path);
        goto done;
    }
    ok = !object || set_all(call, path, object, err);
done:
    wml_json_free(doc);
    return ok;
}
