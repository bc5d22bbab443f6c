/* ort/device.h - EPs on hardware as ORT lists them, and plugin libraries. See ort/ort.h. */
#ifndef WML_ORT_DEVICE_H
#define WML_ORT_DEVICE_H

#include "base/ctx.h"
#include "base/pair.h"

struct wml_ort; /* library + environment; one per process */

enum wml_device_type { WML_DEVICE_CPU, WML_DEVICE_GPU, WML_DEVICE_NPU };
const char *wml_device_type_name(enum wml_device_type t); /* "cpu", "gpu", "npu" */

struct wml_ort_device { /* an EP on a piece of hardware; lives as long as the library it came from */
    const char *ep, *ep_vendor, *hw_vendor;
    enum wml_device_type type;
    uint32_t vendor_id, device_id;
    const struct wml_pair *hw_meta, *ep_meta;
    size_t n_hw_meta, n_ep_meta;
    const void *handle;
};
/* The list lives until the runtime is closed; what came from a library that was unregistered must not be
 * used. Lists made before a registration lack its devices. */
bool wml_ort_devices(struct wml_ort *o, const struct wml_ort_device **out, size_t *n, struct wml_err *err);
/* Fine when that file is registered already, under whatever name. */
bool wml_ort_register(struct wml_ort *o, const char *name, const char *library, struct wml_err *err);
/* The name under which this file is registered, or NULL. */
const char *wml_ort_registered(const struct wml_ort *o, const char *library);
bool wml_ort_unregister(struct wml_ort *o, const char *name, struct wml_err *err);
/* Names of EPs that this ORT has built in; NULL ends the list. */
const char *const *wml_ort_builtin_eps(struct wml_ort *o);

#endif
