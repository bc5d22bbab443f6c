/* calib/cache.h - ranges as a JSON file of ONNX Runtime's Python quantizer: what its save_tensors_data writes, both ways.
 *
 *     {"CLS": "TensorsData", "data": {<tensor>: {"lowest": {"data": [x], "dtype": "float32", "CLS": "numpy.array"},
 *      "highest": ..., "CLS": "TensorData"}, ...}, "calibration_method": {"CLS": "CalibrationMethod",
 *      "value": "CalibrationMethod.MinMax"}, "smooth_quant": false}
 *
 * Read as well: what write_calibration_table writes, with the tensors at the top and no method; bounds that are plain
 * numbers or arrays of several (ranges by channel: the whole range is taken); ends that crossed, as ORT lets them.
 * Histograms, averages and unknown members are passed over. Two members are ours, and ORT ignores them: "winml_method", of a
 * method that ORT lacks and that is written as its ort_name; "winml", an object of facts.
 * NaN and Infinity, which Python writes, are no range: they are refused with the name of the tensor. */
#ifndef WML_CALIB_CACHE_H
#define WML_CALIB_CACHE_H

#include "calib/calib.h"

/* What ranges depend on besides their method and the samples. Written where it is not `unsaid`. */
struct wml_cache_fact {
    const char *key, *value; /* "percentile", "99.9" */
    const char *unsaid;      /* value of a cache that does not say; NULL: any */
    bool *differs;           /* set where the cache says otherwise, which then is no failure; NULL: it is one */
};
struct wml_cache_facts {
    const struct wml_cache_fact *at;
    size_t len;
    bool smooth; /* SmoothQuant changed the model, as ORT's member "smooth_quant" says */
};

/* Adds to *out, which may then be incomplete on failure. m: the method that the ranges must come from; NULL: any, of any facts.
 * facts may be NULL.
 * WML_E_FORMAT; WML_E_USAGE for another method or other facts; WML_E_UNSUPPORTED for ranges of a model changed by ORT's SmoothQuant. */
bool wml_ranges_parse(struct wml_str json, const struct wml_range_method *m, const struct wml_cache_facts *facts, struct wml_ranges *out, struct wml_err *err);
bool wml_ranges_load(const char *path, const struct wml_range_method *m, const struct wml_cache_facts *facts, struct wml_ranges *out, struct wml_err *err);
void wml_ranges_print(const struct wml_ranges *r, const struct wml_range_method *m, const struct wml_cache_facts *facts, struct wml_buf *out);
bool wml_ranges_save(const struct wml_ranges *r, const struct wml_range_method *m, const struct wml_cache_facts *facts, const char *path, struct wml_err *err);

#endif
