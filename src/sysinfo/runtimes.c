/* sysinfo/runtimes.c - vendors' SDKs that the environment names. */
#include "sysinfo/internal.h"

#include "os/file.h"
#include "os/path.h"
#include "os/sys.h"

static const struct {
    const char *name, *env, *version_file;
} sdks[] = {
    /* the first variable of a name that is set wins */
    {"qnn", "QNN_SDK_ROOT", "sdk.yaml"},
    {"qnn", "QAIRT_SDK_ROOT", "sdk.yaml"},
    {"openvino", "INTEL_OPENVINO_DIR", "runtime/version.txt"},
    {"ryzen-ai", "RYZEN_AI_INSTALLATION_PATH", NULL},
    {"cuda", "CUDA_PATH", NULL},
    {"rocm", "ROCM_PATH", ".info/version"},
};

/* The first thing in the file that looks like a version. */
static void read_version(const char *dir, const char *file, struct wml_buf *out)
{
    struct wml_buf path = {0}, text = {0};
    wml_path_join(&path, wml_str(dir), wml_str(file));
    if (wml_file_read(wml_buf_text(&path), 65536, &text, NULL)) {
        struct wml_str s = wml_buf_view(&text);
        size_t i = 0;
        while (i < s.len && !(s.ptr[i] >= '0' && s.ptr[i] <= '9')) i++;
        size_t end = i;
        while (end < s.len && ((s.ptr[end] >= '0' && s.ptr[end] <= '9') || s.ptr[end] == '.')) end++;
        wml_buf_str(out, wml_str_sub(s, i, end));
    }
    wml_buf_release(&path);
    wml_buf_release(&text);
}

static void run(struct wml_sysinfo *out)
{
    struct wml_buf dir = {0}, version = {0};
    for (size_t i = 0; i < WML_COUNT(sdks); i++) {
        bool known = false;
        for (size_t k = 0; k < out->sdk.len; k++) known = known || !strcmp(out->sdk.at[k].name, sdks[i].name);
        wml_buf_clear(&dir);
        wml_buf_clear(&version);
        if (known || !wml_env_is_set(sdks[i].env) || !wml_env(sdks[i].env, &dir)) continue;
        if (!wml_dir_exists(wml_buf_text(&dir))) continue;
        if (sdks[i].version_file) read_version(wml_buf_text(&dir), sdks[i].version_file, &version);
        struct wml_runtime_sdk sdk = {sdks[i].name, wml_sys_keep(out, wml_buf_view(&dir)), sdks[i].env,
                                      wml_sys_keep(out, wml_buf_view(&version))};
        WML_PUSH_IN(&out->arena, &out->sdk, sdk);
    }
    wml_buf_release(&dir);
    wml_buf_release(&version);
}

const struct wml_probe wml_probe_runtimes = {
    .name = "runtimes",
    .summary = "SDKs of vendors that the environment names",
    .run = run,
};
