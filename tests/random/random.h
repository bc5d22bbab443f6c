/* random.h - the program's two sides: a worker that does seeds one by one, a driver that counts. */
#ifndef WML_TESTS_RANDOM_RANDOM_H
#define WML_TESTS_RANDOM_RANDOM_H

#include "base/str.h"

struct rg_args {
    uint64_t seed, count, jobs;
    const char *keep;    /* folder for cases that failed; NULL: none */
    const char *program; /* argv[0] */
    bool one, show;
    intptr_t channel; /* to the driver */
    bool has_channel;
};

/* Seeds [seed, seed + count) in this process. Lines to the driver, when there is one:
 *   m|g|p|r SEED    begins with making the graph, the original, the passes, the result
 *   v SEED VERDICT NODES_BEFORE NODES_AFTER
 *   o OP COUNT      operators of graphs that ran;   a PASS COUNT   passes that changed something (at the end) */
int rg_work(const struct rg_args *a);
int rg_show(uint64_t seed);
int rg_drive(const struct rg_args *a);

#endif
