/* ep/registry.c - the rows of eps.def as an array, and lookups in it. */
#include "ep/internal.h"

const struct wml_ep *const wml_eps[] = {
#define EP(name) &wml_ep_##name,
#include "ep/eps.def"
#undef EP
};
const size_t wml_n_eps = WML_COUNT(wml_eps);

const struct wml_ep *wml_ep_find(struct wml_str name)
{
    for (size_t i = 0; i < wml_n_eps; i++) {
        if (wml_str_ieq(name, wml_str(wml_eps[i]->name))) return wml_eps[i];
        for (const char *const *a = wml_eps[i]->alias; *a; a++)
            if (wml_str_ieq(name, wml_str(*a))) return wml_eps[i];
    }
    return NULL;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Levenshtein without case; long names are far. */
static unsigned distance(struct wml_str a, struct wml_str b)
{
    enum { MAX = 48 };
    unsigned row[MAX + 1];
    if (a.len > MAX || b.len > MAX) return MAX;
    for (size_t j = 0; j <= b.len; j++) row[j] = (unsigned)j;
    for (size_t i = 0; i < a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < b.len; j++) {
            unsigned change = diagonal + (lower(a.ptr[i]) != lower(b.ptr[j]));
            diagonal = row[j + 1];
            unsigned gap = WML_MIN(row[j], row[j + 1]) + 1;
            row[j + 1] = WML_MIN(change, gap);
        }
    }
    return row[b.len];
}

const char *wml_ep_similar(struct wml_str name)
{
    const char *best = NULL;
    unsigned least = 1000;
    for (size_t i = 0; i < wml_n_eps; i++) {
        unsigned d = distance(name, wml_str(wml_eps[i]->name));
        if (d < least && d <= 4) {
            least = d;
            best = wml_eps[i]->name;
        }
        for (const char *const *a = wml_eps[i]->alias; *a; a++) {
            d = distance(name, wml_str(*a));
            if (d < least && d <= strlen(*a) / 2 && d <= 3) {
                least = d;
                best = *a;
            }
        }
    }
    return best;
}

const struct wml_ep_device *wml_ep_device_row(const struct wml_ep *ep, enum wml_device_type type)
{
    for (size_t i = 0; i < ep->n_devices; i++)
        if (ep->device[i].type == type) return &ep->device[i];
    return NULL;
}

bool wml_ep_is_cpu(const struct wml_ep *ep)
{
    return ep == &wml_ep_cpu;
}

bool wml_ep_has_op(const struct wml_ep *ep, struct wml_str op)
{
    size_t colon = wml_str_find(op, ':');
    if (colon == SIZE_MAX) return true;
    if (!ep || !ep->contrib || !wml_str_is(wml_str_sub(op, 0, colon), "com.microsoft")) return false;
    if (strcmp(ep->contrib, "*") == 0) return true;
    struct wml_str name = wml_str_sub(op, colon + 2, op.len);
    for (const char *at = ep->contrib; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (wml_str_eq(name, (struct wml_str){at, n})) return true;
        at += n;
    }
    return false;
}

bool wml_version_below(const char *a, const char *b)
{
    while (*a || *b) {
        char *enda, *endb;
        uint64_t x = strtoull(a, &enda, 10), y = strtoull(b, &endb, 10);
        if (x != y) return x < y;
        a = *enda == '.' ? enda + 1 : "";
        b = *endb == '.' ? endb + 1 : "";
    }
    return false;
}
