/* Which EP a stage runs on, and the config that says so. */
#include "genai/bundle.h"

static bool names(const struct wml_bundle_provider *p, const struct wml_bundle_override *o)
{
    return o->ep ? p->ep == o->ep : wml_str_ieq(wml_str(p->name), wml_str(o->ep_name));
}

static void set_provider(struct wml_bundle *b, struct wml_bundle_stage *s, const struct wml_bundle_provider *p)
{
    struct wml_bundle_provider *one = WML_NEW(&b->arena, struct wml_bundle_provider);
    *one = *p;
    s->provider = one;
    s->n_providers = 1;
    s->changed = true;
}

/* What some stage already says of this EP; else what the caller knows. */
static struct wml_bundle_provider options_for(struct wml_bundle *b, const struct wml_bundle_override *o)
{
    struct wml_bundle_provider p = {.ep = o->ep, .name = o->ep ? wml_bundle_provider_name(o->ep) : o->ep_name};
    for (size_t i = 0; i < b->n_stages; i++)
        for (size_t k = 0; k < b->stage[i].n_providers; k++) {
            const struct wml_bundle_provider *q = &b->stage[i].provider[k];
            if (!names(q, o) || !q->n_options) continue;
            p.option = q->option;
            p.n_options = q->n_options;
            return p;
        }
    if (o->ep && (strcmp(o->ep->alias[0], "openvino") == 0 || strcmp(o->ep->alias[0], "vitisai") == 0)) {
        struct wml_pair *pair = WML_NEW_ARRAY(&b->arena, struct wml_pair, 1);
        const char *device = o->device ? o->device : wml_device_type_name(o->ep->device[0].type);
        struct wml_buf upper = {0};
        for (const char *c = device; *c && *c != ':'; c++) wml_buf_char(&upper, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
        pair[0] = (struct wml_pair){"device_type", wml_arena_cstr(&b->arena, wml_buf_view(&upper))};
        wml_buf_release(&upper);
        p.option = pair;
        p.n_options = 1;
        return p;
    }
    p.option = o->defaults;
    p.n_options = o->n_defaults;
    return p;
}

bool wml_bundle_route(struct wml_bundle *b, const struct wml_bundle_override *o)
{
    bool cpu = wml_ep_is_cpu(o->ep);
    struct wml_bundle_provider there = options_for(b, o);
    bool runs = cpu;
    for (size_t i = 0; i < b->n_stages; i++) {
        struct wml_bundle_stage *s = &b->stage[i];
        const struct wml_bundle_provider *own = NULL;
        for (size_t k = 0; k < s->n_providers; k++)
            if (!cpu && names(&s->provider[k], o)) own = &s->provider[k];
        if (cpu) {
            s->changed = s->changed || s->n_providers;
            s->n_providers = 0;
        } else if (own) {
            if (s->n_providers > 1) set_provider(b, s, own);
            runs = true;
        } else if (s->n_providers || !b->staged) {
            set_provider(b, s, &there);
            runs = true;
        }
    }
    return runs;
}

static void merge(struct wml_bundle *b, struct wml_bundle_provider *p, const struct wml_pair *option, size_t n)
{
    struct wml_pair *all = WML_NEW_ARRAY(&b->arena, struct wml_pair, p->n_options + n + 1);
    size_t used = 0;
    for (size_t i = 0; i < p->n_options; i++) all[used++] = p->option[i];
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        while (at < used && strcmp(all[at].key, option[i].key) != 0) at++;
        all[at] = (struct wml_pair){wml_arena_cstr(&b->arena, wml_str(option[i].key)), wml_arena_cstr(&b->arena, wml_str(option[i].value))};
        if (at == used) used++;
    }
    p->option = all;
    p->n_options = used;
}

void wml_bundle_set_options(struct wml_bundle *b, const struct wml_ep *ep, const struct wml_pair *option, size_t n)
{
    for (size_t i = 0; n && i < b->n_stages; i++) {
        struct wml_bundle_stage *s = &b->stage[i];
        struct wml_bundle_provider *list = WML_NEW_ARRAY(&b->arena, struct wml_bundle_provider, s->n_providers + 1);
        for (size_t k = 0; k < s->n_providers; k++) {
            list[k] = s->provider[k];
            if (ep && list[k].ep != ep) continue;
            merge(b, &list[k], option, n);
            s->changed = true;
        }
        s->provider = list;
    }
}

void wml_bundle_set_file(struct wml_bundle *b, size_t stage, const char *file)
{
    b->stage[stage].file = wml_arena_cstr(&b->arena, wml_str(file));
}

static bool has_other_file(const struct wml_bundle_stage *s)
{
    return s->file && s->source && strcmp(s->file, s->source) != 0;
}

bool wml_bundle_changed(const struct wml_bundle *b)
{
    bool changed = false;
    for (size_t i = 0; i < b->n_stages; i++) changed = changed || b->stage[i].changed || has_other_file(&b->stage[i]);
    return changed;
}

static void put_providers(struct wml_json *j, const struct wml_bundle_stage *s)
{
    wml_json_begin(j, '[');
    for (size_t i = 0; i < s->n_providers; i++) {
        wml_json_begin(j, '{');
        wml_json_key(j, s->provider[i].name);
        wml_json_put_pairs(j, s->provider[i].option, s->provider[i].n_options);
        wml_json_end(j, '}');
    }
    wml_json_end(j, ']');
}

/* session_options with the stage's providers. */
static void put_session(struct wml_json *j, const struct wml_bundle_stage *s, const struct wml_json_val *old)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    wml_json_begin(j, '{');
    while (wml_json_is_object(old) && wml_json_next(old, &it, &key, &v)) {
        if (wml_str_is(key, "provider_options")) continue;
        wml_json_key_str(j, key);
        wml_json_put_val(j, v);
    }
    wml_json_key(j, "provider_options");
    put_providers(j, s);
    wml_json_end(j, '}');
}

static void put_pipeline(struct wml_json *j, const struct wml_bundle *b, const struct wml_json_val *list);

/* A stage, or the decoder of a flat bundle: filename and providers are ours, other members those of the file. */
static void put_stage(struct wml_json *j, const struct wml_bundle *b, const struct wml_bundle_stage *s, const struct wml_json_val *old)
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    wml_json_begin(j, '{');
    while (wml_json_next(old, &it, &key, &v)) {
        if (s && s->changed && wml_str_is(key, "session_options")) continue;
        wml_json_key_str(j, key);
        if (s && wml_str_is(key, "filename")) wml_json_put_cstr(j, s->file);
        else if (!s && wml_str_is(key, "pipeline")) put_pipeline(j, b, v);
        else wml_json_put_val(j, v);
    }
    if (s && s->changed) {
        wml_json_key(j, "session_options");
        put_session(j, s, wml_json_get(old, "session_options"));
    }
    wml_json_end(j, '}');
}

static void put_pipeline(struct wml_json *j, const struct wml_bundle *b, const struct wml_json_val *list)
{
    size_t stage = 0;
    struct wml_str key;
    const struct wml_json_val *v;
    wml_json_begin(j, '[');
    for (size_t i = 0; i < wml_json_len(list); i++) {
        struct wml_json_iter it = {0};
        wml_json_begin(j, '{');
        while (wml_json_next(wml_json_at(list, i), &it, &key, &v)) {
            wml_json_key_str(j, key);
            put_stage(j, b, &b->stage[stage++], v);
        }
        wml_json_end(j, '}');
    }
    wml_json_end(j, ']');
}

/* The members of an object, one of them written by `put`. */
static void put_except(struct wml_json *j, const struct wml_bundle *b, const struct wml_json_val *old, const char *name,
                       void (*put)(struct wml_json *j, const struct wml_bundle *b, const struct wml_json_val *old))
{
    struct wml_json_iter it = {0};
    struct wml_str key;
    const struct wml_json_val *v;
    wml_json_begin(j, '{');
    while (wml_json_next(old, &it, &key, &v)) {
        wml_json_key_str(j, key);
        if (wml_str_is(key, name)) put(j, b, v);
        else wml_json_put_val(j, v);
    }
    wml_json_end(j, '}');
}

static void put_decoder(struct wml_json *j, const struct wml_bundle *b, const struct wml_json_val *old)
{
    put_stage(j, b, b->staged ? NULL : &b->stage[0], old);
}

static void put_model(struct wml_json *j, const struct wml_bundle *b, const struct wml_json_val *old)
{
    put_except(j, b, old, "decoder", put_decoder);
}

void wml_bundle_print(const struct wml_bundle *b, struct wml_buf *out)
{
    struct wml_json j = {.out = out, .indent = 2};
    put_except(&j, b, wml_json_root(b->doc), "model", put_model);
    wml_buf_char(out, '\n');
}
