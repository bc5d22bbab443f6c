/* os/path.h - text of paths; nothing here looks at the disk unless said. "/" separates everywhere, "\"
 * as well on Windows. */
#ifndef WML_OS_PATH_H
#define WML_OS_PATH_H

#include "base/arena.h"
#include "base/str.h"

bool wml_path_is_absolute(struct wml_str p);
/* "a/b/c.onnx" -> "c.onnx", "a/b" ("." when there is none), ".onnx", "c". */
struct wml_str wml_path_name(struct wml_str p);
struct wml_str wml_path_dir(struct wml_str p);
struct wml_str wml_path_ext(struct wml_str p);
struct wml_str wml_path_stem(struct wml_str p);
/* dir/name; name alone when it is absolute or dir is empty or ".". */
void wml_path_join(struct wml_buf *out, struct wml_str dir, struct wml_str name);
/* The same as a string of the arena. */
const char *wml_path_in(struct wml_arena *a, const char *dir, const char *name);
/* Without "." and inner ".." parts. */
void wml_path_normal(struct wml_buf *out, struct wml_str p);
/* Absolute and normal; asks for the current folder. */
bool wml_path_absolute(struct wml_buf *out, struct wml_str p, struct wml_err *err);
/* Existing path with links followed. */
bool wml_path_real(struct wml_buf *out, struct wml_str p, struct wml_err *err);
/* `p` seen from `dir`, both absolute and normal: "../x/y"; p itself on another drive. */
void wml_path_relative(struct wml_buf *out, struct wml_str p, struct wml_str dir);
/* A relative path that never leaves its folder: not absolute, no drive, no ".." part, no NUL. */
bool wml_path_is_inside(struct wml_str p);
/* The user's home, cache (XDG_CACHE_HOME, LOCALAPPDATA) and temporary folders. false: not known. */
bool wml_path_home(struct wml_buf *out);
bool wml_path_cache(struct wml_buf *out);
void wml_path_temp(struct wml_buf *out);
/* Path of this executable, absolute. */
bool wml_path_program(struct wml_buf *out);

#endif
