/* ep/want.h - what an EP's devices want of a graph beyond what suits all. */
#ifndef WML_EP_WANT_H
#define WML_EP_WANT_H

#include "ep/ep.h"

/* A capability of `optimize` that a kind of device is better off with. Same answers;
 * standard ONNX, or operators of com.microsoft that the EP has. */
struct wml_ep_want {
    enum wml_device_type device;
    const char *pass; /* as in --enable-NAME */
    const char *why;
    /* A graph as text (graph/text.h): an installed EP that takes all of it does not need the pass. NULL: not asked. */
    const char *ask;
    /* Only before this version of the runtime under the EP, see runtime_version; NULL: any. */
    const char *before;
};

/* Numbers between dots, compared one by one: a below b. */
bool wml_version_below(const char *a, const char *b);

#endif
