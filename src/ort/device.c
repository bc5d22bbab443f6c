/* ort/device.c - EPs and the hardware they offer, and plugin libraries. A list that was handed out is never
 * freed before the runtime is closed, so a resolved target may outlive later registrations. */
#include "ort/internal.h"

#include "os/file.h"
#include "os/path.h"

const char *wml_device_type_name(enum wml_device_type t)
{
    static const char *const names[] = {
        [WML_DEVICE_CPU] = "cpu",
        [WML_DEVICE_GPU] = "gpu",
        [WML_DEVICE_NPU] = "npu",
    };
    return (size_t)t < WML_COUNT(names) ? names[t] : "?";
}

static const char *copy(struct wml_ort *o, const char *s)
{
    return wml_arena_cstr(&o->arena, wml_str(s ? s : ""));
}

static const struct wml_pair *copy_pairs(struct wml_ort *o, const OrtKeyValuePairs *kv, size_t *n)
{
    const char *const *key = NULL, *const *value = NULL;
    *n = 0;
    if (!kv) return NULL;
    o->api->GetKeyValuePairs(kv, &key, &value, n);
    struct wml_pair *p = WML_NEW_ARRAY(&o->arena, struct wml_pair, *n + 1);
    for (size_t i = 0; i < *n; i++) p[i] = (struct wml_pair){copy(o, key[i]), copy(o, value[i])};
    return p;
}

static enum wml_device_type type_of(OrtHardwareDeviceType t)
{
    return t == OrtHardwareDeviceType_NPU   ? WML_DEVICE_NPU
           : t == OrtHardwareDeviceType_GPU ? WML_DEVICE_GPU
                                            : WML_DEVICE_CPU;
}

static bool list_devices(struct wml_ort *o, struct wml_err *err)
{
    const OrtEpDevice *const *ep = NULL;
    size_t n = 0;
    if (!wml_ort_ok(o, o->api->GetEpDevices(o->env, &ep, &n), WML_E_RUNTIME, err)) return wml_wrap(err, "list devices");
    struct wml_ort_device *d = WML_NEW_ARRAY(&o->arena, struct wml_ort_device, n + 1);
    for (size_t i = 0; i < n; i++) {
        const OrtHardwareDevice *hw = o->api->EpDevice_Device(ep[i]);
        d[i].ep = copy(o, o->api->EpDevice_EpName(ep[i]));
        d[i].ep_vendor = copy(o, o->api->EpDevice_EpVendor(ep[i]));
        d[i].hw_vendor = copy(o, o->api->HardwareDevice_Vendor(hw));
        d[i].type = type_of(o->api->HardwareDevice_Type(hw));
        d[i].vendor_id = o->api->HardwareDevice_VendorId(hw);
        d[i].device_id = o->api->HardwareDevice_DeviceId(hw);
        d[i].hw_meta = copy_pairs(o, o->api->HardwareDevice_Metadata(hw), &d[i].n_hw_meta);
        d[i].ep_meta = copy_pairs(o, o->api->EpDevice_EpMetadata(ep[i]), &d[i].n_ep_meta);
        d[i].handle = ep[i];
    }
    o->device = d;
    o->n_devices = n;
    o->devices_listed = true;
    return true;
}

bool wml_ort_devices(struct wml_ort *o, const struct wml_ort_device **out, size_t *n, struct wml_err *err)
{
    if (!o->devices_listed && !list_devices(o, err)) return false;
    *out = o->device;
    *n = o->n_devices;
    return true;
}

static size_t find_library(const struct wml_ort *o, const char *file)
{
    size_t i = 0;
    while (i < o->library.len && strcmp(o->library.at[i].value, file) && !wml_file_same(o->library.at[i].value, file))
        i++;
    return i;
}

const char *wml_ort_registered(const struct wml_ort *o, const char *library)
{
    size_t i = find_library(o, library);
    return i < o->library.len ? o->library.at[i].key : NULL;
}

bool wml_ort_register(struct wml_ort *o, const char *name, const char *library, struct wml_err *err)
{
    if (!wml_check_cancel(o->cx, err)) return false;
    if (wml_ort_registered(o, library)) return true;
    struct wml_buf full = {0};
    struct wml_ort_path path = {0};
    bool ok = wml_path_absolute(&full, wml_str(library), err) && wml_ort_path_init(&path, wml_buf_text(&full), err) &&
              wml_ort_ok(o, o->api->RegisterExecutionProviderLibrary(o->env, name, path.ptr), WML_E_RUNTIME, err);
    if (ok) {
        struct wml_pair l = {copy(o, name), copy(o, wml_buf_text(&full))};
        WML_PUSH_IN(&o->arena, &o->library, l);
        o->devices_listed = false;
    } else {
        wml_wrap(err, "cannot load the plugin %s", library);
    }
    wml_ort_path_release(&path);
    wml_buf_release(&full);
    return ok;
}

bool wml_ort_unregister(struct wml_ort *o, const char *name, struct wml_err *err)
{
    o->devices_listed = false;
    for (size_t i = 0; i < o->library.len; i++)
        if (!strcmp(o->library.at[i].key, name)) {
            WML_REMOVE(&o->library, i);
            break;
        }
    return wml_ort_ok(o, o->api->UnregisterExecutionProviderLibrary(o->env, name), WML_E_RUNTIME, err) ||
           wml_wrap(err, "cannot unload the plugin %s", name);
}
