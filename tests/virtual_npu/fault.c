/* fault.c - failures on request, so that a host can be tested against every way a driver may end.
 * A fault names what happens and where: "crash@compile", "fail@run:5" (after five good runs). */
#include "vnpu.h"
#include "sys.h"

#include <stdlib.h>
#include <string.h>

enum what { NONE, FAIL, CRASH, ABORT, KILL, HANG, EXIT };

static const char *const what_names[] = {
    [FAIL] = "fail", [CRASH] = "crash", [ABORT] = "abort",
    [KILL] = "kill", [HANG] = "hang",   [EXIT] = "exit",
};
static const char *const where_names[] = {
    [VNPU_REGISTER] = "register", [VNPU_COMPILE] = "compile", [VNPU_SAVE] = "save",
    [VNPU_LOAD] = "load",         [VNPU_RUN] = "run",         [VNPU_TEARDOWN] = "teardown",
    [VNPU_UNLOAD] = "unload",
};

static int find_name(const char *const *names, size_t n, const char *s, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (names[i] != NULL && strlen(names[i]) == len && memcmp(names[i], s, len) == 0)
            return (int)i;
    return -1;
}

OrtStatus *vnpu_fault_parse(const OrtApi *api, const char *text, struct vnpu_fault *out)
{
    *out = (struct vnpu_fault){0};
    if (text == NULL || *text == '\0' || strcmp(text, "none") == 0) return NULL;
    const char *at = strchr(text, '@'), *colon = strchr(text, ':');
    const char *end = colon != NULL ? colon : text + strlen(text);
    int what = -1, where = -1;
    unsigned spared = 0;
    bool digits =
        colon == NULL || (colon[1] != '\0' && strspn(colon + 1, "0123456789") == strlen(colon + 1));
    if (at != NULL && at < end) {
        what = find_name(what_names, sizeof(what_names) / sizeof(*what_names), text,
                         (size_t)(at - text));
        where = find_name(where_names, sizeof(where_names) / sizeof(*where_names), at + 1,
                          (size_t)(end - at - 1));
    }
    if (colon != NULL && digits) spared = (unsigned)strtoul(colon + 1, NULL, 10);
    if (what < 0 || where < 0 || !digits || strlen(text) >= sizeof(out->text))
        return vnpu_fail(
            api,
            "fault '%.60s' is not WHAT@WHERE[:N] with WHAT one of fail, crash, abort, kill, "
            "hang, exit and WHERE one of register, compile, save, load, run, teardown, unload",
            text);
    memcpy(out->text, text, strlen(text) + 1);
    out->what = what;
    out->where = (enum vnpu_where)where;
    out->spared = spared;
    return NULL;
}

OrtStatus *vnpu_fault_strike(const OrtApi *api, struct vnpu_fault *f, enum vnpu_where where)
{
    if (f->what == NONE || f->where != where) return NULL;
    if (f->spared > 0) {
        f->spared--;
        return NULL;
    }
    switch ((enum what)f->what) {
    case NONE:
        break;
    case FAIL:
        return vnpu_fail(api, "failed at %s, as the fault '%s' asks for", where_names[where],
                         f->text);
    case CRASH:
        vnpu_die_crash();
    case ABORT:
        abort();
    case KILL:
        vnpu_die_kill();
    case HANG:
        for (;;)
            vnpu_sleep_us(60u * 1000000u);
    case EXIT:
        _Exit(3); /* without exit handlers: they could hang on ORT's threads */
    }
    return NULL;
}
