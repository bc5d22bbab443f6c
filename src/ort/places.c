/* ort/places.c - where the ORT library may be. Looks at no file: the opener tries them in order. */
#include "ort/internal.h"

#include "os/path.h"

static void add_folder(struct wml_ort_places *out, struct wml_arena *a, struct wml_str dir)
{
    struct wml_buf b = {0};
    for (const char *const *name = wml_ort_library_names; *name; name++) {
        wml_buf_clear(&b);
        wml_path_join(&b, dir, wml_str(*name));
        const char *path = wml_arena_cstr(a, wml_buf_view(&b));
        WML_PUSH_IN(a, &out->file, path);
    }
    wml_buf_release(&b);
}

static void add_below(struct wml_ort_places *out, struct wml_arena *a, struct wml_str dir, const char *below)
{
    struct wml_buf b = {0}, n = {0};
    wml_path_join(&b, dir, wml_str(below));
    wml_path_normal(&n, wml_buf_view(&b));
    add_folder(out, a, wml_buf_view(&n));
    wml_buf_release(&b);
    wml_buf_release(&n);
}

bool wml_ort_build_cache(struct wml_buf *out)
{
    wml_buf_clear(out);
    if (wml_env_is_set("WINML_DEPS")) return wml_env("WINML_DEPS", out);
    struct wml_buf cache = {0};
    bool known = wml_path_cache(&cache);
    if (known) wml_path_join(out, wml_buf_view(&cache), wml_str("winml-build"));
    wml_buf_release(&cache);
    return known;
}

void wml_ort_places(const struct wml_ctx *cx, struct wml_arena *a, struct wml_ort_places *out)
{
    struct wml_buf b = {0};
    if (wml_env_is_set("WINML_ORT") && wml_env("WINML_ORT", &b)) {
        const char *path = wml_arena_cstr(a, wml_buf_view(&b));
        WML_PUSH_IN(a, &out->file, path);
        out->only_first = true;
        wml_buf_release(&b);
        return;
    }
    wml_buf_clear(&b);
    if (wml_env_is_set("ONNXRUNTIME_ROOT") && wml_env("ONNXRUNTIME_ROOT", &b)) {
        add_below(out, a, wml_buf_view(&b), "lib");
        add_folder(out, a, wml_buf_view(&b));
    }
    wml_buf_clear(&b);
    if (cx->program ? (wml_buf_cstr(&b, cx->program), true) : wml_path_program(&b)) {
        struct wml_str dir = wml_path_dir(wml_buf_view(&b));
        add_below(out, a, dir, "../lib/winml");
        add_folder(out, a, dir);
    }
    if (wml_ort_build_cache(&b)) {
        struct wml_buf below = {0};
        wml_buf_fmt(&below, "ort/%s", wml_ort_platform);
        add_below(out, a, wml_buf_view(&b), wml_buf_text(&below));
        wml_buf_release(&below);
    }
    wml_buf_release(&b);
    for (const char *const *name = wml_ort_library_names; *name; name++) WML_PUSH_IN(a, &out->file, *name);
}
