/* winml_hub ID [--revision R] [--config] [--pattern P]... [--cache-first] [--offline] [--retry-ms N] [--piece BYTES]:
 * fetches a model.
 *
 * Standard output: {"folder": s, "peak": bytes}, or {"code": s, "error": s, "hint": s} with exit status 1. Standard error:
 * log lines of every level, and "progress STAGE ITEM DONE/TOTAL". */
#include <inttypes.h>

#include "base/num.h"
#include "hub/hub.h"
#include "os/sys.h"
#include "text/json.h"

enum { MOST = 16 };

static void on_log(void *sink, enum wml_log_level level, const char *msg)
{
    static const char *const name[] = {"error", "warning", "info", "debug"};
    (void)sink;
    fprintf(stderr, "%s: %s\n", name[level], msg);
}

static void on_progress(void *sink, const struct wml_progress *p)
{
    (void)sink;
    if (p) fprintf(stderr, "progress %s %s %" PRIu64 "/%" PRIu64 "\n", p->stage, p->item ? p->item : "", p->done, p->total);
    else fprintf(stderr, "progress end\n");
}

static void put(struct wml_json *j, const char *key, const char *value)
{
    wml_json_key(j, key);
    wml_json_put_cstr(j, value);
}

int main(int argc, char **argv)
{
    const char *pattern[MOST + 1] = {0};
    size_t n = 0;
    uint64_t ms = 0;
    struct wml_hub_opts o = {0};
    struct wml_err err = {0};
    struct wml_buf folder = {0}, text = {0};
    struct wml_json j = {.out = &text};
    struct wml_ctx cx = {.level = WML_LOG_DEBUG, .log = on_log, .progress = on_progress, .cancel = wml_interrupt_watch()};
    for (int i = 2; i < argc; i++) {
        struct wml_str a = wml_str(argv[i]);
        if (wml_str_is(a, "--config")) o.what = WML_HUB_CONFIG;
        else if (wml_str_is(a, "--cache-first")) o.network = WML_HUB_CACHE_FIRST;
        else if (wml_str_is(a, "--offline")) o.network = WML_HUB_OFFLINE;
        else if (++i == argc) return 2;
        else if (wml_str_is(a, "--revision")) o.revision = argv[i];
        else if (wml_str_is(a, "--pattern") && n < MOST) pattern[n++] = argv[i];
        else if (wml_str_is(a, "--piece") && wml_parse_u64(wml_str(argv[i]), &ms)) o.piece = (uint32_t)ms;
        else if (wml_str_is(a, "--retry-ms") && wml_parse_u64(wml_str(argv[i]), &ms)) o.retry_ms = (unsigned)ms;
        else return 2;
    }
    if (argc < 2) return 2;
    if (n) o.patterns = pattern;
    bool ok = wml_hub_fetch(&cx, argv[1], &o, &folder, &err);
    wml_json_begin(&j, '{');
    if (ok) {
        put(&j, "folder", wml_buf_text(&folder));
        wml_json_key(&j, "peak");
        wml_json_put_uint(&j, wml_rss_peak());
    } else {
        put(&j, "code", wml_code_name(err.code));
        put(&j, "error", err.msg);
        put(&j, "hint", err.hint);
    }
    wml_json_end(&j, '}');
    puts(wml_buf_text(&text));
    wml_buf_release(&text);
    wml_buf_release(&folder);
    return ok ? 0 : 1;
}
