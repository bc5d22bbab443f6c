/* flow/sys/internal.h - what `sys` learns about EPs, each asked in a child process. Internal to this folder. */
#ifndef WML_FLOW_SYS_INTERNAL_H
#define WML_FLOW_SYS_INTERNAL_H

#include "ep/ep.h"

struct wml_json_doc;
struct wml_json_val;

enum wml_ep_status { WML_EP_PRIMARY, WML_EP_SHADOWED, WML_EP_FAILED, WML_EP_INCOMPATIBLE };
const char *wml_ep_status_name(enum wml_ep_status s);

struct wml_sys_ep {
    const struct wml_ep_library *library;
    struct wml_json_doc *reply; /* of job "devices"; NULL: it failed */
    enum wml_ep_status status;
    char error[1024];
};

struct wml_sys_eps {
    struct wml_ep_libraries libraries;
    WML_VEC(struct wml_sys_ep) v;
};

bool wml_sys_eps_find(struct wml_ctx *cx, struct wml_sys_eps *out, struct wml_err *err);
void wml_sys_eps_release(struct wml_sys_eps *eps);
/* Devices that this EP offers, at most max. */
size_t wml_sys_ep_devices(const struct wml_sys_ep *e, const struct wml_json_val **at, size_t max);

#endif
