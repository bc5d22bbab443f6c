/* ep/spec.c - the text of a target: --ep NAME[@TAG|@PATH], --device KIND[:N]. Everything that can be known
 * without loading a library is checked here. */
#include "ep/internal.h"

#include "base/num.h"
#include "os/file.h"

static const char *const tags[] = {"bundled", "directory", "msix", "nuget", "pypi", "winml-catalog"};

static bool is_auto(struct wml_str s)
{
    return !s.len || wml_str_ieq(s, WML_STR("auto"));
}

static bool has_blank(struct wml_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == ' ' || s.ptr[i] == '\t') return true;
    return false;
}

/* A path has a separator, or names an existing file. */
static bool is_path(struct wml_str s)
{
    if (wml_str_find(s, '/') != SIZE_MAX || wml_str_find(s, '\\') != SIZE_MAX) return true;
    struct wml_buf b = {0};
    wml_buf_str(&b, s);
    bool there = wml_file_exists(wml_buf_text(&b));
    wml_buf_release(&b);
    return there;
}

static bool parse_source(struct wml_str source, struct wml_target_name *out, struct wml_err *err)
{
    if (is_path(source)) {
        out->path = source;
        return true;
    }
    if (wml_str_find(source, '@') != SIZE_MAX) return wml_fail(err, WML_E_USAGE, "--ep takes one @ only");
    if (has_blank(source)) return wml_fail(err, WML_E_USAGE, "--ep: blank in the source \"%.*s\"", WML_ARG(source));
    for (size_t i = 0; i < WML_COUNT(tags); i++)
        if (wml_str_ieq(source, wml_str(tags[i]))) {
            out->tag = wml_str(tags[i]);
            return true;
        }
    wml_fail(err, WML_E_USAGE, "--ep: unknown source \"%.*s\"", WML_ARG(source));
    return wml_hint(err, "sources: bundled, directory, msix, nuget, pypi, winml-catalog; or the path of a "
                         "plugin library after the @");
}

static bool parse_ep(struct wml_str text, struct wml_target_name *out, struct wml_err *err)
{
    size_t at = wml_str_find(text, '@');
    out->ep = at == SIZE_MAX ? text : wml_str_sub(text, 0, at);
    if (at != SIZE_MAX) {
        struct wml_str source = wml_str_sub(text, at + 1, text.len);
        if (!out->ep.len || !source.len)
            return wml_fail(err, WML_E_USAGE, "--ep \"%.*s\": a name and a source belong around the @", WML_ARG(text));
        if (is_auto(out->ep))
            return wml_fail(err, WML_E_USAGE, "--ep \"%.*s\": a source needs the name of an EP", WML_ARG(text));
        if (!parse_source(source, out, err)) return false;
    }
    if (has_blank(out->ep)) return wml_fail(err, WML_E_USAGE, "--ep: blank in the name \"%.*s\"", WML_ARG(out->ep));
    if (is_auto(out->ep)) out->ep = WML_STR("");
    return true;
}

static bool parse_device(struct wml_str text, struct wml_target_name *out, struct wml_err *err)
{
    size_t colon = wml_str_find(text, ':');
    struct wml_str kind = colon == SIZE_MAX ? text : wml_str_sub(text, 0, colon);
    uint64_t index = 0;
    if (colon != SIZE_MAX && (!wml_parse_u64(wml_str_sub(text, colon + 1, text.len), &index) || index > 63)) {
        wml_fail(err, WML_E_USAGE, "--device \"%.*s\": a number from 0 belongs after the colon", WML_ARG(text));
        return wml_hint(err, "gpu:1 is the second GPU; see `winml sys --list-device`");
    }
    out->index = (size_t)index;
    out->any_device = is_auto(kind);
    if (out->any_device && colon == SIZE_MAX) return true;
    for (enum wml_device_type t = WML_DEVICE_CPU; t <= WML_DEVICE_NPU; t++)
        if (wml_str_ieq(kind, wml_str(wml_device_type_name(t)))) {
            out->device = t;
            return true;
        }
    wml_fail(err, WML_E_USAGE, "unknown device \"%.*s\"", WML_ARG(text));
    return wml_hint(err, "devices: npu, gpu, cpu, auto");
}

bool wml_target_parse(const struct wml_target_spec *s, struct wml_target_name *out, struct wml_err *err)
{
    memset(out, 0, sizeof *out);
    return parse_ep(wml_str(s->ep ? s->ep : ""), out, err) &&
           parse_device(wml_str(s->device ? s->device : ""), out, err);
}

static bool unknown_ep(struct wml_str name, struct wml_err *err)
{
    const char *near = wml_ep_similar(name);
    wml_fail(err, WML_E_USAGE, "unknown EP \"%.*s\"", WML_ARG(name));
    if (near) return wml_hint(err, "did you mean %s?", near);
    struct wml_buf b = {0};
    for (size_t i = 0; i < wml_n_eps; i++)
        if (!wml_eps[i]->test_only) wml_buf_fmt(&b, "%s%s", b.len ? ", " : "", wml_eps[i]->alias[0]);
    wml_hint(err, "EPs: %s; a plugin that winml does not know: --ep NAME@/path/of/library", wml_buf_text(&b));
    wml_buf_release(&b);
    return false;
}

static bool check_device(const struct wml_ep *ep, const struct wml_target_name *n, struct wml_err *err)
{
    if (n->any_device || wml_ep_device_row(ep, n->device)) return true;
    struct wml_buf b = {0};
    for (size_t i = 0; i < ep->n_devices; i++)
        wml_buf_fmt(&b, "%s%s", b.len ? ", " : "", wml_device_type_name(ep->device[i].type));
    wml_fail(err, WML_E_USAGE, "EP '%s' does not support device '%s'. Supported: %s", ep->alias[0],
             wml_device_type_name(n->device), wml_buf_text(&b));
    wml_buf_release(&b);
    return false;
}

bool wml_target_check(const struct wml_target_spec *s, const struct wml_ep **out, struct wml_err *err)
{
    struct wml_target_name n;
    const struct wml_ep *ep = NULL;
    *out = NULL;
    if (!wml_target_parse(s, &n, err)) return false;
    if (n.ep.len) ep = wml_ep_find(n.ep);
    if (n.ep.len && !ep && !n.path.len) return unknown_ep(n.ep, err);
    if (n.path.len) {
        struct wml_buf b = {0};
        wml_buf_str(&b, n.path);
        bool there = wml_file_exists(wml_buf_text(&b));
        wml_buf_release(&b);
        if (!there) {
            wml_fail(err, WML_E_NOT_FOUND, "--ep: no library at %.*s", WML_ARG(n.path));
            return wml_hint(err, "give the path of the plugin library itself, e.g. NAME@./libplugin.so");
        }
        if (ep && !ep->library)
            return wml_fail(err, WML_E_USAGE, "--ep: %s is built into ONNX Runtime, not a library", ep->alias[0]);
    }
    if (ep && !check_device(ep, &n, err)) return false;
    if (ep && s->for_compile && !ep->compiles) {
        wml_fail(err, WML_E_UNSUPPORTED, "%s does not support EPContext compilation: %s", ep->name,
                 ep->no_compile_reason);
        return wml_hint(err, "use the model as it is, or compile for another EP (qnn, openvino, ...)");
    }
    if (ep && wml_ep_is_cpu(ep) && s->n_options)
        return wml_fail(err, WML_E_USAGE, "the CPU EP has no provider options (\"%s\" was given)", s->option[0].key);
    *out = ep;
    return true;
}

bool wml_target_is_plain_cpu(const struct wml_target_spec *s)
{
    struct wml_target_name n;
    if (!wml_target_parse(s, &n, NULL) || n.path.len) return false;
    const struct wml_ep *ep = n.ep.len ? wml_ep_find(n.ep) : NULL;
    return ep && wml_ep_is_cpu(ep);
}
