/* Keys and labels that are not literals. */
#include "report/report.h"
#include "report/tree.h"

const char *wml_item_name(const struct wml_item *in, struct wml_str name)
{
    return wml_arena_cstr(in->arena, name);
}
