/* base/rng.c - splitmix64 (Steele, Lea, Flood 2014); normal numbers by Box-Muller. */
#include "base/rng.h"

#include <math.h>

uint64_t wml_rng_u64(struct wml_rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double wml_rng_unit(struct wml_rng *r)
{
    return (double)(wml_rng_u64(r) >> 11) * 0x1p-53;
}

int64_t wml_rng_range(struct wml_rng *r, int64_t low, int64_t high)
{
    if (high <= low) return low;
    uint64_t width = (uint64_t)high - (uint64_t)low;
    return (int64_t)((uint64_t)low + wml_rng_u64(r) % width);
}

double wml_rng_normal(struct wml_rng *r)
{
    double u = 1 - wml_rng_unit(r), v = wml_rng_unit(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
