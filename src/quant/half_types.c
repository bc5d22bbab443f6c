/* What ONNX Runtime's schemas say about half floats (half_types.inc), and the few things they do not. Tables are sorted:
 * a row of FIXED holds from its opset on, until the next of the same operator. */
#include "quant/half.h"

#include "base/cc.h"

struct fixed_row {
    const char *domain, *name;
    int since;
    uint32_t in, out;
};
struct output_row { const char *domain, *name, *types; };

#define FIXED16(domain, name, since, in, out) {domain, name, since, in, out},
static const struct fixed_row fixed16[] = {
#include "quant/half_types.inc"
};
#undef FIXED16
#define FIXEDB16(domain, name, since, in, out) {domain, name, since, in, out},
static const struct fixed_row fixed_b16[] = {
#include "quant/half_types.inc"
};
#undef FIXEDB16
#define OUTPUT(domain, name, types) {domain, name, types},
static const struct output_row outputs[] = {
#include "quant/half_types.inc"
};
#undef OUTPUT

/* Rows start with domain and name in every table. The first row that is not before the node's operator. */
static size_t first_row(const void *rows, size_t n_rows, size_t size, struct wml_str domain, struct wml_str name)
{
    size_t low = 0, high = n_rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *const *row = (const char *const *)(const void *)((const char *)rows + middle * size);
        int c = wml_str_cmp(wml_str(row[0]), domain);
        if (c == 0) c = wml_str_cmp(wml_str(row[1]), name);
        if (c < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static struct wml_str domain_of(const struct wml_node *n)
{
    return wml_str_is(n->domain, "ai.onnx") || !n->domain.ptr ? WML_STR("") : n->domain;
}

static bool is_row(const char *domain, const char *name, const struct wml_node *n)
{
    return wml_str_is(domain_of(n), domain) && wml_str_is(n->op_type, name);
}

/* Kernels take other than float here by their schemas, but models lose too much: scale and bias of these norms. */
static uint32_t also_fixed(const struct wml_node *n)
{
    return wml_str_is(n->op_type, "GroupNorm") || wml_str_is(n->op_type, "SkipGroupNorm") ? 1 << 1 | 1 << 2 : 0;
}

struct wml_half_fixed wml_half_fixed(const struct wml_half *h, const struct wml_node *n)
{
    const bool half = h->to == WML_F16;
    const struct fixed_row *rows = half ? fixed16 : fixed_b16;
    const size_t len = half ? WML_COUNT(fixed16) : WML_COUNT(fixed_b16);
    const int64_t version = domain_of(n).len ? 1 : h->opset;
    struct wml_half_fixed f = {0};
    for (size_t i = first_row(rows, len, sizeof *rows, domain_of(n), n->op_type); i < len && is_row(rows[i].domain, rows[i].name, n); i++)
        if (rows[i].since <= version) f = (struct wml_half_fixed){rows[i].in, rows[i].out};
    f.in |= also_fixed(n);
    return f;
}

const char *wml_half_outputs(const struct wml_node *n)
{
    size_t i = first_row(outputs, WML_COUNT(outputs), sizeof *outputs, domain_of(n), n->op_type);
    return i < WML_COUNT(outputs) && is_row(outputs[i].domain, outputs[i].name, n) ? outputs[i].types : NULL;
}

bool wml_half_chooses(const struct wml_node *n)
{
    static const char *const always[] = {"Cast", "Constant", "ConstantOfShape", "RandomNormal", "RandomUniform", "SequenceEmpty",
                                         "BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"},
                      *const by_dtype[] = {"EyeLike", "RandomNormalLike", "RandomUniformLike", "Bernoulli"};
    if (domain_of(n).len) return false;
    for (size_t i = 0; i < WML_COUNT(always); i++)
        if (wml_str_is(n->op_type, always[i])) return true;
    for (size_t i = 0; i < WML_COUNT(by_dtype); i++)
        if (wml_str_is(n->op_type, by_dtype[i])) return wml_attr_int(n, "dtype", 0) != 0;
    return wml_str_is(n->op_type, "DequantizeLinear") && wml_attr_int(n, "output_dtype", 0) != 0;
}
