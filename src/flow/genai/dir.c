/* A folder made of a bundle: its files by links, the config by ours. The library refuses names that leave the folder, and some
 * EPs refuse weights that a symbolic link leads out of it, so the files must seem to be in it. */
#include "flow/genai/internal.h"

#include "os/file.h"
#include "os/path.h"

static bool copy_tree(const char *from, const char *to, struct wml_err *err)
{
    struct wml_dir_list list = {0};
    if (!wml_dir_exists(from)) return wml_file_copy(from, to, err);
    bool ok = wml_dir_make(to, err) && wml_dir_list(from, &list, err);
    for (size_t i = 0; ok && i < list.v.len; i++) {
        struct wml_buf a = {0}, b = {0};
        wml_path_join(&a, wml_str(from), list.v.at[i].name);
        wml_path_join(&b, wml_str(to), list.v.at[i].name);
        ok = copy_tree(wml_buf_text(&a), wml_buf_text(&b), err);
        wml_buf_release(&a);
        wml_buf_release(&b);
    }
    wml_dir_list_release(&list);
    return ok;
}

static bool put_entry(const char *bundle, const char *to, struct wml_str name, bool hard, struct wml_err *err)
{
    struct wml_buf from = {0}, at = {0}, target = {0}, folder = {0};
    struct wml_err no_link = {0};
    wml_path_join(&from, wml_str(bundle), name);
    wml_path_join(&at, wml_str(to), name);
    /* Relative where the folder lies in the bundle: it may then be moved with it. */
    if (wml_path_absolute(&folder, wml_str(to), &no_link) && wml_str_starts(wml_buf_view(&folder), bundle))
        wml_path_relative(&target, wml_buf_view(&from), wml_buf_view(&folder));
    else wml_buf_str(&target, wml_buf_view(&from));
    bool ok = (hard && wml_file_exists(wml_buf_text(&from)) && wml_file_link_hard(wml_buf_text(&from), wml_buf_text(&at))) ||
              wml_file_link(wml_buf_text(&target), wml_buf_text(&at), &no_link) || copy_tree(wml_buf_text(&from), wml_buf_text(&at), err);
    wml_buf_release(&from);
    wml_buf_release(&at);
    wml_buf_release(&target);
    wml_buf_release(&folder);
    return ok;
}

bool wml_genai_mirror(const char *bundle, const char *to, bool (*left_out)(void *arg, struct wml_str name), void *arg, bool hard,
                      struct wml_err *err)
{
    struct wml_dir_list list = {0};
    bool ok = wml_dir_list(bundle, &list, err);
    for (size_t i = 0; ok && i < list.v.len; i++) {
        struct wml_str name = list.v.at[i].name;
        /* Hidden ones, and what begins with "_", are folders of ours or of tools. */
        if (wml_str_is(name, WML_BUNDLE_CONFIG) || wml_str_starts(name, "_") || wml_str_starts(name, ".")) continue;
        if (!left_out || !left_out(arg, name)) ok = put_entry(bundle, to, name, hard, err);
    }
    wml_dir_list_release(&list);
    return ok || wml_wrap(err, "make a copy of %s with another config", bundle);
}

/* Files can have a second name only on the file system of the bundle. */
static bool make_derived(struct wml_genai_run *r, struct wml_buf *dir, struct wml_err *err)
{
    struct wml_buf inside = {0};
    struct wml_err denied = {0};
    if (!wml_dir_temp(NULL, "winml-genai-", dir, err)) return false;
    if (wml_file_info(wml_buf_text(dir)).device != wml_file_info(r->dir).device && wml_dir_temp(r->dir, "_winml.tmp-", &inside, &denied)) {
        wml_dir_remove(wml_buf_text(dir));
        wml_buf_clear(dir);
        wml_buf_str(dir, wml_buf_view(&inside));
    }
    wml_buf_release(&inside);
    return true;
}

bool wml_genai_derive(struct wml_genai_run *r, struct wml_err *err)
{
    struct wml_buf dir = {0}, file = {0}, config = {0};
    if (!wml_bundle_changed(&r->bundle)) {
        r->load_dir = r->dir;
        return true;
    }
    bool ok = make_derived(r, &dir, err);
    if (ok) {
        r->load_dir = r->temp_dir = wml_arena_cstr(&r->arena, wml_buf_view(&dir));
        wml_path_join(&file, wml_buf_view(&dir), WML_STR(WML_BUNDLE_CONFIG));
        wml_bundle_print(&r->bundle, &config);
        ok = wml_genai_mirror(r->dir, r->temp_dir, NULL, NULL, true, err) && wml_file_write(wml_buf_text(&file), wml_buf_view(&config), err);
    }
    wml_buf_release(&dir);
    wml_buf_release(&file);
    wml_buf_release(&config);
    return ok;
}
