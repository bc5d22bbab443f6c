/* ep/resolve.c - from a request to an EP, its library and a device. Candidates are tried in order of
 * precedence: the first that registers and has such a device wins; why the others failed goes into the
 * message. Simulated and test-only devices count only when their EP was named. */
#include "ep/internal.h"

#include "os/file.h"
#include "os/path.h"

enum { MAX_ADOPTED = 8 };

struct search {
    struct wml_ctx *cx;
    struct wml_ort *ort;
    const struct wml_target_spec *spec;
    struct wml_target_name name;
    struct wml_ep_libraries libraries;
    struct wml_target *out;
    bool found;
    size_t tried, registered;
    struct wml_err failure; /* of the first library that did not register */
    struct wml_buf seen;    /* devices that were not what was asked for */
    const char *simulated;  /* an EP whose simulator was passed over */
};

/* --- describing what was found --- */

/* "model name : Intel(R) ..." of /proc/cpuinfo; ORT itself knows only the vendor on Linux. */
static bool cpu_name(struct wml_buf *out)
{
    struct wml_buf text = {0};
    if (wml_file_read("/proc/cpuinfo", 1 << 20, &text, NULL)) {
        struct wml_str rest = wml_buf_view(&text), line;
        while (!out->len && wml_str_split(&rest, '\n', &line)) {
            size_t colon = wml_str_find(line, ':');
            if (colon != SIZE_MAX && wml_str_starts(line, "model name"))
                wml_buf_str(out, wml_str_trim(wml_str_sub(line, colon + 1, line.len)));
        }
    }
    wml_buf_release(&text);
    return out->len > 0;
}

static const char *hardware_name(struct wml_arena *a, const struct wml_ort_device *d)
{
    const char *name = wml_pair_find(d->ep_meta, d->n_ep_meta, "FULL_DEVICE_NAME");
    if (!name || !name[0]) name = wml_pair_find(d->hw_meta, d->n_hw_meta, "Description");
    struct wml_buf b = {0};
    if (name && name[0])
        wml_buf_cstr(&b, name);
    else if (d->type != WML_DEVICE_CPU || !cpu_name(&b))
        wml_buf_fmt(&b, "%s%s%s", d->hw_vendor, d->hw_vendor[0] ? " " : "", wml_device_type_name(d->type));
    name = wml_arena_cstr(a, wml_buf_view(&b));
    wml_buf_release(&b);
    return name;
}

/* --- options: later ones win, each key once --- */

static void set_option(struct wml_target *t, size_t cap, const char *key, const char *value)
{
    for (size_t i = 0; i < t->n_options; i++)
        if (!strcmp(t->option[i].key, key)) {
            t->option[i].value = value;
            return;
        }
    if (t->n_options < cap) t->option[t->n_options++] = (struct wml_pair){key, value};
}

static size_t count(const struct wml_pair *p)
{
    size_t n = 0;
    while (p && p[n].key) n++;
    return n;
}

static void merge_options(struct search *s, const struct wml_ep_device *row, const struct wml_pair *adopted,
                          size_t n_adopted)
{
    struct wml_target *t = s->out;
    const struct wml_pair *defaults = row ? row->defaults : NULL;
    const struct wml_pair *compile = row && s->spec->for_compile ? row->compile : NULL;
    const struct wml_pair *exact = row && s->spec->exact ? row->exact : NULL;
    size_t cap = count(defaults) + count(compile) + count(exact) + n_adopted + s->spec->n_options;
    bool typed_backend = wml_pair_find(s->spec->option, s->spec->n_options, "backend_type") != NULL;
    t->option = WML_NEW_ARRAY(&t->arena, struct wml_pair, cap + 1);
    for (size_t i = 0; i < count(defaults); i++) set_option(t, cap, defaults[i].key, defaults[i].value);
    for (size_t i = 0; i < count(compile); i++) set_option(t, cap, compile[i].key, compile[i].value);
    for (size_t i = 0; i < count(exact); i++) set_option(t, cap, exact[i].key, exact[i].value);
    for (size_t i = 0; i < n_adopted; i++) /* the two name one thing: what was typed wins */
        if (!typed_backend || strcmp(adopted[i].key, "backend_path"))
            set_option(t, cap, adopted[i].key, adopted[i].value);
    for (size_t i = 0; i < s->spec->n_options; i++)
        set_option(t, cap, wml_arena_cstr(&t->arena, wml_str(s->spec->option[i].key)),
                   wml_arena_cstr(&t->arena, wml_str(s->spec->option[i].value)));
}

/* --- one library --- */

static bool same_file(const char *a, const char *b)
{
    return !strcmp(a, b) || wml_file_same(a, b);
}

static bool belongs(const struct wml_ort_device *d, const struct wml_ep_library *l)
{
    const char *from = wml_pair_find(d->ep_meta, d->n_ep_meta, "library_path");
    /* A plugin may list variants of its EP under other names, such as OpenVINO's ".AUTO". */
    if (l->ep && strcmp(d->ep, l->name)) return false;
    if (l->path && from && from[0]) return same_file(l->path, from);
    return !strcmp(d->ep, l->name);
}

static void note_seen(struct search *s, const struct wml_ort_device *d)
{
    struct wml_arena a = {0};
    wml_buf_fmt(&s->seen, "%s%s on %s \"%s\"", s->seen.len ? ", " : "", d->ep, wml_device_type_name(d->type),
                hardware_name(&a, d));
    wml_arena_release(&a);
}

static void take(struct search *s, const struct wml_ep_library *l, const struct wml_ort_device *d,
                 enum wml_device_type type, const struct wml_pair *adopted, size_t n_adopted, bool simulated)
{
    struct wml_target *t = s->out;
    t->ep = l->ep;
    t->ep_name = wml_arena_cstr(&t->arena, wml_str(d->ep));
    t->library = l->path ? wml_arena_cstr(&t->arena, wml_str(l->path)) : NULL;
    t->source_tag = wml_arena_cstr(&t->arena, wml_str(l->source_tag ? l->source_tag : "directory"));
    const char *version = l->version; /* of the package; what the plugin says may be a build number */
    if (!version) version = wml_pair_find(d->ep_meta, d->n_ep_meta, "version");
    if (version && !version[0]) version = NULL;
    if (!version && !l->path) version = wml_ort_info(s->ort).version;
    t->ep_version = version ? wml_arena_cstr(&t->arena, wml_str(version)) : NULL;
    t->type = type;
    t->simulated = simulated;
    t->hardware = hardware_name(&t->arena, d);
    if (simulated)
        t->hardware = wml_arena_fmt(&t->arena, "%s simulated on %s", l->ep ? l->ep->label : d->ep, t->hardware).ptr;
    t->device = WML_NEW_ARRAY(&t->arena, const struct wml_ort_device *, 1);
    t->device[0] = d;
    t->n_devices = 1;
    merge_options(s, l->ep ? wml_ep_device_row(l->ep, type) : NULL, adopted, n_adopted);
    s->found = true;
}

/* The wanted kind among the devices of a registered library. */
static bool match(struct search *s, const struct wml_ep_library *l, enum wml_device_type type, bool any_type,
                  struct wml_err *err)
{
    const struct wml_ort_device *d = NULL;
    size_t n = 0, skip = s->name.index;
    if (!wml_ort_devices(s->ort, &d, &n, err)) return false;
    for (size_t i = 0; i < n; i++) {
        if (!belongs(&d[i], l)) continue;
        struct wml_pair option[MAX_ADOPTED];
        size_t n_options = 0;
        bool simulated = false, fits = any_type || d[i].type == type;
        if (l->ep && l->ep->adopt)
            fits = l->ep->adopt(&d[i], type, l->path, &s->out->arena, option, &n_options, &simulated);
        const char *virtual = wml_pair_find(d[i].hw_meta, d[i].n_hw_meta, "is_virtual");
        if (virtual && !strcmp(virtual, "1")) simulated = true;
        if (fits && simulated && !s->name.ep.len) {
            s->simulated = l->ep ? l->ep->alias[0] : l->name;
            fits = false;
        }
        if (!fits)
            note_seen(s, &d[i]);
        else if (skip)
            skip--;
        else {
            take(s, l, &d[i], any_type ? d[i].type : type, option, n_options, simulated);
            return true;
        }
    }
    return true;
}

static bool register_library(struct search *s, const struct wml_ep_library *l, struct wml_err *err)
{
    struct wml_buf name = {0};
    const struct wml_ort_device *d = NULL;
    size_t n = 0, mine = 0;
    bool there = wml_ort_registered(s->ort, l->path) != NULL;
    wml_buf_cstr(&name, l->name);
    bool ok = wml_ort_register(s->ort, wml_buf_text(&name), l->path, err);
    for (unsigned i = 1; !ok && i < 8 && wml_str_has(wml_str(err->msg), "already registered"); i++) {
        wml_buf_clear(&name);
        wml_buf_fmt(&name, "%s_%u", l->name, i);
        ok = wml_ort_register(s->ort, wml_buf_text(&name), l->path, err);
    }
    ok = ok && wml_ort_devices(s->ort, &d, &n, err);
    for (size_t i = 0; ok && i < n; i++) mine += belongs(&d[i], l);
    if (ok && !mine) {
        if (!there) wml_ort_unregister(s->ort, wml_buf_text(&name), NULL);
        wml_fail(err, WML_E_NOT_FOUND, "%s registers, but finds no device on this machine", l->path);
        ok = wml_hint(err, "check that the device and its driver are there, or name another EP (winml sys --list-ep)");
    }
    wml_buf_release(&name);
    return ok;
}

static bool try_library(struct search *s, const struct wml_ep_library *l, enum wml_device_type type, bool any_type,
                        struct wml_err *err)
{
    struct wml_err why = {0};
    s->tried++;
    if (l->path && !register_library(s, l, &why)) {
        if (why.code == WML_E_CANCELLED) {
            *err = why;
            return false;
        }
        if (!s->failure.code) s->failure = why;
        wml_log(s->cx, WML_LOG_DEBUG, "%s", why.msg);
        return true;
    }
    s->registered++;
    return match(s, l, type, any_type, err);
}

static bool try_ep(struct search *s, const struct wml_ep *ep, enum wml_device_type type, bool any_type,
                   struct wml_err *err)
{
    for (size_t i = 0; i < s->libraries.v.len && !s->found; i++) {
        const struct wml_ep_library *l = &s->libraries.v.at[i];
        if (l->ep != ep) continue;
        if (s->name.tag.len && !wml_str_is(s->name.tag, l->source_tag)) continue;
        if (!try_library(s, l, type, any_type, err)) return false;
    }
    return true;
}

/* --- the request --- */

static bool try_named(struct search *s, const struct wml_ep *ep, struct wml_err *err)
{
    if (!s->name.any_device || !ep) return try_ep(s, ep, s->name.device, s->name.any_device, err);
    for (size_t i = 0; i < ep->n_devices && !s->found; i++)
        if (!try_ep(s, ep, ep->device[i].type, false, err)) return false;
    return true;
}

static bool try_auto(struct search *s, struct wml_err *err)
{
    static const enum wml_device_type order[] = {WML_DEVICE_NPU, WML_DEVICE_GPU, WML_DEVICE_CPU};
    for (size_t k = 0; k < WML_COUNT(order) && !s->found; k++) {
        if (!s->name.any_device && s->name.device != order[k]) continue;
        for (size_t i = 0; i < wml_n_eps && !s->found; i++) {
            const struct wml_ep *ep = wml_eps[i];
            if (ep->test_only || !wml_ep_device_row(ep, order[k])) continue;
            if (s->spec->for_compile && !ep->compiles) continue;
            if (wml_ep_is_cpu(ep) && s->spec->n_options) continue;
            if (!try_ep(s, ep, order[k], false, err)) return false;
        }
    }
    return true;
}

static bool explain_named(struct search *s, const struct wml_ep *ep, struct wml_err *err)
{
    const char *label = ep ? ep->alias[0] : s->libraries.v.at[0].name;
    if (!s->tried && s->name.tag.len) {
        wml_fail(err, WML_E_NOT_FOUND, "no library of EP '%s' with source '%.*s'", label, WML_ARG(s->name.tag));
        return wml_hint(err, "`winml sys --list-ep` shows what there is");
    }
    if (!s->tried && ep) {
        struct wml_buf why = {0};
        wml_ep_missing_reason(ep, &s->libraries, &why);
        wml_fail(err, WML_E_NOT_FOUND, "EP '%s' is not available here: %s", label, wml_buf_text(&why));
        wml_buf_release(&why);
        return wml_hint(err, "`winml sys --list-ep` shows what there is");
    }
    if (!s->registered && s->failure.code) {
        *err = s->failure;
        return wml_wrap(err, "EP '%s'", label);
    }
    wml_fail(err, WML_E_NOT_FOUND, "EP '%s' has no %s device here%s%s", label,
             s->name.any_device ? "usable" : wml_device_type_name(s->name.device), s->seen.len ? "; it lists " : "",
             wml_buf_text(&s->seen));
    return wml_hint(err, "`winml sys` shows EPs and devices; --device auto takes what there is");
}

static bool explain(struct search *s, const struct wml_ep *ep, struct wml_err *err)
{
    if (s->name.ep.len) return explain_named(s, ep, err);
    if (s->name.any_device)
        wml_fail(err, WML_E_NOT_FOUND, "no EP and device is available for automatic selection%s",
                 s->spec->for_compile ? " that can compile" : "");
    else
        wml_fail(err, WML_E_NOT_FOUND, "no EP for device '%s' is available here%s",
                 wml_device_type_name(s->name.device), s->spec->for_compile ? " that can compile" : "");
    if (s->simulated)
        return wml_hint(err, "the simulator of %s can be chosen by name: --ep %s", s->simulated, s->simulated);
    return wml_hint(err, "install a plugin EP for this device, or name an EP with --ep; see `winml sys`");
}

static bool only_library(struct search *s, const struct wml_ep *ep, struct wml_err *err)
{
    struct wml_arena *a = &s->libraries.arena;
    struct wml_buf full = {0};
    if (!wml_path_absolute(&full, s->name.path, err)) return false;
    struct wml_ep_library l = {
        .ep = ep,
        .name = ep ? ep->name : wml_arena_cstr(a, s->name.ep),
        .path = wml_arena_cstr(a, wml_buf_view(&full)),
        .source_kind = "DirectorySource",
        .source_tag = "directory",
    };
    WML_PUSH_IN(a, &s->libraries.v, l);
    wml_buf_release(&full);
    return true;
}

bool wml_target_resolve(struct wml_ctx *cx, const struct wml_target_spec *spec, struct wml_target *out,
                        struct wml_err *err)
{
    struct search s = {.cx = cx, .spec = spec, .out = out, .seen = {.max = 400}};
    const struct wml_ep *ep;
    bool ok = false;
    memset(out, 0, sizeof *out);
    if (!wml_target_check(spec, &ep, err) || !wml_target_parse(spec, &s.name, err)) return false;
    if (!wml_ort_open(cx, &s.ort, err)) return false;
    if (s.name.path.len ? !only_library(&s, ep, err) : !wml_ep_discover(cx, &s.libraries, err)) goto done;
    if (s.name.ep.len ? !try_named(&s, ep, err) : !try_auto(&s, err)) goto done;
    ok = s.found ? true : explain(&s, ep, err);
done:
    wml_ep_libraries_release(&s.libraries);
    wml_buf_release(&s.seen);
    if (!ok) wml_target_release(out);
    return ok;
}

void wml_target_release(struct wml_target *t)
{
    if (!t) return;
    wml_arena_release(&t->arena);
    memset(t, 0, sizeof *t);
}

void wml_target_session(const struct wml_target *t, struct wml_session_opts *o)
{
    bool cpu = t->ep && wml_ep_is_cpu(t->ep);
    o->device = cpu ? NULL : t->device;
    o->n_devices = cpu ? 0 : t->n_devices;
    o->ep_option = cpu ? NULL : t->option;
    o->n_ep_options = cpu ? 0 : t->n_options;
}
