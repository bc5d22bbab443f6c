/* Environment, clocks and this process on Windows. */
#include "os/sys.h"

#include "base/arena.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <psapi.h>

bool wml_env(const char *name, struct wml_buf *out)
{
    wchar_t *wide = wml_wide(name), *value = NULL;
    DWORD room = 256, n;
    /* The value may grow between two calls. */
    do {
        value = wml_xrealloc(value, room * sizeof *value);
        SetLastError(ERROR_SUCCESS);
        n = GetEnvironmentVariableW(wide, value, room);
    } while (n >= room && (room = n + 1));
    bool set = n || GetLastError() != ERROR_ENVVAR_NOT_FOUND;
    if (n) wml_narrow(value, out);
    else if (set) wml_buf_cstr(out, "");
    free(value);
    free(wide);
    return set;
}

bool wml_env_is_set(const char *name)
{
    struct wml_buf value = {0};
    bool set = wml_env(name, &value) && value.len;
    wml_buf_release(&value);
    return set;
}

void wml_env_set(const char *name, const char *value)
{
    wchar_t *wide = wml_wide(name), *text = wml_wide(value ? value : "");
    /* Through the C library, which keeps a copy that libraries of vendors read; it cannot hold an empty value. */
    _wputenv_s(wide, text);
    if (value && !*value) SetEnvironmentVariableW(wide, L"");
    free(wide);
    free(text);
}

uint64_t wml_now_ns(void)
{
    LARGE_INTEGER f, t;
    QueryPerformanceFrequency(&f);
    QueryPerformanceCounter(&t);
    uint64_t per = (uint64_t)f.QuadPart, ticks = (uint64_t)t.QuadPart;
    return ticks / per * 1000000000 + ticks % per * 1000000000 / per;
}

void wml_sleep_ms(uint64_t ms)
{
    while (ms) {
        DWORD piece = (DWORD)WML_MIN(ms, UINT64_C(1000000));
        Sleep(piece);
        ms -= piece;
    }
}

void wml_time_utc(char out[WML_TIME_TEXT])
{
    time_t now = time(NULL);
    struct tm tm = {0};
    gmtime_s(&tm, &now);
    strftime(out, WML_TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

void wml_time_stamp(char out[WML_TIME_TEXT])
{
    time_t now = time(NULL);
    struct tm tm = {0};
    localtime_s(&tm, &now);
    strftime(out, WML_TIME_TEXT, "%Y%m%d-%H%M%S", &tm);
}

uint64_t wml_rss(void)
{
    PROCESS_MEMORY_COUNTERS m = {.cb = sizeof m};
    return GetProcessMemoryInfo(GetCurrentProcess(), &m, sizeof m) ? m.WorkingSetSize : 0;
}

uint64_t wml_rss_peak(void)
{
    PROCESS_MEMORY_COUNTERS m = {.cb = sizeof m};
    return GetProcessMemoryInfo(GetCurrentProcess(), &m, sizeof m) ? m.PeakWorkingSetSize : 0;
}

/* PROCESS_MEMORY_COUNTERS_EX2: the private working set, known from Windows 10 22H2 on. */
struct counters {
    PROCESS_MEMORY_COUNTERS_EX ex;
    SIZE_T private_working_set;
    ULONG64 shared_commit;
};

uint64_t wml_rss_anon(void)
{
    struct counters m = {.ex.cb = sizeof m};
    bool known = GetProcessMemoryInfo(GetCurrentProcess(), (PROCESS_MEMORY_COUNTERS *)(void *)&m, sizeof m);
    return known ? m.private_working_set : 0;
}

bool wml_rss_peak_reset(void)
{
    return false;
}

static uint64_t ns(FILETIME t)
{
    return ((uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime) * 100;
}

uint64_t wml_cpu_ns(void)
{
    FILETIME start, end, kernel, user;
    return GetProcessTimes(GetCurrentProcess(), &start, &end, &kernel, &user) ? ns(kernel) + ns(user) : 0;
}

int wml_pid(void)
{
    return (int)GetCurrentProcessId();
}
