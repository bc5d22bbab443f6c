/* flow/channels.h - what values hold, channel by channel, while a model runs on samples: for the tools of quant/fit.h. A session
 * on the CPU without ORT's optimisations; the values of one sample at a time are in memory. */
#ifndef WML_FLOW_CHANNELS_H
#define WML_FLOW_CHANNELS_H

#include "flow/samples.h"
#include "quant/fit.h"

/* Memory of m's arena for sum and peak, all 0; then the elements of one sample, for as often as there are samples. A value that
 * is no float32 tensor, or whose axis has another size, is passed over. */
void wml_channels_start(struct wml_model *m, struct wml_channels *c, size_t n);
void wml_channels_add(struct wml_channels *c, const struct wml_tensor_view *v);
/* Fills sum, peak and count of every c, values of m's top graph; sum and peak get memory of m's arena. A value that is no
 * float32 tensor, or whose axis has another size, keeps a count of 0. */
bool wml_channels_measure(struct wml_ctx *cx, struct wml_model *m, struct wml_channels *c, size_t n, const struct wml_samples_spec *samples,
                          struct wml_err *err);

#endif
