/* Similar names, wildcards, and amounts for people. */
#include "text/words.h"

#include <inttypes.h>

enum { WORD_MAX = 64 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Damerau-Levenshtein distance with adjacent swaps (optimal string alignment). */
static size_t distance(struct wml_str a, struct wml_str b)
{
    size_t row[3][WORD_MAX + 1] = {0};
    size_t *before = row[0], *last = row[1], *now = row[2];
    for (size_t k = 0; k <= b.len; k++) last[k] = k;
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = i;
        for (size_t k = 1; k <= b.len; k++) {
            char x = lower(a.ptr[i - 1]), y = lower(b.ptr[k - 1]);
            size_t best = last[k - 1] + (x == y ? 0 : 1);
            best = WML_MIN(best, WML_MIN(last[k], now[k - 1]) + 1);
            bool swap = i > 1 && k > 1 && x == lower(b.ptr[k - 2]) && lower(a.ptr[i - 2]) == y;
            if (swap) best = WML_MIN(best, before[k - 2] + 1);
            now[k] = best;
        }
        size_t *old = before;
        before = last;
        last = now;
        now = old;
    }
    return last[b.len];
}

const char *wml_similar(struct wml_str word, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX;
    if (!word.len || word.len > WORD_MAX) return NULL;
    for (size_t i = 0; i < n; i++) {
        struct wml_str name = wml_str(names[i]);
        if (name.len > WORD_MAX) continue;
        size_t d = distance(word, name), longest = WML_MAX(word.len, name.len);
        bool prefix = word.len >= 3 && name.len > word.len && wml_str_ieq(wml_str_sub(name, 0, word.len), word);
        if (prefix) d = WML_MIN(d, 2);
        if (d * 5 <= longest * 2 && d < best_distance) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}

/* Whether c is in the set that starts after '['; *p moves behind the ']'. */
static bool in_set(struct wml_str pattern, size_t *p, char c)
{
    size_t i = *p;
    bool negate = i < pattern.len && (pattern.ptr[i] == '!' || pattern.ptr[i] == '^'), found = false;
    if (negate) i++;
    for (size_t first = i; i < pattern.len && (pattern.ptr[i] != ']' || i == first); i++) {
        char low = pattern.ptr[i], high = low;
        if (i + 2 < pattern.len && pattern.ptr[i + 1] == '-' && pattern.ptr[i + 2] != ']') {
            high = pattern.ptr[i + 2];
            i += 2;
        }
        found = found || (c >= low && c <= high);
    }
    *p = i + 1;
    return found != negate;
}

bool wml_glob_match(struct wml_str pattern, struct wml_str s)
{
    size_t p = 0, i = 0, star = SIZE_MAX, mark = 0;
    while (i < s.len) {
        size_t next = p + 1;
        bool match = false;
        if (p < pattern.len) {
            char c = pattern.ptr[p];
            if (c == '*') {
                star = p++;
                mark = i;
                continue;
            }
            if (c == '[') match = in_set(pattern, &next, s.ptr[i]);
            else match = c == '?' || c == s.ptr[i];
        }
        if (match) {
            p = next;
            i++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            i = ++mark;
        } else return false;
    }
    while (p < pattern.len && pattern.ptr[p] == '*') p++;
    return p >= pattern.len;
}

void wml_size_text(struct wml_buf *out, uint64_t bytes)
{
    static const char *const unit[] = {"kB", "MB", "GB", "TB", "PB"};
    double v = (double)bytes;
    size_t u = 0;
    if (bytes < 10000) {
        wml_buf_fmt(out, "%" PRIu64 " B", bytes);
        return;
    }
    for (v /= 1000; v >= 999.95 && u + 1 < WML_COUNT(unit); v /= 1000) u++;
    wml_buf_fmt(out, "%.1f %s", v, unit[u]);
}

void wml_duration_text(struct wml_buf *out, double ms)
{
    if (ms < 0) ms = 0;
    if (ms < 1) wml_buf_fmt(out, "%.0f us", ms * 1000);
    else if (ms < 100) wml_buf_fmt(out, "%.2f ms", ms);
    else if (ms < 1000) wml_buf_fmt(out, "%.0f ms", ms);
    else if (ms < 120000) wml_buf_fmt(out, "%.2f s", ms / 1000);
    else wml_buf_fmt(out, "%" PRIu64 " min %" PRIu64 " s", (uint64_t)(ms / 60000), (uint64_t)(ms / 1000) % 60);
}

void wml_count_text(struct wml_buf *out, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0) wml_buf_char(out, ',');
        wml_buf_char(out, digits[i]);
    }
}
