/* Locked files on POSIX. */
#include "os/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "os/fail.h"

/* Somebody removed the file, or put another one there, between the opening and the locking. */
static bool is_gone(int fd, const char *path)
{
    struct stat mine, there;
    return fstat(fd, &mine) == 0 && (stat(path, &there) != 0 || mine.st_ino != there.st_ino || mine.st_dev != there.st_dev);
}

bool wml_lock_try(struct wml_lock *l, const char *path, struct wml_err *err)
{
    *l = (struct wml_lock){0};
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) return wml_fail_system(err, errno, "open", path);
        bool held = flock(fd, LOCK_EX | LOCK_NB) == 0;
        bool busy = !held && (errno == EWOULDBLOCK || errno == EINTR);
        if (!busy && !(held && is_gone(fd, path))) {
            l->file = (intptr_t)fd + 1;
            return true;
        }
        close(fd);
        if (busy) return true;
    }
}

void wml_lock_release(struct wml_lock *l)
{
    if (l->file) close((int)l->file - 1);
    *l = (struct wml_lock){0};
}
