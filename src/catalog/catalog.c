/* The catalog's rows: models.def. */
#include "catalog/catalog.h"

enum { CPU_ = WML_CATALOG_CPU, GPU_ = WML_CATALOG_GPU, NPU_ = WML_CATALOG_NPU };

static const struct wml_catalog_ep every[] = {
    {"cpu", CPU_}, {"dml", GPU_}, {"qnn", GPU_ | NPU_}, {"openvino", CPU_ | GPU_ | NPU_}, {"vitisai", NPU_}, {"trtrtx", GPU_}, {"migraphx", GPU_}, {0},
};
static const struct wml_catalog_ep cpu_only[] = {{"cpu", CPU_}, {0}};

#define EVERY every
#define CPU cpu_only
#define R3 1u
#define R4 2u
#define MODEL(id, task, type, size, eps, onnx, precisions, releases) {id, task, type, size, eps, onnx, precisions, releases},
const struct wml_catalog_model wml_catalog[] = {
#include "catalog/models.def"
};
#undef MODEL
const size_t wml_n_catalog = WML_COUNT(wml_catalog);

const char *wml_catalog_release(unsigned i)
{
    static const char *const release[] = {"0.3.0", "0.4.0"};
    return i < WML_COUNT(release) ? release[i] : NULL;
}

/* The name that is in use for what a task is. */
static struct wml_str usual(struct wml_str task)
{
    return wml_str_ieq(task, WML_STR("masked-lm")) ? WML_STR("fill-mask") : task;
}

bool wml_catalog_is_task(const struct wml_catalog_model *m, struct wml_str task)
{
    return wml_str_ieq(usual(wml_str(m->task)), usual(task));
}
