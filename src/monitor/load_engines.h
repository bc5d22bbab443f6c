/* monitor/load_engines.h - engines of accelerators and their counters. Internal to src/monitor. */
#ifndef WML_MONITOR_LOAD_ENGINES_H
#define WML_MONITOR_LOAD_ENGINES_H

#include "monitor/load.h"

enum { WML_MAX_ENGINES = 128, WML_ENGINE_NAME = 96 };

struct wml_engine { /* busy time of one kind of engine of one device, summed over clients */
    char name[WML_ENGINE_NAME];
    bool npu;
    uint64_t now_ns, last_ns; /* this reading, the one before */
    uint64_t capacity;        /* engines of this kind; 0: 1 */
};

struct wml_engines {
    struct wml_engine at[WML_MAX_ENGINES];
    size_t len;
};

/* The engine of this name, made when it is new; NULL: too many. */
struct wml_engine *wml_engines_get(struct wml_engines *e, const char *name, bool npu);
/* Shares of the busiest engines since the last reading; adds to the busy times; this reading becomes the last. */
void wml_engines_step(struct wml_engines *e, uint64_t span_ns, struct wml_load *out);

/* What one DRM client says in its fdinfo. */
struct wml_drm_client {
    struct wml_str driver, device, id; /* device: the PCI address; absent when not said */
    bool npu;
    uint64_t local, shared; /* bytes */
    bool any_memory;
};
/* False: no DRM client. Busy times are added to the engines (unless e is NULL). */
bool wml_drm_parse(struct wml_str fdinfo, struct wml_engines *e, struct wml_drm_client *out);

/* "pid_4_luid_0x00000000_0x0000c5f4_phys_0_eng_3_engtype_3D", a name of Windows' performance counters. */
struct wml_gpu_instance {
    uint64_t pid;
    struct wml_str luid, engine; /* engine absent for counters of memory */
};
bool wml_gpu_instance_parse(struct wml_str name, struct wml_gpu_instance *out);

struct wml_adapter { /* what kinds of engines an adapter has */
    char luid[48];
    bool draws, plays, computes;
};
enum { WML_MAX_ADAPTERS = 16 };
struct wml_adapters {
    struct wml_adapter at[WML_MAX_ADAPTERS];
    size_t len;
};
/* Notes an engine of any process. NULL: too many adapters. */
struct wml_adapter *wml_adapters_note(struct wml_adapters *a, const struct wml_gpu_instance *i);
/* An adapter that computes and has no engine for drawing or video. */
bool wml_adapter_is_npu(const struct wml_adapter *a);

#endif
