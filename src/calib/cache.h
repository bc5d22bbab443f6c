/* calib/cache.h - ranges as a JSON file of ONNX Runtime's Python quantizer: what its save_tensors_data writes, both ways.
 *
 *     {"CLS": "TensorsData", "data": {<tensor>: {"lowest": {"data": [x], "dtype": "float32", "CLS": "numpy.array"},
 *      "highest": ..., "CLS": "TensorData"}, ...}, "calibration_method": {"CLS": "CalibrationMethod",
 *      "value": "CalibrationMethod.MinMax"}, "smooth_quant": false}
 *
 * Read as well: what write_calibration_table writes, with the tensors at the top and no method; bounds that are plain
 * numbers or arrays of several (ranges by channel: the whole range is taken); ends that crossed, as ORT lets them.
 * Histograms, averages and unknown members are passed over. A method that ORT lacks is written as its ort_name, with a
 * member "winml_method" that ORT ignores.
 * NaN and Infinity, which Python writes, are no range: they are refused with the name of the tensor. */
#ifndef WML_CALIB_CACHE_H
#define WML_CALIB_CACHE_H

#include "calib/calib.h"

/* Adds to *out, which may then be incomplete on failure. m: the method that the ranges must come from; NULL: any.
 * WML_E_FORMAT, WML_E_USAGE for another method, WML_E_UNSUPPORTED for ranges of a model changed by SmoothQuant. */
bool wml_ranges_parse(struct wml_str json, const struct wml_range_method *m, struct wml_ranges *out, struct wml_err *err);
bool wml_ranges_load(const char *path, const struct wml_range_method *m, struct wml_ranges *out, struct wml_err *err);
void wml_ranges_print(const struct wml_ranges *r, const struct wml_range_method *m, struct wml_buf *out);
bool wml_ranges_save(const struct wml_ranges *r, const struct wml_range_method *m, const char *path, struct wml_err *err);

#endif
