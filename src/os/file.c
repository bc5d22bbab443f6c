/* The parts of os/file.h that are the same everywhere. */
#include "os/file.h"

#include "os/map.h"

bool wml_file_exists(const char *path)
{
    return wml_file_info(path).kind == WML_FILE_REGULAR;
}

bool wml_dir_exists(const char *path)
{
    return wml_file_info(path).kind == WML_FILE_DIR;
}

bool wml_file_same(const char *a, const char *b)
{
    struct wml_file_info x = wml_file_info(a), y = wml_file_info(b);
    if (x.kind == WML_FILE_NONE || y.kind == WML_FILE_NONE) return false;
    if (x.device || x.inode) return x.device == y.device && x.inode == y.inode;
    return strcmp(a, b) == 0;
}

bool wml_file_write(const char *path, struct wml_str bytes, struct wml_err *err)
{
    struct wml_out o = {0};
    bool ok = wml_out_open(&o, path, err) && wml_out_write(&o, bytes.ptr, bytes.len, err) &&
              wml_out_commit(&o, err);
    wml_out_release(&o);
    return ok;
}

bool wml_file_copy(const char *from, const char *to, struct wml_err *err)
{
    struct wml_map_file map = {0};
    struct wml_out o = {0};
    bool ok = wml_map_open(from, &map, err) && wml_out_open(&o, to, err) &&
              wml_out_copy(&o, map.file, 0, map.bytes.len, err) && wml_out_commit(&o, err);
    wml_out_release(&o);
    wml_map_close(&map);
    return ok;
}

void wml_dir_list_release(struct wml_dir_list *l)
{
    WML_VEC_RELEASE(&l->v);
    wml_arena_release(&l->arena);
}
