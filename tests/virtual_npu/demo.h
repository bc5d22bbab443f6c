/* demo.h - a small host for the virtual NPU: it loads ORT at run time and wraps what the self-test
 * does over and over. Every function that takes a `struct demo` stops the program with ORT's
 * message on a failure that the caller did not ask to see. */
#ifndef VNPU_DEMO_H
#define VNPU_DEMO_H

#include <stdbool.h>
#include <stddef.h>

#include "onnxruntime_c_api.h"

#define DEMO_EP "VirtualNPUExecutionProvider"

struct demo {
    const OrtApiBase *base;
    const OrtApi *api;
    OrtEnv *env;
    const char *plugin; /* path */
    const char *folder; /* for files that the tests write */
};

struct demo_option { /* {NULL, NULL} ends a list */
    const char *key, *value;
};

/* false: `ort` cannot be loaded or is too old; the reason is on standard error. */
bool demo_open(struct demo *d, const char *ort, const char *plugin, const char *folder);
void demo_close(struct demo *d);
/* CreateEpFactories of the plugin, without ORT in between. */
void *demo_plugin_symbol(const char *plugin, const char *name);

void demo_environment(const char *name, const char *value);

/* Ends the program with the message when st is a failure. */
void demo_must(const struct demo *d, OrtStatus *st, const char *what);
/* True when st is a failure whose message contains `text`; releases it. */
bool demo_says(const struct demo *d, OrtStatus *st, const char *text);

OrtStatus *demo_register(struct demo *d, const char *name);
OrtStatus *demo_unregister(struct demo *d, const char *name);
/* The one device of the EP. */
const OrtEpDevice *demo_device(struct demo *d);

/* y = Sigmoid(Sin(Relu(x * W + b)) * s): two parts for the NPU with a Sin between them, which it
 * refuses. */
OrtModel *demo_model(const struct demo *d);
enum { DEMO_NODES = 6, DEMO_NODES_ON_NPU = 5, DEMO_PARTS = 2 };

/* Session options with the EP; config entries first, then provider options. */
OrtSessionOptions *demo_options(struct demo *d, const struct demo_option *config,
                                const struct demo_option *option);
/* npu: false leaves the EP out. file: NULL runs demo_model(). */
OrtStatus *demo_session(struct demo *d, const char *file, bool npu,
                        const struct demo_option *option, OrtSession **out);
OrtStatus *demo_compile(struct demo *d, const char *file, bool embed,
                        const struct demo_option *config, const struct demo_option *option);
OrtStatus *demo_run(struct demo *d, OrtSession *s, float y[8]);
/* Nodes that the session gave to the EP of that name. */
size_t demo_nodes_on(struct demo *d, OrtSession *s, const char *ep);

/* folder/name, in one of a few buffers that are used in turn. */
const char *demo_path(const struct demo *d, const char *name);
/* Reads a whole file, NUL-terminated; free(). NULL: not there. */
char *demo_read(const char *path, size_t *n);
bool demo_write(const char *path, const char *bytes, size_t n);

#endif
