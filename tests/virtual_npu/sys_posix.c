/* sys_posix.c - sys.h for Linux and other POSIX systems. */
#define _POSIX_C_SOURCE 200809L

#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t vnpu_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t vnpu_process_id(void)
{
    return (uint64_t)getpid();
}

void vnpu_sleep_us(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000u), .tv_nsec = (int)(us % 1000000u) * 1000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

void vnpu_die_crash(void)
{
    signal(SIGSEGV, SIG_DFL); /* a host's handler must not turn the crash into something else */
    raise(SIGSEGV);
    abort();
}

void vnpu_die_kill(void)
{
    raise(SIGKILL);
    abort();
}

FILE *vnpu_fopen(const char *path, const char *mode)
{
    return fopen(path, mode);
}

bool vnpu_rename(const char *from, const char *to)
{
    return rename(from, to) == 0;
}

bool vnpu_remove(const char *path)
{
    return remove(path) == 0;
}

bool vnpu_is_separator(char c)
{
    return c == '/';
}

bool vnpu_narrow_path(const void *native, char *out, size_t size)
{
    size_t n = strlen(native);
    if (n >= size) return false;
    memcpy(out, native, n + 1);
    return true;
}

void *vnpu_native_path(const char *path)
{
    size_t n = strlen(path) + 1;
    char *p = malloc(n);
    return p != NULL ? memcpy(p, path, n) : NULL;
}

bool vnpu_find_file(const char *folder, const char *prefix, char *name, size_t size)
{
    bool found = false;
    DIR *d = opendir(folder);
    if (d == NULL) return false;
    for (struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name);
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 && n < size) {
            memcpy(name, e->d_name, n + 1);
            found = true;
        }
    }
    closedir(d);
    return found;
}
