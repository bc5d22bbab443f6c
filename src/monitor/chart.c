/* The live panel: one braille chart of the machine's CPU over the last seconds, latency below it, and rows with
 * numbers. Columns are time: the newest sample is at the right edge. */
#include "monitor/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "text/words.h"

enum { CHART_ROWS = 6, LATENCY_ROWS = 4, MAX_WIDTH = 120, GUTTER = 7, MAX_POINTS = 600 };
static const double WINDOW_S = 15;

void wml_chart_release(struct wml_chart *c)
{
    WML_VEC_RELEASE(&c->point);
}

bool wml_chart_add(struct wml_chart *c, double now_s, struct wml_str item)
{
    char text[96];
    struct wml_chart_point p;
    if (item.len >= sizeof text || !item.len) return false;
    memcpy(text, item.ptr, item.len);
    text[item.len] = 0;
    if (sscanf(text, "cpu %lf mb %lf ms %lf", &p.cpu, &p.mb, &p.ms) != 3) return false;
    if (!isfinite(p.cpu) || !isfinite(p.mb) || !isfinite(p.ms)) return false;
    if (!c->point.len) c->start_s = now_s;
    p.t_s = now_s - c->start_s;
    p.cpu = fmin(100, fmax(0, p.cpu / (c->cpus ? c->cpus : 1)));
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

/* Draws one series; filled: an area down to the bottom. */
static void plot(struct dots *d, const struct wml_chart *c, bool latency, double low, double high, bool filled)
{
    double end = c->point.at[c->point.len - 1].t_s, begin = end - WINDOW_S;
    unsigned w = d->columns * 2, h = d->rows * 4, last_x = 0, last_y = 0;
    bool any = false;
    for (size_t i = 0; i < c->point.len; i++) {
        const struct wml_chart_point *p = &c->point.at[i];
        if (p->t_s < begin) continue;
        double v = latency ? p->ms : p->cpu, share = high > low ? fmin(1, fmax(0, (v - low) / (high - low))) : 0;
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

static void paint(struct wml_buf *out, bool colour, const char *code, const char *text)
{
    if (colour) wml_buf_fmt(out, "\x1b[%sm%s\x1b[0m", code, text);
    else wml_buf_cstr(out, text);
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

static void series(const struct wml_chart *c, unsigned width, bool latency, bool colour, struct wml_buf *out)
{
    struct dots d = {.columns = width - GUTTER, .rows = latency ? LATENCY_ROWS : CHART_ROWS};
    double low = 0, high = 100, end = c->point.at[c->point.len - 1].t_s;
    if (latency) {
        high = 0;
        for (size_t i = 0; i < c->point.len; i++)
            if (c->point.at[i].t_s >= end - WINDOW_S) high = fmax(high, c->point.at[i].ms);
        high = high > 0 ? high * 1.1 : 1;
    }
    plot(&d, c, latency, low, high, !latency);
    put_dots(&d, low, high, latency ? "ms" : "%", latency ? "32" : "36", colour, out);
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
    if (c->total) snprintf(tail, sizeof tail, " %s: %" PRIu64 "/%" PRIu64, c->stage, c->done, c->total);
    else snprintf(tail, sizeof tail, " %s: %" PRIu64 " runs", c->stage, c->done);
    unsigned used = (unsigned)wml_utf8_width(wml_str(tail)), bar = width > used + 10 ? width - used : 0;
    double share = c->total ? fmin(1, (double)c->done / (double)c->total) : 0;
    for (unsigned i = 0; c->total && i < bar; i++) {
        if (i < (unsigned)(share * bar)) paint(out, colour, "36", "━");
        else paint(out, colour, "2", colour ? "━" : " ");
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
    double mean = 0, ms = 0;
    for (size_t i = n - kept; i < n; i++) mean += c->point.at[i].cpu / (double)kept;
    for (size_t i = n - kept; i < n; i++) ms += c->point.at[i].ms / (double)kept;
    if (colour) wml_buf_cstr(out, "\x1b[1m");
    snprintf(text, sizeof text, "%s  %s", c->title, c->device);
    one_line(out, width, text);
    if (colour) wml_buf_cstr(out, "\x1b[0m");
    if (height >= CHART_ROWS + 8) series(c, width, false, colour, out);
    if (height >= CHART_ROWS + LATENCY_ROWS + 8) series(c, width, true, colour, out);
    progress_row(c, width, colour, out);
    snprintf(text, sizeof text, "CPU %.0f%% now, %.0f%% avg   Memory %.0f MB", p->cpu, mean, p->mb);
    one_line(out, width, text);
    snprintf(text, sizeof text, "Latency %.3f ms   Throughput ~%.0f smp/s", p->ms, ms > 0 ? 1000 * (c->batch > 0 ? c->batch : 1) / ms : 0);
    one_line(out, width, text);
    for (size_t i = begin; i < out->len; i++) lines += out->ptr[i] == '\n';
    return lines;
}
