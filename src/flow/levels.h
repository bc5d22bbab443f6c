/* flow/levels.h - a quantised model run level by level on samples, while its layers are corrected.
 *
 * A layer's level counts the layers before it on the longest way from the inputs. Level by level the part of the model
 * between two of them runs, over what the part before it made: all levels together cost about one run of each sample, and
 * the corrections of one level reach the next. Behind every layer a sum is put in, 0 at first, that holds its correction.
 *
 *     struct wml_levels *l;  wml_levels_open(cx, quantised, c, n, &samples, &l, err)
 *     for (size_t level = 1; level <= wml_levels_count(l); level++) {
 *         wml_levels_measure(l, level, err)                    sums of c[i] with wml_levels_of(l, i) == level
 *         wml_levels_correct(l, i, error, err)                 for those
 *     }
 *
 * Between parts, values of all samples are kept: up to 1 GiB, beyond that they are made anew, from the inputs. */
#ifndef WML_FLOW_LEVELS_H
#define WML_FLOW_LEVELS_H

#include "flow/samples.h"
#include "quant/fit.h"

struct wml_levels;

/* Takes the model, which is changed. c: the layers' outputs, values of its top graph; lives longer than the result. */
bool wml_levels_open(struct wml_ctx *cx, struct wml_model *m, struct wml_channels *c, size_t n, const struct wml_samples_spec *samples,
                     struct wml_levels **out, struct wml_err *err);
void wml_levels_close(struct wml_levels *l);
size_t wml_levels_count(const struct wml_levels *l);
size_t wml_levels_of(const struct wml_levels *l, size_t i);
/* In ascending order, each once. A value that is no float32 tensor, or whose axis has another size, keeps a count of 0. */
bool wml_levels_measure(struct wml_levels *l, size_t level, struct wml_err *err);
/* Adds delta, one number per channel, to the measured c[i], for the levels to come. */
bool wml_levels_correct(struct wml_levels *l, size_t i, const double *delta, struct wml_err *err);

#endif
