/* ep/internal.h - shared by the files of src/ep. */
#ifndef WML_EP_INTERNAL_H
#define WML_EP_INTERNAL_H

#include "ep/ep.h"
#include "ep/want.h"

/* File name of a library on this system. */
#if defined(_WIN32)
#define WML_EP_FILE(base) base ".dll"
#elif defined(__APPLE__)
#define WML_EP_FILE(base) "lib" base ".dylib"
#else
#define WML_EP_FILE(base) "lib" base ".so"
#endif

/* Machine that this program was built for. */
#if defined(__x86_64__) || defined(_M_X64)
#define WML_EP_IS_X64 true
#else
#define WML_EP_IS_X64 false
#endif

/* Text of a target, taken apart. Strings are slices of the spec's. */
struct wml_target_name {
    struct wml_str ep;   /* empty: auto */
    struct wml_str tag;  /* source tag, or absent */
    struct wml_str path; /* of a library, or absent */
    bool any_device;
    enum wml_device_type device;
    size_t index; /* gpu:1 */
};
bool wml_target_parse(const struct wml_target_spec *s, struct wml_target_name *out, struct wml_err *err);

/* The row's entry for a kind of device, or NULL. */
const struct wml_ep_device *wml_ep_device_row(const struct wml_ep *ep, enum wml_device_type type);

/* --- discovery --- */

struct wml_ep_search {
    struct wml_ctx *cx;
    struct wml_ep_libraries *out;
    const char *kind, *tag; /* of the source that is being looked at */
    const char *root, *env_var, *distribution, *version;
};
/* Adds a library unless that file is there already for that EP. */
void wml_ep_add(struct wml_ep_search *s, const struct wml_ep *ep, const char *path);
/* Looks in dir for the libraries of one EP, or of all (NULL); also in dir/<alias>. True: something there. */
bool wml_ep_look_in(struct wml_ep_search *s, const struct wml_ep *ep, struct wml_str dir);
void wml_ep_note_place(struct wml_ep_search *s, const char *place);
void wml_ep_search_python(struct wml_ep_search *s);
void wml_ep_search_nuget(struct wml_ep_search *s);

/* system_posix.c, system_win.c: what differs. */
extern const char wml_ep_list_separator; /* of WINML_EP_PATH */
extern const char *const wml_ep_nuget_rid;
/* Windows: EP packages of the system; adds what it finds. */
void wml_ep_search_packages(struct wml_ep_search *s);

#endif
