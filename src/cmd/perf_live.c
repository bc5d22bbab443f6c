/* The live panel: sinks of the context are replaced for the time of the command. Progress that carries numbers of
 * the monitor is drawn as a chart, at most five times a second; everything else goes where it went before. Log
 * lines come from any thread, so a lock guards the panel. */
#include "cmd/perf_live.h"

#include "cli/console.h"
#include "monitor/chart.h"
#include "os/sys.h"
#include "os/thread.h"

enum { HEIGHT = 24 };
static const uint64_t REDRAW_NS = 200000000;

struct wml_perf_live {
    struct wml_ctx *cx;
    void *sink; /* the console's */
    void (*log)(void *sink, enum wml_log_level level, const char *msg);
    void (*progress)(void *sink, const struct wml_progress *p);
    struct wml_mutex *lock;
    struct wml_chart chart;
    char stage[24];
    size_t lines; /* drawn now */
    uint64_t drawn_ns;
    bool colour;
};

/* With the lock held. */
static void erase(struct wml_perf_live *l)
{
    struct wml_buf out = {0};
    if (!l->lines) return;
    wml_buf_fmt(&out, "\r\x1b[%zuA\x1b[J", l->lines);
    wml_term_write(2, wml_buf_view(&out));
    wml_buf_release(&out);
    l->lines = 0;
}

static void draw(struct wml_perf_live *l, uint64_t now)
{
    struct wml_buf out = {0};
    unsigned width = wml_term_width(2);
    if (l->lines) wml_buf_fmt(&out, "\r\x1b[%zuA\x1b[J", l->lines);
    l->lines = wml_chart_draw(&l->chart, width > 1 ? width - 1 : 1, HEIGHT, l->colour, &out);
    wml_term_write(2, wml_buf_view(&out));
    wml_buf_release(&out);
    l->drawn_ns = now;
}

static void on_log(void *sink, enum wml_log_level level, const char *msg)
{
    struct wml_perf_live *l = sink;
    wml_mutex_lock(l->lock);
    erase(l);
    wml_mutex_unlock(l->lock);
    if (l->log) l->log(l->sink, level, msg);
}

static void on_progress(void *sink, const struct wml_progress *p)
{
    struct wml_perf_live *l = sink;
    uint64_t now = wml_now_ns();
    wml_mutex_lock(l->lock);
    bool ours = p && p->item && wml_chart_add(&l->chart, (double)now / 1e9, wml_str(p->item));
    if (ours) {
        snprintf(l->stage, sizeof l->stage, "%s", strcmp(p->stage, "Running") == 0 ? "Iter" : "Warmup");
        l->chart.stage = l->stage;
        l->chart.done = p->done;
        l->chart.total = p->total;
        l->chart.timed = !p->unit && p->total > 0;
        if (!l->lines && l->progress) l->progress(l->sink, NULL);
        if (!l->lines || now - l->drawn_ns >= REDRAW_NS) draw(l, now);
    } else {
        erase(l);
    }
    wml_mutex_unlock(l->lock);
    if (!ours && l->progress) l->progress(l->sink, p);
}

struct wml_perf_live *wml_perf_live_start(struct wml_ctx *cx, const char *title, const char *device, double batch,
                                          const char *unit)
{
    struct wml_buf term = {0};
    bool able = wml_term_is(2) && cx->progress && !(wml_env("TERM", &term) && strcmp(wml_buf_text(&term), "dumb") == 0);
    wml_buf_release(&term);
    if (!able) return NULL;
    struct wml_perf_live *l = wml_xcalloc(1, sizeof *l);
    *l = (struct wml_perf_live){.cx = cx, .sink = cx->sink, .log = cx->log, .progress = cx->progress, .lock = wml_mutex_new(),
                                .chart = {.title = title, .device = device, .cpus = wml_cpu_count(), .batch = batch, .unit = unit},
                                .colour = wml_console_colour(true)};
    cx->sink = l;
    cx->log = on_log;
    cx->progress = on_progress;
    return l;
}

void wml_perf_live_end(struct wml_perf_live *l)
{
    if (!l) return;
    erase(l);
    l->cx->sink = l->sink;
    l->cx->log = l->log;
    l->cx->progress = l->progress;
    wml_chart_release(&l->chart);
    wml_mutex_free(l->lock);
    free(l);
}
