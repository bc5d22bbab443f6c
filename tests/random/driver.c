/* Hands out ranges of seeds to child processes, several at a time, and counts what they say. */
#include "random.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "check.h"
#include "os/spawn.h"
#include "os/sys.h"
#include "os/thread.h"

enum { SKIPPED = 77 };
enum { RANGE = 250, TOO_LONG_MS = 120000, MOST_FAILURES = 20 };
/* More refused or rounded-off graphs than this, and the generator does not test what it should. */
enum { MOST_REFUSED_PERCENT = 15, MOST_ROUNDING_PERCENT = 5, LEAST_OPS = 60 };

struct drive {
    const struct rg_args *args;
    struct wml_mutex *lock; /* for everything below */
    uint64_t next, end;
    uint64_t verdict[RC_BROKEN + 1], crashed_original, crashed;
    uint64_t nodes_before, nodes_after;
    struct wml_map ops, passes; /* name -> uint64_t */
    struct wml_arena arena;
};

struct job {
    struct drive *d;
    uint64_t seed; /* the one at work */
    char phase;
};

static void add(struct drive *d, struct wml_map *map, struct wml_str name, uint64_t n)
{
    uint64_t *have = wml_map_get(map, name);
    if (!have) {
        have = WML_NEW(&d->arena, uint64_t);
        wml_map_put(map, wml_arena_str(&d->arena, name), have);
    }
    *have += n;
}

static uint64_t on_line(void *arg, struct wml_str line)
{
    struct job *j = arg;
    struct drive *d = j->d;
    struct wml_str kind, part;
    uint64_t n[4] = {0};
    size_t k = 0;
    if (!wml_str_split(&line, ' ', &kind) || !kind.len) return 0;
    wml_mutex_lock(d->lock);
    if (kind.ptr[0] == 'o' || kind.ptr[0] == 'a') {
        struct wml_str name;
        if (wml_str_split(&line, ' ', &name) && wml_parse_u64(line, &n[0])) add(d, kind.ptr[0] == 'o' ? &d->ops : &d->passes, name, n[0]);
    } else {
        while (k < 4 && wml_str_split(&line, ' ', &part))
            if (!wml_parse_u64(part, &n[k++])) break;
        j->seed = n[0];
        j->phase = kind.ptr[0];
        if (j->phase == 'v' && n[1] <= RC_BROKEN) {
            d->verdict[n[1]]++;
            d->nodes_before += n[2];
            d->nodes_after += n[3];
        }
    }
    wml_mutex_unlock(d->lock);
    return TOO_LONG_MS;
}

static uint64_t failures(const struct drive *d)
{
    return d->verdict[RC_DIFFERS] + d->verdict[RC_BROKEN] + d->crashed;
}

static bool take(struct drive *d, uint64_t *from, uint64_t *count)
{
    wml_mutex_lock(d->lock);
    bool some = d->next < d->end && failures(d) < MOST_FAILURES;
    *from = d->next;
    *count = WML_MIN((uint64_t)RANGE, d->end - d->next);
    if (some) d->next += *count;
    wml_mutex_unlock(d->lock);
    return some;
}

static const char *phase_name(char phase)
{
    return phase == 'm' ? "the graph was made" : phase == 'g' ? "the original ran" : phase == 'p' ? "the passes ran" : "the result ran";
}

/* A child that died named the seed and the phase. ONNX Runtime's own crash on the original is not ours. */
static void note_death(struct job *j, const struct wml_child_result *result)
{
    struct wml_buf how = {0};
    wml_child_describe(result, &how);
    wml_mutex_lock(j->d->lock);
    bool original = j->phase == 'g';
    if (original) j->d->crashed_original++;
    else j->d->crashed++;
    printf("%s: seed %" PRIu64 ", %s while %s\n%s", original ? "note: ONNX Runtime crashed" : "CRASH", j->seed, wml_buf_text(&how),
           phase_name(j->phase), wml_buf_text(&result->output));
    fflush(stdout);
    wml_mutex_unlock(j->d->lock);
    wml_buf_release(&how);
}

/* One child; from and count become what is left. */
static void run_child(struct drive *d, uint64_t *from, uint64_t *count)
{
    char seed[32], n[32];
    struct job j = {.d = d, .seed = *from, .phase = 'm'};
    snprintf(seed, sizeof seed, "%" PRIu64, *from);
    snprintf(n, sizeof n, "%" PRIu64, *count);
    const char *argv[] = {d->args->program, "--seed", seed, "--count", n, d->args->keep ? "--keep" : NULL, d->args->keep, NULL};
    struct wml_spawn s = {.program = d->args->program, .argv = argv, .channel = true, .keep_output = 1 << 20};
    struct wml_child_hooks hooks = {.arg = &j, .on_line = on_line, .timeout_ms = TOO_LONG_MS};
    struct wml_child_result result = {0};
    struct wml_err err = {0};
    uint64_t end = *from + *count;
    if (!wml_child_run(&s, &hooks, &result, &err)) {
        printf("cannot start a child: %s\n", err.msg);
        d->crashed++;
        *count = 0;
    } else if (result.how == WML_CHILD_EXIT && (result.status == 0 || result.status == 1) && j.seed + 1 == end && j.phase == 'v') {
        if (result.output.len) printf("%s", wml_buf_text(&result.output));
        *count = 0;
    } else {
        note_death(&j, &result);
        *from = j.seed + 1;
        *count = end - *from;
    }
    fflush(stdout);
    wml_child_result_release(&result);
}

static void work(void *arg)
{
    struct drive *d = arg;
    uint64_t from, count;
    while (take(d, &from, &count))
        while (count && failures(d) < MOST_FAILURES) run_child(d, &from, &count);
}

static void list(const char *title, const struct wml_map *map)
{
    printf("%s: %zu:", title, map->len);
    for (size_t i = 0; i < map->len; i++) printf(" %.*s %" PRIu64, WML_ARG(map->entry[i].key), *(uint64_t *)map->entry[i].value);
    printf("\n");
}

static bool judge(const struct drive *d)
{
    uint64_t all = d->crashed + d->crashed_original;
    for (size_t i = 0; i < WML_COUNT(d->verdict); i++) all += d->verdict[i];
    uint64_t refused = d->verdict[RC_REFUSED] + d->crashed_original, rounding = d->verdict[RC_ROUNDING];
    list("operators", &d->ops);
    list("passes that changed something", &d->passes);
    printf("nodes: %" PRIu64 " -> %" PRIu64 "\n", d->nodes_before, d->nodes_after);
    printf("%" PRIu64 " graphs: %" PRIu64 " same, %" PRIu64 " same but for rounding, %" PRIu64 " refused by ONNX Runtime as they are, %" PRIu64
           " differ, %" PRIu64 " broken, %" PRIu64 " crashes\n",
           all, d->verdict[RC_SAME], rounding, refused, d->verdict[RC_DIFFERS], d->verdict[RC_BROKEN], d->crashed);
    bool ok = !failures(d);
    if (refused * 100 > all * MOST_REFUSED_PERCENT) {
        printf("the generator: more than %d %% are refused\n", MOST_REFUSED_PERCENT);
        ok = false;
    }
    if (rounding * 100 > all * MOST_ROUNDING_PERCENT) {
        printf("the generator: more than %d %% are excused by rounding\n", MOST_ROUNDING_PERCENT);
        ok = false;
    }
    if (all >= 2000 && d->ops.len < LEAST_OPS) {
        printf("the generator: fewer than %d operators\n", LEAST_OPS);
        ok = false;
    }
    return ok;
}

static bool has_ort(void)
{
    struct wml_ctx cx = {0};
    struct wml_ort *ort;
    struct wml_err err = {0};
    if (!wml_ort_open(&cx, &ort, &err)) {
        printf("skipped: %s\n", err.msg);
        return false;
    }
    wml_ort_close(&cx);
    return true;
}

int rg_drive(const struct rg_args *a)
{
    if (!has_ort()) return SKIPPED;
    struct drive d = {.args = a, .next = a->seed, .end = a->seed + a->count, .lock = wml_mutex_new()};
    struct wml_thread *thread[64] = {0};
    struct wml_err err = {0};
    uint64_t start = wml_now_ns();
    for (uint64_t i = 0; i < a->jobs; i++)
        if (!wml_thread_start(&thread[i], work, &d, &err)) printf("%s\n", err.msg);
    for (uint64_t i = 0; i < a->jobs; i++) wml_thread_join(thread[i]);
    bool ok = judge(&d);
    printf("%.1f s\n", (double)(wml_now_ns() - start) / 1e9);
    wml_map_release(&d.ops);
    wml_map_release(&d.passes);
    wml_arena_release(&d.arena);
    wml_mutex_free(d.lock);
    return ok ? 0 : 1;
}
