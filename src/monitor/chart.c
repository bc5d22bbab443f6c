/* The live panel: a braille chart of load over the last seconds (of the NPU, else of the GPU, else of the CPU),
 * latency below it, and rows with numbers. Columns are time: the newest sample is at the right edge. */
#include "monitor/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "text/words.h"

enum { CHART_ROWS = 6, LATENCY_ROWS = 4, MAX_WIDTH = 120, GUTTER = 7, MAX_POINTS = 600 };
static const double WINDOW_S = 15;

void wml_chart_release(struct wml_chart *c)
{
    WML_VEC_RELEASE(&c->point);
}

bool wml_chart_add(struct wml_chart *c, double now_s, struct wml_str item)
{
    static const char *const name[] = {"cpu", "mb", "ms", "gpu", "npu"};
    struct wml_chart_point p = {0};
    double *const value[] = {&p.cpu, &p.mb, &p.ms, &p.gpu, &p.npu};
    struct wml_str word;
    for (size_t i = 0; i < WML_COUNT(name); i++) {
        if (!wml_str_split(&item, ' ', &word) || !wml_str_is(word, name[i])) return false;
        if (!wml_str_split(&item, ' ', &word) || !wml_parse_f64(word, value[i]) || !isfinite(*value[i])) return false;
    }
    if (item.ptr) return false;
    if (!c->point.len) c->start_s = now_s;
    p.t_s = now_s - c->start_s;
    p.cpu = fmin(100, fmax(0, p.cpu / (c->cpus ? c->cpus : 1)));
    p.gpu = fmin(100, p.gpu);
    p.npu = fmin(100, p.npu);
    if (c->point.len >= 2 * MAX_POINTS) {
        memmove(c->point.at, c->point.at + MAX_POINTS, (c->point.len - MAX_POINTS) * sizeof *c->point.at);
        c->point.len -= MAX_POINTS;
    }
    WML_PUSH(&c->point, p);
    return true;
}

/* A grid of dots, two wide and four high per character. */
struct dots {
    unsigned columns, rows;
    unsigned char cell[MAX_WIDTH * CHART_ROWS];
};

static void set_dot(struct dots *d, unsigned x, unsigned y)
{
    static const unsigned char bit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (x / 2 < d->columns && y / 4 < d->rows) d->cell[y / 4 * d->columns + x / 2] |= bit[y % 4][x % 2];
}

enum series { CPU, GPU, NPU, LATENCY };

static double value_of(const struct wml_chart_point *p, enum series s)
{
    return s == NPU ? p->npu : s == GPU ? p->gpu : s == CPU ? p->cpu : p->ms;
}

/* Known at any time. */
static bool is_known(const struct wml_chart *c, enum series s)
{
    for (size_t i = 0; i < c->point.len; i++)
        if (value_of(&c->point.at[i], s) >= 0) return true;
    return false;
}

/* Draws one series; filled: an area down to the bottom. */
static void plot(struct dots *d, const struct wml_chart *c, enum series what, double low, double high, bool filled)
{
    double end = c->point.at[c->point.len - 1].t_s, begin = end - WINDOW_S;
    unsigned w = d->columns * 2, h = d->rows * 4, last_x = 0, last_y = 0;
    bool any = false;
    for (size_t i = 0; i < c->point.len; i++) {
        const struct wml_chart_point *p = &c->point.at[i];
        if (p->t_s < begin) continue;
        double v = value_of(p, what), share = high > low ? fmin(1, fmax(0, (v - low) / (high - low))) : 0;
        unsigned x = (unsigned)((p->t_s - begin) / WINDOW_S * (w - 1)), y = (unsigned)((1 - share) * (h - 1) + 0.5);
        for (unsigned k = any ? last_x : x; k <= x; k++) {
            double at = x > last_x && any ? (double)(k - last_x) / (x - last_x) : 1;
            unsigned top = any ? (unsigned)(last_y + at * ((double)y - last_y) + 0.5) : y;
            set_dot(d, k, top);
            for (unsigned down = top; filled && down < h; down++) set_dot(d, k, down);
        }
        last_x = x;
        last_y = y;
        any = true;
    }
}

static void paint(struct wml_buf *out, bool colour, const char *code, const char *text, unsigned times)
{
    if (colour && times) wml_buf_fmt(out, "\x1b[%sm", code);
    for (unsigned i = 0; i < times; i++) wml_buf_cstr(out, text);
    if (colour && times) wml_buf_cstr(out, "\x1b[0m");
}

static void put_dots(const struct dots *d, double low, double high, const char *unit, const char *code, bool colour, struct wml_buf *out)
{
    for (unsigned r = 0; r < d->rows; r++) {
        char label[24] = "";
        if (r == 0) snprintf(label, sizeof label, "%.3g%s", high, unit);
        if (r + 1 == d->rows) snprintf(label, sizeof label, "%.3g", low);
        label[GUTTER - 1] = 0;
        wml_buf_fmt(out, "%*s ", GUTTER - 1, label);
        if (colour) wml_buf_fmt(out, "\x1b[%sm", code);
        for (unsigned x = 0; x < d->columns; x++) {
            unsigned char bits = d->cell[r * d->columns + x];
            char utf8[4] = {(char)0xe2, (char)(0xa0 | bits >> 6), (char)(0x80 | (bits & 0x3f)), 0};
            wml_buf_cstr(out, bits ? utf8 : " ");
        }
        wml_buf_cstr(out, colour ? "\x1b[0m\n" : "\n");
    }
}

static void chart(const struct wml_chart *c, unsigned width, enum series what, bool colour, struct wml_buf *out)
{
    static const char *const unit[] = {[CPU] = "%", [GPU] = "%", [NPU] = "%", [LATENCY] = "ms"};
    static const char *const code[] = {[CPU] = "36", [GPU] = "33", [NPU] = "32", [LATENCY] = "34"};
    struct dots d = {.columns = width - GUTTER, .rows = what == LATENCY ? LATENCY_ROWS : CHART_ROWS};
    double low = 0, high = 100, end = c->point.at[c->point.len - 1].t_s;
    if (what == LATENCY) {
        high = 0;
        for (size_t i = 0; i < c->point.len; i++)
            if (c->point.at[i].t_s >= end - WINDOW_S) high = fmax(high, c->point.at[i].ms);
        high = high > 0 ? high * 1.1 : 1;
    }
    plot(&d, c, what, low, high, what != LATENCY);
    put_dots(&d, low, high, unit[what], code[what], colour, out);
}

/* "  NPU 87% now, 80% avg". */
static void load_text(const struct wml_chart *c, enum series what, const char *name, struct wml_buf *out)
{
    size_t n = 0, first = c->point.len > MAX_POINTS ? c->point.len - MAX_POINTS : 0;
    double sum = 0, last = 0;
    for (size_t i = first; i < c->point.len; i++) {
        double v = value_of(&c->point.at[i], what);
        if (v < 0) continue;
        last = v;
        sum += v;
        n++;
    }
    if (n) wml_buf_fmt(out, "%s%s %.0f%% now, %.0f%% avg", out->len ? "   " : "", name, last, sum / (double)n);
}

static void one_line(struct wml_buf *out, unsigned width, const char *text)
{
    struct wml_str s = wml_str(text);
    s.len = wml_utf8_prefix(s, width);
    wml_buf_str(out, s);
    wml_buf_char(out, '\n');
}

static void progress_row(const struct wml_chart *c, unsigned width, bool colour, struct wml_buf *out)
{
    char tail[96];
    if (c->timed) snprintf(tail, sizeof tail, " Time: %.1f/%.1f s", (double)c->done / 1000, (double)c->total / 1000);
    else if (c->total) snprintf(tail, sizeof tail, " %s: %" PRIu64 "/%" PRIu64, c->stage, c->done, c->total);
    else snprintf(tail, sizeof tail, " %s: %" PRIu64 " runs", c->stage, c->done);
    unsigned used = (unsigned)wml_utf8_width(wml_str(tail)), bar = width > used + 10 ? width - used : 0;
    double share = c->total ? fmin(1, (double)c->done / (double)c->total) : 0;
    unsigned full = (unsigned)(share * bar);
    if (c->total) {
        paint(out, colour, "36", "━", full);
        paint(out, colour, "2", colour ? "━" : " ", bar - full);
    }
    one_line(out, width, tail);
}

size_t wml_chart_draw(const struct wml_chart *c, unsigned width, unsigned height, bool colour, struct wml_buf *out)
{
    size_t lines = 0, begin = out->len, n = c->point.len;
    char text[192];
    width = WML_MIN(width, (unsigned)MAX_WIDTH);
    if (!n || width < 30) return 0;
    const struct wml_chart_point *p = &c->point.at[n - 1];
    size_t kept = WML_MIN(n, (size_t)MAX_POINTS);
    double ms = 0;
    struct wml_buf loads = {0};
    enum series load = is_known(c, NPU) ? NPU : is_known(c, GPU) ? GPU : CPU;
    for (size_t i = n - kept; i < n; i++) ms += c->point.at[i].ms / (double)kept;
    if (colour) wml_buf_cstr(out, "\x1b[1m");
    snprintf(text, sizeof text, "%s  %s", c->title, c->device);
    one_line(out, width, text);
    if (colour) wml_buf_cstr(out, "\x1b[0m");
    if (height >= CHART_ROWS + 8) chart(c, width, load, colour, out);
    if (height >= CHART_ROWS + LATENCY_ROWS + 8) chart(c, width, LATENCY, colour, out);
    progress_row(c, width, colour, out);
    load_text(c, NPU, "NPU", &loads);
    load_text(c, GPU, "GPU", &loads);
    load_text(c, CPU, "CPU", &loads);
    wml_buf_fmt(&loads, "   Memory %.0f MB", p->mb);
    one_line(out, width, wml_buf_text(&loads));
    wml_buf_release(&loads);
    snprintf(text, sizeof text, "Latency %.3f ms   Throughput ~%.0f %s", p->ms, ms > 0 ? 1000 * (c->batch > 0 ? c->batch : 1) / ms : 0,
             c->unit ? c->unit : "smp/s");
    one_line(out, width, text);
    for (size_t i = begin; i < out->len; i++) lines += out->ptr[i] == '\n';
    return lines;
}
