/* ort/observe.h - values looked at, or changed, while a model runs, each as soon as it is computed and before its memory is
 * used again.
 *
 * A session opened with an observer knows operators of ours, of WML_OBSERVE_DOMAIN, version 1:
 *
 *     Observe(value, tag: int64[n])  <slot: int>
 *     Alter(value, tag: int64[n]) -> value  <slot: int>        float32; AlterHalf: the same for float16
 *
 * Alter works in the value's own memory where nothing else reads it. As to Observe, whoever writes the model puts such nodes behind the values of interest; ORT calls `see` for each in each run. Nodes that
 * nothing reads are run in the reverse of their order in the file, each right after what it needs: so the nodes of early
 * values must come last, or values pile up until the end of the run. The tag is an input of the model, which tells runs
 * that go on side by side from each other. */
#ifndef WML_ORT_OBSERVE_H
#define WML_ORT_OBSERVE_H

#include <stdint.h>

#define WML_OBSERVE_DOMAIN "winml.observe"
#define WML_OBSERVE_OP "Observe"
#define WML_ALTER_OP "Alter"
#define WML_ALTER_HALF_OP "AlterHalf"

struct wml_tensor_view;
struct wml_observer {
    void *arg;
    /* Called in the threads of the runs, several at a time when runs are. view: until it returns. May be NULL when the
     * model has no such nodes. */
    void (*see)(void *arg, int64_t slot, const int64_t *tag, const struct wml_tensor_view *view);
    /* Writes all elements of out, which may be those of the view. */
    void (*alter)(void *arg, int64_t slot, const int64_t *tag, const struct wml_tensor_view *view, void *out);
};

#endif
