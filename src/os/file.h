/* os/file.h - files and folders. Paths are UTF-8 everywhere, UTF-16 only inside file_win.c.
 *
 * Results are written through struct wml_out: to a temporary neighbour, flushed, renamed. Until commit
 * nothing exists under the final name, and an old file there stays whole. Errors name the path and the
 * system's reason; a full disk is said as such. */
#ifndef WML_OS_FILE_H
#define WML_OS_FILE_H

#include "base/rd.h"
#include "base/vec.h"

enum wml_file_kind { WML_FILE_NONE, WML_FILE_REGULAR, WML_FILE_DIR, WML_FILE_OTHER };

struct wml_file_info {
    enum wml_file_kind kind; /* NONE: nothing there */
    uint64_t size;
    int64_t modified_ns; /* since 1970 */
    uint64_t device, inode; /* together they name the file; 0, 0: not known */
};

/* Never fails: what cannot be seen is NONE. Follows links. */
struct wml_file_info wml_file_info(const char *path);
bool wml_file_exists(const char *path);
bool wml_dir_exists(const char *path);
/* The two paths name one existing file. */
bool wml_file_same(const char *a, const char *b);

/* The whole file; max 0 means 64 MiB. WML_E_NOT_FOUND, WML_E_IO, WML_E_FORMAT when it is longer. */
bool wml_file_read(const char *path, uint64_t max, struct wml_buf *out, struct wml_err *err);
/* Writes all of it through a struct wml_out. */
bool wml_file_write(const char *path, struct wml_str bytes, struct wml_err *err);
bool wml_file_append(const char *path, struct wml_str bytes, struct wml_err *err);
/* Replaces `to`, which must be a file, a link or nothing. Same file system. */
bool wml_file_rename(const char *from, const char *to, struct wml_err *err);
/* Copies through a temporary neighbour, in the kernel where it can. */
bool wml_file_copy(const char *from, const char *to, struct wml_err *err);
/* A symbolic link at `path` that says `target`, which need not exist. false with WML_E_UNSUPPORTED where the file system
 * or, on Windows, the user's rights allow none; WML_E_EXISTS when something is at `path`. */
bool wml_file_link(const char *target, const char *path, struct wml_err *err);
/* A second name of the file `target` (not of a link to it) on the same file system. false where there can be none. */
bool wml_file_link_hard(const char *target, const char *path);
bool wml_file_remove(const char *path); /* true when nothing is there afterwards */
bool wml_dir_make(const char *path, struct wml_err *err); /* with parents; fine when it is there */
bool wml_dir_remove(const char *path);                    /* with everything in it */
/* A new private folder in `parent` (NULL: the system's temporary folder), named prefix + what tells whose it is. A fatal
 * end removes it. Those of that prefix that processes left behind which were killed are removed now. */
bool wml_dir_temp(const char *parent, const char *prefix, struct wml_buf *path, struct wml_err *err);
/* The same for a file, which the caller makes: only its name. */
void wml_file_temp(const char *parent, const char *prefix, struct wml_buf *path);

struct wml_dir_entry {
    struct wml_str name;
    bool is_dir;
};
struct wml_dir_list {
    struct wml_arena arena;
    WML_VEC(struct wml_dir_entry) v; /* sorted by name, bytewise; without . and .. */
};
bool wml_dir_list(const char *path, struct wml_dir_list *out, struct wml_err *err);
void wml_dir_list_release(struct wml_dir_list *l);

struct wml_out { /* zero is valid and closed */
    char *path, *temp;
    intptr_t file; /* descriptor or HANDLE, plus one */
    unsigned char *pending;
    size_t n_pending;
    uint64_t offset; /* bytes written so far */
    uint64_t dirty;  /* of them, not yet on their way to the disk */
};

/* The folder must exist: "make it first" is the hint otherwise. */
bool wml_out_open(struct wml_out *o, const char *path, struct wml_err *err);
/* Room for a file of n bytes, where the system gives it in advance: writing is faster then, and a disk that is too full
 * says so before anything is written. Less may be written in the end. */
bool wml_out_reserve(struct wml_out *o, uint64_t n, struct wml_err *err);
/* Small pieces are gathered; pieces of 1 MiB and more go to the system directly. */
bool wml_out_write(struct wml_out *o, const void *bytes, size_t n, struct wml_err *err);
bool wml_out_pad(struct wml_out *o, uint64_t to_offset, struct wml_err *err); /* with zero bytes */
/* n bytes at `from` of an open file (descriptor or HANDLE), in the kernel where it can. */
bool wml_out_copy(struct wml_out *o, intptr_t file, uint64_t from, uint64_t n, struct wml_err *err);
/* Flushes, closes, keeps the temporary file: for several files that must appear together. */
bool wml_out_finish(struct wml_out *o, struct wml_err *err);
/* finish, then renames into place. */
bool wml_out_commit(struct wml_out *o, struct wml_err *err);
/* Closes; what was not committed is removed. Safe after commit and on zero. */
void wml_out_release(struct wml_out *o);
/* Ctrl-C and fatal ends: removes temporary files and folders that are there now. Called by signal handlers. */
void wml_out_remove_all(void);

#endif
