/* cli/near.c - similarity of words after Ratcliff and Obershelp: the longest common run of characters,
 * then the same on both sides of it. Words longer than 64 characters are never near anything. */
#include "cli/near.h"

enum { MAX_WORD = 64, MAX_NEAR = 3 };

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static size_t matching(struct wml_str a, struct wml_str b)
{
    size_t best = 0, at_a = 0, at_b = 0;
    for (size_t i = 0; i < a.len; i++) {
        for (size_t j = 0; j < b.len; j++) {
            size_t n = 0;
            while (i + n < a.len && j + n < b.len && lower(a.ptr[i + n]) == lower(b.ptr[j + n])) n++;
            if (n > best) {
                best = n;
                at_a = i;
                at_b = j;
            }
        }
    }
    if (!best) return 0;
    return best + matching(wml_str_sub(a, 0, at_a), wml_str_sub(b, 0, at_b)) +
           matching(wml_str_sub(a, at_a + best, a.len), wml_str_sub(b, at_b + best, b.len));
}

double wml_word_ratio(struct wml_str a, struct wml_str b)
{
    if (a.len > MAX_WORD || b.len > MAX_WORD) return 0;
    if (a.len + b.len == 0) return 1;
    return 2.0 * (double)matching(a, b) / (double)(a.len + b.len);
}

/* Dashes in front say nothing about likeness: without them --foo would be near --format. */
static struct wml_str bare(struct wml_str s)
{
    while (s.len && s.ptr[0] == '-') s = wml_str_sub(s, 1, s.len);
    return s;
}

void wml_did_you_mean(struct wml_str word, const struct wml_names *names, struct wml_buf *out)
{
    const char *near[MAX_NEAR];
    double ratio[MAX_NEAR];
    size_t n = 0;
    for (size_t i = 0; i < names->v.len; i++) {
        double r = wml_word_ratio(bare(word), bare(wml_str(names->v.at[i])));
        if (r < 0.6) continue;
        size_t at = n;
        while (at > 0 && r > ratio[at - 1]) at--;
        if (at == MAX_NEAR) continue;
        if (n < MAX_NEAR) n++;
        for (size_t k = n - 1; k > at; k--) {
            near[k] = near[k - 1];
            ratio[k] = ratio[k - 1];
        }
        near[at] = names->v.at[i];
        ratio[at] = r;
    }
    if (n == 1) wml_buf_fmt(out, " Did you mean '%s'?", near[0]);
    if (n < 2) return;
    wml_buf_cstr(out, " (Did you mean one of: ");
    for (size_t i = 0; i < n; i++) wml_buf_fmt(out, "%s'%s'", i ? ", " : "", near[i]);
    wml_buf_cstr(out, "?)");
}
