/* Raw deflate through stb_image's decoder. This one file is compiled without -Wunused-function (see
 * CMakeLists.txt): the header declares what we do not ask for. */
#include "text/npz.h"

#include <limits.h>

#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>

bool wml_inflate(const void *in, size_t n_in, void *out, size_t n_out)
{
    if (n_in > INT_MAX || n_out > INT_MAX) return false;
    return stbi_zlib_decode_noheader_buffer(out, (int)n_out, in, (int)n_in) == (int)n_out;
}
