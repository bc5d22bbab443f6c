/* The rows of opset.def, and how to find them: by operator, since they are sorted so. */
#include "opset/adapt.h"

#include "base/str.h"

enum { /* sets of types */
    T_F32 = 1 << WML_F32, T_U8 = 1 << WML_U8, T_I8 = 1 << WML_I8, T_U16 = 1 << WML_U16, T_I16 = 1 << WML_I16,
    T_I32 = 1 << WML_I32, T_I64 = 1 << WML_I64, T_STRING = 1 << WML_STRING, T_BOOL = 1 << WML_BOOL, T_F16 = 1 << WML_F16,
    T_F64 = 1 << WML_F64, T_U32 = 1 << WML_U32, T_U64 = 1 << WML_U64, T_C64 = 1 << WML_C64, T_C128 = 1 << WML_C128,
    T_BF16 = 1 << WML_BF16,
    T_F8 = 1 << WML_F8E4M3FN | 1 << WML_F8E4M3FNUZ | 1 << WML_F8E5M2 | 1 << WML_F8E5M2FNUZ,
    T_I4 = 1 << WML_U4 | 1 << WML_I4, T_F4 = 1 << WML_F4E2M1, T_E8M0 = 1 << WML_F8E8M0, T_I2 = 1 << WML_U2 | 1 << WML_I2,
    T_INTS = T_U8 | T_I8 | T_U16 | T_I16 | T_U32 | T_I32 | T_U64 | T_I64,
    T_CLASSIC = T_INTS | T_F32 | T_F64 | T_F16 | T_BOOL | T_STRING | T_C64 | T_C128, /* those of ONNX 1.0 */
    T_SEQ = 1 << 28, T_OPTIONAL = 1 << 29
};

#define NEW(name, v) {.op = #name, .version = v, .kind = WML_OPSET_NEW},
#define CHANGED(name, v) {.op = #name, .version = v, .kind = WML_OPSET_CHANGED},
#define TYPES(name, v, slots, set) {.op = #name, .version = v, .kind = WML_OPSET_TYPES, .what = slots, .types = set},
#define ALLOWS(name, v, slots, set) {.op = #name, .version = v, .kind = WML_OPSET_CHANGED, .what = slots, .types = set},
#define INPUT(name, v, first) {.op = #name, .version = v, .kind = WML_OPSET_INPUT, .number = first},
#define DROP(name, v, attr, x) {.op = #name, .version = v, .kind = WML_OPSET_DROP, .what = attr, .number = x},
#define DROP_TEXT(name, v, attr, s) {.op = #name, .version = v, .kind = WML_OPSET_DROP, .what = attr, .word = s},
#define WORD(name, v, attr, s) {.op = #name, .version = v, .kind = WML_OPSET_WORD, .what = attr, .word = s},
#define WORD_GONE(name, v, attr, s) {.op = #name, .version = v, .kind = WML_OPSET_WORD_GONE, .what = attr, .word = s},
#define ADAPT(name, v, u, d) {.op = #name, .version = v, .kind = WML_OPSET_ADAPT, .up = wml_opset_##u, .down = wml_opset_##d},
const struct wml_opset_row wml_opset_rows[] = {
#include "opset/opset.def"
};
const size_t wml_opset_n_rows = WML_COUNT(wml_opset_rows);

const struct wml_opset_row *wml_opset_find(struct wml_str op, size_t *n)
{
    size_t low = 0, high = wml_opset_n_rows;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (wml_str_cmp(wml_str(wml_opset_rows[mid].op), op) < 0) low = mid + 1;
        else high = mid;
    }
    for (*n = 0; low + *n < wml_opset_n_rows && wml_str_is(op, wml_opset_rows[low + *n].op);) ++*n;
    return *n ? &wml_opset_rows[low] : NULL;
}

bool wml_opset_slot(const char *slots, bool output, size_t slot)
{
    const char *p = output ? strchr(slots, '>') + 1 : slots;
    for (; *p && *p != '>'; p++) {
        size_t i = (size_t)(*p - '0');
        bool rest = p[1] == '*';
        if (i == slot || (rest && slot > i)) return true;
        if (rest) p++;
    }
    return false;
}

/* What the attributes of the node say that makes it. */
static enum wml_dtype told(const struct wml_node *n)
{
    const struct wml_tensor *t = wml_attr_tensor(n, "value");
    if (wml_node_is(n, "Cast")) return (enum wml_dtype)wml_attr_int(n, "to", 0);
    if (wml_node_is(n, "Constant") && t) return (enum wml_dtype)t->dtype;
    if (wml_node_is(n, "ConstantOfShape")) return t ? (enum wml_dtype)t->dtype : WML_F32;
    bool is_onnx = !n->domain.len || wml_str_is(n->domain, "ai.onnx");
    return is_onnx ? (enum wml_dtype)wml_attr_int(n, "dtype", 0) : WML_UNDEFINED;
}

enum wml_dtype wml_opset_elem(const struct wml_value *v)
{
    if (!v) return WML_UNDEFINED;
    enum wml_dtype elem = wml_value_elem(v);
    return elem == WML_UNDEFINED && v->def && !v->type ? told(v->def) : elem;
}

uint32_t wml_opset_type_bit(const struct wml_value *v)
{
    if (v->type && v->type->sequence) return T_SEQ;
    if (v->type && v->type->optional) return T_OPTIONAL;
    enum wml_dtype elem = wml_opset_elem(v);
    return elem > WML_UNDEFINED && elem < WML_DTYPE_COUNT ? UINT32_C(1) << elem : 0;
}

bool wml_opset_none(struct wml_opset_step *s, struct wml_node *n)
{
    (void)s;
    (void)n;
    return true;
}
