/* base/num.c - number parsing that accepts the number and nothing else. */
#include "base/num.h"

#include <math.h>

bool wml_parse_u64(struct wml_str s, uint64_t *out)
{
    uint64_t v = 0;
    if (!s.len) return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return false;
        uint64_t digit = (uint64_t)(s.ptr[i] - '0');
        if (v > (UINT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

bool wml_parse_i64(struct wml_str s, int64_t *out)
{
    bool minus = s.len && s.ptr[0] == '-';
    if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+')) s = wml_str_sub(s, 1, s.len);
    uint64_t v;
    if (!wml_parse_u64(s, &v)) return false;
    if (minus) {
        if (v > (uint64_t)INT64_MAX + 1) return false;
        *out = v > (uint64_t)INT64_MAX ? INT64_MIN : -(int64_t)v;
        return true;
    }
    if (v > (uint64_t)INT64_MAX) return false;
    *out = (int64_t)v;
    return true;
}

bool wml_parse_f64(struct wml_str s, double *out)
{
    char text[128];
    if (!s.len || s.len >= sizeof text) return false;
    if (s.ptr[0] == ' ' || (s.ptr[0] >= '\t' && s.ptr[0] <= '\r')) return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    if (strlen(text) != s.len) return false; /* a NUL inside */
    char *end;
    double v = strtod(text, &end); /* winml never calls setlocale: '.' is the point */
    if (end != text + s.len) return false;
    *out = v;
    return true;
}

bool wml_mul_size(size_t a, size_t b, size_t *out)
{
    if (b && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}

bool wml_add_size(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}

bool wml_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    if (a && b && ((a > 0) == (b > 0) ? (a > 0 ? a > INT64_MAX / b : b < INT64_MAX / a)
                                      : (a > 0 ? b < INT64_MIN / a : a < INT64_MIN / b)))
        return false;
    *out = a * b;
    return true;
}

bool wml_to_size(uint64_t v, size_t *out)
{
    if (v > SIZE_MAX) return false;
    *out = (size_t)v;
    return true;
}

bool wml_dims_count(const int64_t *dim, size_t rank, uint64_t *count)
{
    size_t n = 1;
    *count = 0;
    for (size_t i = 0; i < rank; i++)
        if (dim[i] < 0 || (uint64_t)dim[i] > SIZE_MAX || !wml_mul_size(n, (size_t)dim[i], &n)) return false;
    *count = n;
    return true;
}
