/* sysinfo/internal.h - shared by the probes. */
#ifndef WML_SYSINFO_INTERNAL_H
#define WML_SYSINFO_INTERNAL_H

#include "sysinfo/sysinfo.h"

/* A copy in the arena, or NULL for an absent or empty string. */
const char *wml_sys_keep(struct wml_sysinfo *s, struct wml_str text);
/* Adds a device; its strings are copied. A missing name is made of the vendor, the kind and the id. */
void wml_sys_add(struct wml_sysinfo *s, const struct wml_hw *hw);
/* "Intel" for 0x8086; NULL when not known. */
const char *wml_pci_vendor(uint32_t id);
/* Name of a PCI device from the text of pci.ids; absent when it is not there. */
struct wml_str wml_pci_device(struct wml_str ids, uint32_t vendor, uint32_t device);

/* devices_posix.c, devices_win.c */
void wml_sys_list_gpus(struct wml_sysinfo *s);
void wml_sys_list_npus(struct wml_sysinfo *s);

#endif
