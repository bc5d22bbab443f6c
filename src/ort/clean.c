/* ort/clean.c - makes a message of ORT readable: the first line, without source locations, C++ signatures
 * and the words around them. Anything that does not look like one of those stays as it is. */
#include "ort/internal.h"

#include <ctype.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Characters of a C++ type or qualified name. */
static bool is_cxx(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_:<>,&*~[] ", c) != NULL);
}

/* Past a balanced (...) that starts at p; end when it never closes. */
static const char *past_parens(const char *p, const char *end, char open, char close)
{
    int depth = 0;
    for (; p < end; p++) {
        if (*p == open)
            depth++;
        else if (*p == close && --depth == 0)
            return p + 1;
    }
    return end;
}

static const char *skip_word(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - p) >= n && !memcmp(p, word, n) ? p + n : p;
}

/* A signature as gcc and clang write it: "type a::b::c(args) const [with T = x]"; MSVC: "a::b::c". */
static const char *past_signature(const char *p, const char *end)
{
    const char *paren = memchr(p, '(', (size_t)(end - p));
    const char *name = paren;
    while (name && name > p && name[-1] != ' ') name--;
    bool qualified = name && wml_str_has((struct wml_str){name, (size_t)(paren - name)}, "::");
    for (const char *c = p; qualified && c < paren; c++) qualified = is_cxx(*c);
    if (!qualified) {
        const char *c = p;
        while (c < end && *c != ' ' && (is_cxx(*c))) c++;
        return c < end && *c == ' ' && c > p && isupper((unsigned char)c[1]) ? c + 1 : p;
    }
    p = past_parens(paren, end, '(', ')');
    while (p < end && *p == '(') /* operator()(...) */
        p = past_parens(p, end, '(', ')');
    if (end - p > 2 && p[0] == ':' && p[1] == ':') return past_signature(p + 2, end); /* a lambda inside */
    p = skip_word(p, end, " const");
    p = skip_word(p, end, " noexcept");
    if (end - p > 6 && !memcmp(p, " [with ", 7)) p = past_parens(p + 1, end, '[', ']');
    return p < end && *p == ' ' ? p + 1 : p;
}

/* Finds "path/file.cc:123 " in [p, end): its start, and where the text after it and its function begins. */
static const char *find_location(const char *p, const char *end, const char **after)
{
    static const char *const ext[] = {".cc:", ".h:", ".cpp:", ".hpp:"};
    const char *start = p;
    for (; p < end; p++) {
        if (*p == ' ' || *p == '(') start = p + 1;
        if (*p != '.') {
            bool drive = p > start && isalpha((unsigned char)p[-1]) && p - 1 == start;
            if (*p == ':' && end - p > 1 && !drive && (p[1] == '/' || isalpha((unsigned char)p[1]))) start = p + 1;
            continue;
        }
        for (size_t i = 0; i < WML_COUNT(ext); i++) {
            size_t n = strlen(ext[i]);
            if ((size_t)(end - p) <= n || memcmp(p, ext[i], n) || !is_digit(p[n])) continue;
            const char *c = p + n;
            while (c < end && is_digit(*c)) c++;
            while (c < end && (*c == ' ' || *c == ':')) c++;
            *after = past_signature(c, end);
            return start;
        }
    }
    return NULL;
}

/* Lines in which OpenVINO says where it noticed, not what is wrong. */
static bool says_nothing(struct wml_str line)
{
    return !line.len || (wml_str_has(line, "Exception from ") && wml_str_ends(line, ":")) ||
           (wml_str_starts(line, "Check '") && wml_str_has(line, " failed at ")) ||
           (wml_str_starts(line, "FrontEnd API failed with ") && wml_str_ends(line, ":")) ||
           (wml_str_starts(line, "-- ") && wml_str_ends(line, " with a message:")) ||
           wml_str_starts(line, "Model wasn't fully converted") || wml_str_has(line, "Failed operations detailed log") || wml_str_starts(line, "While validating ");
}

/* The first line that says something; the whole text when none does. */
static struct wml_str pick_line(const char *raw)
{
    struct wml_str all = wml_str_trim(wml_str(raw ? raw : "")), rest = all, line;
    while (wml_str_split(&rest, '\n', &line)) {
        line = wml_str_trim(line);
        if (!says_nothing(line)) return line;
    }
    return all;
}

/* "... for the following indices\n index: 0 Got: 2 Expected: 1\n Please fix ..." in one line. */
static void join_lines(const char *raw, struct wml_buf *out)
{
    struct wml_str rest = wml_str_trim(wml_str(raw ? raw : "")), line;
    for (unsigned n = 0; n < 8 && wml_str_split(&rest, '\n', &line); n++) {
        line = wml_str_trim(line);
        if (!line.len || wml_str_starts(line, "Please fix either")) continue;
        if (out->len) wml_buf_cstr(out, out->ptr[out->len - 1] == ':' ? " " : "; ");
        wml_buf_str(out, line);
    }
}

static void drop_front(struct wml_str *s, const char *from, const char *to)
{
    if (!wml_str_starts(*s, from)) return;
    const char *at = to[0] ? NULL : s->ptr + strlen(from);
    for (size_t i = 0; to[0] && i + strlen(to) <= s->len && !at; i++)
        if (!memcmp(s->ptr + i, to, strlen(to))) at = s->ptr + i + strlen(to);
    if (!at) return;
    s->len -= (size_t)(at - s->ptr);
    s->ptr = at;
    *s = wml_str_trim(*s);
}

/* "a > b was false. Reason" -> "Reason", as far as there is a reason. */
static void drop_condition(struct wml_str *s)
{
    static const char mark[] = " was false. ";
    for (size_t i = 0; i + sizeof mark - 1 < s->len; i++)
        if (!memcmp(s->ptr + i, mark, sizeof mark - 1)) {
            *s = wml_str_trim(wml_str_sub(*s, i + sizeof mark - 1, s->len));
            return;
        }
}

/* "Non-zero status code returned while running Add node. Name:'n' Status Message: reason": the node's name
 * and type go to the front; nodes that an EP made have names that help nobody. */
static void say_node(const char *raw, struct wml_buf *out)
{
    struct wml_str s = wml_str(raw ? raw : "");
    static const char mark[] = "returned while running ", name[] = " node. Name:'";
    size_t from = SIZE_MAX, middle = SIZE_MAX;
    for (size_t i = 0; i + sizeof mark - 1 < s.len && from == SIZE_MAX; i++)
        if (!memcmp(s.ptr + i, mark, sizeof mark - 1)) from = i + sizeof mark - 1;
    if (from == SIZE_MAX) return;
    for (size_t i = from; i + sizeof name - 1 < s.len && middle == SIZE_MAX; i++)
        if (!memcmp(s.ptr + i, name, sizeof name - 1)) middle = i;
    if (middle == SIZE_MAX) return;
    struct wml_str op = wml_str_sub(s, from, middle);
    struct wml_str rest = wml_str_sub(s, middle + sizeof name - 1, s.len);
    struct wml_str node = wml_str_sub(rest, 0, wml_str_find(rest, '\''));
    static const char ep[] = "ExecutionProvider";
    for (size_t i = 0; i + sizeof ep - 1 <= op.len; i++)
        if (!memcmp(op.ptr + i, ep, sizeof ep - 1)) {
            wml_buf_fmt(out, "in a part of %.*s: ", WML_ARG(wml_str_sub(op, 0, i + sizeof ep - 1)));
            return;
        }
    wml_buf_fmt(out, "node \"%.*s\" (%.*s): ", WML_ARG(node), WML_ARG(op));
}

/* "[ONNXRuntimeError] : 1 : FAIL : reason" -> "reason", also in the middle. */
static void drop_codes(struct wml_buf *text)
{
    static const char mark[] = "[ONNXRuntimeError] : ";
    char *at;
    while (text->len && (at = strstr(text->ptr, mark)) != NULL) {
        char *end = at + sizeof mark - 1;
        for (unsigned colons = 0; *end && colons < 2; end++) colons += *end == ':';
        while (*end == ' ') end++;
        memmove(at, end, strlen(end) + 1);
        text->len = strlen(text->ptr);
    }
}

void wml_ort_clean_message(const char *raw, struct wml_buf *out)
{
    struct wml_buf joined = {.max = 4096};
    struct wml_str s = pick_line(raw);
    if (wml_str_has(s, "for the following indices")) {
        join_lines(raw, &joined);
        s = wml_buf_view(&joined);
    }
    drop_front(&s, "Load model from ", " failed:");
    drop_front(&s, "Exception during initialization:", "");
    drop_front(&s, "Exception during loading:", "");
    drop_front(&s, "Error creating execution provider:", "");
    drop_front(&s, "Non-zero status code returned while running", "Status Message:");
    struct wml_buf text = {.max = 4096};
    const char *p = s.ptr, *end = s.ptr + s.len, *after, *at;
    while (p < end && (at = find_location(p, end, &after)) != NULL) {
        wml_buf_add(&text, p, (size_t)(at - p));
        p = after;
    }
    if (p < end) wml_buf_add(&text, p, (size_t)(end - p));
    drop_codes(&text);
    struct wml_str t = wml_str_trim(wml_buf_view(&text));
    drop_condition(&t);
    while (t.len && (t.ptr[t.len - 1] == '.' || t.ptr[t.len - 1] == ' ')) t.len--;
    say_node(raw, out);
    wml_buf_str(out, t.len ? t : WML_STR("no reason was given"));
    wml_buf_release(&text);
    wml_buf_release(&joined);
}
