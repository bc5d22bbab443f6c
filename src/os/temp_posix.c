/* Private folders on POSIX. */
#include "os/temp_sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/fail.h"

void wml_temp_where(struct wml_buf *out)
{
    char name[256] = "", space[64];
    if (gethostname(name, sizeof name - 1) == 0) wml_buf_cstr(out, name);
    ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space);
    if (n > 0) wml_buf_add(out, space, (size_t)n);
}

bool wml_temp_lives(int64_t pid)
{
    return pid > INT_MAX || kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

enum wml_temp_made wml_temp_make(const char *path, const char *parent, struct wml_err *err)
{
    if (mkdir(path, 0700) == 0) return WML_TEMP_MADE;
    if (errno == EEXIST) return WML_TEMP_TAKEN;
    wml_fail_system(err, errno, "make a folder in", parent);
    return WML_TEMP_FAILED;
}

void wml_temp_each(const char *dir, const char *prefix, void *arg, void (*f)(void *arg, struct wml_str name))
{
    DIR *d = opendir(dir);
    struct dirent *e;
    struct stat st;
    while (d && (e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0) continue;
        bool ours = fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
        if (ours && (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))) f(arg, wml_str(e->d_name));
    }
    if (d) closedir(d);
}
