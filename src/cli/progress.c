/* cli/progress.c - the progress display. On a terminal: one line, redrawn at most ten times a second and
 * erased at the end; it appears only after a moment, so quick work does not flicker, and a thread keeps
 * its clock going while a stage reports nothing. Elsewhere: one plain line per stage. */
#include "cli/console.h"

#include "os/sys.h"
#include "os/thread.h"
#include "text/words.h"

enum { BAR = 24, TICK_MS = 200, LEAST_ITEM = 12 };
static const uint64_t REDRAW_NS = 100000000, APPEAR_NS = 150000000;

static void put_styled(const struct wml_console *c, struct wml_buf *out, const char *code, const char *text)
{
    if (c->err_colour)
        wml_buf_fmt(out, "\x1b[%sm%s\x1b[0m", code, text);
    else
        wml_buf_cstr(out, text);
}

static void put_bar(const struct wml_console *c, double share, struct wml_buf *out)
{
    size_t halves = (size_t)(share * 2 * BAR);
    if (c->err_colour) wml_buf_cstr(out, "\x1b[36m");
    for (size_t i = 0; i < BAR; i++) {
        if (i == (halves + 1) / 2 && c->err_colour) wml_buf_cstr(out, "\x1b[0m\x1b[2m");
        wml_buf_cstr(out, 2 * i + 1 < halves    ? "━"
                          : 2 * i + 1 == halves ? "╸"
                          : c->err_colour       ? "━"
                                                : " ");
    }
    if (c->err_colour) wml_buf_cstr(out, "\x1b[0m");
}

/* "420/1,000 runs  153 runs/s  4 s left", or what of it is known. */
static void put_facts(const struct wml_console *c, double seconds, struct wml_buf *out)
{
    bool known = c->total > 0;
    uint64_t since = c->done > c->first_done ? c->done - c->first_done : 0;
    double noted = (double)(c->noted_ns - c->begun_ns) / 1e9; /* silence does not make work slower */
    double rate = noted > 0.3 ? (double)since / noted : 0;
    if (c->done || known) {
        wml_buf_cstr(out, "  ");
        wml_count_text(out, c->done);
        if (known) {
            wml_buf_char(out, '/');
            wml_count_text(out, c->total);
        }
        if (c->unit[0]) wml_buf_fmt(out, " %s", c->unit);
    }
    if (rate > 0 && c->unit[0] && since > 1)
        wml_buf_fmt(out, rate < 10 ? "  %.1f %s/s" : "  %.0f %s/s", rate, c->unit);
    if (rate > 0 && known && c->done < c->total) {
        double left = (double)(c->total - c->done) / rate;
        if (left >= 1) {
            wml_buf_cstr(out, "  ");
            if (left < 60)
                wml_buf_fmt(out, "%.0f s", left);
            else
                wml_duration_text(out, (double)(uint64_t)left * 1000);
            wml_buf_cstr(out, " left");
        }
    } else if (!known && seconds >= 1) {
        wml_buf_fmt(out, "  %.0f s", seconds);
    }
}

void wml_console_line(const struct wml_console *c, uint64_t now_ns, unsigned width, struct wml_buf *out)
{
    static const char *const spin[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
    double seconds = (double)(now_ns - c->begun_ns) / 1e9;
    struct wml_buf facts = {0};
    put_facts(c, seconds, &facts);
    size_t used = wml_utf8_width(wml_str(c->stage)) + 2 + wml_utf8_width(wml_buf_view(&facts));
    bool bar = c->total && used + BAR + 7 <= width;
    if (bar) used += BAR + 7;
    size_t room = width > used + 2 ? width - used - 2 : 0;
    struct wml_str item = wml_str(c->item);
    size_t fits = wml_utf8_prefix(item, room);
    item.len = fits < item.len && room < LEAST_ITEM ? 0 : fits;

    if (!c->total) {
        put_styled(c, out, "36", spin[now_ns / 100000000 % WML_COUNT(spin)]);
        wml_buf_char(out, ' ');
    }
    put_styled(c, out, "1", c->stage);
    if (bar) {
        double share = WML_MIN(1.0, (double)c->done / (double)c->total);
        wml_buf_cstr(out, "  ");
        put_bar(c, share, out);
        wml_buf_fmt(out, " %3d%%", (int)(share * 100));
    }
    if (used <= width) put_styled(c, out, "2", wml_buf_text(&facts));
    if (item.len) wml_buf_fmt(out, "  %.*s", WML_ARG(item));
    wml_buf_release(&facts);
}

/* With the lock held. */
static void draw(struct wml_console *c, uint64_t now)
{
    struct wml_buf line = {0};
    unsigned width = wml_term_width(2);
    wml_buf_cstr(&line, "\r");
    wml_console_line(c, now, width > 1 ? width - 1 : 1, &line);
    wml_buf_cstr(&line, "\x1b[K");
    wml_term_write(2, wml_buf_view(&line));
    wml_buf_release(&line);
    c->drawn = true;
    c->drawn_ns = now;
}

static void erase(struct wml_console *c)
{
    if (c->drawn) wml_term_write(2, WML_STR("\r\x1b[2K"));
    c->drawn = false;
}

static void tick(void *arg)
{
    struct wml_console *c = arg;
    wml_mutex_lock(c->lock);
    while (!c->stop) {
        wml_cond_wait(c->wake, c->lock, TICK_MS);
        uint64_t now = wml_now_ns();
        if (c->active && !c->stop && now - c->begun_ns >= APPEAR_NS && now - c->drawn_ns >= REDRAW_NS)
            draw(c, now);
    }
    wml_mutex_unlock(c->lock);
}

static void copy(char *to, size_t size, const char *from)
{
    struct wml_str s = wml_str(from ? from : "");
    if (s.len >= size) {
        s.len = size - 1;
        while (s.len && !wml_utf8_valid(s)) s.len--;
    }
    for (size_t i = 0; i < s.len; i++) to[i] = (unsigned char)s.ptr[i] < 0x20 ? ' ' : s.ptr[i];
    to[s.len] = '\0';
}

/* Notes the state; true when a new stage begins. */
static bool take(struct wml_console *c, const struct wml_progress *p, uint64_t now)
{
    char stage[sizeof c->stage];
    copy(stage, sizeof stage, p->stage);
    bool fresh = !c->active || strcmp(stage, c->stage) != 0;
    if (fresh) {
        memcpy(c->stage, stage, sizeof stage);
        c->first_done = p->done;
        c->begun_ns = now;
    }
    copy(c->item, sizeof c->item, p->item);
    copy(c->unit, sizeof c->unit, p->unit);
    c->done = p->done;
    c->total = p->total;
    c->noted_ns = now;
    c->active = true;
    return fresh;
}

void wml_console_progress(void *sink, const struct wml_progress *p)
{
    struct wml_console *c = sink;
    if (c->quiet || !c->lock) return;
    wml_mutex_lock(c->lock);
    if (!p) {
        erase(c);
        c->active = false;
    } else {
        uint64_t now = wml_now_ns();
        bool fresh = take(c, p, now);
        if (c->live) {
            if (!c->ticker && !wml_thread_start(&c->ticker, tick, c, NULL)) c->live = false;
            bool due = now - (c->drawn ? c->drawn_ns : c->begun_ns) >= (c->drawn ? REDRAW_NS : APPEAR_NS);
            if (c->live && due) draw(c, now);
        } else if (fresh && !c->json) {
            struct wml_buf line = {0};
            wml_buf_fmt(&line, "%s%s%s\n", c->stage, c->item[0] ? " " : "", c->item);
            wml_term_write(2, wml_buf_view(&line));
            wml_buf_release(&line);
        }
    }
    wml_mutex_unlock(c->lock);
}
