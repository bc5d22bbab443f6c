/* quant/weight_search.h - the range of a constant that quantises with the least squared error. */
#ifndef WML_QUANT_WEIGHT_SEARCH_H
#define WML_QUANT_WEIGHT_SEARCH_H

#include "quant/qparams.h"

/* The parameters of channel c of [outer, channels, inner] elements, row major, which lie in low..high. Candidates are that range
 * times 1, 0.95, ... 0.3, then the hundredths around the best; each is judged by the sum of squared differences between the
 * elements and what their integers stand for, and by nothing else. Never worse than the whole range by that sum. */
struct wml_qparams wml_weight_search(const struct wml_qform *f, enum wml_dtype real, const void *data, size_t outer, size_t channels, size_t inner,
                                     size_t c, double low, double high, double min_range);

#endif
