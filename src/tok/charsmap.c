/* tok/charsmap.c - the table of charsmap.h. Every step in the trie is checked against its size: the file is not trusted. */
#include "tok/charsmap.h"

#include "base/arena.h"
#include "base/rd.h"
#include "text/words.h"

struct wml_charsmap {
    uint32_t *unit;
    size_t n_units;
    char *text; /* ends in NUL */
    size_t n_text;
    struct wml_regex *cluster;
};

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool decode(struct wml_str code, struct wml_buf *out, struct wml_err *err)
{
    unsigned bits = 0, held = 0;
    while (code.len && code.ptr[code.len - 1] == '=') code.len--;
    for (size_t i = 0; i < code.len; i++) {
        int d = digit(code.ptr[i]);
        if (d < 0) return wml_fail(err, WML_E_FORMAT, "precompiled_charsmap: character %zu is no base64", i + 1);
        bits = (bits << 6 | (unsigned)d) & 0xffffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            wml_buf_char(out, (char)(bits >> held & 0xff));
        }
    }
    return true;
}

static bool read_table(struct wml_charsmap *m, struct wml_str bytes, struct wml_err *err)
{
    struct wml_rd r = wml_rd(bytes.ptr, bytes.len), trie;
    uint32_t size;
    struct wml_span text;
    if (!wml_rd_u32(&r, &size, err) || !wml_rd_sub(&r, size, &trie, err)) return false;
    m->n_units = size / 4;
    m->unit = wml_big_alloc(WML_MAX(size, 4), err);
    m->n_text = wml_rd_left(&r);
    m->text = wml_big_alloc(m->n_text + 1, err);
    if (!m->unit || !m->text || !wml_rd_bytes(&r, m->n_text, &text, err)) return false;
    for (size_t i = 0; i < m->n_units; i++)
        if (!wml_rd_u32(&trie, &m->unit[i], err)) return false;
    if (m->n_text) memcpy(m->text, text.ptr, m->n_text);
    m->text[m->n_text] = '\0';
    if (wml_utf8_valid((struct wml_str){m->text, m->n_text})) return true;
    return wml_fail(err, WML_E_FORMAT, "its texts are no UTF-8");
}

bool wml_charsmap_new(struct wml_str base64, struct wml_charsmap **out, struct wml_err *err)
{
    struct wml_charsmap *m = wml_xcalloc(1, sizeof *m);
    struct wml_buf bytes = {0};
    bool ok = decode(base64, &bytes, err) && (read_table(m, wml_buf_view(&bytes), err) || wml_wrap(err, "precompiled_charsmap")) &&
              wml_regex_own("\\X", &m->cluster, err);
    wml_buf_release(&bytes);
    if (ok) *out = m;
    else wml_charsmap_free(m);
    return ok;
}

void wml_charsmap_free(struct wml_charsmap *m)
{
    if (!m) return;
    free(m->unit);
    free(m->text);
    wml_regex_free(m->cluster);
    free(m);
}

static uint32_t offset_of(uint32_t unit)
{
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* The replacement of the shortest entry that s begins with; absent: none. */
static struct wml_str lookup(const struct wml_charsmap *m, struct wml_str s)
{
    if (!m->n_units) return WML_NO_STR;
    uint32_t at = offset_of(m->unit[0]);
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == 0) break;
        at ^= c;
        if (at >= m->n_units || (m->unit[at] & (1u << 31 | 0xff)) != c) break;
        uint32_t unit = m->unit[at];
        at ^= offset_of(unit);
        if (!(unit & 1u << 8)) continue;
        if (at >= m->n_units) break;
        size_t value = m->unit[at] & 0x7fffffff;
        if (value > m->n_text || (m->text[value] & 0xc0) == 0x80) break; /* beyond, or inside of a character */
        return (struct wml_str){m->text + value, strlen(m->text + value)};
    }
    return WML_NO_STR;
}

static void rewrite(const struct wml_charsmap *m, struct wml_str cluster, struct wml_buf *out)
{
    struct wml_str put = cluster.len < 6 ? lookup(m, cluster) : WML_NO_STR;
    if (put.ptr) {
        wml_buf_str(out, put);
        return;
    }
    for (size_t i = 0; i < cluster.len;) {
        struct wml_str one = wml_str_sub(cluster, i, i + wml_utf8_len(cluster.ptr[i]));
        put = lookup(m, one);
        wml_buf_str(out, put.ptr ? put : one);
        i += one.len;
    }
}

bool wml_charsmap_apply(const struct wml_charsmap *m, struct wml_regex_match *match, struct wml_str s, size_t head,
                        struct wml_buf *out, size_t *head_out, struct wml_err *err)
{
    bool in_head = head > 0;
    size_t origin = out->len;
    for (size_t at = 0; at < s.len;) {
        size_t start = at, end = at + 1;
        /* Two ASCII characters are two clusters, but for a line end of two. */
        bool plain = (unsigned char)s.ptr[at] < 0x80 && s.ptr[at] != '\r' &&
                     (at + 1 == s.len || (unsigned char)s.ptr[at + 1] < 0x80);
        if (!plain && !wml_regex_find(m->cluster, match, s, at, &start, &end, err)) return false;
        if (start == SIZE_MAX) end = s.len;
        rewrite(m, wml_str_sub(s, at, end), out);
        at = end;
        /* What came of the first character; where nothing did, the next one stands in its place. */
        if (in_head && at >= head && out->len > origin) {
            *head_out = out->len - origin;
            in_head = false;
        }
    }
    return true;
}
