/* Runs the cases of tests/passes (format: README.md there) without a runtime: the graph is read by the text
 * form, the pass runs without an oracle, and its result is compared with what is written. tests/parity judges
 * the same cases by onnx and ONNX Runtime; here the sanitizers look on, and after every run of a pass the
 * use-def index is computed again, a second run must change nothing, and the text must read back.
 *
 * Where types of inner values are missing, for which the program asks the oracle, a pass may do less than a
 * case says: such cases are counted and printed. Then every pass there is runs over every graph of the cases. */
#include "graph_index.h"
#include "pass_cases.h"

#include <dirent.h>
#include <stdio.h>

enum { EXACT = 16 };

/* ---- comparing: what a graph computes, names of inner values and orders left aside ---- */

struct key {
    WML_VEC(uint64_t) node, constant;
    uint64_t signature;
};

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    return wml_hash(n ? bytes : "", n, h);
}

static uint64_t mix_number(uint64_t h, uint64_t n)
{
    return mix(h, &n, sizeof n);
}

static uint64_t tensor_key(struct wml_model *m, struct wml_tensor *t)
{
    struct wml_span s = {0};
    uint64_t n = 0, h = mix_number(1, (uint64_t)t->dtype);
    for (size_t i = 0; i < t->dims.len; i++) h = mix_number(h, (uint64_t)t->dims.at[i]);
    if (t->dtype == WML_STRING) {
        for (size_t i = 0; i < t->string_data.len; i++) h = mix(h, t->string_data.at[i].ptr, t->string_data.at[i].len);
        return h;
    }
    assert_true(wml_tensor_count(t, &n, NULL));
    assert_true(wml_tensor_bytes(m, t, &s, NULL)); /* computes those that are made while writing */
    if (n > EXACT) return h;
    for (size_t i = 0; i < n && wml_dtype_is_float(t->dtype); i++) {
        char text[40];
        snprintf(text, sizeof text, "%.5g", wml_dtype_load(t->dtype, s.ptr, i));
        h = mix(h, text, strlen(text));
    }
    return wml_dtype_is_float(t->dtype) ? h : mix(h, s.ptr, s.len);
}

static uint64_t graph_key(struct wml_model *m, struct wml_graph *g, struct key *key, bool inner);

static uint64_t attr_key(struct wml_model *m, const struct wml_attr *a, struct key *key)
{
    uint64_t h = mix(mix_number(2, (uint64_t)wml_attr_kind(a)), a->name.ptr, a->name.len);
    char text[40];
    snprintf(text, sizeof text, "%.5g", (double)a->f);
    h = mix(mix_number(h, (uint64_t)a->i), text, strlen(text));
    h = mix(h, a->s.ptr, a->s.len);
    h = mix(h, a->ints.at, a->ints.len * sizeof(int64_t));
    h = mix(h, a->floats.at, a->floats.len * sizeof(float));
    for (size_t i = 0; i < a->strings.len; i++) h = mix(h, a->strings.at[i].ptr, a->strings.at[i].len);
    if (a->t) h = mix_number(h, tensor_key(m, a->t));
    return a->g ? mix_number(h, graph_key(m, a->g, key, true)) : h;
}

static uint64_t node_key(struct wml_model *m, const struct wml_node *n, struct key *key)
{
    uint64_t h = mix(3, n->op_type.ptr, n->op_type.len), attrs = 0;
    size_t n_in = n->n_in;
    if (n->domain.len && !wml_str_is(n->domain, "ai.onnx")) h = mix(h, n->domain.ptr, n->domain.len);
    for (size_t i = 0; i < n->attr.len; i++) attrs += attr_key(m, n->attr.at[i], key); /* in any order */
    while (n_in && !n->in[n_in - 1]) n_in--;
    for (size_t i = 0; i < n_in; i++) h = mix_number(h, n->in[i] ? n->in[i]->mark : 0);
    return mix_number(h, attrs);
}

/* A value's key stands in its mark: an outer graph's are there before an inner one reads them. */
static uint64_t graph_key(struct wml_model *m, struct wml_graph *g, struct key *key, bool inner)
{
    uint64_t h = inner ? 5 : 4;
    for (struct wml_value *v = g->first_value; v; v = v->next) {
        if (!v->init) continue;
        v->mark = tensor_key(m, v->init);
        WML_PUSH(&key->constant, v->mark);
    }
    for (size_t i = 0; i < g->inputs.len; i++) {
        struct wml_value *v = g->inputs.at[i];
        struct wml_buf type = {0};
        wml_type_text(v->type, &type);
        v->mark = mix(mix_number(6, inner ? i : wml_hash_str(v->name)), type.ptr, type.len) ^ (v->init ? tensor_key(m, v->init) : 0);
        h = mix_number(h, v->mark);
        wml_buf_release(&type);
    }
    for (struct wml_node *n = g->first; n; n = n->next) {
        uint64_t k = node_key(m, n, key);
        WML_PUSH(&key->node, k);
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i]) n->out[i]->mark = mix_number(k, i);
    }
    for (size_t i = 0; i < g->outputs.len; i++)
        h = mix_number(mix_number(h, inner ? i : wml_hash_str(g->outputs.at[i]->name)), g->outputs.at[i]->mark);
    return h;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void key_of(struct wml_model *m, struct key *k)
{
    *k = (struct key){0};
    k->signature = mix_number(graph_key(m, m->graph, k, false), (uint64_t)m->ir_version);
    for (size_t i = 0; i < m->opset.len; i++)
        k->signature += mix_number(wml_hash_str(m->opset.at[i].domain), (uint64_t)m->opset.at[i].version);
    if (k->node.len) qsort(k->node.at, k->node.len, sizeof *k->node.at, by_number);
    if (k->constant.len) qsort(k->constant.at, k->constant.len, sizeof *k->constant.at, by_number);
}

static const char *difference(struct wml_model *a, struct wml_model *b)
{
    struct key x, y;
    key_of(a, &x);
    key_of(b, &y);
    const char *what = NULL;
    if (x.signature != y.signature) what = "inputs, outputs, versions or opsets";
    else if (x.node.len != y.node.len || (x.node.len && memcmp(x.node.at, y.node.at, x.node.len * 8))) what = "nodes";
    else if (x.constant.len != y.constant.len || (x.constant.len && memcmp(x.constant.at, y.constant.at, x.constant.len * 8)))
        what = "constants";
    WML_VEC_RELEASE(&x.node);
    WML_VEC_RELEASE(&x.constant);
    WML_VEC_RELEASE(&y.node);
    WML_VEC_RELEASE(&y.constant);
    return what;
}

/* ---- running ---- */

static uint64_t no_clock(void)
{
    return 0;
}

static void print(struct wml_model *m, struct wml_buf *out)
{
    wml_buf_clear(out);
    wml_model_text(m, WML_TEXT_HEADER | WML_TEXT_ONE_LINE, out);
}

/* Switches on the pass, or every pass when it is SIZE_MAX. The result of the last run is in result. */
static void run_passes(struct wml_model **m, const char *what, size_t pass, bool sweep, struct wml_pass_result *result)
{
    enum wml_pass_choice *choice = calloc(wml_n_passes, sizeof *choice);
    struct wml_env env = {0};
    struct wml_ctx cx = {0};
    struct wml_err err = {0};
    struct wml_passes_opts o = {.env = &env, .choice = choice, .cx = &cx, .now_ns = no_clock};
    size_t dead = wml_pass_find(WML_STR("dead-code-elimination"));
    for (size_t i = 0; i < wml_n_passes; i++)
        choice[i] = i == pass || pass == SIZE_MAX || (sweep && i == dead) ? WML_PASS_ON : WML_PASS_OFF;
    if (!wml_passes_run(m, &o, result, &err)) fail_msg("%s: %s", what, err.msg);
    for (size_t i = 0; i < wml_n_passes; i++)
        if (result[i].status == WML_PASS_FAILED) fail_msg("%s: %s: %s", what, wml_passes[i]->name, result[i].reason);
    check_index(*m);
    check_text(*m);
    free(choice);
}

/* false: the pass did less than the case says, for want of types. */
static bool run_case(const struct suite *s, const struct pass_case *c)
{
    struct wml_pass_result *result = calloc(wml_n_passes, sizeof *result);
    struct wml_buf before = {0}, have = {0}, want = {0};
    struct wml_model *m = build(s, c, c->before, c->opset, c->ir);
    struct wml_model *expected = build(s, c, c->same ? c->before : c->after, c->opset_after.len ? c->opset_after : c->opset,
                                       c->ir_after.len ? c->ir_after : c->ir);
    char what[300];
    snprintf(what, sizeof what, "%s: %.*s", strrchr(s->path, '/') + 1, WML_ARG(c->name));
    print(m, &before);
    run_passes(&m, what, s->pass, !c->same, result);
    bool applied = result[s->pass].applied > 0;
    const char *differs = difference(m, expected);
    print(m, &have);
    print(expected, &want);
    if (c->same && (differs || applied))
        fail_msg("%s: is left alone, but %s changed\n  before %s\n  got    %s", what, differs, wml_buf_text(&before), wml_buf_text(&have));
    /* Less than the case says is fine for want of types: then nothing is there that the source did not have. */
    bool less = differs && !c->same && (!applied || wml_passes[s->pass]->needs || m->graph->n_nodes > expected->graph->n_nodes);
    if (differs && !less)
        fail_msg("%s: other %s\n  wanted %s\n  got    %s", what, differs, wml_buf_text(&want), wml_buf_text(&have));
    run_passes(&m, what, s->pass, !c->same, result);
    if (result[s->pass].applied) fail_msg("%s: a second run finds %zu more\n  %s", what, result[s->pass].applied, wml_buf_text(&have));
    wml_buf_release(&before);
    wml_buf_release(&have);
    wml_buf_release(&want);
    wml_model_free(m);
    wml_model_free(expected);
    free(result);
    return !less;
}

static void run_file(char *path)
{
    struct suite s = {.path = path};
    size_t less = 0;
    load(&s);
    if (wml_passes[s.pass]->refused) fail_msg("%s: the pass cannot run", s.path);
    for (size_t i = 0; i < s.v.len; i++) less += !run_case(&s, &s.v.at[i]);
    if (less) print_message("%s: %zu of %zu cases need types or values from the oracle\n", wml_passes[s.pass]->name, less, s.v.len);
    assert_true(s.v.len > 0);
    release(&s);
}

/* Every pass alone, and all together, on a graph that was written for one of them. */
static void run_all_passes(char *path)
{
    struct wml_pass_result *result = calloc(wml_n_passes, sizeof *result);
    struct suite s = {.path = path};
    char what[300];
    load(&s);
    for (size_t i = 0; i < s.v.len; i++) {
        const struct pass_case *c = &s.v.at[i];
        for (size_t p = 0; p <= wml_n_passes; p++) {
            if (p < wml_n_passes && wml_passes[p]->refused) continue;
            struct wml_model *m = build(&s, c, c->before, c->opset, c->ir);
            snprintf(what, sizeof what, "%s: %.*s", strrchr(s.path, '/') + 1, WML_ARG(c->name));
            run_passes(&m, what, p < wml_n_passes ? p : SIZE_MAX, true, result);
            wml_model_free(m);
        }
    }
    release(&s);
    free(result);
}

static char *path_of(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/../passes/%s", WML_TEST_DATA, name);
    return wml_xstrdup(path);
}

static void each_file(void (*f)(char *path))
{
    char *folder = path_of("");
    DIR *d = opendir(folder);
    size_t n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (!wml_str_ends(wml_str(e->d_name), ".case")) continue;
        char *path = path_of(e->d_name);
        f(path);
        free(path);
        n++;
    }
    closedir(d);
    free(folder);
    assert_true(n > 0); /* no cases is a failure, not a success */
}

static void cases(void **state)
{
    (void)state;
    each_file(run_file);
}

static void every_pass_on_every_graph(void **state)
{
    (void)state;
    each_file(run_all_passes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases), cmocka_unit_test(every_pass_on_every_graph)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
