/* Counters of engines turned into shares, and the two text forms they come in: fdinfo of Linux' DRM clients (keys
 * "drm-engine-render: 123 ns", see the kernel's drm-usage-stats) and names of Windows' counter instances. */
#include "monitor/load_engines.h"

#include <stdio.h>

#include "base/num.h"

struct wml_engine *wml_engines_get(struct wml_engines *e, const char *name, bool npu)
{
    for (size_t i = 0; i < e->len; i++)
        if (strcmp(e->at[i].name, name) == 0) return &e->at[i];
    if (e->len == WML_MAX_ENGINES) return NULL;
    struct wml_engine *fresh = &e->at[e->len++];
    *fresh = (struct wml_engine){.npu = npu};
    snprintf(fresh->name, sizeof fresh->name, "%s", name);
    return fresh;
}

void wml_engines_step(struct wml_engines *e, uint64_t span_ns, struct wml_load *out)
{
    for (size_t i = 0; i < e->len; i++) {
        struct wml_engine *n = &e->at[i];
        uint64_t spent = n->now_ns > n->last_ns ? n->now_ns - n->last_ns : 0; /* less: a client ended */
        struct wml_load_share *share = n->npu ? &out->npu : &out->gpu;
        double percent = span_ns ? 100.0 * (double)spent / (double)span_ns / (double)(n->capacity ? n->capacity : 1) : 0;
        if (span_ns) {
            share->percent = WML_MAX(share->percent, WML_MIN(percent, 100.0));
            share->span_ns = span_ns;
        }
        if (n->npu) out->npu_busy_ns += spent;
        else out->gpu_busy_ns += spent;
        n->last_ns = n->now_ns;
        n->now_ns = 0;
    }
}

/* "1024 KiB" -> bytes; without a unit bytes. */
static bool parse_size(struct wml_str s, uint64_t *out)
{
    size_t blank = wml_str_find(s, ' ');
    struct wml_str number = blank == SIZE_MAX ? s : wml_str_sub(s, 0, blank);
    struct wml_str unit = blank == SIZE_MAX ? WML_NO_STR : wml_str_trim(wml_str_sub(s, blank, s.len));
    uint64_t scale = wml_str_is(unit, "KiB") ? 1024 : wml_str_is(unit, "MiB") ? 1048576 : 1;
    if (!wml_parse_u64(number, out) || *out > UINT64_MAX / scale) return false;
    *out *= scale;
    return true;
}

static bool is_npu_driver(struct wml_str driver)
{
    static const char *const npu[] = {"intel_vpu", "amdxdna", "qaic", "rocket", "ethosu", "habanalabs"};
    for (size_t i = 0; i < WML_COUNT(npu); i++)
        if (wml_str_starts(driver, npu[i])) return true;
    return false;
}

static bool next_line(struct wml_str *rest, struct wml_str *key, struct wml_str *value)
{
    struct wml_str line;
    while (wml_str_split(rest, '\n', &line)) {
        size_t colon = wml_str_find(line, ':');
        if (colon == SIZE_MAX || !wml_str_starts(line, "drm-")) continue;
        *key = wml_str_sub(line, 4, colon);
        *value = wml_str_trim(wml_str_sub(line, colon + 1, line.len));
        return true;
    }
    return false;
}

/* Regions of the device itself; all others ("gtt", "system", "memory", ...) are the machine's memory. */
static bool is_local(struct wml_str region)
{
    return wml_str_starts(region, "vram") || wml_str_starts(region, "local") || wml_str_starts(region, "lmem");
}

static void add_memory(struct wml_drm_client *c, struct wml_str region, struct wml_str value)
{
    uint64_t bytes;
    if (!parse_size(value, &bytes)) return;
    c->any_memory = true;
    if (is_local(region)) c->local += bytes;
    else c->shared += bytes;
}

static void add_engine(struct wml_engines *e, const struct wml_drm_client *c, struct wml_str engine, struct wml_str value, bool capacity)
{
    char name[WML_ENGINE_NAME];
    uint64_t n;
    struct wml_str number = wml_str_ends(value, " ns") ? wml_str_sub(value, 0, value.len - 3) : value;
    struct wml_str device = c->device.len ? c->device : c->driver;
    if (!wml_parse_u64(number, &n)) return;
    snprintf(name, sizeof name, "%.*s/%.*s", WML_ARG(device), WML_ARG(engine));
    struct wml_engine *at = wml_engines_get(e, name, c->npu);
    if (!at) return;
    if (capacity) at->capacity = n;
    else at->now_ns += n;
}

bool wml_drm_parse(struct wml_str fdinfo, struct wml_engines *e, struct wml_drm_client *out)
{
    struct wml_str rest = fdinfo, key, value;
    bool resident = false; /* newer than "memory", both may be there */
    *out = (struct wml_drm_client){0};
    while (next_line(&rest, &key, &value)) {
        if (wml_str_is(key, "driver")) out->driver = value;
        if (wml_str_is(key, "pdev")) out->device = value;
        if (wml_str_is(key, "client-id")) out->id = value;
        resident = resident || wml_str_starts(key, "resident-");
    }
    if (!out->driver.len) return false;
    out->npu = is_npu_driver(out->driver);
    const char *memory = resident ? "resident-" : "memory-";
    for (rest = fdinfo; next_line(&rest, &key, &value);) {
        if (wml_str_starts(key, memory)) add_memory(out, wml_str_sub(key, strlen(memory), key.len), value);
        else if (e && wml_str_starts(key, "engine-capacity-")) add_engine(e, out, wml_str_sub(key, 16, key.len), value, true);
        else if (e && wml_str_starts(key, "engine-")) add_engine(e, out, wml_str_sub(key, 7, key.len), value, false);
    }
    return true;
}

/* The text after `word`, which must come next. */
static bool take_word(struct wml_str *s, const char *word)
{
    if (!wml_str_starts(*s, word)) return false;
    *s = wml_str_sub(*s, strlen(word), s->len);
    return true;
}

bool wml_gpu_instance_parse(struct wml_str name, struct wml_gpu_instance *out)
{
    struct wml_str pid, high, low, mark = WML_STR("_engtype_");
    *out = (struct wml_gpu_instance){0};
    if (!take_word(&name, "pid_") || !wml_str_split(&name, '_', &pid) || !wml_parse_u64(pid, &out->pid)) return false;
    if (!take_word(&name, "luid_")) return false;
    const char *luid = name.ptr;
    if (!wml_str_split(&name, '_', &high) || !wml_str_split(&name, '_', &low)) return false;
    if (!wml_str_starts(high, "0x") || !wml_str_starts(low, "0x")) return false;
    out->luid = (struct wml_str){luid, (size_t)(low.ptr + low.len - luid)};
    for (size_t i = 0; i + mark.len < name.len && !out->engine.len; i++)
        if (memcmp(name.ptr + i, mark.ptr, mark.len) == 0) out->engine = wml_str_sub(name, i + mark.len, name.len);
    return true;
}

struct wml_adapter *wml_adapters_note(struct wml_adapters *a, const struct wml_gpu_instance *i)
{
    struct wml_adapter *found = NULL;
    for (size_t k = 0; k < a->len && !found; k++)
        if (wml_str_is(i->luid, a->at[k].luid)) found = &a->at[k];
    if (!found) {
        if (a->len == WML_MAX_ADAPTERS || i->luid.len >= sizeof found->luid) return NULL;
        found = &a->at[a->len++];
        *found = (struct wml_adapter){0};
        memcpy(found->luid, i->luid.ptr, i->luid.len);
    }
    found->draws = found->draws || wml_str_has(i->engine, "3D");
    found->plays = found->plays || wml_str_has(i->engine, "Video");
    found->computes = found->computes || wml_str_has(i->engine, "Compute") || wml_str_has(i->engine, "Neural");
    return found;
}

bool wml_adapter_is_npu(const struct wml_adapter *a)
{
    return a->computes && !a->draws && !a->plays;
}
