/* Which nodes the user's options let a method touch. */
#include "quant/select.h"

#include "text/words.h"

bool wml_names_have(const struct wml_names *names, struct wml_str s)
{
    for (size_t i = 0; i < names->len; i++)
        if (wml_str_eq(names->at[i], s) || wml_glob_match(names->at[i], s)) return true;
    return false;
}

bool wml_quant_selects(const struct wml_quant_opts *o, const struct wml_node *n)
{
    return (!o->op_types.len || wml_names_have(&o->op_types, n->op_type)) && !(n->name.len && wml_names_have(&o->exclude, n->name));
}
