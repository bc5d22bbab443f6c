/* Pictures from any bytes: what is taken can be resized and cropped, and the sizes are those of the header. The sums of PNG
 * chunks are made right first, which no mutation would find. */
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "task/picture.h"
#include "task/picture_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void repair_sums(uint8_t *b, size_t size)
{
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    if (size < 8 || memcmp(b, png, 8) != 0) return;
    for (size_t at = 8; size - at >= 12;) {
        size_t n = (size_t)b[at] << 24 | (size_t)b[at + 1] << 16 | (size_t)b[at + 2] << 8 | b[at + 3];
        if (n > size - at - 12) return;
        uint32_t sum = wml_crc32(0, b + at + 4, n + 4);
        at += 12 + n;
        for (int i = 1; i <= 4; i++, sum >>= 8) b[at - (size_t)i] = (uint8_t)sum;
    }
}

static void try_file(struct wml_span file)
{
    struct wml_picture_facts facts;
    struct wml_picture p = {0}, small = {0}, cut = {0};
    struct wml_err err = {0};
    if (!wml_picture_look(file, &facts, &err)) {
        if (!err.code || !err.msg[0]) abort();
        return;
    }
    if ((uint64_t)facts.width * facts.height > 1 << 20) return; /* only slow */
    if (!wml_picture_decode(file, &p, &err)) {
        if (!err.code || !err.msg[0] || p.rgb) abort();
        return;
    }
    if ((uint64_t)p.width * p.height != (uint64_t)facts.width * facts.height) abort();
    if (!wml_picture_resize(&p, 7, 5, (enum wml_resample)(file.len % 6), &small, &err)) abort();
    if (!wml_picture_crop(&p, 9, 3, &cut, &err)) abort();
    /* Touches every byte. */
    uint64_t h = wml_hash(p.rgb, p.width * p.height * 3, wml_hash(small.rgb, 7 * 5 * 3, wml_hash(cut.rgb, 9 * 3 * 3, 0)));
    if (h == 1) p.rgb[0]++; /* keeps the compiler from dropping it */
    wml_picture_release(&p);
    wml_picture_release(&small);
    wml_picture_release(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) abort();
    memcpy(copy, data, size);
    repair_sums(copy, size);
    try_file((struct wml_span){copy, size});
    free(copy);
    return 0;
}
