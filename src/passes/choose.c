/* Which passes a choice means: what they need is added, what cannot be had is refused. */
#include "passes/passes.h"

/* Calls f for every word. */
static struct wml_str next_word(const char **at)
{
    while (**at == ' ') ++*at;
    const char *start = *at;
    while (**at && **at != ' ') ++*at;
    return (struct wml_str){start, (size_t)(*at - start)};
}

static bool has_word(const char *list, const char *word)
{
    for (struct wml_str w; (w = next_word(&list)).len;)
        if (word && wml_str_is(w, word)) return true;
    return false;
}

static bool add_needs(enum wml_pass_choice *choice, size_t i, bool *changed, struct wml_err *err)
{
    const char *at = wml_passes[i]->needs;
    for (struct wml_str w; at && (w = next_word(&at)).len;) {
        size_t k = wml_pass_find(w);
        if (k == SIZE_MAX || choice[k] == WML_PASS_ON) continue;
        if (choice[k] == WML_PASS_OFF)
            return wml_fail(err, WML_E_USAGE, "--enable-%s needs %s, which --disable-%s switches off", wml_passes[i]->name,
                            wml_passes[k]->name, wml_passes[k]->name);
        choice[k] = WML_PASS_ON;
        *changed = true;
    }
    return true;
}

static bool check_pairs(const enum wml_pass_choice *choice, size_t i, struct wml_err *err)
{
    const char *at = wml_passes[i]->against;
    for (struct wml_str w; at && (w = next_word(&at)).len;) {
        size_t k = wml_pass_find(w);
        if (k == SIZE_MAX || choice[k] != WML_PASS_ON) continue;
        wml_fail(err, WML_E_USAGE, "--enable-%s and --enable-%s undo each other", wml_passes[i]->name, wml_passes[k]->name);
        return wml_hint(err, "leave one of them out");
    }
    return true;
}

static bool check(size_t i, const char *ep, bool any, struct wml_err *err)
{
    const struct wml_pass *p = wml_passes[i];
    if (p->refused) return wml_fail(err, WML_E_USAGE, "--enable-%s: %s", p->name, p->refused);
    if (p->only_for && !any && !has_word(p->only_for, ep)) {
        wml_fail(err, WML_E_USAGE, "--enable-%s makes operators that only %s has%s%s", p->name, p->only_for, ep ? ", not " : "",
                 ep ? ep : "");
        return wml_hint(err, "name the target with --ep, or add --allow-unsafe to write it all the same");
    }
    return true;
}

bool wml_passes_settle(enum wml_pass_choice *choice, const char *ep, bool any, struct wml_err *err)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < wml_n_passes; i++)
            if (choice[i] == WML_PASS_ON && !add_needs(choice, i, &changed, err)) return false;
    }
    for (size_t i = 0; i < wml_n_passes; i++)
        if (choice[i] == WML_PASS_ON && (!check(i, ep, any, err) || !check_pairs(choice, i, err))) return false;
    return true;
}
