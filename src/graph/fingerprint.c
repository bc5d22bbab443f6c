/* Which model it is, in 16 digits. */
#include "graph/fingerprint.h"

#include "graph/graph.h"
#include "graph/tensor.h"

enum { PIECE = 4096 };

struct print {
    struct wml_model *model;
    struct wml_sha256 sha;
};

static void add_str(struct print *p, struct wml_str s)
{
    unsigned char len[4] = {(unsigned char)s.len, (unsigned char)(s.len >> 8), (unsigned char)(s.len >> 16), (unsigned char)(s.len >> 24)};
    wml_sha256_add(&p->sha, len, sizeof len);
    if (s.len) wml_sha256_add(&p->sha, s.ptr, s.len);
}

static bool add_node(void *arg, struct wml_node *n)
{
    struct print *p = arg;
    add_str(p, n->domain);
    add_str(p, n->op_type);
    for (size_t i = 0; i < n->n_in; i++) add_str(p, n->in[i] ? n->in[i]->name : WML_NO_STR);
    for (size_t i = 0; i < n->n_out; i++) add_str(p, n->out[i] ? n->out[i]->name : WML_NO_STR);
    return true;
}

/* Its first and its last bytes: training changes all of them. */
static bool add_tensor(void *arg, struct wml_tensor *t)
{
    struct print *p = arg;
    struct wml_span bytes = {0};
    for (size_t i = 0; i < t->dims.len; i++) add_str(p, (struct wml_str){(const char *)&t->dims.at[i], sizeof(int64_t)});
    add_str(p, wml_str(wml_dtype_name(t->dtype)));
    if (!wml_tensor_bytes(p->model, t, &bytes, NULL)) return true; /* strings; a file that is not there */
    size_t n = WML_MIN(bytes.len, (size_t)PIECE);
    wml_sha256_add(&p->sha, bytes.ptr, n);
    wml_sha256_add(&p->sha, bytes.ptr + (bytes.len - n), n);
    return true;
}

void wml_model_fingerprint(struct wml_model *m, char hex[WML_FINGERPRINT])
{
    struct print p = {.model = m};
    char all[WML_SHA256_HEX];
    wml_sha256_init(&p.sha);
    wml_graph_walk(m->graph, add_node, &p);
    wml_model_each_tensor(m, add_tensor, &p);
    wml_sha256_hex(&p.sha, all);
    snprintf(hex, WML_FINGERPRINT, "%.*s", WML_FINGERPRINT - 1, all);
}
