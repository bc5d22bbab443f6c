/* Job "devices": registers one EP library and lists the devices it offers; without a library: those of the
 * EPs that are built into ORT.
 *
 * request {"name": EP name, "library": path or absent}
 * reply   {"devices":[{"ep","type","ep_vendor","hw_vendor","vendor_id","device_id","hw_meta":{},
 *          "ep_meta":{}}],"ort_version"} */
#include "worker/job.h"

static void put_pairs(struct wml_json *j, const char *key, const struct wml_pair *p, size_t n)
{
    wml_json_key(j, key);
    wml_json_begin(j, '{');
    for (size_t i = 0; i < n; i++) {
        wml_json_key(j, p[i].key);
        wml_json_put_cstr(j, p[i].value);
    }
    wml_json_end(j, '}');
}

static void put_device(struct wml_json *j, const struct wml_ort_device *d)
{
    wml_json_begin(j, '{');
    wml_json_key(j, "ep");
    wml_json_put_cstr(j, d->ep);
    wml_json_key(j, "type");
    wml_json_put_cstr(j, wml_device_type_name(d->type));
    wml_json_key(j, "ep_vendor");
    wml_json_put_cstr(j, d->ep_vendor);
    wml_json_key(j, "hw_vendor");
    wml_json_put_cstr(j, d->hw_vendor);
    wml_json_key(j, "vendor_id");
    wml_json_put_uint(j, d->vendor_id);
    wml_json_key(j, "device_id");
    wml_json_put_uint(j, d->device_id);
    put_pairs(j, "hw_meta", d->hw_meta, d->n_hw_meta);
    put_pairs(j, "ep_meta", d->ep_meta, d->n_ep_meta);
    wml_json_end(j, '}');
}

static bool devices(struct wml_job_io *io, const struct wml_json_doc *doc, struct wml_err *err)
{
    const struct wml_json_val *request = wml_json_root(doc);
    struct wml_str library = wml_json_get_str(request, "library"), name = wml_json_get_str(request, "name");
    struct wml_arena arena = {0};
    struct wml_ort *ort;
    const struct wml_ort_device *d = NULL;
    size_t n = 0;
    wml_job_phase(io, "resolve");
    bool ok = wml_ort_open(io->cx, &ort, err) &&
              (!library.len || wml_ort_register(ort, wml_arena_cstr(&arena, name),
                                                wml_arena_cstr(&arena, library), err)) &&
              wml_ort_devices(ort, &d, &n, err);
    if (ok) {
        struct wml_json j = {.out = &io->reply};
        wml_json_begin(&j, '{');
        wml_json_key(&j, "devices");
        wml_json_begin(&j, '[');
        /* A library is asked about what it adds, not about what every ORT has. */
        for (size_t i = 0; i < n; i++)
            if (!library.len || wml_str_is(name, d[i].ep)) put_device(&j, &d[i]);
        wml_json_end(&j, ']');
        wml_json_key(&j, "ort_version");
        wml_json_put_cstr(&j, wml_ort_info(ort).version);
        wml_json_end(&j, '}');
    }
    wml_arena_release(&arena);
    return ok;
}

const struct wml_job wml_job_devices = {
    .name = "devices", .summary = "List the devices that an EP library offers", .run = devices,
};
