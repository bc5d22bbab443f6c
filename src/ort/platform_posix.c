/* ort/platform_posix.c - names of the ORT library, and paths as ORT takes them: UTF-8 here. */
#include "ort/internal.h"

#include <dlfcn.h>

#if defined(__APPLE__)
const char *const wml_ort_library_names[] = {"libonnxruntime.dylib", NULL};
#define SYSTEM "osx"
#else
const char *const wml_ort_library_names[] = {"libonnxruntime.so", "libonnxruntime.so.1", NULL};
#define SYSTEM "linux"
#endif

#if defined(__aarch64__)
const char wml_ort_platform[] = SYSTEM "-arm64";
#else
const char wml_ort_platform[] = SYSTEM "-x64";
#endif

bool wml_ort_path_init(struct wml_ort_path *p, const char *utf8, struct wml_err *err)
{
    (void)err;
    p->ptr = wml_xstrdup(utf8 ? utf8 : "");
    return true;
}

void wml_ort_path_release(struct wml_ort_path *p)
{
    free(p->ptr);
    p->ptr = NULL;
}

void wml_ort_prepare_process(void)
{
}

void wml_ort_pin(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    if (handle) dlclose(handle);
}
