/* base/rng.h - small deterministic random numbers (splitmix64), the same on every system. */
#ifndef WML_BASE_RNG_H
#define WML_BASE_RNG_H

#include <stdint.h>

struct wml_rng {
    uint64_t state; /* any seed is fine */
};

uint64_t wml_rng_u64(struct wml_rng *r);
double wml_rng_unit(struct wml_rng *r);                            /* [0, 1), 53 bits */
int64_t wml_rng_range(struct wml_rng *r, int64_t low, int64_t high); /* low <= x < high */
double wml_rng_normal(struct wml_rng *r);                          /* mean 0, deviation 1 */

#endif
