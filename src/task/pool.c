/* Pooling as sentence-transformers does it: mean_pooling of its model cards. */
#include "task/pool.h"

#include <math.h>
#include <string.h>

static bool is_float(const struct wml_npy *a, size_t rank)
{
    return a->rank == rank && wml_dtype_is_float((int)a->dtype);
}

static const struct wml_npy *named(const struct wml_npys *answer, const char *const *name, size_t n, size_t rank)
{
    for (size_t i = 0; i < n; i++) {
        const struct wml_npy *a = wml_npys_find(answer, wml_str(name[i]));
        if (a && is_float(a, rank)) return a;
    }
    return NULL;
}

const struct wml_npy *wml_pool_states(const struct wml_npys *answer, size_t tokens)
{
    static const char *const name[] = {"last_hidden_state", "token_embeddings"};
    const struct wml_npy *a = named(answer, name, WML_COUNT(name), 3);
    for (size_t i = 0; !a && i < answer->v.len; i++)
        if (is_float(&answer->v.at[i], 3) && answer->v.at[i].dim[1] == (int64_t)tokens) a = &answer->v.at[i];
    return a && a->dim[0] > 0 && a->dim[1] == (int64_t)tokens ? a : NULL;
}

static const struct wml_npy *pooled(const struct wml_npys *answer)
{
    static const char *const name[] = {"sentence_embedding", "text_embeds", "embeddings"};
    const struct wml_npy *a = named(answer, name, WML_COUNT(name), 2);
    for (size_t i = 0; !a && i < answer->v.len; i++)
        if (is_float(&answer->v.at[i], 2) && answer->v.at[i].dim[0] > 0) a = &answer->v.at[i];
    return a;
}

bool wml_pool_mean(struct wml_task_work *w, size_t sample, double **out, size_t *n, struct wml_err *err)
{
    const struct wml_tok_ids *ids = &w->ids.at[sample];
    const struct wml_npy *a = wml_pool_states(&w->answer[sample], ids->len), *whole = a ? NULL : pooled(&w->answer[sample]);
    if (!a && !whole) {
        wml_fail(err, WML_E_UNSUPPORTED, "the model gives no states of tokens: it has no float output [batch, tokens, size]");
        return wml_hint(err, "`winml inspect -m MODEL` lists its outputs");
    }
    size_t size = (size_t)(a ? a->dim[2] : whole->dim[1]), count = 0;
    double *v = *out = WML_NEW_ARRAY(w->arena, double, size + 1);
    *n = size;
    for (size_t k = 0; whole && k < size; k++) v[k] = wml_dtype_load((int)whole->dtype, whole->data.ptr, k);
    for (size_t t = 0; a && t < ids->len; t++) {
        if (!ids->mask[t]) continue;
        count++;
        for (size_t k = 0; k < size; k++) v[k] += wml_dtype_load((int)a->dtype, a->data.ptr, t * size + k);
    }
    for (size_t k = 0; count && k < size; k++) v[k] /= (double)count;
    return true;
}

static double norm(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrt(sum);
}

double wml_pool_cosine(const double *a, const double *b, size_t n)
{
    double dot = 0, both = norm(a, n) * norm(b, n);
    for (size_t i = 0; i < n; i++) dot += a[i] * b[i];
    return both > 0 ? dot / both : 0;
}

void wml_pool_normalize(double *v, size_t n)
{
    double length = norm(v, n);
    for (size_t i = 0; length > 0 && i < n; i++) v[i] /= length;
}
