/* ort/platform_win.c - names of the ORT library, and paths as ORT takes them: UTF-16 on Windows. This is
 * the one place that converts. */
#include "ort/internal.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

const char *const wml_ort_library_names[] = {"onnxruntime.dll", NULL};

#if defined(__aarch64__) || defined(_M_ARM64)
const char wml_ort_platform[] = "win-arm64";
#else
const char wml_ort_platform[] = "win-x64";
#endif

bool wml_ort_path_init(struct wml_ort_path *p, const char *utf8, struct wml_err *err)
{
    p->ptr = NULL;
    if (!utf8) utf8 = "";
    int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, NULL, 0);
    if (n <= 0) return wml_fail(err, WML_E_USAGE, "path is not valid UTF-8: %s", utf8);
    p->ptr = wml_xcalloc((size_t)n, sizeof(wchar_t));
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, p->ptr, n);
    return true;
}

void wml_ort_path_release(struct wml_ort_path *p)
{
    free(p->ptr);
    p->ptr = NULL;
}

void wml_ort_prepare_process(void)
{
    SetErrorMode(GetErrorMode() | SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX);
}

void wml_ort_pin(const char *path)
{
    struct wml_ort_path wide = {0};
    HMODULE module;
    if (wml_ort_path_init(&wide, path, NULL)) GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN, wide.ptr, &module);
    wml_ort_path_release(&wide);
}
