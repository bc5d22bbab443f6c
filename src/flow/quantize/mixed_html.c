/* Mixed precision in the HTML report: the models that were tried, as a curve against the goal, and what was raised. */
#include <math.h>
#include <stdlib.h>

#include "flow/html.h"
#include "flow/quantize/internal.h"

enum { WIDTH = 720, HEIGHT = 220, LEFT = 52, RIGHT = 10, TOP = 14, BOTTOM = 30, MOST_ROWS = 200 /* JSON has all */ };

struct chart { double low, high, most; }; /* dB; raised */

static double x_of(const struct chart *c, size_t raised)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (double)raised / c->most;
}

/* Models whose outputs are no numbers, or exact, lie on the border. */
static double y_of(const struct chart *c, double db)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (fmin(fmax(db, c->low), c->high) - c->low) / (c->high - c->low));
}

static int fewer(const void *a, const void *b)
{
    const struct wml_mixed_step *x = a, *y = b;
    return x->raised < y->raised ? -1 : x->raised > y->raised;
}

static bool is_taken(const struct wml_mixed *m, const struct wml_mixed_step *s)
{
    return s->raised == m->raised.len && s->sqnr_db == m->sqnr_db;
}

static struct chart scale(const struct wml_mixed *m)
{
    struct chart c = {m->goal_db, m->goal_db, (double)WML_MAX(m->parts, (size_t)1)};
    for (size_t i = 0; i < m->step.len; i++) {
        double db = m->step.at[i].sqnr_db;
        if (isfinite(db)) c.low = fmin(c.low, db), c.high = fmax(c.high, db);
    }
    double pad = fmax(1, (c.high - c.low) * 0.1);
    c.low -= pad;
    c.high += pad;
    return c;
}

static void grid(const struct chart *c, struct wml_buf *b)
{
    for (int i = 0; i <= 4; i++) {
        double db = c->low + (c->high - c->low) * i / 4, y = y_of(c, db);
        wml_buf_fmt(b, "<line class=grid x1=%d x2=%d y1=%.1f y2=%.1f /><text x=%d y=%.1f text-anchor=end>%.1f dB</text>\n", LEFT, WIDTH - RIGHT, y, y,
                    LEFT - 6, y + 4, db);
    }
    wml_buf_fmt(b, "<text x=%d y=%d>0 raised</text><text x=%d y=%d text-anchor=end>%.0f</text>\n", LEFT, HEIGHT - 8, WIDTH - RIGHT, HEIGHT - 8, c->most);
}

static void chart(const struct wml_mixed *m, struct wml_buf *b)
{
    struct chart c = scale(m);
    struct wml_arena arena = {0};
    struct wml_mixed_step *step = WML_NEW_ARRAY(&arena, struct wml_mixed_step, m->step.len + 1);
    if (m->step.len) memcpy(step, m->step.at, m->step.len * sizeof *step);
    qsort(step, m->step.len, sizeof *step, fewer);
    wml_buf_fmt(b, "<svg viewBox=\"0 0 %d %d\" role=img aria-label=\"ratio by tensors raised\">\n", WIDTH, HEIGHT);
    grid(&c, b);
    wml_buf_fmt(b, "<line class=m x1=%d x2=%d y1=%.1f y2=%.1f />\n<polyline class=l points=\"", LEFT, WIDTH - RIGHT, y_of(&c, m->goal_db), y_of(&c, m->goal_db));
    for (size_t i = 0; i < m->step.len; i++) wml_buf_fmt(b, "%.1f,%.1f ", x_of(&c, step[i].raised), y_of(&c, step[i].sqnr_db));
    wml_buf_cstr(b, "\" />\n");
    for (size_t i = 0; i < m->step.len; i++)
        wml_buf_fmt(b, "<circle class=d r=%s cx=%.1f cy=%.1f><title>%zu raised: %.2f dB</title></circle>\n", is_taken(m, &step[i]) ? "5" : "3",
                    x_of(&c, step[i].raised), y_of(&c, step[i].sqnr_db), step[i].raised, step[i].sqnr_db);
    wml_buf_cstr(b, "</svg>\n");
    wml_arena_release(&arena);
}

static void steps(const struct wml_mixed *m, struct wml_buf *b)
{
    wml_buf_cstr(b, "<table><tr><th>Model</th><th class=n>Raised</th><th class=n>SQNR dB</th><th></th></tr>\n");
    for (size_t i = 0; i < m->step.len; i++) {
        const struct wml_mixed_step *s = &m->step.at[i];
        wml_buf_fmt(b, "<tr><td>%zu</td><td class=n>%zu</td>", i + 1, s->raised);
        wml_html_ratio_cell(b, true, s->sqnr_db);
        wml_html_cell(b, is_taken(m, s) ? "taken" : s->sqnr_db >= m->goal_db ? "reaches the goal" : "");
        wml_buf_cstr(b, "</tr>\n");
    }
    wml_buf_cstr(b, "</table>\n");
}

static void raised(const struct wml_mixed *m, struct wml_buf *b)
{
    size_t n = WML_MIN(m->raised.len, (size_t)MOST_ROWS);
    if (!n) return;
    wml_buf_fmt(b, "<h2>Tensors raised to 16 bits</h2>\n<p class=sub>%zu of %zu, in the order in which they were raised. Alone: the ratio at the outputs when only this "
                   "tensor has 8 bits.</p>\n", n, m->raised.len);
    wml_buf_cstr(b, "<table><tr><th>Tensor</th><th>Kind</th><th class=n>Alone dB</th></tr>\n");
    for (size_t i = 0; i < n; i++) {
        wml_buf_cstr(b, "<tr>");
        wml_html_cell(b, m->raised.at[i].name);
        wml_html_cell(b, m->raised.at[i].kind);
        wml_html_ratio_cell(b, true, m->raised.at[i].noise_db);
        wml_buf_cstr(b, "</tr>\n");
    }
    wml_buf_cstr(b, "</table>\n");
}

void wml_mixed_html(const struct wml_mixed *m, struct wml_buf *b)
{
    if (!m->asked) return;
    wml_buf_cstr(b, "<h2>Mixed precision</h2>\n<p class=sub>");
    if (!m->reached) wml_buf_fmt(b, "<span class=warn>The goal of %.4g dB was not reached.</span> ", m->goal_db);
    if (!m->raised.len && m->reached) wml_buf_fmt(b, "8 bits reach the goal of %.4g dB (dashed): nothing was raised.", m->goal_db);
    else wml_buf_fmt(b, "%zu of %zu candidates raised; nodes in 16 bits: %zu of %zu. Goal (dashed): %.4g dB. Worst output: %.2f dB, before %.2f dB.",
                     m->raised.len, m->parts, m->wide_nodes, m->nodes, m->goal_db, m->sqnr_db, m->plain_db);
    wml_buf_cstr(b, "</p>\n");
    if (m->step.len > 1) {
        chart(m, b);
        steps(m, b);
    }
    raised(m, b);
}
