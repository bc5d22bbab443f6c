/* sys_win.c - sys.h for Windows: UTF-8 outside, UTF-16 at the system's edge. */
#include "sys.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

static bool widen(const char *s, wchar_t out[MAX_PATH * 4])
{
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, s, -1, out, MAX_PATH * 4) > 0;
}

uint64_t vnpu_now_ns(void)
{
    LARGE_INTEGER f, t;
    QueryPerformanceFrequency(&f);
    QueryPerformanceCounter(&t);
    uint64_t s = (uint64_t)(t.QuadPart / f.QuadPart), rest = (uint64_t)(t.QuadPart % f.QuadPart);
    return s * 1000000000u + rest * 1000000000u / (uint64_t)f.QuadPart;
}

uint64_t vnpu_process_id(void)
{
    return GetCurrentProcessId();
}

void vnpu_sleep_us(uint64_t us)
{
    uint64_t end = vnpu_now_ns() + us * 1000u;
    if (us >= 2000u)
        Sleep((DWORD)(us / 1000u - 1u)); /* Sleep counts milliseconds: spin for the rest */
    while (vnpu_now_ns() < end)
        SwitchToThread();
}

void vnpu_die_crash(void)
{
    RaiseException(EXCEPTION_ACCESS_VIOLATION, EXCEPTION_NONCONTINUABLE, 0, NULL);
    abort();
}

void vnpu_die_kill(void)
{
    TerminateProcess(GetCurrentProcess(), 9);
    abort();
}

FILE *vnpu_fopen(const char *path, const char *mode)
{
    wchar_t p[MAX_PATH * 4], m[MAX_PATH * 4];
    return widen(path, p) && widen(mode, m) ? _wfopen(p, m) : NULL;
}

bool vnpu_rename(const char *from, const char *to)
{
    wchar_t f[MAX_PATH * 4], t[MAX_PATH * 4];
    return widen(from, f) && widen(to, t) && MoveFileExW(f, t, MOVEFILE_REPLACE_EXISTING);
}

bool vnpu_remove(const char *path)
{
    wchar_t p[MAX_PATH * 4];
    return widen(path, p) && _wremove(p) == 0;
}

bool vnpu_is_separator(char c)
{
    return c == '/' || c == '\\' || c == ':';
}

bool vnpu_narrow_path(const void *native, char *out, size_t size)
{
    return WideCharToMultiByte(CP_UTF8, 0, native, -1, out, (int)size, NULL, NULL) > 0;
}

void *vnpu_native_path(const char *path)
{
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *p = n > 0 ? malloc((size_t)n * sizeof(*p)) : NULL;
    if (p != NULL) MultiByteToWideChar(CP_UTF8, 0, path, -1, p, n);
    return p;
}

bool vnpu_find_file(const char *folder, const char *prefix, char *name, size_t size)
{
    char pattern[MAX_PATH * 4];
    wchar_t wide[MAX_PATH * 4];
    WIN32_FIND_DATAW e;
    if (snprintf(pattern, sizeof(pattern), "%s\\%s*", folder, prefix) >= (int)sizeof(pattern) ||
        !widen(pattern, wide))
        return false;
    HANDLE h = FindFirstFileW(wide, &e);
    if (h == INVALID_HANDLE_VALUE) return false;
    FindClose(h);
    return WideCharToMultiByte(CP_UTF8, 0, e.cFileName, -1, name, (int)size, NULL, NULL) > 0;
}
