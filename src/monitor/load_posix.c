/* Linux: the text files of /proc and /sys. Every file may be missing, and is of no more than a few KiB. Other POSIX
 * systems have none of them, and nothing is known there. */
#include "monitor/load_engines.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "os/file.h"
#include "os/sys.h"

enum { MAX_FILES = 512, MAX_TEXT = 65536, MAX_CLIENTS = 64, MAX_CARDS = 16 };
/* The kernel asks not to read ivpu's counter often, since that disturbs the jobs. */
static const uint64_t NPU_EVERY_NS = 1000000000;

struct npu_file {
    const char *busy, *memory;
    uint64_t last_us;
};

struct wml_loads {
    struct wml_arena arena;
    const char *root;
    bool any_device; /* /sys knows a GPU or an accelerator: only then are descriptors looked at */
    struct wml_engines engines;
    const char *gpu_busy[MAX_CARDS];
    size_t n_gpu_busy;
    struct npu_file npu[MAX_CARDS];
    size_t n_npu;
    uint64_t last_ns, last_npu_ns;
    uint64_t cpu_busy, cpu_all; /* ticks */
    uint64_t gpu_ns, npu_ns;
    bool from_drm, from_amdgpu, from_ivpu;
};

static bool read_text(const char *path, struct wml_buf *out)
{
    struct wml_err ignored = {0};
    wml_buf_clear(out);
    return wml_file_read(path, MAX_TEXT, out, &ignored);
}

static bool read_number(const char *path, uint64_t *out)
{
    struct wml_buf text = {0};
    bool ok = path && read_text(path, &text) && wml_parse_u64(wml_str_trim(wml_buf_view(&text)), out);
    wml_buf_release(&text);
    return ok;
}

/* "cpu  user nice system idle iowait irq softirq steal ..." in ticks; guests are in user already. */
static void read_cpu(struct wml_loads *l, struct wml_arena *arena, uint64_t span, struct wml_load *out)
{
    struct wml_buf text = {0};
    struct wml_str line = WML_NO_STR, rest, word;
    uint64_t all = 0, idle = 0, n;
    if (read_text(wml_arena_fmt(arena, "%s/proc/stat", l->root).ptr, &text)) {
        rest = wml_buf_view(&text);
        wml_str_split(&rest, '\n', &line);
    }
    size_t i = 0;
    for (rest = wml_str_starts(line, "cpu ") ? wml_str_sub(line, 4, line.len) : WML_NO_STR; i < 8 && wml_str_split(&rest, ' ', &word);) {
        if (!word.len || !wml_parse_u64(word, &n)) continue;
        all += n;
        if (i == 3 || i == 4) idle += n;
        i++;
    }
    if (i >= 4 && span && l->cpu_all && all > l->cpu_all && all - idle >= l->cpu_busy)
        out->cpu = (struct wml_load_share){100.0 * (double)(all - idle - l->cpu_busy) / (double)(all - l->cpu_all), span};
    l->cpu_busy = all - idle;
    l->cpu_all = all;
    wml_buf_release(&text);
}

static double read_used(const struct wml_loads *l, struct wml_arena *arena)
{
    struct wml_buf text = {0};
    struct wml_str rest, line;
    uint64_t total = 0, free = 0;
    bool any = false;
    if (read_text(wml_arena_fmt(arena, "%s/proc/meminfo", l->root).ptr, &text))
        for (rest = wml_buf_view(&text); wml_str_split(&rest, '\n', &line);) {
            size_t colon = wml_str_find(line, ':');
            struct wml_str value = colon == SIZE_MAX ? WML_NO_STR : wml_str_trim(wml_str_sub(line, colon + 1, line.len));
            if (wml_str_ends(value, " kB")) value.len -= 3;
            if (wml_str_starts(line, "MemTotal:")) wml_parse_u64(value, &total);
            if (wml_str_starts(line, "MemAvailable:")) any = wml_parse_u64(value, &free);
        }
    wml_buf_release(&text);
    return any && total >= free ? (double)(total - free) / 1024 : -1;
}

static bool seen(struct wml_str *list, size_t *n, struct wml_str who)
{
    for (size_t i = 0; i < *n; i++)
        if (wml_str_eq(list[i], who)) return true;
    if (*n < MAX_CLIENTS) list[(*n)++] = who;
    return false;
}

/* Several descriptors may be one client: each counts once. */
static void read_clients(struct wml_loads *l, struct wml_arena *arena, struct wml_load *out)
{
    struct wml_dir_list files = {0};
    struct wml_err ignored = {0};
    struct wml_buf text = {0};
    struct wml_str client[MAX_CLIENTS];
    size_t n_clients = 0;
    uint64_t local = 0, shared = 0;
    bool any_memory = false;
    struct wml_str folder = wml_arena_fmt(arena, "%s/proc/self/fdinfo", l->root);
    if (!wml_dir_list(folder.ptr, &files, &ignored)) return;
    for (size_t i = 0; i < files.v.len && i < MAX_FILES; i++) {
        struct wml_drm_client c;
        const char *path = wml_arena_fmt(arena, "%.*s/%.*s", WML_ARG(folder), WML_ARG(files.v.at[i].name)).ptr;
        if (!read_text(path, &text) || !wml_drm_parse(wml_buf_view(&text), NULL, &c)) continue;
        struct wml_str who = wml_arena_fmt(arena, "%.*s %.*s %.*s", WML_ARG(c.driver), WML_ARG(c.device), WML_ARG(c.id));
        if (seen(client, &n_clients, who)) continue;
        wml_drm_parse(wml_buf_view(&text), &l->engines, &c);
        any_memory = any_memory || c.any_memory;
        local += c.local;
        shared += c.shared;
        l->from_drm = true;
    }
    if (any_memory) {
        out->local_mb = (double)local / 1048576;
        out->shared_mb = (double)shared / 1048576;
    }
    wml_dir_list_release(&files);
    wml_buf_release(&text);
}

/* amdgpu tells a percentage of its own; it is the whole system's and only stands in for the clients'. */
static void read_gpu_files(struct wml_loads *l, uint64_t span, struct wml_load *out)
{
    for (size_t i = 0; i < l->n_gpu_busy && !out->gpu.span_ns && span; i++) {
        uint64_t percent, most = 0;
        for (size_t k = i; k < l->n_gpu_busy; k++)
            if (read_number(l->gpu_busy[k], &percent)) most = WML_MAX(most, WML_MIN(percent, (uint64_t)100));
        out->gpu = (struct wml_load_share){(double)most, span};
        l->from_amdgpu = true;
    }
}

static void read_npu_files(struct wml_loads *l, uint64_t now_ns, bool last, struct wml_load *out)
{
    uint64_t span = now_ns - l->last_npu_ns, us, bytes, memory = 0;
    bool any = false;
    if (!l->n_npu || (!last && l->last_npu_ns && span < NPU_EVERY_NS)) return;
    for (size_t i = 0; i < l->n_npu; i++) {
        struct npu_file *f = &l->npu[i];
        if (read_number(f->memory, &bytes)) {
            memory += bytes;
            any = true;
        }
        if (!read_number(f->busy, &us)) continue;
        uint64_t spent = us > f->last_us ? (us - f->last_us) * 1000 : 0;
        f->last_us = us;
        l->from_ivpu = true;
        if (!l->last_npu_ns || !span) continue;
        double percent = WML_MIN(100.0, 100.0 * (double)spent / (double)span);
        out->npu = (struct wml_load_share){WML_MAX(percent, out->npu.percent), span};
        out->npu_busy_ns += spent;
    }
    if (any && out->shared_mb < 0) out->shared_mb = (double)memory / 1048576;
    l->last_npu_ns = now_ns;
}

void wml_loads_read(struct wml_loads *l, uint64_t now_ns, bool last, struct wml_load *out)
{
    struct wml_arena scratch = {0};
    uint64_t span = l->last_ns && now_ns > l->last_ns ? now_ns - l->last_ns : 0;
    *out = (struct wml_load){.gpu_busy_ns = l->gpu_ns, .npu_busy_ns = l->npu_ns, .local_mb = -1, .shared_mb = -1};
    if (l->any_device) read_clients(l, &scratch, out);
    wml_engines_step(&l->engines, span, out);
    read_gpu_files(l, span, out);
    read_npu_files(l, now_ns, last, out);
    read_cpu(l, &scratch, span, out);
    out->used_mb = read_used(l, &scratch);
    l->gpu_ns = out->gpu_busy_ns;
    l->npu_ns = out->npu_busy_ns;
    l->last_ns = now_ns;
    wml_arena_release(&scratch);
}

/* Files `name` (and `more`) of the devices of a class. */
static size_t find_devices(struct wml_loads *l, const char *class, const char *prefix, const char *name, const char **found)
{
    struct wml_dir_list list = {0};
    struct wml_err ignored = {0};
    size_t n = 0;
    struct wml_str folder = wml_arena_fmt(&l->arena, "%s/sys/class/%s", l->root, class);
    if (!wml_dir_list(folder.ptr, &list, &ignored)) return 0;
    for (size_t i = 0; i < list.v.len && n < MAX_CARDS; i++) {
        struct wml_str device = list.v.at[i].name;
        if (!wml_str_starts(device, prefix) || wml_str_find(device, '-') != SIZE_MAX) continue; /* card0-eDP-1 is a connector */
        const char *path = wml_arena_fmt(&l->arena, "%.*s/%.*s/device/%s", WML_ARG(folder), WML_ARG(device), name).ptr;
        l->any_device = true;
        if (wml_file_exists(path)) found[n++] = path;
    }
    wml_dir_list_release(&list);
    return n;
}

struct wml_loads *wml_loads_open(const char *root)
{
    struct wml_loads *l = wml_xcalloc(1, sizeof *l);
    const char *busy[MAX_CARDS];
    struct wml_load first;
    l->root = wml_arena_cstr(&l->arena, wml_str(root ? root : ""));
    l->n_gpu_busy = find_devices(l, "drm", "card", "gpu_busy_percent", l->gpu_busy);
    l->n_npu = find_devices(l, "accel", "accel", "npu_busy_time_us", busy);
    for (size_t i = 0; i < l->n_npu; i++) {
        struct wml_str folder = wml_str_sub(wml_str(busy[i]), 0, strlen(busy[i]) - strlen("npu_busy_time_us"));
        l->npu[i] = (struct npu_file){.busy = busy[i], .memory = wml_arena_fmt(&l->arena, "%.*snpu_memory_utilization", WML_ARG(folder)).ptr};
    }
    wml_loads_read(l, wml_now_ns(), true, &first);
    return l;
}

void wml_loads_source(const struct wml_loads *l, struct wml_buf *out)
{
    if (l->from_drm) wml_buf_cstr(out, "drm_fdinfo");
    if (l->from_amdgpu) wml_buf_fmt(out, "%samdgpu_sysfs", out->len ? "+" : "");
    if (l->from_ivpu) wml_buf_fmt(out, "%sivpu_sysfs", out->len ? "+" : "");
}

bool wml_loads_luid(const struct wml_loads *l, bool npu, struct wml_buf *out)
{
    (void)l;
    (void)npu;
    (void)out;
    return false;
}

void wml_loads_close(struct wml_loads *l)
{
    if (!l) return;
    wml_arena_release(&l->arena);
    free(l);
}
