/* winml_random_graphs: random graphs through the optimiser with random flags, and both sides through ONNX Runtime.
 *
 *     winml_random_graphs [--seed N] [--count M] [--jobs K] [--keep DIR]    many seeds, in K child processes
 *     winml_random_graphs --one SEED [--keep DIR]                           one of them, in this process
 *     winml_random_graphs --show SEED                                       its graph, its passes, and what they make of it
 *
 * A graph that fails is made small and printed with the passes that it takes; --keep writes it as a file too.
 * Children tell the seed and the phase before each step, so a crash names them. Exit status 1: something failed;
 * 77: ONNX Runtime is not there. */
#include <inttypes.h>

#include "base/num.h"
#include "check.h"
#include "graph/graph.h"
#include "graph/text.h"
#include "os/file.h"
#include "os/path.h"
#include "os/spawn.h"
#include "os/sys.h"
#include "os/thread.h"
#include "random.h"

/* Memory that ORT never gives back is not ours to report. */
__attribute__((visibility("default"), used)) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libonnxruntime\nleak:_dl_\n";
}

static bool number(const char *text, uint64_t *out)
{
    return text && wml_parse_u64(wml_str(text), out);
}

static bool read_args(int argc, char **argv, struct rg_args *a)
{
    *a = (struct rg_args){.seed = 1, .count = 2000, .jobs = wml_cpu_count(), .program = argv[0]};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool ok = value != NULL;
        if (!strcmp(argv[i], "--seed")) ok = number(value, &a->seed);
        else if (!strcmp(argv[i], "--count")) ok = number(value, &a->count);
        else if (!strcmp(argv[i], "--jobs")) ok = number(value, &a->jobs) && a->jobs > 0 && a->jobs <= 64;
        else if (!strcmp(argv[i], "--keep")) a->keep = value;
        else if (!strcmp(argv[i], "--one")) ok = number(value, &a->seed), a->one = true;
        else if (!strcmp(argv[i], "--show")) ok = number(value, &a->seed), a->show = true;
        else ok = false;
        if (ok) continue;
        fprintf(stderr, "winml_random_graphs: %s: not understood; see the top of tests/random/main.c\n", argv[i]);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct rg_args a;
    intptr_t channel;
    if (!read_args(argc, argv, &a)) return 2;
    if (wml_channel_open(&channel)) {
        a.channel = channel;
        a.has_channel = true;
        return rg_work(&a);
    }
    if (a.show) return rg_show(a.seed);
    if (a.one) {
        a.count = 1;
        return rg_work(&a);
    }
    return rg_drive(&a);
}
