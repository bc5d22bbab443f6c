/* One seed after the other: graph, flags, check; what failed is made small and shown. */
#include "random.h"

#include <inttypes.h>

#include "base/num.h"
#include "check.h"
#include "gen_cases.h"
#include "graph/graph.h"
#include "graph/text.h"
#include "opset/opset.h"
#include "os/file.h"
#include "os/path.h"
#include "os/spawn.h"

enum { MAX_SHRUNK = 4 }; /* per process: it takes seconds */
enum { CASES_PERCENT = 25 };

struct worker {
    const struct rg_args *args;
    struct wml_ctx cx;
    struct wml_arena arena; /* of one seed */
    struct wml_arena names;
    struct gen_cases *cases;
    struct wml_map ops; /* name -> size_t */
    size_t *applied;    /* by pass */
    uint64_t seed;
    size_t failures;
};

static void say(struct worker *w, const char *text)
{
    if (w->args->has_channel) wml_channel_write(w->args->channel, wml_str(text));
}

static void phase(void *arg, char what)
{
    struct worker *w = arg;
    char line[48];
    snprintf(line, sizeof line, "%c %" PRIu64 "\n", what, w->seed);
    say(w, line);
}

/* --- flags --- */

static void choose_some(struct wml_rng *rng, enum wml_pass_choice *choice, int on, int off, bool any)
{
    for (size_t i = 0; i < wml_n_passes; i++) {
        const struct wml_pass *p = wml_passes[i];
        int64_t x = wml_rng_range(rng, 0, 100);
        if (p->refused || (!any && (p->lossy || p->only_for))) continue;
        if (x < on) choice[i] = WML_PASS_ON;
        else if (x >= 100 - off) choice[i] = WML_PASS_OFF;
    }
}

/* Defaults, defaults without ORT's own optimiser, random sets, one pass alone, everything. */
static void choose(struct worker *w, const struct gen *g, const struct wml_pass *pass, struct rc_case *c)
{
    struct wml_rng rng = {w->seed * 0xD1342543DE82EF95u + 7};
    struct wml_err err = {0};
    size_t own = wml_pass_find(WML_STR("ort-graph-optimization"));
    int64_t way = wml_rng_range(&rng, 0, 100);
    c->choice = WML_NEW_ARRAY(&w->arena, enum wml_pass_choice, wml_n_passes);
    c->level = way % 16 == 0 ? WML_ORT_LEVEL_BASIC : way % 16 == 1 ? WML_ORT_LEVEL_EXTENDED : WML_ORT_LEVEL_LEAN;
    if (pass || g->odd_sizes) c->level = WML_ORT_LEVEL_LEAN; /* ORT's whole levels break on empty tensors */
    if (way < 15) {
    } else if (way < 40) c->choice[own] = WML_PASS_OFF;
    else if (way < 70) choose_some(&rng, c->choice, 40, 20, false);
    else if (way < 80) choose_some(&rng, c->choice, 100, 0, false);
    else if (way < 95) {
        choose_some(&rng, c->choice, 0, 100, false);
        for (int i = 0; i < 6; i++) {
            size_t k = (size_t)wml_rng_range(&rng, 0, (int64_t)wml_n_passes);
            if (!wml_passes[k]->refused && !wml_passes[k]->lossy && !wml_passes[k]->only_for) c->choice[k] = WML_PASS_ON;
        }
    } else {
        c->lossy = true;
        choose_some(&rng, c->choice, 50, 10, true);
    }
    if (way % 2 && way >= 40) c->choice[own] = WML_PASS_OFF;
    /* kernels that square or multiply by exact zeros, masked products that count as nothing beside the mask: enormous
     * numbers are not for them */
    static const char *const tame[] = {"skip-layer-norm-fusion", "dft-to-matmul", "attention-fusion", "attention-onnx-fusion"};
    for (size_t i = 0; i < g->n_inputs; i++)
        for (size_t k = 0; g->input[i].wild && k < WML_COUNT(tame); k++) c->choice[wml_pass_find(wml_str(tame[k]))] = WML_PASS_OFF;
    /* levels that are ORT's own, whole, are not held to equal answers: some of its fusions are wrong */
    c->lossy = c->lossy || c->level != WML_ORT_LEVEL_LEAN;
    c->twice = w->seed % 32 == 0;
    if (w->seed % 7 == 3) c->opset = wml_rng_range(&rng, WML_OPSET_FIRST, WML_OPSET_LAST + 1);
    if (pass && pass->run && (c->lossy || !(pass->lossy || pass->only_for))) c->choice[wml_pass_find(wml_str(pass->name))] = WML_PASS_ON;
    for (size_t i = 0; i < wml_n_passes; i++)
        if (wml_passes[i]->only_for && c->choice[i] == WML_PASS_ON) c->choice[i] = WML_PASS_DEFAULT;
    /* what a chosen pass needs must not be off, nor what undoes it be on */
    while (!wml_passes_settle(c->choice, NULL, false, &err)) {
        for (size_t i = 0; i < wml_n_passes; i++)
            if (c->choice[i] == WML_PASS_ON && wml_passes[i]->against) c->choice[i] = WML_PASS_DEFAULT;
            else if (c->choice[i] == WML_PASS_OFF && wml_rng_range(&rng, 0, 3) == 0 && !wml_passes[i]->only_for && !wml_passes[i]->refused)
                c->choice[i] = WML_PASS_DEFAULT;
        err = (struct wml_err){0};
    }
}

/* --- what failed --- */

static void describe(struct worker *w, const struct rc_case *c, const struct rc_result *r, const char *title, struct wml_buf *out)
{
    struct wml_model *m = NULL;
    struct wml_err err = {0};
    wml_buf_fmt(out, "# %s: seed %" PRIu64 ": %s\n# passes:", title, w->seed, r->why);
    rc_choice_text(c->choice, out);
    wml_buf_cstr(out, "\n");
    if (c->opset) wml_buf_fmt(out, "# to opset %" PRId64 "\n", c->opset);
    for (size_t i = 0; i < c->feed[0].n; i++) {
        const struct rc_tensor *t = &c->feed[0].at[i];
        wml_buf_fmt(out, "# fed: %s =", t->name);
        uint64_t n;
        wml_dims_count(t->dim, t->rank, &n);
        for (uint64_t k = 0; k < n && k < 12; k++) wml_buf_fmt(out, " %.9g", wml_dtype_load((int)t->t, t->data, (size_t)k));
        wml_buf_cstr(out, n > 12 ? " ...\n" : "\n");
    }
    if (rc_load(c->bytes, &m, &err)) wml_model_text(m, WML_TEXT_HEADER | WML_TEXT_TYPES | WML_TEXT_ALL_DATA, out);
    wml_model_free(m);
    if (r->after.len) wml_buf_fmt(out, "\n# became\n%.*s\n", WML_ARG(r->after));
}

static void report(struct worker *w, struct rc_case *c, struct rc_result *r)
{
    struct wml_buf text = {0}, path = {0}, name = {0};
    struct wml_err err = {0};
    struct rc_env e = {.cx = &w->cx, .arena = &w->arena};
    w->failures++;
    if (w->failures <= MAX_SHRUNK) rc_shrink(&e, c, r);
    describe(w, c, r, w->failures <= MAX_SHRUNK ? "failed" : "failed (not made small)", &text);
    printf("%s\n", wml_buf_text(&text));
    fflush(stdout);
    if (w->args->keep) {
        wml_buf_fmt(&name, "seed-%" PRIu64 ".txt", w->seed);
        wml_path_join(&path, wml_str(w->args->keep), wml_buf_view(&name));
        if (!wml_file_write(wml_buf_text(&path), wml_buf_view(&text), &err)) printf("--keep: %s\n", err.msg);
    }
    wml_buf_release(&text);
    wml_buf_release(&path);
    wml_buf_release(&name);
}

/* --- one seed --- */

static bool count_op(void *arg, struct wml_node *n)
{
    struct worker *w = arg;
    size_t *count = wml_map_get(&w->ops, n->op_type);
    if (!count) {
        count = WML_NEW(&w->names, size_t);
        wml_map_put(&w->ops, wml_arena_str(&w->names, n->op_type), count);
    }
    ++*count;
    return true;
}

static void tell(struct worker *w, const struct rc_result *r)
{
    char line[128];
    snprintf(line, sizeof line, "v %" PRIu64 " %d %zu %zu\n", w->seed, (int)r->verdict, r->nodes_before, r->nodes_after);
    say(w, line);
    for (size_t i = 0; i < wml_n_passes; i++) w->applied[i] += r->pass && r->pass[i].applied > 0;
    if (w->args->has_channel) return;
    static const char *const word[] = {"same", "same but for rounding", "refused by ONNX Runtime", "DIFFERS", "BROKEN"};
    printf("seed %" PRIu64 ": %s, %zu -> %zu nodes %s\n", w->seed, word[r->verdict], r->nodes_before, r->nodes_after, r->why);
}

/* Most are made from nothing, some from a case of a pass, which is then on. */
static bool make_graph(struct worker *w, struct gen *g, const struct wml_pass **pass, struct wml_err *err)
{
    *g = (struct gen){.rng = {w->seed * 0xA24BAED4963EE407u + 99}};
    *pass = NULL;
    if (gen_cases_count(w->cases) && gen_chance(g, CASES_PERCENT)) {
        if (gen_from_case(g, w->cases, pass)) return true;
        *pass = NULL;
        gen_release(g);
    }
    return gen_graph(g, w->seed, err);
}

static void do_seed(struct worker *w)
{
    struct gen g;
    const struct wml_pass *pass;
    struct rc_case c = {0};
    struct rc_result r = {0};
    struct wml_err err = {0};
    struct rc_env e = {.cx = &w->cx, .arena = &w->arena, .arg = w, .phase = phase};
    phase(w, 'm');
    if (!make_graph(w, &g, &pass, &err) || !rc_encode(&e, g.m, &c.bytes, &err)) {
        r.verdict = RC_BROKEN;
        snprintf(r.why, sizeof r.why, "the generator: %s", err.msg);
        printf("seed %" PRIu64 ": %s\n", w->seed, r.why);
        w->failures++;
    } else {
        rc_feeds(&g, &w->arena, &c);
        choose(w, &g, pass, &c);
        rc_check(&e, &c, &r);
        if (r.verdict < RC_REFUSED) wml_graph_walk(g.m->graph, count_op, w);
    }
    tell(w, &r);
    if (r.verdict >= RC_DIFFERS && r.pass) report(w, &c, &r);
    gen_release(&g);
    wml_arena_reset(&w->arena);
}

static void totals(struct worker *w)
{
    char line[256];
    for (size_t i = 0; i < w->ops.len; i++) {
        snprintf(line, sizeof line, "o %.*s %zu\n", WML_ARG(w->ops.entry[i].key), *(size_t *)w->ops.entry[i].value);
        say(w, line);
    }
    for (size_t i = 0; i < wml_n_passes; i++) {
        if (!w->applied[i]) continue;
        snprintf(line, sizeof line, "a %s %zu\n", wml_passes[i]->name, w->applied[i]);
        say(w, line);
    }
}

int rg_work(const struct rg_args *a)
{
    struct worker w = {.args = a};
    w.cases = gen_cases_open(WML_TEST_CASES);
    w.applied = wml_xcalloc(wml_n_passes, sizeof *w.applied);
    for (uint64_t i = 0; i < a->count; i++) {
        w.seed = a->seed + i;
        do_seed(&w);
    }
    totals(&w);
    gen_cases_close(w.cases);
    wml_ort_close(&w.cx);
    wml_map_release(&w.ops);
    wml_arena_release(&w.arena);
    wml_arena_release(&w.names);
    free(w.applied);
    return w.failures ? 1 : 0;
}

int rg_show(uint64_t seed)
{
    static const struct rg_args none;
    struct worker w = {.args = &none, .seed = seed, .cases = gen_cases_open(WML_TEST_CASES)};
    struct gen g;
    const struct wml_pass *pass;
    struct rc_case c = {0};
    struct rc_result r = {0};
    struct rc_env e = {.cx = &w.cx, .arena = &w.arena};
    struct wml_err err = {0};
    struct wml_buf text = {0};
    struct wml_str after;
    bool ok = make_graph(&w, &g, &pass, &err) && rc_encode(&e, g.m, &c.bytes, &err);
    if (ok) {
        wml_model_text(g.m, WML_TEXT_HEADER | WML_TEXT_TYPES, &text);
        choose(&w, &g, pass, &c);
        wml_buf_cstr(&text, "\n# passes:");
        rc_choice_text(c.choice, &text);
        ok = rc_optimise(&e, &c, &after, &r, &err);
        wml_buf_fmt(&text, "\n# became\n%.*s", WML_ARG(r.after));
    }
    printf("%s\n%s", wml_buf_text(&text), ok ? "" : err.msg);
    wml_buf_release(&text);
    gen_release(&g);
    gen_cases_close(w.cases);
    wml_ort_close(&w.cx);
    wml_arena_release(&w.arena);
    return ok ? 0 : 1;
}
