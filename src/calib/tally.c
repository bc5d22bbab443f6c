/* Values counted by their leading bits. */
#include "calib/bins.h"

#include <math.h>

/* Bits of a page's number, and of the place in it: float32 leaves out the last 15 bits of the mantissa. */
struct layout { unsigned drop, slot_bits, pages, infinite; };

static struct layout layout_of(enum wml_dtype dtype)
{
    if (dtype == WML_F16) return (struct layout){.drop = 0, .slot_bits = 10, .pages = 64, .infinite = 31};
    return (struct layout){.drop = 15, .slot_bits = 8, .pages = 512, .infinite = 255};
}

static uint64_t *page_of(struct wml_tally *t, size_t page, unsigned slot_bits)
{
    if (!t->page[page]) t->page[page] = wml_xcalloc((size_t)1 << slot_bits, sizeof(uint64_t));
    return t->page[page];
}

void wml_tally_add(struct wml_tally *t, enum wml_dtype dtype, const void *data, size_t n)
{
    struct layout l = layout_of(dtype);
    if (dtype == WML_F16) {
        const uint16_t *x = data;
        for (size_t i = 0; i < n; i++) page_of(t, x[i] >> l.slot_bits, l.slot_bits)[x[i] & 1023]++;
    } else {
        const float *x = data;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &x[i], sizeof bits);
            page_of(t, bits >> 23, l.slot_bits)[bits >> 15 & 255]++;
        }
    }
}

void wml_tally_merge(struct wml_tally *into, const struct wml_tally *from, enum wml_dtype dtype)
{
    struct layout l = layout_of(dtype);
    for (size_t p = 0; p < l.pages; p++) {
        uint64_t *to = from->page[p] ? page_of(into, p, l.slot_bits) : NULL;
        for (size_t i = 0; to && i < (size_t)1 << l.slot_bits; i++) to[i] += from->page[p][i];
    }
}

void wml_tally_release(struct wml_tally *t)
{
    for (size_t p = 0; p < WML_TALLY_PAGES; p++) free(t->page[p]);
    *t = (struct wml_tally){0};
}

static double value_of(enum wml_dtype dtype, uint32_t bits)
{
    float f;
    if (dtype == WML_F16) return (double)wml_half_to_float((uint16_t)bits);
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

/* Keys upwards: negative ones from the largest magnitude to -0, then the others. */
bool wml_tally_next(const struct wml_tally *t, enum wml_dtype dtype, size_t *at, struct wml_tally_item *out)
{
    struct layout l = layout_of(dtype);
    size_t half = (size_t)l.infinite << l.slot_bits; /* keys of finite numbers of one sign */
    while (*at < 2 * half) {
        bool negative = *at < half;
        size_t key = negative ? half - 1 - *at : *at - half, page = (key >> l.slot_bits) + (negative ? l.infinite + 1 : 0);
        size_t slot = key & (((size_t)1 << l.slot_bits) - 1);
        if (!t->page[page]) {
            *at += negative ? slot + 1 : ((size_t)1 << l.slot_bits) - slot;
            continue;
        }
        ++*at;
        if (!t->page[page][slot]) continue;
        uint32_t low = (uint32_t)key << l.drop, last = low | ((UINT32_C(1) << l.drop) - 1);
        *out = (struct wml_tally_item){value_of(dtype, low), value_of(dtype, last), negative, t->page[page][slot]};
        return true;
    }
    return false;
}
