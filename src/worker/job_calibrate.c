/* Job "calibrate": a pipeline for generation (families/genai.h) runs over prompts as a runtime runs it, each prompt in windows and
 * then some tokens of the answer it gives, and the extremes of what its Observe nodes (ort/observe.h) show are kept. One cache
 * goes through both graphs, so later tokens see keys and values that are real.
 *
 * request {"embeddings":FILE,"lm_head":FILE,"candidate":FILE or absent,"context":{"model":FILE,"folder":DIR,"slots":N},"iterator":{the same},
 *          "prompts":[[token, ...], ...],"tokens":N}      folder: of the weights; all paths are absolute
 * reply   {"context":[[low,high] or null, ...],"iterator":[...],"answers":N,"agree":N}      null: no finite value was seen
 *
 * candidate: another head; the reply says how many of the tokens that the first chose it would have chosen, too. */
#include <stdio.h>
#include "base/num.h"
#include "calib/calib.h"
#include "os/map.h"
#include "worker/job.h"

enum { FIXED_INPUTS = 4 /* behind the cache: hidden states, its length, the buffer's, the tag of Observe */ };

struct graph {
    struct wml_session *session;
    struct wml_calib *calib;
    const struct wml_io *input;
    size_t n_cached; /* inputs that are cache; output 1 + i is what becomes of input i */
    size_t runs;
};

struct calibrate { /* the job's state */
    struct wml_arena arena;
    struct wml_job_io *io;
    struct wml_ort *ort;
    struct wml_session *embeddings, *head, *candidate;
    struct graph context, iterator;
    struct wml_run *last; /* holds the cache */
    void *zeros;          /* an empty cache, for every input of it */
    struct wml_tensor_view *cache;
    int64_t window, slots;
    uint64_t answers, agree; /* tokens that were chosen, and chosen by the candidate, too */
};

static void see(void *arg, int64_t slot, const int64_t *tag, const struct wml_tensor_view *v)
{
    struct graph *g = arg;
    (void)tag;
    if (v->is_tensor && v->dtype == WML_F32) wml_calib_observe(g->calib, 0, (size_t)slot, g->runs, v->data, v->bytes / sizeof(float));
}

/* --------------------------------------------------------------------- opening */

static bool open_plain(struct calibrate *c, const struct wml_json_val *request, const char *key, struct wml_session **out, struct wml_err *err)
{
    const struct wml_model_source m = {.path = wml_arena_cstr(&c->arena, wml_json_get_str(request, key))};
    const struct wml_session_opts opts = {.level = WML_LEVEL_ALL};
    return wml_session_open(c->ort, &m, &opts, out, err);
}

static bool is_cache(const struct wml_io *in)
{
    return wml_str_starts(wml_str(in->name), "past_keys_") || wml_str_starts(wml_str(in->name), "past_values_");
}

static bool look(struct graph *g, struct wml_err *err)
{
    size_t n = 0, n_out = 0;
    g->input = wml_session_inputs(g->session, &n);
    wml_session_outputs(g->session, &n_out);
    while (g->n_cached < n && is_cache(&g->input[g->n_cached])) g->n_cached++;
    if (g->n_cached && n == g->n_cached + FIXED_INPUTS && n_out == g->n_cached + 1) return true;
    return wml_fail(err, WML_E_INTERNAL, "%zu inputs and %zu outputs are not those of a transformer with a cache", n, n_out);
}

/* Without prepacking: weights stay in the maps of their file, once for both graphs. */
static bool open_graph(struct calibrate *c, const struct wml_json_val *spec, struct graph *g, struct wml_err *err)
{
    static const struct wml_pair config[] = {{"session.disable_prepacking", "1"}};
    const struct wml_observer observer = {.arg = g, .see = see};
    const struct wml_session_opts opts = {.no_memory_plan = true, .observer = &observer, .config = config, .n_config = WML_COUNT(config)};
    const int64_t slots = wml_json_get_int(spec, "slots", 0);
    struct wml_map_file map = {0};
    g->calib = wml_calib_new(&wml_range_minmax, NULL, 1, err);
    if (!g->calib || !wml_map_open(wml_arena_cstr(&c->arena, wml_json_get_str(spec, "model")), &map, err)) return false;
    for (int64_t i = 0; i < slots; i++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "%lld", (long long)i);
        wml_calib_add(g->calib, (struct wml_str){name, (size_t)len}, WML_F32);
    }
    (void)wml_calib_pass(g->calib);
    const struct wml_model_source m = {.bytes = map.bytes, .folder = wml_arena_cstr(&c->arena, wml_json_get_str(spec, "folder"))};
    const bool ok = wml_session_open(c->ort, &m, &opts, &g->session, err);
    wml_map_close(&map);
    return ok && look(g, err);
}

static bool start(struct calibrate *c, const struct wml_json_val *request, struct wml_err *err)
{
    uint64_t bytes = 0, most = 0;
    wml_job_phase(c->io, "load");
    if (!wml_ort_open(c->io->cx, &c->ort, err) || !open_plain(c, request, "embeddings", &c->embeddings, err) ||
        !open_plain(c, request, "lm_head", &c->head, err) ||
        (wml_json_get(request, "candidate") && !open_plain(c, request, "candidate", &c->candidate, err)) || !open_graph(c, wml_json_get(request, "context"), &c->context, err) ||
        !open_graph(c, wml_json_get(request, "iterator"), &c->iterator, err))
        return false;
    const struct wml_io *in = c->context.input;
    const size_t n = c->context.n_cached;
    c->window = in[n].dim[1];
    c->slots = in[0].dim[2];
    c->cache = WML_NEW_ARRAY(&c->arena, struct wml_tensor_view, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t count = 0;
        wml_dims_count(in[i].dim, in[i].rank, &count);
        if (!wml_dtype_bytes((int)in[i].dtype, count, &bytes)) return wml_fail(err, WML_E_INTERNAL, "input '%s' has no size", in[i].name);
        c->cache[i] = (struct wml_tensor_view){.dtype = in[i].dtype, .rank = in[i].rank, .dim = in[i].dim, .bytes = (size_t)bytes, .is_tensor = true};
        most = WML_MAX(most, bytes);
    }
    c->zeros = wml_big_alloc((size_t)most, err);
    if (!c->zeros) return false;
    memset(c->zeros, 0, (size_t)most);
    return true;
}

/* --------------------------------------------------------------------- running */

static bool run_one(struct wml_session *s, const struct wml_tensor_view *in, size_t n, struct wml_run **run, struct wml_tensor_view *out,
                    struct wml_err *err)
{
    return wml_run_new(s, in, n, run, err) && wml_run_watched(*run, 0, err) && wml_run_output(*run, 0, out, err);
}

/* The call of a transformer over `step` tokens that stand behind `past` others; *x: hidden states in, then out, which live until
 * the next call. */
static bool call(struct calibrate *c, struct graph *g, int64_t step, int64_t past, struct wml_tensor_view *x, struct wml_err *err)
{
    static const int64_t one[] = {1, 1}, two[] = {2};
    static const int64_t tag[2];
    const int32_t last = (int32_t)(past + step - 1), total = (int32_t)c->slots;
    struct wml_tensor_view *in = WML_NEW_ARRAY(&c->arena, struct wml_tensor_view, g->n_cached + FIXED_INPUTS);
    struct wml_run *run = NULL;
    size_t n = g->n_cached;
    memcpy(in, c->cache, n * sizeof *in);
    in[n++] = *x;
    in[n++] = (struct wml_tensor_view){.dtype = WML_I32, .rank = 2, .dim = one, .data = &last, .bytes = sizeof last, .is_tensor = true};
    in[n++] = (struct wml_tensor_view){.dtype = WML_I32, .rank = 1, .dim = one, .data = &total, .bytes = sizeof total, .is_tensor = true};
    in[n++] = (struct wml_tensor_view){.dtype = WML_I64, .rank = 1, .dim = two, .data = tag, .bytes = sizeof tag, .is_tensor = true};
    bool ok = run_one(g->session, in, n, &run, x, err);
    for (size_t i = 0; ok && i < g->n_cached; i++) ok = wml_run_output(run, 1 + i, &c->cache[i], err);
    wml_run_free(c->last);
    c->last = run;
    g->runs++;
    return ok;
}

static int64_t likeliest(const struct wml_tensor_view *logits)
{
    const float *p = logits->data;
    const size_t n = logits->bytes / sizeof *p;
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (p[i] > p[best]) best = i;
    return (int64_t)best;
}

/* The likeliest token behind the hidden states of one. */
static bool choose(struct wml_session *head, const struct wml_tensor_view *x, int64_t *out, struct wml_err *err)
{
    struct wml_run *run = NULL;
    struct wml_tensor_view logits;
    const bool ok = run_one(head, x, 1, &run, &logits, err);
    if (ok) *out = likeliest(&logits);
    wml_run_free(run);
    return ok;
}

/* n tokens, filled up to the graph's `step`, through embeddings and transformer; *next: the likeliest token behind the last, where
 * it is asked for. */
static bool advance(struct calibrate *c, struct graph *g, const int64_t *id, int64_t n, int64_t step, int64_t past, int64_t *next, struct wml_err *err)
{
    const int64_t dims[] = {1, step}, one[] = {1, 1, c->context.input[c->context.n_cached].dim[2]};
    int64_t *padded = WML_NEW_ARRAY(&c->arena, int64_t, (size_t)step);
    struct wml_tensor_view x, ids = {.dtype = WML_I64, .rank = 2, .dim = dims, .data = padded, .bytes = (size_t)step * sizeof *padded, .is_tensor = true};
    struct wml_run *embed = NULL;
    int64_t other = 0;
    memcpy(padded, id, (size_t)n * sizeof *id);
    bool ok = run_one(c->embeddings, &ids, 1, &embed, &x, err) && call(c, g, step, past, &x, err);
    if (ok && next) {
        x.dim = one; /* the last token alone */
        x.bytes = (size_t)one[2] * sizeof(float);
        x.data = (const char *)x.data + (size_t)(n - 1) * x.bytes;
        ok = choose(c->head, &x, next, err) && (!c->candidate || choose(c->candidate, &x, &other, err));
        c->answers++;
        c->agree += other == *next;
    }
    wml_run_free(embed);
    return ok;
}

static bool run_prompt(struct calibrate *c, const struct wml_json_val *ids, int64_t tokens, struct wml_err *err)
{
    const int64_t n = (int64_t)wml_json_len(ids), room = c->slots - c->window;
    int64_t past = 0, next = 0, *id = WML_NEW_ARRAY(&c->arena, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++) id[i] = wml_json_int(wml_json_at(ids, (size_t)i), 0);
    for (size_t i = 0; i < c->context.n_cached; i++) c->cache[i].data = c->zeros;
    for (int64_t part; past < n && past <= room; past += part) {
        part = WML_MIN(n - past, c->window);
        if (!advance(c, &c->context, id + past, part, c->window, past, past + part >= n || past + c->window > room ? &next : NULL, err)) return false;
    }
    for (int64_t k = 0; k < tokens && past < c->slots; k++, past++)
        if (!wml_check_cancel(c->io->cx, err) || !advance(c, &c->iterator, &next, 1, 1, past, &next, err)) return false;
    return true;
}

static void put_ranges(struct wml_json *j, const char *key, const struct graph *g, size_t n)
{
    wml_json_key(j, key);
    wml_json_begin(j, '[');
    for (size_t i = 0; i < n; i++) {
        const struct wml_extent e = wml_calib_extent(g->calib, i);
        if (!e.finite) {
            wml_json_put_null(j);
            continue;
        }
        wml_json_begin(j, '[');
        wml_json_put_num(j, e.low);
        wml_json_put_num(j, e.high);
        wml_json_end(j, ']');
    }
    wml_json_end(j, ']');
}

static bool calibrate(struct wml_job_io *io, const struct wml_json_doc *doc, struct wml_err *err)
{
    const struct wml_json_val *request = wml_json_root(doc), *prompts = wml_json_get(request, "prompts"), *ids;
    struct calibrate *c = io->state = wml_xcalloc(1, sizeof *c);
    struct wml_json j = {.out = &io->reply};
    struct wml_json_iter it = {0};
    struct wml_str key;
    c->io = io;
    if (!start(c, request, err)) return false;
    wml_job_phase(io, "run");
    for (size_t i = 0; wml_json_next(prompts, &it, &key, &ids); i++) {
        wml_note_progress(io->cx, "Calibrating", "transformer", i, wml_json_len(prompts), "prompts");
        if (wml_json_len(ids) && !run_prompt(c, ids, wml_json_get_int(request, "tokens", 0), err)) return wml_wrap(err, "prompt %zu", i + 1);
    }
    (void)wml_calib_pass(c->context.calib);
    (void)wml_calib_pass(c->iterator.calib);
    wml_json_begin(&j, '{');
    put_ranges(&j, "context", &c->context, (size_t)wml_json_get_int(wml_json_get(request, "context"), "slots", 0));
    put_ranges(&j, "iterator", &c->iterator, (size_t)wml_json_get_int(wml_json_get(request, "iterator"), "slots", 0));
    wml_json_key(&j, "answers");
    wml_json_put_uint(&j, c->answers);
    wml_json_key(&j, "agree");
    wml_json_put_uint(&j, c->candidate ? c->agree : 0);
    wml_json_end(&j, '}');
    return true;
}

static void release_graph(struct graph *g)
{
    wml_session_close(g->session);
    wml_calib_free(g->calib);
}

static void teardown(void *state)
{
    struct calibrate *c = state;
    wml_run_free(c->last);
    release_graph(&c->context);
    release_graph(&c->iterator);
    wml_session_close(c->embeddings);
    wml_session_close(c->head);
    wml_session_close(c->candidate);
    free(c->zeros);
    wml_arena_release(&c->arena);
    free(c);
}

const struct wml_job wml_job_calibrate = {
    .name = "calibrate", .summary = "Run a pipeline over prompts and keep the ranges of its values",
    .run = calibrate, .teardown = teardown,
};
