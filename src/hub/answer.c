/* Header lines to the facts of an answer. They come from whoever answers: texts are cut, control characters go. */
#include "hub/http.h"

#include "base/num.h"

enum { LONGEST = 8192 }; /* a signed address */

static void put(struct wml_buf *out, struct wml_str value)
{
    wml_buf_clear(out);
    for (size_t i = 0; i < value.len && i < LONGEST; i++)
        if ((unsigned char)value.ptr[i] >= 0x20 && value.ptr[i] != 0x7f) wml_buf_char(out, value.ptr[i]);
}

static void reset(struct wml_http_answer *a)
{
    struct wml_buf *const text[] = {&a->location, &a->etag, &a->linked_etag, &a->commit, &a->error_code, &a->error_message};
    for (size_t i = 0; i < WML_COUNT(text); i++) wml_buf_clear(text[i]);
    a->status = 0;
    a->length = a->linked_size = a->range_from = a->range_total = UINT64_MAX;
    a->wait_ms = 0;
}

static uint64_t number(struct wml_str s)
{
    uint64_t v;
    return wml_parse_u64(s, &v) ? v : UINT64_MAX;
}

/* "bytes 5-9/10", "bytes * /10" for a range that does not exist. */
static void put_range(struct wml_http_answer *a, struct wml_str value)
{
    size_t slash = wml_str_rfind(value, '/'), blank = wml_str_find(value, ' '), dash = wml_str_find(value, '-');
    if (slash == SIZE_MAX || blank == SIZE_MAX) return;
    a->range_total = number(wml_str_sub(value, slash + 1, value.len));
    if (dash != SIZE_MAX && dash > blank) a->range_from = number(wml_str_sub(value, blank + 1, dash));
}

static void put_wait(struct wml_http_answer *a, struct wml_str value)
{
    uint64_t s = number(value);
    if (s < UINT64_MAX / 1000) a->wait_ms = s * 1000; /* a date instead is rare: the usual pause then */
}

void wml_http_answer_line(struct wml_http_answer *a, struct wml_str line)
{
    size_t colon = wml_str_find(line, ':');
    if (wml_str_starts(line, "HTTP/")) {
        size_t blank = wml_str_find(line, ' ');
        uint64_t status = blank == SIZE_MAX ? UINT64_MAX : number(wml_str_sub(line, blank + 1, blank + 4));
        reset(a);
        a->status = status < 1000 ? (int)status : 0;
        return;
    }
    if (colon == SIZE_MAX) return;
    struct wml_str name = wml_str_sub(line, 0, colon), value = wml_str_trim(wml_str_sub(line, colon + 1, line.len));
    struct { const char *name; struct wml_buf *text; } const texts[] = {
        {"location", &a->location}, {"etag", &a->etag}, {"x-linked-etag", &a->linked_etag}, {"x-repo-commit", &a->commit},
        {"x-error-code", &a->error_code}, {"x-error-message", &a->error_message},
    };
    for (size_t i = 0; i < WML_COUNT(texts); i++)
        if (wml_str_ieq(name, wml_str(texts[i].name))) put(texts[i].text, value);
    if (wml_str_ieq(name, WML_STR("content-length"))) a->length = number(value);
    if (wml_str_ieq(name, WML_STR("x-linked-size"))) a->linked_size = number(value);
    if (wml_str_ieq(name, WML_STR("content-range"))) put_range(a, value);
    if (wml_str_ieq(name, WML_STR("retry-after"))) put_wait(a, value);
}

void wml_http_answer_release(struct wml_http_answer *a)
{
    wml_buf_release(&a->location);
    wml_buf_release(&a->etag);
    wml_buf_release(&a->linked_etag);
    wml_buf_release(&a->commit);
    wml_buf_release(&a->error_code);
    wml_buf_release(&a->error_message);
}
