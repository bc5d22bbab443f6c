/* Reading the file of overrides. Keys that nobody knows are refused: a typing error must not pass for the default. */
#include "quant/overrides.h"

#include <stdlib.h>
#include <string.h>

#include "quant/qparams.h"
#include "text/json.h"
#include "text/words.h"

struct where { /* of a message */
    struct wml_quant_overrides *o;
    struct wml_str name; /* "tensor 'x'" */
    struct wml_err *err;
};

static bool bad(const struct where *w, struct wml_str key, const char *wants)
{
    return wml_fail(w->err, WML_E_USAGE, "%.*s: '%.*s' %s", WML_ARG(w->name), WML_ARG(key), wants);
}

struct wml_override wml_override_none(void)
{
    return (struct wml_override){.symmetric = WML_UNSET, .reduced = WML_UNSET};
}

enum wml_dtype wml_qtype_parse(struct wml_str name)
{
    static const char prefix[] = "QuantType.";
    if (wml_str_starts(name, prefix)) name = wml_str_sub(name, sizeof prefix - 1, name.len);
    if (name.len > 1 && (name.ptr[0] == 'Q' || name.ptr[0] == 'q')) name = wml_str_sub(name, 1, name.len);
    enum wml_dtype type = wml_dtype_parse(name);
    return wml_qtype_is_known(type) ? type : WML_UNDEFINED;
}

static bool read_type(const struct where *w, struct wml_str key, const struct wml_json_val *v, enum wml_dtype *out)
{
    *out = wml_qtype_parse(wml_json_str(v));
    return *out != WML_UNDEFINED || bad(w, key, "is none of QUInt8, QInt8, QUInt16, QInt16, QUInt4, QInt4");
}

static bool read_bool(const struct where *w, struct wml_str key, const struct wml_json_val *v, int *out)
{
    *out = wml_json_bool(v, false);
    return wml_json_is_bool(v) || bad(w, key, "must be true or false");
}

static bool read_num(const struct where *w, struct wml_str key, const struct wml_json_val *v, double *out, bool *has)
{
    *out = wml_json_num(v, 0);
    *has = true;
    return wml_json_is_number(v) || bad(w, key, "must be a number");
}

static bool read_int(const struct where *w, struct wml_str key, const struct wml_json_val *v, int64_t low, int64_t high, int64_t *out)
{
    *out = wml_json_int(v, INT64_MIN);
    return (*out >= low && *out <= high) || bad(w, key, "must be a whole number of the type");
}

struct keys { bool scale, zero; };

/* What tensors, their channels and conversions share. false in *known: another key. */
static bool read_common(const struct where *w, struct wml_str key, const struct wml_json_val *v, struct wml_override *o, struct keys *k,
                        bool *known)
{
    int64_t zero;
    *known = true;
    if (wml_str_is(key, "quant_type")) return read_type(w, key, v, &o->type);
    if (wml_str_is(key, "symmetric")) return read_bool(w, key, v, &o->symmetric);
    if (wml_str_is(key, "rmin")) return read_num(w, key, v, &o->low, &o->has_low);
    if (wml_str_is(key, "rmax")) return read_num(w, key, v, &o->high, &o->has_high);
    if (wml_str_is(key, "scale")) {
        if (!read_num(w, key, v, &o->scale, &k->scale)) return false;
        return o->scale > 0 || bad(w, key, "must be above 0");
    }
    if (wml_str_is(key, "zero_point")) {
        k->zero = true;
        if (!read_int(w, key, v, INT16_MIN, UINT16_MAX, &zero)) return false;
        o->zero = (int32_t)zero;
        return true;
    }
    *known = false;
    return true;
}

static bool check_scale(const struct where *w, struct wml_override *o, struct keys k)
{
    if (k.scale != k.zero) return bad(w, k.scale ? WML_STR("scale") : WML_STR("zero_point"), "needs scale and zero_point together");
    o->has_scale = k.scale;
    if (k.scale && (o->symmetric != WML_UNSET || o->reduced != WML_UNSET || o->has_low || o->has_high))
        return bad(w, WML_STR("scale"), "leaves nothing for symmetric, reduce_range, rmin and rmax to say");
    if (o->has_low && o->has_high && !(o->low <= o->high)) return bad(w, WML_STR("rmin"), "is above rmax");
    return true;
}

static bool read_readers(const struct where *w, struct wml_str key, const struct wml_json_val *v, struct wml_tensor_override *t)
{
    t->some = true;
    for (size_t i = 0; i < wml_json_len(v); i++) {
        struct wml_str name = wml_json_str(wml_json_at(v, i));
        if (!name.ptr) return bad(w, key, "must be an array of names of nodes");
        WML_PUSH_IN(&w->o->arena, &t->reader, wml_arena_str(&w->o->arena, name));
    }
    return wml_json_is_array(v) || bad(w, key, "must be an array of names of nodes");
}

static bool read_convert(const struct where *w, const struct wml_json_val *v, struct wml_tensor_override *t)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *item;
    struct keys keys = {0};
    t->converts = true;
    t->convert = wml_override_none();
    if (!wml_json_is_object(v)) return bad(w, WML_STR("convert"), "must be an object");
    while (wml_json_next(v, &it, &key, &item)) {
        bool known;
        if (wml_str_is(key, "recv_nodes")) {
            if (!read_readers(w, key, item, t)) return false;
        } else if (!read_common(w, key, item, &t->convert, &keys, &known)) {
            return false;
        } else if (!known) {
            return bad(w, key, "is no key of convert");
        }
    }
    if (!t->convert.type) return bad(w, WML_STR("convert"), "needs a quant_type");
    return check_scale(w, &t->convert, keys);
}

static bool read_channel(const struct where *w, const struct wml_json_val *v, struct wml_tensor_override *t)
{
    struct wml_override o = wml_override_none();
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *item;
    struct keys keys = {0};
    if (!wml_json_is_object(v)) return wml_fail(w->err, WML_E_USAGE, "%.*s: an object is expected", WML_ARG(w->name));
    while (wml_json_next(v, &it, &key, &item)) {
        bool known = true, ok;
        if (wml_str_is(key, "reduce_range")) ok = read_bool(w, key, item, &o.reduced);
        else if (wml_str_is(key, "axis")) ok = read_int(w, key, item, -64, 63, &o.axis), o.has_axis = true;
        else if (wml_str_is(key, "convert")) ok = read_convert(w, item, t);
        else ok = read_common(w, key, item, &o, &keys, &known);
        if (!ok) return false;
        if (!known) return bad(w, key, "is no key of a tensor");
    }
    if (!check_scale(w, &o, keys)) return false;
    WML_PUSH_IN(&w->o->arena, &t->channel, o);
    return true;
}

/* Channels differ in scale and range; how they are stored is said once. */
static bool check_channels(const struct where *w, struct wml_tensor_override *t)
{
    struct wml_override *first = t->channel.at;
    if (first->has_axis && (t->converts || first->has_low != first->has_high)) return bad(w, WML_STR("axis"), "does not go with convert, or with one of rmin and rmax");
    if (t->channel.len > 1 && !first->has_axis) return bad(w, WML_STR("axis"), "is missing in the first of several channels");
    for (size_t i = 1; i < t->channel.len; i++) {
        struct wml_override *c = &t->channel.at[i];
        bool same = (!c->type || c->type == first->type) && (!c->has_axis || c->axis == first->axis) &&
                    (c->symmetric == WML_UNSET || c->symmetric == first->symmetric) && (c->reduced == WML_UNSET || c->reduced == first->reduced);
        if (!same) return bad(w, WML_STR("axis"), "separates channels that differ in quant_type, axis, symmetric or reduce_range");
        if (c->has_scale != first->has_scale || c->has_low != first->has_low || c->has_high != first->has_high)
            return bad(w, WML_STR("axis"), "separates channels of which only some have a scale or a range");
    }
    return true;
}

static bool read_tensor(struct wml_quant_overrides *o, struct wml_str name, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_tensor_override t = {.pattern = wml_arena_str(&o->arena, name)};
    struct where w = {o, wml_arena_fmt(&o->arena, "tensor '%.*s'", WML_ARG(name)), err};
    if (wml_json_is_object(v)) {
        if (!read_channel(&w, v, &t)) return false;
    } else if (!wml_json_is_array(v)) {
        return wml_fail(err, WML_E_USAGE, "%.*s: an array of objects is expected", WML_ARG(w.name));
    }
    for (size_t i = 0; wml_json_is_array(v) && i < wml_json_len(v); i++)
        if (!read_channel(&w, wml_json_at(v, i), &t)) return false;
    if (!t.channel.len) return true;
    if (!check_channels(&w, &t)) return false;
    WML_PUSH_IN(&o->arena, &o->tensor, t);
    return true;
}

static bool read_node(struct wml_quant_overrides *o, const char *kind, struct wml_str name, const struct wml_json_val *v,
                      struct wml_node_override *n, struct wml_err *err)
{
    struct where w = {o, wml_arena_fmt(&o->arena, "%s '%.*s'", kind, WML_ARG(name)), err};
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *item;
    *n = (struct wml_node_override){.pattern = wml_arena_str(&o->arena, name), .activation_symmetric = WML_UNSET,
                                    .weight_symmetric = WML_UNSET, .per_channel = WML_UNSET, .reduced = WML_UNSET};
    if (!wml_json_is_object(v)) return wml_fail(err, WML_E_USAGE, "%.*s: an object is expected", WML_ARG(w.name));
    while (wml_json_next(v, &it, &key, &item)) {
        int exclude = n->exclude;
        bool ok;
        if (wml_str_is(key, "exclude")) ok = read_bool(&w, key, item, &exclude);
        else if (wml_str_is(key, "activation_type")) ok = read_type(&w, key, item, &n->activation);
        else if (wml_str_is(key, "weight_type")) ok = read_type(&w, key, item, &n->weight);
        else if (wml_str_is(key, "activation_symmetric")) ok = read_bool(&w, key, item, &n->activation_symmetric);
        else if (wml_str_is(key, "weight_symmetric")) ok = read_bool(&w, key, item, &n->weight_symmetric);
        else if (wml_str_is(key, "per_channel")) ok = read_bool(&w, key, item, &n->per_channel);
        else if (wml_str_is(key, "reduce_range")) ok = read_bool(&w, key, item, &n->reduced);
        else ok = bad(&w, key, "is no key of a node or operator");
        if (!ok) return false;
        n->exclude = exclude;
    }
    return true;
}

static bool read_member(struct wml_quant_overrides *o, struct wml_str key, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_json_iter it = {0};
    struct wml_str name;
    const struct wml_json_val *item;
    struct wml_node_override n;
    bool tensors = wml_str_is(key, "tensors"), nodes = wml_str_is(key, "nodes"), ops = wml_str_is(key, "op_types");
    if (wml_str_is(key, "add_qtype_converts") && wml_json_is_bool(v)) {
        o->no_converts = !wml_json_bool(v, true);
        return true;
    }
    if (!wml_json_is_object(v) || !(tensors || nodes || ops)) return read_tensor(o, key, v, err);
    while (wml_json_next(v, &it, &name, &item)) {
        if (tensors) {
            if (!read_tensor(o, name, item, err)) return false;
        } else {
            if (!read_node(o, nodes ? "nodes" : "op_types", name, item, &n, err)) return false;
            if (nodes) WML_PUSH_IN(&o->arena, &o->node, n);
            else WML_PUSH_IN(&o->arena, &o->op, n);
        }
    }
    return true;
}

static struct wml_quant_overrides *read_all(const struct wml_json_val *root, struct wml_err *err)
{
    struct wml_quant_overrides *o = wml_xcalloc(1, sizeof *o);
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    bool ok = wml_json_is_object(root) || wml_fail(err, WML_E_USAGE, "an object is expected: {\"tensor\": [{\"quant_type\": \"QUInt16\"}]}");
    while (ok && wml_json_next(root, &it, &key, &v)) ok = read_member(o, key, v, err);
    if (ok) return o;
    wml_quant_overrides_free(o);
    return NULL;
}

struct wml_quant_overrides *wml_quant_overrides_parse(struct wml_str json, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    struct wml_quant_overrides *o = NULL;
    if (wml_json_parse(json, &doc, err)) o = read_all(wml_json_root(doc), err);
    wml_json_free(doc);
    return o;
}

struct wml_quant_overrides *wml_quant_overrides_load(const char *path, struct wml_err *err)
{
    struct wml_json_doc *doc = NULL;
    struct wml_quant_overrides *o = NULL;
    if (!wml_json_load(path, &doc, err)) return NULL;
    o = read_all(wml_json_root(doc), err);
    if (!o) wml_wrap(err, "overrides %s", path);
    wml_json_free(doc);
    return o;
}

void wml_quant_overrides_free(struct wml_quant_overrides *o)
{
    if (!o) return;
    wml_arena_release(&o->arena);
    free(o);
}

static bool matches(struct wml_str pattern, struct wml_str name, bool exact)
{
    return exact ? wml_str_eq(pattern, name) : wml_glob_match(pattern, name);
}

const struct wml_tensor_override *wml_overrides_of_tensor(const struct wml_quant_overrides *o, struct wml_str name)
{
    for (int glob = 0; o && glob < 2; glob++)
        for (size_t i = 0; i < o->tensor.len; i++)
            if (matches(o->tensor.at[i].pattern, name, !glob)) return &o->tensor.at[i];
    return NULL;
}

const struct wml_node_override *wml_overrides_of_node(const struct wml_quant_overrides *o, struct wml_str name, struct wml_str op_type)
{
    for (int glob = 0; o && glob < 2; glob++)
        for (size_t i = 0; i < o->node.len; i++)
            if (matches(o->node.at[i].pattern, name, !glob)) return &o->node.at[i];
    for (int glob = 0; o && glob < 2; glob++)
        for (size_t i = 0; i < o->op.len; i++)
            if (matches(o->op.at[i].pattern, op_type, !glob)) return &o->op.at[i];
    return NULL;
}
