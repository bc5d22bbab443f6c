/* Raw deflate through stb_image's decoder. */
#include "text/zip.h"

#include <limits.h>
#include <stb_image.h>

bool wml_inflate(const void *in, size_t n_in, void *out, size_t n_out)
{
    if (n_in > INT_MAX || n_out > INT_MAX) return false;
    return stbi_zlib_decode_noheader_buffer(out, (int)n_out, in, (int)n_in) == (int)n_out;
}
