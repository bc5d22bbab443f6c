/* profile.h - a CSV file of the kind that the QNN EP writes. */
#ifndef VNPU_PROFILE_H
#define VNPU_PROFILE_H

#include "vnpu.h"

/* Opens the file of the options; call when something was compiled or loaded. Nothing happens when
 * profiling is off or a profile is open. */
OrtStatus *vnpu_profile_open(struct vnpu_ep *ep);
void vnpu_profile_close(struct vnpu_profile *p);

/* One row for the time it took to compile (loaded: to load) a partition. */
OrtStatus *vnpu_profile_ready(struct vnpu_profile *p, bool loaded, uint64_t ns);

/* Around one run of a kernel. start() returns run options that make ORT time each node, or NULL
 * when there is no need; finish() takes them back, writes the rows, and is called after failures
 * too (failed: no rows). */
OrtStatus *vnpu_profile_start(struct vnpu_profile *p, OrtRunOptions **out);
struct vnpu_times {
    uint64_t run_ns;    /* the inner session */
    uint64_t output_ns; /* copying its outputs */
    uint64_t total_ns;
};
OrtStatus *vnpu_profile_finish(struct vnpu_profile *p, OrtRunOptions *o, bool failed,
                               const struct vnpu_times *t);

#endif
