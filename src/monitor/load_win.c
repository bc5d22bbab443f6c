/* Windows: performance counters through pdh.dll, which is loaded only when somebody asks. Counters of all processes
 * come as one list; ours are told by the process number in their names. Which adapter is an NPU is told by the
 * kinds of engines that any process uses on it. */
#include "monitor/load_engines.h"

#include <windows.h>
#include <pdh.h>
#include <pdhmsg.h>

#include "base/arena.h"
#include "os/sys.h"

enum { MAX_BYTES = 16 << 20, MAX_NAME = 512 };
/* A reading walks over the engines of every process. */
static const uint64_t EVERY_NS = 200000000;

struct pdh { /* functions of the library */
    PDH_STATUS(WINAPI *open)(LPCWSTR, DWORD_PTR, PDH_HQUERY *);
    PDH_STATUS(WINAPI *add)(PDH_HQUERY, LPCWSTR, DWORD_PTR, PDH_HCOUNTER *);
    PDH_STATUS(WINAPI *collect)(PDH_HQUERY);
    PDH_STATUS(WINAPI *values)(PDH_HCOUNTER, DWORD, LPDWORD, LPDWORD, PPDH_FMT_COUNTERVALUE_ITEM_W);
    PDH_STATUS(WINAPI *close)(PDH_HQUERY);
};

struct wml_loads {
    HMODULE library;
    struct pdh pdh;
    PDH_HQUERY query;
    PDH_HCOUNTER engines, local, shared; /* NULL: this Windows has none */
    struct wml_adapters adapters;
    char luid[2][48]; /* of the GPU, the NPU that we use */
    uint64_t pid, last_ns, last_pdh_ns, cpu_idle, cpu_all, gpu_ns, npu_ns;
    bool any;
};

static bool find(HMODULE library, const char *name, void *function)
{
    FARPROC f = GetProcAddress(library, name);
    memcpy(function, &f, sizeof f);
    return f != NULL;
}

static void open_counters(struct wml_loads *l)
{
    struct pdh *p = &l->pdh;
    l->library = LoadLibraryExW(L"pdh.dll", NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
    if (!l->library) return;
    bool ok = find(l->library, "PdhOpenQueryW", &p->open) && find(l->library, "PdhAddEnglishCounterW", &p->add) &&
              find(l->library, "PdhCollectQueryData", &p->collect) && find(l->library, "PdhCloseQuery", &p->close) &&
              find(l->library, "PdhGetFormattedCounterArrayW", &p->values);
    if (!ok || p->open(NULL, 0, &l->query) != ERROR_SUCCESS) {
        l->query = NULL;
        return;
    }
    if (p->add(l->query, L"\\GPU Engine(*)\\Utilization Percentage", 0, &l->engines) != ERROR_SUCCESS) l->engines = NULL;
    if (p->add(l->query, L"\\GPU Process Memory(*)\\Local Usage", 0, &l->local) != ERROR_SUCCESS) l->local = NULL;
    if (p->add(l->query, L"\\GPU Process Memory(*)\\Shared Usage", 0, &l->shared) != ERROR_SUCCESS) l->shared = NULL;
}

/* The values of a counter, free(); NULL: none. */
static PDH_FMT_COUNTERVALUE_ITEM_W *values_of(struct wml_loads *l, PDH_HCOUNTER counter, DWORD format, DWORD *n)
{
    DWORD size = 0;
    *n = 0;
    if (!counter || l->pdh.values(counter, format, &size, n, NULL) != (PDH_STATUS)PDH_MORE_DATA || !size || size > MAX_BYTES) return NULL;
    PDH_FMT_COUNTERVALUE_ITEM_W *item = wml_xcalloc(1, size);
    if (l->pdh.values(counter, format, &size, n, item) == ERROR_SUCCESS) return item;
    free(item);
    return NULL;
}

static bool parse(const PDH_FMT_COUNTERVALUE_ITEM_W *item, char name[MAX_NAME], struct wml_gpu_instance *out)
{
    DWORD status = item->FmtValue.CStatus;
    if (status != PDH_CSTATUS_VALID_DATA && status != PDH_CSTATUS_NEW_DATA) return false;
    if (WideCharToMultiByte(CP_UTF8, 0, item->szName, -1, name, MAX_NAME, NULL, NULL) < 2) return false;
    return wml_gpu_instance_parse(wml_str(name), out);
}

static void read_engines(struct wml_loads *l, uint64_t span, struct wml_load *out)
{
    DWORD n;
    char name[MAX_NAME];
    struct wml_gpu_instance in;
    PDH_FMT_COUNTERVALUE_ITEM_W *item = values_of(l, l->engines, PDH_FMT_DOUBLE | PDH_FMT_NOCAP100, &n);
    for (DWORD i = 0; item && i < n; i++)
        if (parse(&item[i], name, &in)) wml_adapters_note(&l->adapters, &in);
    for (DWORD i = 0; item && i < n; i++) {
        if (!parse(&item[i], name, &in) || in.pid != l->pid) continue;
        struct wml_adapter *a = wml_adapters_note(&l->adapters, &in);
        if (!a) continue;
        bool npu = wml_adapter_is_npu(a);
        double percent = WML_MAX(0.0, WML_MIN(100.0, item[i].FmtValue.doubleValue));
        bool counts = wml_str_has(in.engine, "Compute") || wml_str_has(in.engine, "Neural") || wml_str_has(in.engine, "3D");
        struct wml_load_share *share = npu ? &out->npu : &out->gpu;
        uint64_t busy = (uint64_t)(percent / 100 * (double)span);
        if (counts) *share = (struct wml_load_share){WML_MAX(share->percent, percent), span};
        if (npu) out->npu_busy_ns += busy;
        else out->gpu_busy_ns += busy;
        memcpy(l->luid[npu], a->luid, sizeof a->luid);
        l->any = true;
    }
    free(item);
}

/* MB of this process; -1: the counter is not there, or does not know us. */
static double read_memory(struct wml_loads *l, PDH_HCOUNTER counter)
{
    DWORD n;
    char name[MAX_NAME];
    struct wml_gpu_instance in;
    double sum = -1;
    PDH_FMT_COUNTERVALUE_ITEM_W *item = values_of(l, counter, PDH_FMT_LARGE, &n);
    for (DWORD i = 0; item && i < n; i++)
        if (parse(&item[i], name, &in) && in.pid == l->pid)
            sum = WML_MAX(sum, 0.0) + (double)item[i].FmtValue.largeValue / 1048576;
    free(item);
    return sum;
}

static uint64_t ticks(FILETIME t)
{
    return (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
}

static void read_machine(struct wml_loads *l, uint64_t span, struct wml_load *out)
{
    FILETIME idle, kernel, user;
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    if (GlobalMemoryStatusEx(&memory)) out->used_mb = (double)(memory.ullTotalPhys - memory.ullAvailPhys) / 1048576;
    if (!GetSystemTimes(&idle, &kernel, &user)) return;
    uint64_t all = ticks(kernel) + ticks(user), still = ticks(idle); /* idle time is part of the kernel's */
    if (span && all > l->cpu_all && still >= l->cpu_idle && l->cpu_all) {
        double share = 1 - (double)(still - l->cpu_idle) / (double)(all - l->cpu_all);
        out->cpu = (struct wml_load_share){100 * WML_MAX(0.0, share), span};
    }
    l->cpu_all = all;
    l->cpu_idle = still;
}

void wml_loads_read(struct wml_loads *l, uint64_t now_ns, bool last, struct wml_load *out)
{
    uint64_t span = l->last_ns && now_ns > l->last_ns ? now_ns - l->last_ns : 0;
    uint64_t pdh_span = now_ns > l->last_pdh_ns ? now_ns - l->last_pdh_ns : 0;
    bool counters = l->query && (last || pdh_span >= EVERY_NS) && (l->engines || l->local || l->shared);
    *out = (struct wml_load){.gpu_busy_ns = l->gpu_ns, .npu_busy_ns = l->npu_ns, .local_mb = -1, .shared_mb = -1, .used_mb = -1};
    if (counters && l->pdh.collect(l->query) == ERROR_SUCCESS) {
        if (l->last_pdh_ns) read_engines(l, pdh_span, out);
        out->local_mb = read_memory(l, l->local);
        out->shared_mb = read_memory(l, l->shared);
        l->last_pdh_ns = now_ns;
    }
    read_machine(l, span, out);
    l->gpu_ns = out->gpu_busy_ns;
    l->npu_ns = out->npu_busy_ns;
    l->last_ns = now_ns;
}

struct wml_loads *wml_loads_open(const char *root)
{
    struct wml_loads *l = wml_xcalloc(1, sizeof *l);
    struct wml_load first;
    (void)root;
    l->pid = (uint64_t)wml_pid();
    open_counters(l);
    wml_loads_read(l, wml_now_ns(), true, &first);
    return l;
}

void wml_loads_source(const struct wml_loads *l, struct wml_buf *out)
{
    if (l->any) wml_buf_cstr(out, "pdh");
}

bool wml_loads_luid(const struct wml_loads *l, bool npu, struct wml_buf *out)
{
    if (l->luid[npu][0]) wml_buf_cstr(out, l->luid[npu]);
    return l->luid[npu][0] != 0;
}

void wml_loads_close(struct wml_loads *l)
{
    if (!l) return;
    if (l->query) l->pdh.close(l->query);
    if (l->library) FreeLibrary(l->library);
    free(l);
}
