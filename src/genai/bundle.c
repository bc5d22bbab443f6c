/* Reading a bundle's config. */
#include "genai/bundle.h"

#include "os/file.h"
#include "os/path.h"

enum { STAGES_MAX = 256, CONFIG_MAX = 16 << 20 };

static void join(struct wml_buf *out, const char *dir, const char *name)
{
    wml_path_join(out, wml_str(dir), wml_str(name));
}

bool wml_bundle_is(const char *dir)
{
    struct wml_buf path = {0};
    join(&path, dir, WML_BUNDLE_CONFIG);
    bool is = wml_dir_exists(dir) && wml_file_exists(wml_buf_text(&path));
    wml_buf_release(&path);
    return is;
}

/* The names that the library knows in any spelling; any other EP must be called by its full name. */
const char *wml_bundle_provider_name(const struct wml_ep *ep)
{
    static const char *const known[] = {"qnn", "openvino", "vitisai", "nvtensorrtrtx", "cuda", "dml", "webgpu"};
    for (size_t i = 0; i < WML_COUNT(known); i++)
        for (const char *const *a = ep->alias; *a; a++)
            if (strcmp(*a, known[i]) == 0) return known[i];
    return ep->name;
}

static const char *text_of(struct wml_arena *a, const struct wml_json_val *v)
{
    struct wml_buf text = {0};
    if (wml_json_is_string(v)) wml_buf_str(&text, wml_json_str(v));
    else wml_json_print(v, &text);
    const char *copy = wml_arena_cstr(a, wml_buf_view(&text));
    wml_buf_release(&text);
    return copy ? copy : "";
}

/* [{"qnn":{"key":"value"}},...] or {"qnn":{...}} */
static void read_provider(struct wml_bundle *b, struct wml_bundle_stage *s, struct wml_bundle_provider *list, const struct wml_json_val *object)
{
    struct wml_json_iter it = {0}, at;
    struct wml_str key, name;
    const struct wml_json_val *options, *v;
    while (wml_json_next(object, &it, &name, &options)) {
        const struct wml_ep *ep = wml_ep_find(name);
        if (wml_ep_is_cpu(ep)) continue;
        struct wml_bundle_provider *p = &list[s->n_providers++];
        struct wml_pair *pair = WML_NEW_ARRAY(&b->arena, struct wml_pair, wml_json_len(options) + 1);
        p->ep = ep;
        p->name = p->ep ? wml_bundle_provider_name(p->ep) : wml_arena_cstr(&b->arena, name);
        at = (struct wml_json_iter){0};
        while (wml_json_is_object(options) && wml_json_next(options, &at, &key, &v))
            pair[p->n_options++] = (struct wml_pair){wml_arena_cstr(&b->arena, key), text_of(&b->arena, v)};
        p->option = pair;
        s->changed = s->changed || (p->ep && !wml_str_ieq(name, wml_str(p->name)) && !wml_str_ieq(name, wml_str(p->ep->name)));
    }
}

static void read_providers(struct wml_bundle *b, struct wml_bundle_stage *s, const struct wml_json_val *options)
{
    const struct wml_json_val *v = wml_json_get(options, "provider_options");
    size_t n = wml_json_is_array(v) ? 0 : wml_json_len(v);
    for (size_t i = 0; wml_json_is_array(v) && i < wml_json_len(v); i++) n += wml_json_len(wml_json_at(v, i));
    struct wml_bundle_provider *list = WML_NEW_ARRAY(&b->arena, struct wml_bundle_provider, n + 2);
    s->provider = list;
    if (!wml_json_is_array(v)) read_provider(b, s, list, v);
    else
        for (size_t i = 0; i < wml_json_len(v); i++) read_provider(b, s, list, wml_json_at(v, i));
}

static bool read_stage(struct wml_bundle *b, struct wml_str name, const struct wml_json_val *v, struct wml_err *err)
{
    struct wml_bundle_stage *s = &b->stage[b->n_stages++];
    s->name = wml_arena_cstr(&b->arena, name);
    s->file = s->source = wml_arena_cstr(&b->arena, wml_json_get_str(v, "filename"));
    if (b->staged && !*s->file) return wml_fail(err, WML_E_FORMAT, "stage '%s' names no model", s->name);
    if (*s->file && !wml_path_is_inside(wml_str(s->file)))
        return wml_fail(err, WML_E_FORMAT, "the model '%s' of stage '%s' is not below the bundle's folder", s->file, s->name);
    read_providers(b, s, wml_json_get(v, "session_options"));
    return true;
}

static bool read_stages(struct wml_bundle *b, const struct wml_json_val *decoder, struct wml_err *err)
{
    const struct wml_json_val *pipeline = wml_json_get(decoder, "pipeline"), *v;
    struct wml_str name;
    size_t n = wml_json_len(pipeline);
    if (n > STAGES_MAX) return wml_fail(err, WML_E_FORMAT, "more than %d stages", (int)STAGES_MAX);
    b->staged = wml_json_is_array(pipeline) && n > 0;
    b->stage = WML_NEW_ARRAY(&b->arena, struct wml_bundle_stage, STAGES_MAX + 1);
    if (!b->staged) return read_stage(b, WML_STR("decoder"), decoder, err);
    for (size_t i = 0; i < n; i++) {
        struct wml_json_iter it = {0};
        while (wml_json_next(wml_json_at(pipeline, i), &it, &name, &v)) {
            if (b->n_stages == STAGES_MAX) return wml_fail(err, WML_E_FORMAT, "more than %d stages", (int)STAGES_MAX);
            if (!read_stage(b, name, v, err)) return false;
        }
    }
    return true;
}

bool wml_bundle_parse(struct wml_str config, struct wml_bundle *out, struct wml_err *err)
{
    struct wml_bundle *b = out;
    *b = (struct wml_bundle){0};
    bool ok = wml_json_parse(config, &b->doc, err);
    const struct wml_json_val *model = wml_json_get(wml_json_root(b->doc), "model"), *decoder = wml_json_get(model, "decoder");
    if (ok && !wml_json_is_object(decoder)) ok = wml_fail(err, WML_E_FORMAT, "there is no model.decoder");
    if (ok) {
        b->type = wml_arena_cstr(&b->arena, wml_json_get_str(model, "type"));
        b->pipeline = strcmp(b->type, "decoder-pipeline") == 0;
        b->context_length = wml_json_get_int(model, "context_length", 0);
        ok = read_stages(b, decoder, err);
    }
    if (!ok) wml_bundle_close(b);
    return ok;
}

static bool no_bundle(const char *dir, struct wml_err *err)
{
    struct wml_buf path = {0};
    join(&path, dir, "config.json");
    if (!wml_dir_exists(dir)) {
        wml_fail(err, WML_E_USAGE, wml_file_exists(dir) ? "%s is a file, and a GenAI bundle is a folder" : "there is no folder %s", *dir ? dir : "''");
        wml_hint(err, "name the folder that holds " WML_BUNDLE_CONFIG ", the models and the tokenizer");
    } else if (wml_file_exists(wml_buf_text(&path))) {
        wml_fail(err, WML_E_USAGE, "%s is a Hugging Face model, no GenAI bundle: it has no " WML_BUNDLE_CONFIG, dir);
        wml_hint(err, "make the bundle first: winml build -m %s -o DIR --export-type plain, or optimized for an NPU", dir);
    } else {
        wml_fail(err, WML_E_USAGE, "%s is no GenAI bundle: it has no " WML_BUNDLE_CONFIG, dir);
        wml_hint(err, "name the folder that holds " WML_BUNDLE_CONFIG ", the models and the tokenizer");
    }
    wml_buf_release(&path);
    return false;
}

bool wml_bundle_open(const char *dir, struct wml_bundle *out, struct wml_err *err)
{
    struct wml_buf path = {0}, text = {0};
    *out = (struct wml_bundle){0};
    if (!wml_bundle_is(dir)) return no_bundle(dir, err);
    join(&path, dir, WML_BUNDLE_CONFIG);
    bool ok = wml_file_read(wml_buf_text(&path), CONFIG_MAX, &text, err) &&
              (wml_bundle_parse(wml_buf_view(&text), out, err) || wml_wrap(err, "%s", wml_buf_text(&path)));
    if (ok) out->dir = wml_arena_cstr(&out->arena, wml_str(dir));
    wml_buf_release(&path);
    wml_buf_release(&text);
    return ok;
}

void wml_bundle_close(struct wml_bundle *b)
{
    wml_json_free(b->doc);
    wml_arena_release(&b->arena);
    *b = (struct wml_bundle){0};
}

static bool same_provider(const struct wml_bundle_provider *a, const struct wml_bundle_provider *b)
{
    return a->ep ? a->ep == b->ep : strcmp(a->name, b->name) == 0;
}

const struct wml_ep *wml_bundle_ep(const struct wml_bundle *b, bool *several)
{
    const struct wml_bundle_provider *one = NULL;
    *several = false;
    for (size_t i = 0; i < b->n_stages; i++)
        for (size_t k = 0; k < b->stage[i].n_providers; k++) {
            if (one && !same_provider(one, &b->stage[i].provider[k])) *several = true;
            one = &b->stage[i].provider[k];
        }
    return one && !*several ? one->ep : NULL;
}

/* By its own options, then the name of its library, then the only kind of device it has. */
static const char *device_of(const struct wml_bundle_provider *p)
{
    static const char *const kinds[] = {"npu", "gpu", "cpu"};
    static const char *const hints[] = {"QnnHtp", "QnnGpu", "QnnCpu"};
    const char *typed = wml_pair_find(p->option, p->n_options, "device_type");
    const char *backend = wml_pair_find(p->option, p->n_options, "backend_path");
    for (size_t i = 0; typed && i < WML_COUNT(kinds); i++)
        if (wml_str_ieq(wml_str(typed), wml_str(kinds[i]))) return kinds[i];
    for (size_t i = 0; backend && i < WML_COUNT(hints); i++)
        if (wml_str_ends(wml_path_stem(wml_str(backend)), hints[i])) return kinds[i];
    return p->ep && p->ep->n_devices == 1 ? wml_device_type_name(p->ep->device[0].type) : NULL;
}

const char *wml_bundle_device(const struct wml_bundle *b)
{
    const char *device = NULL;
    for (size_t i = 0; i < b->n_stages; i++)
        for (size_t k = 0; k < b->stage[i].n_providers; k++) {
            const char *this_one = device_of(&b->stage[i].provider[k]);
            if (!this_one || (device && strcmp(device, this_one) != 0)) return NULL;
            device = this_one;
        }
    return device ? device : "cpu";
}

bool wml_bundle_runs_on(const struct wml_bundle *b, const struct wml_ep *ep)
{
    bool cpu = wml_ep_is_cpu(ep);
    for (size_t i = 0; i < b->n_stages; i++)
        for (size_t k = 0; k < b->stage[i].n_providers; k++)
            if (cpu || b->stage[i].provider[k].ep == ep) return !cpu;
    return cpu;
}
