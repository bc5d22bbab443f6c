/* stb_image, compiled once for every folder that decodes with it. No allocation above a gigabyte: the sizes are those
 * that a file claims, and src/task/picture.c lets no picture through that needs more. */
#include <stddef.h>
#include <stdlib.h>

static void *limited(void *old, size_t n)
{
    return n > (size_t)1 << 30 ? NULL : realloc(old, n);
}

#define STBI_MALLOC(n) limited(NULL, n)
#define STBI_REALLOC(old, n) limited(old, n)
#define STBI_FREE(p) free(p)
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
