/* Environment, clocks and this process on POSIX. */
#include "os/sys.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/num.h"

bool wml_env(const char *name, struct wml_buf *out)
{
    const char *v = getenv(name);
    if (v) wml_buf_cstr(out, v);
    return v != NULL;
}

bool wml_env_is_set(const char *name)
{
    const char *v = getenv(name);
    return v && *v;
}

void wml_env_set(const char *name, const char *value)
{
    if (value) setenv(name, value, 1);
    else unsetenv(name);
}

uint64_t wml_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void wml_sleep_ms(uint64_t ms)
{
    struct timespec t = {(time_t)(ms / 1000), (int32_t)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

void wml_time_utc(char out[WML_TIME_TEXT])
{
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(out, WML_TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void wml_time_stamp(char out[WML_TIME_TEXT])
{
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    strftime(out, WML_TIME_TEXT, "%Y%m%d-%H%M%S", &tm);
}

/* A row "Name:   123 kB" of /proc/self/status, in bytes. */
static uint64_t status_row(const char *name)
{
    char line[256];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    if (!f) return 0;
    while (fgets(line, sizeof line, f)) {
        struct wml_str s = wml_str(line);
        if (!wml_str_starts(s, name)) continue;
        size_t digits = strlen(name);
        struct wml_str rest = wml_str_trim(wml_str_sub(s, digits, s.len)), number;
        if (wml_str_split(&rest, ' ', &number) && wml_parse_u64(number, &kib)) break;
    }
    fclose(f);
    return kib * 1024;
}

uint64_t wml_rss(void)
{
    return status_row("VmRSS:");
}

uint64_t wml_rss_peak(void)
{
    return status_row("VmHWM:");
}

uint64_t wml_rss_anon(void)
{
    return status_row("RssAnon:");
}

bool wml_rss_peak_reset(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (!f) return false;
    bool ok = fputs("5", f) >= 0;
    return fclose(f) == 0 && ok;
}

uint64_t wml_cpu_ns(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0) return 0;
    uint64_t s = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec);
    return s * 1000000000 + (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

int wml_pid(void)
{
    return (int)getpid();
}
