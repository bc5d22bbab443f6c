/* The names that a PyTorch checkpoint needs, and what they mean here: storages, element types, the functions that rebuild a
 * tensor from a view of a storage (torch/_utils.py), OrderedDict. Every other name ends the reading. */
#include <inttypes.h>

#include "weights/pickle.h"
#include "weights/weights.h"

enum meaning { STORAGE, DTYPE, ORDERED_DICT, SIZE, TENSOR_V1, TENSOR_V2, TENSOR_V3, PARAMETER };

struct wml_pickle_global {
    const char *module, *name;
    enum meaning meaning;
    enum wml_dtype dtype; /* of storages and types */
};

static const struct wml_pickle_global globals[] = {
    {"collections", "OrderedDict", ORDERED_DICT, 0},
    {"torch._utils", "_rebuild_tensor_v2", TENSOR_V2, 0},
    {"torch._utils", "_rebuild_tensor_v3", TENSOR_V3, 0},
    {"torch._utils", "_rebuild_tensor", TENSOR_V1, 0},
    {"torch._utils", "_rebuild_parameter", PARAMETER, 0},
    {"torch._utils", "_rebuild_parameter_with_state", PARAMETER, 0},
    {"torch.nn.parameter", "Parameter", PARAMETER, 0},
    {"torch", "Size", SIZE, 0},
    {"torch", "FloatStorage", STORAGE, WML_F32},
    {"torch", "DoubleStorage", STORAGE, WML_F64},
    {"torch", "HalfStorage", STORAGE, WML_F16},
    {"torch", "BFloat16Storage", STORAGE, WML_BF16},
    {"torch", "LongStorage", STORAGE, WML_I64},
    {"torch", "IntStorage", STORAGE, WML_I32},
    {"torch", "ShortStorage", STORAGE, WML_I16},
    {"torch", "CharStorage", STORAGE, WML_I8},
    {"torch", "ByteStorage", STORAGE, WML_U8},
    {"torch", "BoolStorage", STORAGE, WML_BOOL},
    {"torch", "ComplexFloatStorage", STORAGE, WML_C64},
    {"torch", "ComplexDoubleStorage", STORAGE, WML_C128},
    {"torch", "UntypedStorage", STORAGE, WML_UNDEFINED},
    {"torch.storage", "UntypedStorage", STORAGE, WML_UNDEFINED},
    {"torch.storage", "_UntypedStorage", STORAGE, WML_UNDEFINED},
    {"torch", "float32", DTYPE, WML_F32},
    {"torch", "float64", DTYPE, WML_F64},
    {"torch", "float16", DTYPE, WML_F16},
    {"torch", "bfloat16", DTYPE, WML_BF16},
    {"torch", "int64", DTYPE, WML_I64},
    {"torch", "int32", DTYPE, WML_I32},
    {"torch", "int16", DTYPE, WML_I16},
    {"torch", "int8", DTYPE, WML_I8},
    {"torch", "uint64", DTYPE, WML_U64},
    {"torch", "uint32", DTYPE, WML_U32},
    {"torch", "uint16", DTYPE, WML_U16},
    {"torch", "uint8", DTYPE, WML_U8},
    {"torch", "bool", DTYPE, WML_BOOL},
    {"torch", "complex64", DTYPE, WML_C64},
    {"torch", "complex128", DTYPE, WML_C128},
    {"torch", "float8_e4m3fn", DTYPE, WML_F8E4M3FN},
    {"torch", "float8_e4m3fnuz", DTYPE, WML_F8E4M3FNUZ},
    {"torch", "float8_e5m2", DTYPE, WML_F8E5M2},
    {"torch", "float8_e5m2fnuz", DTYPE, WML_F8E5M2FNUZ},
    {"torch", "float8_e8m0fnu", DTYPE, WML_F8E8M0},
};

bool wml_pickle_find(struct wml_pickle_ctx *cx, struct wml_str module, struct wml_str name, struct wml_pickle **out,
                     struct wml_err *err)
{
    for (size_t i = 0; i < WML_COUNT(globals); i++) {
        if (!wml_str_is(module, globals[i].module) || !wml_str_is(name, globals[i].name)) continue;
        *out = wml_pickle_new(cx, WML_PICKLE_GLOBAL);
        (*out)->global = &globals[i];
        return true;
    }
    wml_fail(err, WML_E_UNSUPPORTED, "the pickle asks for %.*s.%.*s, which is refused: only dictionaries of tensors are read",
             WML_ARG(module), WML_ARG(name));
    return wml_hint(err, "if the file can be trusted, convert it where PyTorch is: safetensors.torch.save_model, or "
                         "save_pretrained, which writes model.safetensors");
}

static bool is(const struct wml_pickle *v, enum meaning meaning)
{
    return v->kind == WML_PICKLE_GLOBAL && v->global->meaning == meaning;
}

static const struct wml_pickle *arg(const struct wml_pickle *args, size_t i, enum wml_pickle_kind kind)
{
    const struct wml_pickle *v = i < args->item.len ? args->item.at[i] : NULL;
    return v && v->kind == kind ? v : NULL;
}

/* --- storages --- */

/* ("storage", its class, key, device, elements[, None]): see torch/serialization.py. */
bool wml_pickle_persistent(struct wml_pickle_ctx *cx, const struct wml_pickle *id, struct wml_pickle **out, struct wml_err *err)
{
    const bool fits = id->kind == WML_PICKLE_TUPLE && id->item.len >= 5;
    const struct wml_pickle *tag = fits ? arg(id, 0, WML_PICKLE_STR) : NULL, *cls = fits ? id->item.at[1] : NULL;
    const struct wml_pickle *key = fits ? arg(id, 2, WML_PICKLE_STR) : NULL, *n = fits ? arg(id, 4, WML_PICKLE_INT) : NULL;
    if (!tag || !wml_str_is(tag->text, "storage") || !is(cls, STORAGE) || !key || !n || n->number < 0)
        return wml_fail(err, WML_E_FORMAT, "the pickle refers to something that is no storage");
    if (id->item.len > 5 && id->item.at[5]->kind != WML_PICKLE_NONE)
        return wml_fail(err, WML_E_UNSUPPORTED, "the file holds views of storages, a form that PyTorch gave up in 2017");
    const enum wml_dtype dtype = cls->global->dtype ? cls->global->dtype : WML_U8;
    struct wml_pickle_storage *s = wml_map_get(&cx->storages, key->text);
    if (s && (s->dtype != dtype || s->n != (uint64_t)n->number))
        return wml_fail(err, WML_E_FORMAT, "storage '%.*s' is said to be two different things", WML_ARG(key->text));
    if (!s) {
        s = WML_NEW(&cx->arena, struct wml_pickle_storage);
        *s = (struct wml_pickle_storage){.key = key->text, .dtype = dtype, .n = (uint64_t)n->number};
        wml_map_put(&cx->storages, s->key, s);
    }
    *out = wml_pickle_new(cx, WML_PICKLE_STORAGE);
    (*out)->storage = s;
    return true;
}

/* --- tensors --- */

static const int64_t *numbers(struct wml_pickle_ctx *cx, const struct wml_pickle *tuple)
{
    int64_t *n = WML_NEW_ARRAY(&cx->arena, int64_t, tuple->item.len + 1);
    for (size_t i = 0; i < tuple->item.len; i++) {
        if (tuple->item.at[i]->kind != WML_PICKLE_INT) return NULL;
        n[i] = tuple->item.at[i]->number;
    }
    return n;
}

/* (storage, offset, size, stride, requires_grad, hooks), the third version with the element type behind them. */
static bool rebuild(struct wml_pickle_ctx *cx, enum meaning version, const struct wml_pickle *args, struct wml_pickle **out,
                    struct wml_err *err)
{
    const struct wml_pickle *storage = arg(args, 0, WML_PICKLE_STORAGE), *offset = arg(args, 1, WML_PICKLE_INT);
    const struct wml_pickle *size = arg(args, 2, WML_PICKLE_TUPLE), *stride = arg(args, 3, WML_PICKLE_TUPLE);
    const struct wml_pickle *type = version == TENSOR_V3 ? arg(args, 6, WML_PICKLE_GLOBAL) : NULL;
    if (!storage || !offset || !size || !stride || size->item.len != stride->item.len || offset->number < 0 ||
        (version == TENSOR_V3 && (!type || !is(type, DTYPE))))
        return wml_fail(err, WML_E_FORMAT, "the pickle describes a tensor in an unknown way");
    if (size->item.len > WML_WEIGHT_MAX_RANK)
        return wml_fail(err, WML_E_UNSUPPORTED, "a tensor has %zu dimensions, at most %d are read", size->item.len, WML_WEIGHT_MAX_RANK);
    struct wml_pickle_tensor *t = WML_NEW(&cx->arena, struct wml_pickle_tensor);
    *t = (struct wml_pickle_tensor){.storage = storage->storage, .dtype = type ? type->global->dtype : storage->storage->dtype,
                                    .offset = offset->number, .rank = size->item.len,
                                    .dims = numbers(cx, size), .strides = numbers(cx, stride)};
    for (size_t i = 0; i < t->rank; i++)
        if (!t->dims || !t->strides || t->dims[i] < 0)
            return wml_fail(err, WML_E_FORMAT, "the pickle describes a tensor whose sizes are no sizes");
    *out = wml_pickle_new(cx, WML_PICKLE_TENSOR);
    (*out)->tensor = t;
    return true;
}

/* Python 3 makes an empty one and puts items into it; Python 2 gave it a list of pairs. */
static bool ordered_dict(struct wml_pickle_ctx *cx, const struct wml_pickle *args, struct wml_pickle **out, struct wml_err *err)
{
    const struct wml_pickle *pairs = arg(args, 0, WML_PICKLE_LIST);
    if (args->item.len && !pairs) return wml_fail(err, WML_E_UNSUPPORTED, "the pickle makes an OrderedDict of what is no list");
    *out = wml_pickle_new(cx, WML_PICKLE_DICT);
    for (size_t i = 0; pairs && i < pairs->item.len; i++) {
        const struct wml_pickle *pair = pairs->item.at[i];
        if ((pair->kind != WML_PICKLE_LIST && pair->kind != WML_PICKLE_TUPLE) || pair->item.len != 2)
            return wml_fail(err, WML_E_FORMAT, "the pickle makes an OrderedDict of what are no pairs");
        WML_PUSH_IN(&cx->arena, &(*out)->item, pair->item.at[0]);
        WML_PUSH_IN(&cx->arena, &(*out)->item, pair->item.at[1]);
    }
    return true;
}

bool wml_pickle_call(struct wml_pickle_ctx *cx, const struct wml_pickle *fn, const struct wml_pickle *args,
                     struct wml_pickle **out, struct wml_err *err)
{
    if (fn->kind != WML_PICKLE_GLOBAL || args->kind != WML_PICKLE_TUPLE)
        return wml_fail(err, WML_E_UNSUPPORTED, "the pickle calls something that has no name");
    switch (fn->global->meaning) {
    case TENSOR_V1: case TENSOR_V2: case TENSOR_V3: return rebuild(cx, fn->global->meaning, args, out, err);
    case PARAMETER: /* the tensor it wraps */
        if (!arg(args, 0, WML_PICKLE_TENSOR)) return wml_fail(err, WML_E_FORMAT, "the pickle makes a parameter of what is no tensor");
        *out = args->item.at[0];
        return true;
    case SIZE:
        if (!arg(args, 0, WML_PICKLE_TUPLE)) return wml_fail(err, WML_E_FORMAT, "the pickle makes a size of what is no tuple");
        *out = args->item.at[0];
        return true;
    case ORDERED_DICT:
        return ordered_dict(cx, args, out, err);
    default:
        return wml_fail(err, WML_E_UNSUPPORTED, "the pickle calls %s.%s, which is no function", fn->global->module, fn->global->name);
    }
}
