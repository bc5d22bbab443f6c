/* What is heard of a child: lines of the channel, the end of its output, silence. */
#include "os/spawn_hear.h"

#include "os/sys.h"

enum { LINE_MAX_BYTES = 1 << 20 };

void wml_spawn_keep_tail(struct wml_buf *b, size_t keep, size_t limit)
{
    if (b->len <= limit) return;
    memmove(b->ptr, b->ptr + (b->len - keep), keep);
    b->len = keep;
    b->ptr[keep] = 0;
}

void wml_spawn_say_lines(struct wml_buf *line, const struct wml_child_hooks *hooks, uint64_t *deadline)
{
    size_t at = 0;
    for (size_t i = 0; i < line->len; i++) {
        if (line->ptr[i] != '\n') continue;
        struct wml_str one = {line->ptr + at, i - at};
        uint64_t ms = hooks->on_line ? hooks->on_line(hooks->arg, one) : 0;
        if (ms) *deadline = wml_now_ns() + ms * 1000000;
        at = i + 1;
    }
    if (at) {
        memmove(line->ptr, line->ptr + at, line->len - at);
        line->len -= at;
    }
    if (line->len > LINE_MAX_BYTES) wml_buf_clear(line);
}

void wml_spawn_tell_quiet(struct wml_spawn_silence *s, const struct wml_child_hooks *hooks)
{
    uint64_t now = wml_now_ns(), each = hooks->quiet_ms * 1000000;
    if (!s->heard_ns || s->told_ns < s->heard_ns) s->told_ns = s->heard_ns = s->heard_ns ? s->heard_ns : now;
    if (!each || !hooks->on_quiet || now - s->told_ns < each) return;
    s->told_ns = now;
    hooks->on_quiet(hooks->arg, (now - s->heard_ns) / 1000000);
}
