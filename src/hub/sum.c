/* Content against its name. */
#include "hub/internal.h"

#include <inttypes.h>

static bool is_hex(struct wml_str s, size_t n)
{
    for (size_t i = 0; i < s.len; i++)
        if (!((s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f'))) return false;
    return s.len == n;
}

void wml_hub_sum_begin(struct wml_hub_sum *s, struct wml_str etag, uint64_t size)
{
    char head[40];
    *s = (struct wml_hub_sum){.expected = etag, .is_git = is_hex(etag, 40)};
    if (!s->is_git && !is_hex(etag, 64)) s->expected = WML_NO_STR;
    wml_sha256_init(&s->sha256);
    wml_sha1_init(&s->sha1);
    int n = snprintf(head, sizeof head, "blob %" PRIu64, size) + 1; /* with its NUL */
    wml_sha1_add(&s->sha1, head, (size_t)n);
}

void wml_hub_sum_add(struct wml_hub_sum *s, const void *bytes, size_t n)
{
    if (!s->expected.len) return;
    if (s->is_git) wml_sha1_add(&s->sha1, bytes, n);
    else wml_sha256_add(&s->sha256, bytes, n);
}

bool wml_hub_sum_fits(struct wml_hub_sum *s)
{
    char hex[WML_SHA256_HEX];
    if (!s->expected.len) return true;
    if (s->is_git) wml_sha1_hex(&s->sha1, hex);
    else wml_sha256_hex(&s->sha256, hex);
    return wml_str_is(s->expected, hex);
}
