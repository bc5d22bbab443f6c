/* Which nodes the user's options let a method touch. */
#include "quant/select.h"

#include "text/words.h"

bool wml_patterns_match(const struct wml_patterns *p, struct wml_str s)
{
    for (size_t i = 0; i < p->len; i++)
        if (wml_str_eq(p->at[i], s) || wml_glob_match(p->at[i], s)) return true;
    return false;
}

bool wml_quant_selects(const struct wml_quant_opts *o, const struct wml_node *n)
{
    return (!o->op_types.len || wml_patterns_match(&o->op_types, n->op_type)) && !(n->name.len && wml_patterns_match(&o->exclude, n->name));
}
