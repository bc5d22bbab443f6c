/* tok/forms.c - the normal forms of UAX #15. Stable characters (see WML_CHAR_UNSTABLE) are copied; what lies between two of
 * them is taken apart, ordered by combining class, and put together again. A long run of marks is sorted, not bubbled. */
#include "tok/forms.h"

#include "base/vec.h"

enum { S_BASE = 0xac00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11a7, N_L = 19, N_V = 21, N_T = 28,
       N_S = N_L * N_V * N_T }; /* Hangul syllables are computed: The Unicode Standard, 3.12 */
enum { PAIR_SLOTS = 4096 };

struct mapping {
    uint32_t ch;
    uint16_t len; /* UTF-16 units */
    bool compat;
    const uint16_t *unit;
};

struct pair { /* a and b become ch; a 0: empty */
    uint32_t a, b, ch;
};

struct wml_forms {
    WML_VEC(struct mapping) v; /* ascending */
    struct pair pair[PAIR_SLOTS];
};

struct part {
    uint32_t ch;
    uint8_t order; /* combining class */
    bool head;     /* came of the first character of the text */
};

struct run { /* the characters between two stable ones, taken apart */
    WML_VEC(struct part) v;
    bool in_head; /* what is pushed now */
};

static uint32_t unit_char(const uint16_t **u)
{
    uint32_t c = *(*u)++;
    if ((c & 0xfc00) == 0xd800) c = 0x10000 + ((c & 0x3ff) << 10) + (*(*u)++ & 0x3ffu);
    return c;
}

static size_t slot_of(uint32_t a, uint32_t b)
{
    return (a * 0x9e3779b1u ^ b * 0x85ebca6bu) >> 7 & (PAIR_SLOTS - 1);
}

static void add_pair(struct wml_forms *f, const struct mapping *m)
{
    const uint16_t *u = m->unit;
    uint32_t a = unit_char(&u), b = unit_char(&u);
    size_t at = slot_of(a, b);
    while (f->pair[at].a) at = (at + 1) & (PAIR_SLOTS - 1);
    f->pair[at] = (struct pair){a, b, m->ch};
}

struct wml_forms *wml_forms_new(const uint16_t *stream, size_t n)
{
    struct wml_forms *f = wml_xcalloc(1, sizeof *f);
    uint32_t ch = 0;
    for (size_t i = 0; i + 1 < n;) {
        struct mapping m = {.ch = ch + stream[i], .len = stream[i + 1] >> 4, .compat = stream[i + 1] & 1,
                            .unit = stream + i + 2};
        ch = m.ch;
        if (m.len) WML_PUSH(&f->v, m); /* no length: only a long distance */
        if (stream[i + 1] & 2) add_pair(f, &m);
        i += 2u + m.len;
    }
    return f;
}

void wml_forms_free(struct wml_forms *f)
{
    if (!f) return;
    WML_VEC_RELEASE(&f->v);
    free(f);
}

static const struct mapping *find(const struct wml_forms *f, uint32_t ch)
{
    size_t from = 0, to = f->v.len;
    while (from < to) {
        size_t mid = (from + to) / 2;
        if (f->v.at[mid].ch < ch) from = mid + 1;
        else to = mid;
    }
    return from < f->v.len && f->v.at[from].ch == ch ? &f->v.at[from] : NULL;
}

static void push(struct run *r, uint32_t ch)
{
    WML_PUSH(&r->v, ((struct part){ch, (uint8_t)wml_char_combining(ch), r->in_head}));
}

/* Mappings nest a few levels deep; the table is ours, so they end. */
static void take_apart(const struct wml_forms *f, bool compat, uint32_t ch, struct run *r)
{
    if (ch >= S_BASE && ch < S_BASE + N_S) {
        uint32_t s = ch - S_BASE;
        push(r, L_BASE + s / (N_V * N_T));
        push(r, V_BASE + s % (N_V * N_T) / N_T);
        if (s % N_T) push(r, T_BASE + s % N_T);
        return;
    }
    const struct mapping *m = find(f, ch);
    if (!m || (m->compat && !compat)) {
        push(r, ch);
        return;
    }
    for (const uint16_t *u = m->unit; u < m->unit + m->len;) take_apart(f, compat, unit_char(&u), r);
}

static int by_order(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return x->order != y->order ? (int)x->order - (int)y->order : 0;
}

/* Stable merge of marks: short runs by insertion; long ones, which only nonsense has, by counting classes. */
static void order_marks(struct part *p, size_t n)
{
    if (n < 32) {
        for (size_t i = 1; i < n; i++)
            for (size_t j = i; j > 0 && by_order(&p[j - 1], &p[j]) > 0; j--) {
                struct part t = p[j];
                p[j] = p[j - 1];
                p[j - 1] = t;
            }
        return;
    }
    size_t at[257] = {0};
    struct part *copy = wml_xrealloc(NULL, wml_array_size(n, sizeof *copy));
    memcpy(copy, p, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) at[copy[i].order + 1]++;
    for (size_t i = 1; i < 257; i++) at[i] += at[i - 1];
    for (size_t i = 0; i < n; i++) p[at[copy[i].order]++] = copy[i];
    free(copy);
}

static void order(struct run *r)
{
    for (size_t i = 0; i < r->v.len;) {
        size_t from = i;
        while (i < r->v.len && r->v.at[i].order) i++;
        if (i > from + 1) order_marks(r->v.at + from, i - from);
        if (i == from) i++;
    }
}

static uint32_t join(const struct wml_forms *f, uint32_t a, uint32_t b)
{
    if (a >= L_BASE && a < L_BASE + N_L && b >= V_BASE && b < V_BASE + N_V)
        return S_BASE + ((a - L_BASE) * N_V + (b - V_BASE)) * N_T;
    if (a >= S_BASE && a < S_BASE + N_S && (a - S_BASE) % N_T == 0 && b > T_BASE && b < T_BASE + N_T)
        return a + (b - T_BASE);
    for (size_t at = slot_of(a, b); f->pair[at].a; at = (at + 1) & (PAIR_SLOTS - 1))
        if (f->pair[at].a == a && f->pair[at].b == b) return f->pair[at].ch;
    return 0;
}

/* A mark joins the last starter unless one of its own class, or a starter, stands between. */
static void put_together(const struct wml_forms *f, struct run *r)
{
    size_t starter = SIZE_MAX, len = 0;
    int last = -1; /* class of what was kept since the starter */
    for (size_t i = 0; i < r->v.len; i++) {
        struct part p = r->v.at[i];
        uint32_t joined = 0;
        if (starter != SIZE_MAX && (last < (int)p.order || last == -1)) joined = join(f, r->v.at[starter].ch, p.ch);
        if (joined) {
            r->v.at[starter].ch = joined;
            continue;
        }
        if (p.order == 0) {
            starter = len;
            last = -1;
        } else {
            last = p.order;
        }
        r->v.at[len++] = p;
    }
    r->v.len = len;
}

struct former { /* one call */
    const struct wml_chars *c;
    const struct wml_forms *f;
    enum wml_form form;
    struct run run;
    struct wml_buf *out;
    const char *head_end;
    bool with_head;  /* the head is in the run */
    size_t head_out; /* bytes of the result that came of the head, from its start */
};

static void flush(struct former *w)
{
    order(&w->run);
    if (w->form == WML_NFC || w->form == WML_NFKC) put_together(w->f, &w->run);
    bool leading = w->with_head; /* the first one stands for the head whichever it was before they were ordered */
    for (size_t i = 0; i < w->run.v.len; i++) {
        size_t at = w->out->len;
        wml_utf8_put(w->out, w->run.v.at[i].ch);
        leading = leading && (i == 0 || w->run.v.at[i].head);
        if (leading) w->head_out += w->out->len - at;
    }
    w->run.v.len = 0;
    w->with_head = false;
}

/* From the stable character before the unstable one at p (or p itself) to the next stable one. */
static const char *unstable_run(struct former *w, const char *stable, const char *p, const char *end)
{
    w->with_head = stable < w->head_end;
    if (stable < p) {
        const char *at = stable;
        w->run.in_head = w->with_head;
        push(&w->run, wml_utf8_next(&at));
    }
    while (p < end) {
        const char *at = p;
        uint32_t ch = wml_utf8_next(&at);
        if (!(wml_char_class(w->c, ch) & WML_CHAR_UNSTABLE)) break;
        w->run.in_head = p < w->head_end;
        take_apart(w->f, w->form == WML_NFKD || w->form == WML_NFKC, ch, &w->run);
        p = at;
    }
    flush(w);
    return p;
}

size_t wml_chars_form(const struct wml_chars *c, enum wml_form form, struct wml_str s, size_t head, struct wml_buf *out)
{
    struct former w = {.c = c, .f = wml_chars_forms(c), .form = form, .out = out, .head_end = s.ptr + head};
    const char *p = s.ptr, *end = s.ptr + s.len, *copied = p, *stable = p;
    while (p < end) {
        const char *at = p;
        if ((unsigned char)*p < 0x80) {
            stable = p++;
            continue;
        }
        uint32_t ch = wml_utf8_next(&at);
        if (!(wml_char_class(c, ch) & WML_CHAR_UNSTABLE)) {
            stable = p;
            p = at;
            continue;
        }
        if (copied < w.head_end) w.head_out += (size_t)(WML_MIN(stable, w.head_end) - copied);
        wml_buf_add(out, copied, (size_t)(stable - copied));
        p = copied = stable = unstable_run(&w, stable, p, end);
    }
    if (copied < w.head_end) w.head_out += (size_t)(w.head_end - copied);
    wml_buf_add(out, copied, (size_t)(end - copied));
    WML_VEC_RELEASE(&w.run.v);
    return w.head_out;
}
