/* util.c - statuses with a formatted message, log lines, checked allocation, growing bytes. */
#include "vnpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

OrtStatus *vnpu_fail(const OrtApi *api, const char *fmt, ...)
{
    char text[1024];
    int n = snprintf(text, sizeof(text), "%s: ", VNPU_NAME);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
    va_end(ap);
    return api->CreateStatus(ORT_EP_FAIL, text);
}

void vnpu_log(const OrtApi *api, const OrtLogger *logger, OrtLoggingLevel level, const char *fmt,
              ...)
{
    char text[1024];
    va_list ap;
    if (logger == NULL) return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    OrtStatus *st =
        api->Logger_LogMessage(logger, level, text, ORT_TSTR("virtual_npu"), 0, VNPU_NAME);
    if (st != NULL) api->ReleaseStatus(st);
}

OrtStatus *vnpu_array(const OrtApi *api, size_t n, size_t size, void **out)
{
    *out = calloc(n > 0 ? n : 1, size);
    return *out != NULL ? NULL : vnpu_fail(api, "out of memory (%zu x %zu bytes)", n, size);
}

OrtStatus *vnpu_copy_string(const OrtApi *api, const char *s, char **out)
{
    size_t n = strlen(s);
    void *p;
    VNPU_TRY(vnpu_array(api, n + 1, 1, &p));
    memcpy(p, s, n);
    *out = p;
    return NULL;
}

bool vnpu_list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p != '\0';) {
        p += strspn(p, ", ");
        size_t len = strcspn(p, ", ");
        if (len == n && len > 0 && memcmp(p, word, n) == 0) return true;
        p += len;
    }
    return false;
}

void vnpu_buf_add(struct vnpu_buf *b, const void *bytes, size_t n)
{
    if (b->failed || n == 0) return;
    if (n > b->cap - b->len) {
        size_t cap = b->cap < 4096 ? 4096 : b->cap;
        while (cap - b->len < n && cap <= SIZE_MAX / 2)
            cap *= 2;
        unsigned char *p = cap - b->len < n ? NULL : realloc(b->ptr, cap);
        if (p == NULL) {
            b->failed = true;
            return;
        }
        b->ptr = p;
        b->cap = cap;
    }
    memcpy(b->ptr + b->len, bytes, n);
    b->len += n;
}

void vnpu_buf_release(struct vnpu_buf *b)
{
    free(b->ptr);
    *b = (struct vnpu_buf){0};
}
