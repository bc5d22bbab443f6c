/* Pictures from files, turned, cropped. stb_image decodes; what it would let pass is refused before (picture_file.c). */
#include "task/picture.h"

#include <stb_image.h>
#include "base/arena.h"
#include "os/map.h"
#include "task/picture_file.h"

enum { FILE_MAX = 512 << 20 };

void wml_picture_release(struct wml_picture *p)
{
    if (!p) return;
    free(p->rgb);
    *p = (struct wml_picture){0};
}

bool wml_picture_new(size_t width, size_t height, struct wml_picture *out, struct wml_err *err)
{
    *out = (struct wml_picture){0};
    if (!width || !height || width > WML_PICTURE_MAX / height)
        return wml_fail(err, WML_E_UNSUPPORTED, "a picture of %zu x %zu pixels: at most %d pixels", width, height, WML_PICTURE_MAX);
    unsigned char *rgb = wml_big_alloc((uint64_t)width * height * 3, err);
    if (!rgb) return false;
    *out = (struct wml_picture){width, height, rgb};
    return true;
}

bool wml_picture_decode(struct wml_span file, struct wml_picture *out, struct wml_err *err)
{
    struct wml_picture_facts facts;
    int width = 0, height = 0, channels = 0;
    *out = (struct wml_picture){0};
    if (file.len > FILE_MAX)
        return wml_fail(err, WML_E_UNSUPPORTED, "a picture file of %zu bytes: at most %d", file.len, FILE_MAX);
    if (!wml_picture_look(file, &facts, err)) return false;
    unsigned char *rgb = stbi_load_from_memory(file.ptr, (int)file.len, &width, &height, &channels, 3);
    if (!rgb || width != (int)facts.width || height != (int)facts.height) {
        free(rgb);
        wml_fail(err, WML_E_FORMAT, "the %s data cannot be decoded: %s", facts.format, rgb ? "it has two sizes" : stbi_failure_reason());
        return wml_hint(err, "save it again, as PNG or baseline JPEG");
    }
    *out = (struct wml_picture){(size_t)width, (size_t)height, rgb};
    if (wml_picture_turn(out, facts.orientation, err)) return true;
    wml_picture_release(out);
    return false;
}

bool wml_picture_load(const char *path, struct wml_picture *out, struct wml_err *err)
{
    struct wml_map_file map = {0};
    *out = (struct wml_picture){0};
    if (!wml_map_open(path, &map, err)) return false;
    bool ok = wml_picture_decode(map.bytes, out, err);
    wml_map_close(&map);
    return ok ? true : wml_wrap(err, "%s", path);
}

static void reverse(unsigned char *first, unsigned char *last, size_t step)
{
    for (; first < last; first += step, last -= step)
        for (size_t i = 0; i < step; i++) {
            unsigned char c = first[i];
            first[i] = last[i];
            last[i] = c;
        }
}

/* Rows become columns; the picture may change its form, so it moves. */
static bool transpose(struct wml_picture *p, struct wml_err *err)
{
    struct wml_picture to;
    if (!wml_picture_new(p->height, p->width, &to, err)) return false;
    for (size_t y = 0; y < to.height; y++)
        for (size_t x = 0; x < to.width; x++)
            memcpy(to.rgb + (y * to.width + x) * 3, p->rgb + (x * p->width + y) * 3, 3);
    wml_picture_release(p);
    *p = to;
    return true;
}

bool wml_picture_turn(struct wml_picture *p, unsigned orientation, struct wml_err *err)
{
    /* EXIF 2.32, tag 274: where the first row and column of the data are seen. */
    bool swap = orientation >= 5 && orientation <= 8;
    bool mirror = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    bool flip = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    if (swap && !transpose(p, err)) return false;
    size_t row = p->width * 3;
    if (mirror)
        for (size_t y = 0; y < p->height; y++) reverse(p->rgb + y * row, p->rgb + (y + 1) * row - 3, 3);
    if (flip) reverse(p->rgb, p->rgb + (p->height - 1) * row, row);
    return true;
}

/* One dimension of a crop: n of `from` pixels go from offset `at` of the source to offset `to` of the result. */
struct cut { size_t at, to, n; };

static struct cut cut_of(size_t from, size_t want)
{
    if (want <= from) return (struct cut){(from - want) / 2, 0, want};
    return (struct cut){0, (want - from + 1) / 2, from};
}

bool wml_picture_crop(const struct wml_picture *in, size_t width, size_t height, struct wml_picture *out,
                      struct wml_err *err)
{
    if (!wml_picture_new(width, height, out, err)) return false;
    struct cut x = cut_of(in->width, width), y = cut_of(in->height, height);
    if (x.n < width || y.n < height) memset(out->rgb, 0, width * height * 3);
    for (size_t i = 0; i < y.n; i++)
        memcpy(out->rgb + ((y.to + i) * width + x.to) * 3, in->rgb + ((y.at + i) * in->width + x.at) * 3, x.n * 3);
    return true;
}
