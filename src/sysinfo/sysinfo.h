/* sysinfo/sysinfo.h - what machine this is: for `winml sys` and for reports. One file per probe, listed in
 * probes.def. Looks at files of the system or the registry; loads no driver, starts no program, takes a
 * few milliseconds. What cannot be found stays NULL or 0: a probe never fails as a whole. */
#ifndef WML_SYSINFO_SYSINFO_H
#define WML_SYSINFO_SYSINFO_H

#include "base/vec.h"

enum wml_hw_kind { WML_HW_GPU, WML_HW_NPU };

struct wml_hw { /* a GPU or NPU; strings in the arena */
    enum wml_hw_kind kind;
    const char *name;              /* never NULL */
    const char *manufacturer;      /* "Intel"; NULL: not known */
    const char *driver;            /* driver and version where known: "i915", "32.0.101.4502" */
    const char *location;          /* PCI address on Linux; NULL */
    uint32_t vendor_id, device_id; /* PCI; 0: not known */
    uint64_t memory_mib;           /* of its own; 0: none or not known */
};

struct wml_runtime_sdk { /* a vendor's SDK that environment variables name */
    const char *name;    /* "qnn" */
    const char *path;    /* folder */
    const char *source;  /* the variable */
    const char *version; /* NULL: not known */
};

struct wml_sysinfo {
    struct wml_arena arena;
    const char *root;             /* put before absolute paths on POSIX; "" on a real machine */
    const char *system, *release; /* "Linux" "6.8.0", "Windows" "11" */
    const char *pretty;           /* "Debian GNU/Linux 12 (bookworm)", "Windows 11 Pro 23H2 (build 22631)" */
    const char *machine;          /* of the host, not the process: "x86_64", "AMD64", "ARM64" */
    uint64_t memory_mib;
    const char *cpu_name; /* NULL: not known */
    const char *cpu_vendor;
    const char *cpu_arch; /* "x64", "ARM64", "x86", "UNKNOWN" */
    unsigned cores, threads;
    WML_VEC(struct wml_hw) hw; /* NPUs first, then GPUs, each in the system's order */
    WML_VEC(struct wml_runtime_sdk) sdk;
};

/* root NULL: this machine. Another folder stands for "/" in tests (POSIX only). */
void wml_sysinfo_read(struct wml_sysinfo *out, const char *root);
void wml_sysinfo_release(struct wml_sysinfo *s);

struct wml_probe {
    const char *name, *summary;
    void (*run)(struct wml_sysinfo *out);
};
#define PROBE(name) extern const struct wml_probe wml_probe_##name;
#include "sysinfo/probes.def"
#undef PROBE

extern const struct wml_probe *const wml_probes[];
extern const size_t wml_n_probes;

#endif
