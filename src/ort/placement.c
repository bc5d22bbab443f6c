/* ort/placement.c - which EP runs which nodes, as ORT recorded it while it opened the session: one group
 * per compiled partition; EPs with single kernels (the CPU) come with one group each. */
#include "ort/internal.h"

static bool read_nodes(const struct wml_ort *o, const OrtEpAssignedSubgraph *g, struct wml_arena *a,
                       struct wml_placed *out, struct wml_err *err)
{
    const OrtApi *api = o->api;
    const OrtEpAssignedNode *const *node = NULL;
    size_t n = 0;
    if (!wml_ort_ok(o, api->EpAssignedSubgraph_GetNodes(g, &node, &n), WML_E_RUNTIME, err)) return false;
    const char **name = WML_NEW_ARRAY(a, const char *, n + 1);
    const char **op = WML_NEW_ARRAY(a, const char *, n + 1);
    const char **domain = WML_NEW_ARRAY(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!wml_ort_ok(o, api->EpAssignedNode_GetName(node[i], &name[i]), WML_E_RUNTIME, err) ||
            !wml_ort_ok(o, api->EpAssignedNode_GetOperatorType(node[i], &op[i]), WML_E_RUNTIME, err) ||
            !wml_ort_ok(o, api->EpAssignedNode_GetDomain(node[i], &domain[i]), WML_E_RUNTIME, err))
            return false;
        if (!name[i]) name[i] = "";
        if (!op[i]) op[i] = "";
        if (!domain[i]) domain[i] = "";
    }
    out->n_nodes = n;
    out->node = name;
    out->op_type = op;
    out->domain = domain;
    return true;
}

static bool is_single(const struct wml_placed *p)
{
    return p->n_nodes == 1 && !strcmp(p->ep, "CPUExecutionProvider");
}

/* The CPU EP's groups become one, at the place of the first. Returns the number of groups left. */
static size_t merge_single(struct wml_placed *p, size_t n, struct wml_arena *a)
{
    size_t total = 0, kept = 0;
    for (size_t i = 0; i < n; i++) total += is_single(&p[i]);
    if (total < 2) return n;
    const char **name = WML_NEW_ARRAY(a, const char *, total);
    const char **op = WML_NEW_ARRAY(a, const char *, total);
    const char **domain = WML_NEW_ARRAY(a, const char *, total);
    struct wml_placed *all = NULL;
    for (size_t i = 0; i < n; i++) {
        struct wml_placed one = p[i];
        if (!is_single(&one)) {
            p[kept++] = one;
            continue;
        }
        if (!all) {
            all = &p[kept++];
            *all = (struct wml_placed){.ep = one.ep, .node = name, .op_type = op, .domain = domain};
        }
        name[all->n_nodes] = one.node[0];
        op[all->n_nodes] = one.op_type[0];
        domain[all->n_nodes++] = one.domain[0];
    }
    return kept;
}

bool wml_session_placement(const struct wml_session *cs, const struct wml_placed **out, size_t *n, struct wml_err *err)
{
    struct wml_session *s;
    memcpy(&s, &cs, sizeof s); /* the answer is read once and kept */
    const struct wml_ort *o = s->o;
    if (!s->placement_asked) {
        const OrtEpAssignedSubgraph *const *group = NULL;
        size_t n_groups = 0;
        if (!wml_ort_ok(o, o->api->Session_GetEpGraphAssignmentInfo(s->session, &group, &n_groups), WML_E_UNSUPPORTED,
                        err))
            return wml_wrap(err, "placement of %s", s->label);
        struct wml_placed *p = WML_NEW_ARRAY(&s->arena, struct wml_placed, n_groups + 2);
        for (size_t i = 0; i < n_groups; i++)
            if (!wml_ort_ok(o, o->api->EpAssignedSubgraph_GetEpName(group[i], &p[i].ep), WML_E_RUNTIME, err) ||
                !read_nodes(o, group[i], &s->arena, &p[i], err))
                return wml_wrap(err, "placement of %s", s->label);
        s->placed = p;
        s->n_placed = merge_single(p, n_groups, &s->arena);
        s->placement_asked = true;
    }
    *out = s->placed;
    *n = s->n_placed;
    return true;
}
