/* The files of tests/passes (format: README.md there): read, and their graphs made. */
#ifndef PASS_CASES_H
#define PASS_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "graph/edit.h"
#include "graph/text.h"
#include "passes/passes.h"

enum { MAX_FILE = 1 << 20 };

struct pass_case {
    struct wml_str name, before, after, opset, opset_after, ir, ir_after, with;
    WML_VEC(struct wml_str) random;
    bool same;
};

struct suite {
    char *path;
    size_t pass;
    char *text;
    WML_VEC(struct pass_case) v;
};

/* The lines after "before:" and "after:" go on as long as they are indented. */
static inline void read_cases(struct suite *s, struct wml_str text)
{
    struct wml_str line, *block = NULL;
    while (wml_str_split(&text, '\n', &line)) {
        struct pass_case *c = s->v.len ? &s->v.at[s->v.len - 1] : NULL;
        if (block && wml_str_starts(line, "  ")) {
            block->len = (size_t)(line.ptr + line.len - block->ptr);
            continue;
        }
        if (!wml_str_trim(line).len || line.ptr[0] == '#') continue;
        size_t colon = wml_str_find(line, ':');
        struct wml_str key = wml_str_sub(line, 0, colon), value = wml_str_sub(line, colon + 1, line.len);
        block = NULL;
        if (wml_str_is(key, "case")) {
            struct pass_case one = {.name = wml_str_trim(value)};
            WML_PUSH(&s->v, one);
            continue;
        }
        if (!c) fail_msg("%s: '%.*s' stands before the first case", s->path, WML_ARG(line));
        if (wml_str_is(key, "before")) c->before = value, block = &c->before;
        else if (wml_str_is(key, "after") && wml_str_is(wml_str_trim(value), "same")) c->same = true;
        else if (wml_str_is(key, "after")) c->after = value, block = &c->after;
        else if (wml_str_is(key, "opset")) c->opset = wml_str_trim(value);
        else if (wml_str_is(key, "opset after")) c->opset_after = wml_str_trim(value);
        else if (wml_str_is(key, "ir")) c->ir = wml_str_trim(value);
        else if (wml_str_is(key, "ir after")) c->ir_after = wml_str_trim(value);
        else if (wml_str_is(key, "with")) c->with = wml_str_trim(value);
        else if (wml_str_is(key, "random")) WML_PUSH(&c->random, wml_str_trim(value));
        else if (wml_str_is(key, "pass")) s->pass = wml_pass_find(wml_str_trim(value));
    }
}

static inline void load(struct suite *s)
{
    FILE *f = fopen(s->path, "rb");
    assert_non_null(f);
    s->text = malloc(MAX_FILE);
    size_t n = fread(s->text, 1, MAX_FILE, f);
    fclose(f);
    assert_true(n < MAX_FILE);
    struct wml_str id = wml_str(strrchr(s->path, '/') + 1);
    s->pass = wml_pass_find(wml_str_sub(id, 0, id.len - 5));
    read_cases(s, (struct wml_str){s->text, n});
    if (s->pass == SIZE_MAX) fail_msg("%s: there is no such pass", s->path);
}

static inline void release(struct suite *s)
{
    for (size_t i = 0; i < s->v.len; i++) WML_VEC_RELEASE(&s->v.at[i].random);
    WML_VEC_RELEASE(&s->v);
    free(s->text);
    s->text = NULL;
}

/* NAME = float[2,3]: seeded numbers, as a constant of the top graph. Other numbers than those of the parity
 * tests, which compare answers. */
static inline void add_random(struct wml_model *m, struct wml_str said)
{
    struct wml_buf text = {0};
    struct wml_model *t = NULL;
    struct wml_err err = {0};
    int64_t count = 0;
    size_t eq = wml_str_find(said, '=');
    struct wml_str name = wml_str_trim(wml_str_sub(said, 0, eq)), type = wml_str_trim(wml_str_sub(said, eq + 1, said.len));
    struct wml_value *v = wml_graph_find(m->graph, name);
    assert_non_null(v);
    wml_buf_fmt(&text, "g (%.*s x) => () { }", WML_ARG(type));
    if (!wml_model_parse(wml_buf_view(&text), &t, &err)) fail_msg("%.*s: %s", WML_ARG(said), err.msg);
    struct wml_value *x = t->graph->inputs.at[0];
    assert_true(wml_value_count(x, &count));
    size_t rank = (size_t)wml_value_rank(x), bytes = (size_t)count * wml_dtype_info((int)wml_value_elem(x))->bits / 8;
    int64_t *dims = calloc(rank + 1, sizeof *dims);
    unsigned char *data = calloc(bytes + 1, 1);
    struct wml_rng rng = {wml_hash_str(name)};
    for (size_t i = 0; i < rank; i++) dims[i] = wml_value_axis(x, i).size;
    for (size_t i = 0; i < (size_t)count; i++) wml_dtype_store((int)wml_value_elem(x), data, i, wml_rng_normal(&rng));
    wml_value_set_init(v, wml_tensor_copy(m, wml_value_elem(x), rank, dims, data, bytes, &err));
    wml_graph_remove_input(m->graph, m->graph->inputs.len - 1); /* as which it was read, see with_inputs */
    if (wml_value_is_unused(v)) wml_value_remove(v);
    free(dims);
    free(data);
    wml_model_free(t);
    wml_buf_release(&text);
}

/* Random constants are read as inputs at the end of the list, then given their numbers. */
static inline void with_inputs(const struct pass_case *c, struct wml_str graph, struct wml_buf *out)
{
    size_t close = wml_str_find(graph, ')');
    struct wml_str head = wml_str_sub(graph, 0, close);
    wml_buf_str(out, head);
    for (size_t i = c->random.len; i-- > 0;) {
        struct wml_str said = c->random.at[i];
        wml_buf_fmt(out, "%s%.*s", wml_str_ends(wml_str_trim(head), "(") && out->len == head.len ? "" : ", ",
                    WML_ARG(wml_str_trim(wml_str_sub(said, 0, wml_str_find(said, '=')))));
    }
    wml_buf_str(out, wml_str_sub(graph, close, graph.len));
}

/* onnx's parser takes 16-bit floats as their bits: {15360} there is {0x3c00} here. */
static inline void half_bits(struct wml_str text, struct wml_buf *out)
{
    bool half = false, elements = false; /* in the declaration of such a constant; in its {} */
    int brackets = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (wml_str_starts(wml_str_sub(text, i, text.len), "float16")) half = true;
        brackets += (c == '[') - (c == ']');
        if (half && c == '{') elements = true;
        if (elements && c >= '0' && c <= '9') {
            unsigned bits = 0;
            for (; text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++) bits = bits * 10 + (unsigned)(text.ptr[i] - '0');
            wml_buf_fmt(out, "0x%x", bits);
            c = text.ptr[i];
        }
        wml_buf_char(out, c);
        if (c == '}') elements = half = false;
        if (!elements && !brackets && strchr(",)>", c)) half = false;
    }
}

static inline struct wml_model *build(const struct suite *s, const struct pass_case *c, struct wml_str graph, struct wml_str opset,
                               struct wml_str ir)
{
    struct wml_buf text = {0}, imports = {0}, halves = {0};
    struct wml_str part;
    struct wml_model *m = NULL;
    struct wml_err err = {0};
    bool has_onnx = false;
    while (wml_str_split(&opset, ' ', &part)) {
        if (part.len && part.ptr[part.len - 1] == ',') part.len--;
        if (!part.len) continue;
        size_t colon = wml_str_rfind(part, ':');
        struct wml_str domain = wml_str_sub(part, 0, colon == SIZE_MAX ? 0 : colon);
        has_onnx = has_onnx || !domain.len;
        wml_buf_fmt(&imports, "%s\"%.*s\" : %.*s", imports.len ? ", " : "", WML_ARG(domain),
                    WML_ARG(wml_str_sub(part, colon == SIZE_MAX ? 0 : colon + 1, part.len)));
    }
    if (!has_onnx) wml_buf_fmt(&imports, "%s\"\" : 17", imports.len ? ", " : "");
    wml_buf_fmt(&text, "<ir_version: %.*s, opset_import: [%s]> g ", WML_ARG(ir.len ? ir : WML_STR("8")), wml_buf_text(&imports));
    half_bits(wml_str_trim(graph), &halves);
    with_inputs(c, wml_buf_view(&halves), &text);
    if (!wml_model_parse(wml_buf_view(&text), &m, &err))
        fail_msg("%s: %.*s: %s\n%s", s->path, WML_ARG(c->name), err.msg, wml_buf_text(&text));
    for (size_t i = 0; i < c->random.len; i++) add_random(m, c->random.at[i]);
    wml_buf_release(&text);
    wml_buf_release(&imports);
    wml_buf_release(&halves);
    return m;
}

#endif
