/* In which order parts are raised. Noises of parts add up, near enough, so each step takes the part that takes most off what
 * the outputs have too much, beginning with the goal; when that is reached by the sums, for half as much noise, and so on: the
 * sums are estimates, and the models that are run decide where on the list to stop. An output that is good enough already
 * asks for nothing. */
#include <math.h>
#include <stdlib.h>

#include "flow/quantize/mixed_internal.h"

struct order {
    struct wml_mixed_search *x;
    double *left; /* noise over signal, by output */
    double allowed;
};

static double gain(const struct order *s, const struct wml_mixed_part *p)
{
    double sum = 0;
    for (size_t o = 0; o < s->x->n_outputs; o++) sum += fmin(p->noise[o], fmax(s->left[o] - s->allowed, 0));
    return sum;
}

/* Sums anew: what is taken off sums of very different sizes leaves rounding. */
static void sum_left(struct order *s, size_t from)
{
    const struct wml_mixed_search *x = s->x;
    for (size_t o = 0; o < x->n_outputs; o++) {
        s->left[o] = 0;
        for (size_t k = from; k < x->part.len; k++) s->left[o] += x->part.at[k].noise[o];
    }
}

static bool is_enough(const struct order *s)
{
    for (size_t o = 0; o < s->x->n_outputs; o++)
        if (s->left[o] > s->allowed) return false;
    return true;
}

/* Of those that gain the same, the noisiest; then the first in the graph. */
static size_t best(const struct order *s, size_t from)
{
    const struct wml_mixed_part *part = s->x->part.at;
    size_t at = from;
    double most = -1;
    for (size_t k = from; k < s->x->part.len; k++) {
        double g = gain(s, &part[k]);
        bool same = g == most && (part[k].score > part[at].score || (part[k].score == part[at].score && part[k].index < part[at].index));
        if (g > most || same) at = k, most = g;
    }
    return at;
}

static void renumber(struct wml_mixed_search *x)
{
    size_t *now = WML_NEW_ARRAY(x->arena, size_t, x->part.len + 1);
    for (size_t k = 0; k < x->part.len; k++) now[x->part.at[k].index] = k;
    for (size_t i = 0; i < x->constant.len; i++)
        if (x->constant.at[i].part) x->constant.at[i].part = now[x->constant.at[i].part - 1] + 1;
}

void wml_mixed_order(struct wml_mixed_search *x)
{
    struct order s = {.x = x, .left = WML_NEW_ARRAY(x->arena, double, x->n_outputs + 1), .allowed = pow(10, -x->out->goal_db / 10)};
    bool predicted = false;
    for (size_t k = 0; k < x->part.len; k++) {
        x->part.at[k].score = 0;
        for (size_t o = 0; o < x->n_outputs; o++) x->part.at[k].score = fmax(x->part.at[k].score, x->part.at[k].noise[o]);
    }
    for (size_t from = 0; from < x->part.len; from++) {
        sum_left(&s, from);
        while (s.allowed > 0 && is_enough(&s)) {
            if (!predicted) x->predicted = from;
            predicted = true;
            s.allowed /= 2;
        }
        size_t at = best(&s, from);
        struct wml_mixed_part p = x->part.at[at];
        memmove(&x->part.at[from + 1], &x->part.at[from], (at - from) * sizeof p);
        x->part.at[from] = p;
    }
    if (!predicted) x->predicted = x->part.len;
    renumber(x);
}
