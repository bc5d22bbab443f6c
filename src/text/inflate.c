/* Raw deflate through stb_image's decoder. */
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wpragmas"
#endif
#include <stb_image.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

bool wml_inflate(const void *in, size_t n_in, void *out, size_t n_out);

bool wml_inflate(const void *in, size_t n_in, void *out, size_t n_out)
{
    if (n_in > INT_MAX || n_out > INT_MAX) return false;
    return stbi_zlib_decode_noheader_buffer(out, (int)n_out, in, (int)n_in) == (int)n_out;
}
