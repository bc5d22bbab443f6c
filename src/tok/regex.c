/* tok/regex.c - patterns compiled and matched by PCRE2. */
#include "tok/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/arena.h"
#include "tok/unicode.h"

enum { MATCH_LIMIT = 10000000, HEAP_LIMIT_KIB = 64 << 10, DEPTH_LIMIT = 100000, JIT_STACK = 1 << 20, MAX_PATTERN = 64 << 10 };

struct wml_regex {
    pcre2_code *code;
    bool jit;
};

struct wml_regex_match {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static bool compile(struct wml_str pattern, uint32_t options, struct wml_regex **out, struct wml_err *err)
{
    int code;
    PCRE2_SIZE at;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    struct wml_regex *r = wml_xcalloc(1, sizeof *r);
    *out = NULL;
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        pcre2_set_parens_nest_limit(context, 100);
        r->code = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len, options | PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                                &code, &at, context);
    }
    pcre2_compile_context_free(context);
    if (!r->code) {
        unsigned char why[128] = "no memory";
        if (context) pcre2_get_error_message(code, why, sizeof why);
        free(r);
        return wml_fail(err, WML_E_FORMAT, "'%.*s' is no regular expression: %s", WML_ARG(pattern), (const char *)why);
    }
    r->jit = pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == 0; /* without it (no such CPU) it is only slower */
    *out = r;
    return true;
}

bool wml_regex_own(const char *pattern, struct wml_regex **out, struct wml_err *err)
{
    return compile(wml_str(pattern), 0, out, err);
}

bool wml_regex_is_script(struct wml_str name)
{
    char text[64];
    int code;
    PCRE2_SIZE at;
    if (name.len > 40) return false;
    int n = snprintf(text, sizeof text, "\\p{sc:%.*s}", WML_ARG(name));
    pcre2_code *known = pcre2_compile((PCRE2_SPTR)text, (PCRE2_SIZE)n, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    pcre2_code_free(known);
    return known != NULL;
}

bool wml_regex_new(struct wml_str pattern, struct wml_regex **out, struct wml_err *err)
{
    struct wml_buf text = {0};
    *out = NULL;
    if (pattern.len > MAX_PATTERN) return wml_fail(err, WML_E_FORMAT, "a regular expression of %zu bytes is too long", pattern.len);
    bool ok = wml_regex_translate(pattern, &text, err) &&
              compile(wml_buf_view(&text), PCRE2_MULTILINE | PCRE2_ALT_EXTENDED_CLASS, out, err);
    wml_buf_release(&text);
    if (!ok) wml_wrap(err, "the pattern '%.*s'", WML_ARG(pattern));
    return ok;
}

void wml_regex_free(struct wml_regex *r)
{
    if (!r) return;
    pcre2_code_free(r->code);
    free(r);
}

struct wml_regex_match *wml_regex_match_new(void)
{
    struct wml_regex_match *m = wml_xcalloc(1, sizeof *m);
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    if (m->context) {
        m->stack = pcre2_jit_stack_create(32 << 10, JIT_STACK, NULL);
        pcre2_jit_stack_assign(m->context, NULL, m->stack);
        pcre2_set_match_limit(m->context, MATCH_LIMIT);
        pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
        pcre2_set_depth_limit(m->context, DEPTH_LIMIT);
    }
    return m;
}

void wml_regex_match_free(struct wml_regex_match *m)
{
    if (!m) return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
    free(m);
}

bool wml_regex_find(const struct wml_regex *r, struct wml_regex_match *m, struct wml_str text, size_t from, size_t *start,
                    size_t *end, struct wml_err *err)
{
    PCRE2_SPTR s = (PCRE2_SPTR)(text.ptr ? text.ptr : "");
    if (!m->data || !m->context) return wml_fail(err, WML_E_MEMORY, "no memory for a regular expression");
    int n = r->jit ? pcre2_jit_match(r->code, s, text.len, from, 0, m->data, m->context)
                   : pcre2_match(r->code, s, text.len, from, PCRE2_NO_UTF_CHECK, m->data, m->context);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(r->code, s, text.len, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, m->context);
    if (n < 0 && n != PCRE2_ERROR_NOMATCH) {
        unsigned char why[128] = "";
        pcre2_get_error_message(n, why, sizeof why);
        wml_fail(err, WML_E_UNSUPPORTED, "a pattern of the tokenizer gives up on this text: %s", (const char *)why);
        return wml_hint(err, "the pattern tries too many ways; shorten the text");
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
    *start = n < 0 ? SIZE_MAX : at[0];
    *end = n < 0 ? text.len : WML_MAX(at[1], at[0]); /* \K in a look-ahead can end before it starts */
    return true;
}

bool wml_regex_next(const struct wml_regex *r, struct wml_regex_match *m, struct wml_str text, struct wml_regex_walk *walk,
                    size_t *start, size_t *end, struct wml_err *err)
{
    for (;;) {
        *start = SIZE_MAX;
        if (walk->at > text.len) return true;
        if (!wml_regex_find(r, m, text, walk->at, start, end, err)) return false;
        if (*start == SIZE_MAX) {
            walk->at = text.len + 1;
            return true;
        }
        if (*start != *end || *end != walk->last) {
            walk->at = walk->last = *end;
            return true;
        }
        walk->at += walk->at < text.len ? wml_utf8_len(text.ptr[walk->at]) : 1;
    }
}
