/* Keys and values behind Unsqueeze, Expand, Reshape (a group's repeated for each of its heads) and Concat (the past). */
#include "passes/attention_stream.h"

static int64_t size_of(const struct wml_value *v, size_t axis)
{
    return wml_value_axis(v, axis).size;
}

/* What v repeats for each head of a group; v itself when it repeats nothing. */
static struct wml_value *unrepeated(struct wml_pass_run *r, struct wml_value *v)
{
    const struct wml_node *join = v->def, *expand = join && wml_node_is(join, "Reshape") ? wml_node_producer(join, 0) : NULL;
    const struct wml_node *split = expand && wml_node_is(expand, "Expand") ? wml_node_producer(expand, 0) : NULL;
    const int64_t *axes;
    size_t len;
    if (!split || !wml_node_is(split, "Unsqueeze") || wml_value_rank(v) != 4 || wml_value_rank(split->out[0]) != 5) return v;
    struct wml_value *x = split->in[0], *five = expand->out[0];
    if (!wml_axes_of(r, split, &axes, &len) || len != 1 || (axes[0] != 2 && axes[0] != -3) || wml_value_rank(five) != 5) return v;
    int64_t groups = size_of(x, 1), each = size_of(five, 2);
    if (groups < 1 || each < 1 || size_of(five, 1) != groups || size_of(v, 1) != groups * each) return v;
    if (size_of(x, 3) < 1 || size_of(v, 3) != size_of(x, 3)) return v;
    return wml_same_axis(five, 0, x, 0) && wml_same_axis(five, 3, x, 2) ? x : v;
}

void wml_stream_of(struct wml_pass_run *r, struct wml_value *v, struct wml_stream *out)
{
    *out = (struct wml_stream){.whole = unrepeated(r, v)};
    const struct wml_node *n = out->whole->def;
    int64_t axis = n ? wml_attr_int(n, "axis", 0) : 0;
    out->new = out->whole;
    if (!n || !wml_node_is(n, "Concat") || n->n_in != 2 || wml_value_rank(out->whole) != 4 || (axis != 2 && axis != -2)) return;
    out->past = n->in[0];
    out->new = n->in[1];
}

bool wml_stream_joins(const struct wml_stream *s)
{
    if (wml_value_rank(s->past) != 4 || wml_value_rank(s->new) != 4 || s->whole->pinned) return false;
    return size_of(s->past, 1) > 0 && size_of(s->past, 1) == size_of(s->new, 1) && size_of(s->past, 3) == size_of(s->new, 3) &&
           wml_same_axis(s->past, 0, s->new, 0);
}

bool wml_needs_either(const struct wml_value *v, const struct wml_value *a, const struct wml_value *b, uint64_t mark)
{
    struct wml_node *n = v->def;
    if (v == a || v == b) return true;
    if (!n || n->mark == mark) return false;
    n->mark = mark;
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && wml_needs_either(n->in[i], a, b, mark)) return true;
    return false;
}

void wml_stream_take_whole(struct wml_node *n, size_t slot, struct wml_stream *s)
{
    struct wml_node *join = s->whole->def;
    wml_node_take_output(n, slot, s->whole);
    wml_prune(join);
}

/* -- Attention that is there -- */

enum { MASK = 3, PAST = 4, KEY = 1, VALUE = 2 };

static bool refuse(struct wml_pass_run *r, const struct wml_node *n, const char *why)
{
    wml_pass_refuse(r, n, "%s", why);
    return false;
}

/* The past goes in and the joined keys and values come out of n. */
static bool can_join(struct wml_pass_run *r, struct wml_node *n, const struct wml_stream *k, const struct wml_stream *v)
{
    uint64_t mark = wml_model_mark(r->model);
    if (!k->past || !v->past || k->whole == v->whole) return false;
    for (size_t i = PAST; i < n->n_in; i++)
        if (n->in[i]) return false;
    if (n->n_out > 1 || wml_attr_int(n, "is_causal", 0)) return refuse(r, n, "causal from its first key, or its inner product is an output");
    if (!wml_stream_joins(k) || !wml_stream_joins(v)) return refuse(r, n, "past keys or values have other heads than the new ones");
    if (!wml_same_axis(k->new, 2, v->new, 2)) return refuse(r, n, "there are not as many new values as new keys");
    const struct wml_value *in[] = {n->in[0], k->past, k->new, v->past, v->new, wml_node_in(n, MASK)};
    for (size_t i = 0; i < WML_COUNT(in); i++)
        if (in[i] && wml_needs_either(in[i], k->whole, v->whole, mark)) return refuse(r, n, "an operand is computed from the joined keys or values");
    return true;
}

bool wml_attention_absorb(struct wml_pass_run *r, struct wml_node *n)
{
    struct wml_stream k, v;
    for (size_t i = 0; i < 3; i++)
        if (!wml_node_in(n, i) || wml_value_rank(n->in[i]) != 4) return false;
    wml_stream_of(r, n->in[KEY], &k);
    wml_stream_of(r, n->in[VALUE], &v);
    if (size_of(k.whole, 1) < 1 || size_of(k.whole, 1) != size_of(v.whole, 1)) return false;
    bool joins = can_join(r, n, &k, &v);
    if (!joins && k.whole == n->in[KEY] && v.whole == n->in[VALUE]) return false;
    struct wml_node *old[] = {k.whole == n->in[KEY] ? NULL : n->in[KEY]->def, v.whole == n->in[VALUE] ? NULL : n->in[VALUE]->def};
    wml_node_set_input(n, KEY, joins ? k.new : k.whole); /* first: what nothing reads goes */
    wml_node_set_input(n, VALUE, joins ? v.new : v.whole);
    if (joins) {
        wml_node_set_input(n, PAST, k.past);
        wml_node_set_input(n, PAST + 1, v.past);
        wml_stream_take_whole(n, 1, &k);
        wml_stream_take_whole(n, 2, &v);
    }
    for (size_t i = 0; i < 2; i++)
        if (old[i] && (!i || old[1] != old[0])) wml_prune(old[i]);
    wml_pass_applied(r, n->op_type, n->name);
    return true;
}
