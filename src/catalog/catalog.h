/* catalog/catalog.h - the catalog of models that are known to work, as a table in the program. Needs no network. */
#ifndef WML_CATALOG_CATALOG_H
#define WML_CATALOG_CATALOG_H

#include "base/str.h"

enum wml_catalog_devices { WML_CATALOG_CPU = 1, WML_CATALOG_GPU = 2, WML_CATALOG_NPU = 4 };

struct wml_catalog_ep {
    const char *alias; /* as ep/ knows it: "qnn" */
    unsigned devices;  /* enum wml_catalog_devices */
};

struct wml_catalog_model { /* by id without case, then task; the two together name a row */
    const char *id, *task, *type;
    double size_mb;                  /* of the built model, not of its checkpoint */
    const struct wml_catalog_ep *ep; /* alias NULL ends */
    const char *onnx_path;           /* file in the hub's repository that is ONNX already; NULL: none */
    const char *precisions;          /* of the published recipes, commas between; NULL: there are none */
    unsigned releases;               /* of the Python tool, whose list has it: bits of wml_catalog_release */
};

extern const struct wml_catalog_model wml_catalog[];
extern const size_t wml_n_catalog;
/* Bit i of releases; NULL beyond the last. */
const char *wml_catalog_release(unsigned i);
/* Without case. fill-mask and masked-lm are one task under two names. */
bool wml_catalog_is_task(const struct wml_catalog_model *m, struct wml_str task);

#endif
