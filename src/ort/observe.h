/* ort/observe.h - values looked at while a model runs, each as soon as it is computed and before its memory is used again.
 *
 * A session opened with an observer knows an operator of ours without outputs:
 *
 *     Observe(value, tag: int64[n])  <slot: int>      of WML_OBSERVE_DOMAIN, version 1
 *
 * Whoever writes the model puts such nodes behind the values of interest; ORT calls `see` for each in each run. Nodes that
 * nothing reads are run in the reverse of their order in the file, each right after what it needs: so the nodes of early
 * values must come last, or values pile up until the end of the run. The tag is an input of the model, which tells runs
 * that go on side by side from each other. */
#ifndef WML_ORT_OBSERVE_H
#define WML_ORT_OBSERVE_H

#include <stdint.h>

#define WML_OBSERVE_DOMAIN "winml.observe"
#define WML_OBSERVE_OP "Observe"

struct wml_tensor_view;
struct wml_observer {
    void *arg;
    /* Called in the threads of the runs, several at a time when runs are. view: until it returns. */
    void (*see)(void *arg, int64_t slot, const int64_t *tag, const struct wml_tensor_view *view);
};

#endif
