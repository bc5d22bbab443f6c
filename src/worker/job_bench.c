/* Job "bench": opens a model on a target, runs it many times on one set of inputs, and tells every time.
 *
 * request {"model","target","level","threads","feed","iterations","warmup","duration_ms","monitor","live",
 *          "samples": FILE or absent (FILE.json gets what is known before the runs), "profile": prefix of ORT's profile or absent, "csv": the EP's own file}
 * reply   {"target",..,"resolve_ms","inputs":[{"name","dtype","shape"}],"outputs":[..],"fed":[shapes],"notes":[..],"batch",
 *          "warmup_ms":[..],"samples_ms":[..],"elapsed_ms","interrupted","memory":{bytes, and MB on accelerators},"usage":{..},
 *          "ort_profile","csv_after_load","csv_after_run","node_types":{name: type},"ep_log"}
 *
 * A timed run is one call of wml_run_once and two readings of the clock. Progress and the file of samples
 * (doubles, appended every quarter of a second or after a slow run, so that a crash keeps what was measured) come
 * between runs. With "csv", a file that is still missing after the first run leaves one timed run: more would not
 * bring it. "live": progress carries the newest numbers as its item, see monitor/chart.h. */
#include "worker/job.h"

#include "base/map.h"
#include "os/file.h"
#include "os/sys.h"
#include "worker/feed.h"
#include "worker/measure.h"

enum { NOTE_NS = 100000000, CHECKPOINT_NS = 250000000, MONITOR_MS = 100, SLOW_RUN_MS = 25 };

struct bench {
    struct wml_job_io *io;
    const struct wml_json_val *request;
    struct wml_job_session *s;
    struct wml_feed feed;
    struct wml_run *run;
    WML_VEC(double) warmup, sample;
    size_t n_warmup, n_iterations, saved;
    uint64_t duration_ns, elapsed_ns;
    const char *samples_file;
    bool interrupted;
    enum wml_opt_level level; /* wanted */
    struct wml_memory_points memory;
    struct wml_sampler *sampler;
    struct wml_usage usage;
    struct wml_buf profile;
    const char *csv;
    uint64_t csv_loaded, csv_run; /* its size after loading, after the first run */
    bool live, no_csv;
};

static bool load(struct bench *b, struct wml_err *err)
{
    struct wml_session_opts opts = {.record_placement = true};
    struct wml_job_session *s = b->s;
    struct wml_model_source m = {.path = wml_arena_cstr(&s->arena, wml_json_get_str(b->request, "model"))};
    struct wml_str profile = wml_json_get_str(b->request, "profile");
    opts.level = b->level;
    opts.threads = (unsigned)wml_json_get_int(b->request, "threads", 0);
    if (profile.len) opts.profile_prefix = wml_arena_cstr(&s->arena, profile);
    wml_target_session(&s->target, &opts);
    wml_memory_begin(&b->memory, s->target.type != WML_DEVICE_CPU);
    wml_job_phase(b->io, "load");
    wml_note_progress(b->io->cx, "Loading", NULL, 0, 0, NULL);
    uint64_t start = wml_now_ns();
    if (!wml_session_open_falling(s->ort, &m, &opts, &s->level, s->level_note, &s->session, err)) return false;
    s->load_ms = (double)(wml_now_ns() - start) / 1e6;
    wml_memory_look(&b->memory, 1);
    if (b->csv) b->csv_loaded = wml_file_info(b->csv).size;
    return true;
}

static bool prepare(struct bench *b, struct wml_err *err)
{
    struct wml_feed_spec spec;
    size_t n = 0;
    const struct wml_io *inputs = wml_session_inputs(b->s->session, &n);
    if (!wml_feed_spec_get(wml_json_get(b->request, "feed"), &b->s->arena, &spec, err)) return false;
    return wml_feed_make(inputs, n, &spec, &b->feed, err) &&
           wml_run_new(b->s->session, b->feed.view.at, b->feed.view.len, &b->run, err);
}

static void checkpoint(struct bench *b)
{
    struct wml_err ignored = {0};
    if (!b->samples_file || b->saved == b->sample.len) return;
    struct wml_str bytes = {(const char *)(b->sample.at + b->saved), (b->sample.len - b->saved) * sizeof(double)};
    if (wml_file_append(b->samples_file, bytes, &ignored)) b->saved = b->sample.len;
}

/* The total of a duration is milliseconds, without a unit: a rate of them says nothing. */
static void tell(struct bench *b, const char *stage, uint64_t done, uint64_t total, bool runs, double ms)
{
    char item[WML_LIVE_TEXT];
    if (b->live && b->sampler) wml_live_item(b->sampler, ms, item);
    wml_note_progress(b->io->cx, stage, b->live && b->sampler ? item : NULL, done, total, runs ? "runs" : NULL);
}

/* After the first run the EP's file must be there. */
static void look_for_csv(struct bench *b)
{
    b->csv_run = wml_file_info(b->csv).size;
    b->no_csv = b->csv_run == 0;
}

static bool is_over(const struct bench *b, size_t done, size_t n, uint64_t spent, bool timed)
{
    if (timed && b->duration_ns) return spent >= b->duration_ns && done > 0;
    return done >= n;
}

/* n runs, or as many as fit into the duration. */
static bool loop(struct bench *b, size_t n, bool timed, struct wml_err *err)
{
    const char *stage = timed ? "Running" : "Warming up";
    const atomic_bool *cancel = b->io->cx->cancel;
    uint64_t begin = wml_now_ns(), last_note = begin, last_save = begin, now = begin;
    bool runs = !timed || !b->duration_ns;
    wml_job_phase(b->io, timed ? "run" : "warmup");
    for (size_t done = 0; !is_over(b, done, n, now - begin, timed);) {
        uint64_t start = wml_now_ns();
        if (!wml_run_once(b->run, err)) return false;
        now = wml_now_ns();
        double ms = (double)(now - start) / 1e6;
        if (timed) WML_PUSH(&b->sample, ms);
        else WML_PUSH(&b->warmup, ms);
        done++;
        if (now - last_note >= NOTE_NS || done == 1) {
            if (runs) tell(b, stage, done, n, true, ms);
            else tell(b, stage, WML_MIN(now - begin, b->duration_ns) / 1000000, b->duration_ns / 1000000, false, ms);
            last_note = now;
        }
        if (timed && (now - last_save >= CHECKPOINT_NS || ms >= SLOW_RUN_MS)) {
            checkpoint(b);
            last_save = now;
        }
        if (b->csv && b->warmup.len + b->sample.len == 1) look_for_csv(b);
        if (timed && b->no_csv) break;
        if (cancel && atomic_load(cancel)) {
            b->interrupted = true;
            break;
        }
    }
    if (timed) b->elapsed_ns = wml_now_ns() - begin;
    return true;
}

/* What is known before the runs, beside the samples: with both a dead child's report is nearly whole. */
static void put_facts(struct wml_json *j, const struct bench *b);

static void keep_facts(const struct bench *b)
{
    struct wml_buf text = {0}, path = {0};
    struct wml_json j = {.out = &text};
    struct wml_err ignored = {0};
    if (!b->samples_file) return;
    wml_json_begin(&j, '{');
    wml_job_session_put(&j, b->s);
    put_facts(&j, b);
    wml_json_end(&j, '}');
    wml_buf_fmt(&path, "%s.json", b->samples_file);
    wml_file_write(wml_buf_text(&path), wml_buf_view(&text), &ignored);
    wml_buf_release(&text);
    wml_buf_release(&path);
}

static bool measure(struct bench *b, struct wml_err *err)
{
    keep_facts(b);
    b->sampler = wml_json_get_bool(b->request, "monitor", false) ? wml_sampler_start(MONITOR_MS) : NULL;
    bool ok = loop(b, b->n_warmup, false, err) && (b->interrupted || loop(b, b->n_iterations, true, err));
    b->usage = wml_sampler_stop(b->sampler);
    b->sampler = NULL;
    wml_memory_look(&b->memory, 2);
    checkpoint(b);
    if (wml_json_get_str(b->request, "profile").len) {
        struct wml_err ignored = {0};
        wml_job_phase(b->io, "trace");
        wml_session_end_profile(b->s->session, &b->profile, &ignored);
    }
    return ok;
}

static void put_ios(struct wml_json *j, const char *key, const struct wml_io *io, size_t n)
{
    wml_json_key(j, key);
    wml_json_begin(j, '[');
    for (size_t i = 0; i < n; i++) {
        wml_json_begin(j, '{');
        wml_json_key(j, "name");
        wml_json_put_cstr(j, io[i].name);
        wml_json_key(j, "dtype");
        wml_json_put_cstr(j, wml_dtype_name((int)io[i].dtype));
        wml_json_key(j, "shape");
        wml_json_begin(j, '[');
        for (size_t k = 0; k < io[i].rank; k++) {
            if (io[i].dim[k] >= 0) wml_json_put_int(j, io[i].dim[k]);
            else wml_json_put_null(j);
        }
        wml_json_end(j, ']');
        wml_json_end(j, '}');
    }
    wml_json_end(j, ']');
}

static void put_samples(struct wml_json *j, const char *key, const double *at, size_t n)
{
    wml_json_key(j, key);
    wml_json_begin(j, '[');
    for (size_t i = 0; i < n; i++) wml_json_put_fixed(j, at[i], 6);
    wml_json_end(j, ']');
}

static void put_number(struct wml_json *j, const char *key, double v)
{
    wml_json_key(j, key);
    wml_json_put_num(j, v);
}

/* Types of nodes as ORT sees them: those that it made have no name in the model. */
static void put_types(struct wml_json *j, const struct bench *b)
{
    const struct wml_placed *placed = NULL;
    size_t n = 0;
    struct wml_map seen = {0};
    struct wml_err ignored = {0};
    wml_json_key(j, "node_types");
    wml_json_begin(j, '{');
    if (b->s->session && wml_session_placement(b->s->session, &placed, &n, &ignored))
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < placed[i].n_nodes; k++) {
                struct wml_str name = wml_str(placed[i].node[k]);
                if (!name.len || wml_map_has(&seen, name)) continue;
                wml_map_put(&seen, name, (void *)(uintptr_t)placed[i].op_type[k]);
                wml_json_key_str(j, name);
                wml_json_put_cstr(j, placed[i].op_type[k]);
            }
    wml_json_end(j, '}');
    wml_map_release(&seen);
}

static void put_facts(struct wml_json *j, const struct bench *b)
{
    size_t n_in = 0, n_out = 0;
    if (b->s->session) {
        const struct wml_io *in = wml_session_inputs(b->s->session, &n_in), *out = wml_session_outputs(b->s->session, &n_out);
        put_ios(j, "inputs", in, n_in);
        put_ios(j, "outputs", out, n_out);
    }
    wml_json_key(j, "fed");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < b->feed.view.len; i++) {
        wml_json_begin(j, '[');
        for (size_t k = 0; k < b->feed.view.at[i].rank; k++) wml_json_put_int(j, b->feed.view.at[i].dim[k]);
        wml_json_end(j, ']');
    }
    wml_json_end(j, ']');
    wml_json_key(j, "notes");
    wml_json_begin(j, '[');
    for (size_t i = 0; i < b->feed.note.len; i++) wml_json_put_cstr(j, b->feed.note.at[i]);
    wml_json_end(j, ']');
    wml_json_key(j, "batch");
    wml_json_put_int(j, b->feed.batch);
    if (wml_json_get_str(b->request, "profile").len) put_types(j, b);
}

static void put_reply(struct wml_json *j, const struct bench *b)
{
    put_facts(j, b);
    put_samples(j, "warmup_ms", b->warmup.at, b->warmup.len);
    put_samples(j, "samples_ms", b->sample.at, b->sample.len);
    wml_json_key(j, "elapsed_ms");
    wml_json_put_fixed(j, (double)b->elapsed_ns / 1e6, 3);
    wml_json_key(j, "interrupted");
    wml_json_put_bool(j, b->interrupted);
    wml_memory_put(j, &b->memory);
    wml_usage_put(j, &b->usage);
    wml_json_key(j, "ort_profile");
    wml_json_put_str(j, b->profile.len ? wml_buf_view(&b->profile) : WML_NO_STR);
    if (b->csv) {
        put_number(j, "csv_after_load", (double)b->csv_loaded);
        put_number(j, "csv_after_run", (double)b->csv_run);
    }
    wml_json_key(j, "ep_log");
    wml_json_put_str(j, b->s->ort ? wml_ort_last_log(b->s->ort) : WML_NO_STR);
}

/* A model that ORT's own optimiser broke may load and fail at its first run. On the CPU EP the next lower level
 * is tried then; elsewhere a second try could only hide the first failure. */
static bool run_at_a_level(struct bench *b, struct wml_err *err)
{
    struct wml_job_session *s = b->s;
    struct wml_err first = {0};
    enum wml_opt_level wanted = b->level;
    bool cpu = strcmp(s->target.ep_name, "CPUExecutionProvider") == 0;
    for (;;) {
        struct wml_err now = {0};
        if (load(b, &now) && prepare(b, &now) && measure(b, &now)) break;
        if (first.code == WML_OK) first = now;
        b->level = s->level; /* the one that was open */
        if (now.code != WML_E_RUN || !cpu || !s->session || b->sample.len + b->warmup.len || b->level == WML_LEVEL_DISABLED) {
            *err = first;
            return false;
        }
        b->level--;
        wml_run_free(b->run);
        b->run = NULL;
        wml_feed_release(&b->feed);
        wml_session_close(s->session);
        s->session = NULL;
    }
    if (first.code != WML_OK)
        snprintf(s->level_note, sizeof s->level_note, "at level %s ORT's optimiser breaks the model (%.140s); level %s works",
                 wml_opt_level_name(wanted), first.msg, wml_opt_level_name(s->level));
    return true;
}

static bool bench(struct wml_job_io *io, const struct wml_json_doc *doc, struct wml_err *err)
{
    const struct wml_json_val *request = wml_json_root(doc);
    struct bench b = {.io = io, .request = request};
    struct wml_json j = {.out = &io->reply};
    struct wml_str samples = wml_json_get_str(request, "samples");
    bool ok = wml_job_target(io, request, &b.s, err);
    b.n_warmup = (size_t)wml_json_get_int(request, "warmup", 0);
    b.n_iterations = (size_t)wml_json_get_int(request, "iterations", 1);
    b.duration_ns = (uint64_t)(wml_json_get_num(request, "duration_ms", 0) * 1e6);
    if (samples.len) b.samples_file = wml_arena_cstr(&b.s->arena, samples);
    struct wml_str csv = wml_json_get_str(request, "csv");
    if (csv.len) b.csv = wml_arena_cstr(&b.s->arena, csv);
    b.live = wml_json_get_bool(request, "live", false);
    b.level = wml_opt_level_named(wml_json_get_str(request, "level"), WML_LEVEL_ALL);
    ok = ok && run_at_a_level(&b, err);
    wml_json_begin(&j, '{');
    wml_job_session_put(&j, b.s);
    put_reply(&j, &b);
    wml_json_end(&j, '}');
    wml_run_free(b.run);
    wml_feed_release(&b.feed);
    WML_VEC_RELEASE(&b.warmup);
    WML_VEC_RELEASE(&b.sample);
    wml_buf_release(&b.profile);
    wml_memory_end(&b.memory);
    return ok;
}

const struct wml_job wml_job_bench = {
    .name = "bench", .summary = "Run a model many times and tell every time",
    .run = bench, .teardown = wml_job_session_teardown,
};
