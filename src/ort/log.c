/* ort/log.c - what ORT and EPs say. Lines may come from any thread, so a lock guards the tail; they are
 * kept for messages, and shown as they come when the user asked for them. */
#include "ort/internal.h"

static enum wml_log_level level_of(OrtLoggingLevel s)
{
    switch (s) {
    case ORT_LOGGING_LEVEL_FATAL:
    case ORT_LOGGING_LEVEL_ERROR: return WML_LOG_ERROR;
    case ORT_LOGGING_LEVEL_WARNING: return WML_LOG_WARN;
    case ORT_LOGGING_LEVEL_INFO: return WML_LOG_INFO;
    default: return WML_LOG_DEBUG;
    }
}

/* The newest lines stay: whole lines leave at the front. */
static void make_room(struct wml_buf *log, size_t need)
{
    if (log->len + need <= WML_ORT_LOG_MAX) return;
    size_t drop = log->len + need - WML_ORT_LOG_MAX;
    if (drop >= log->len) {
        wml_buf_clear(log);
        return;
    }
    const char *end = memchr(log->ptr + drop, '\n', log->len - drop);
    drop = end ? (size_t)(end - log->ptr) + 1 : log->len;
    memmove(log->ptr, log->ptr + drop, log->len - drop);
    log->len -= drop;
    log->ptr[log->len] = '\0';
}

void ORT_API_CALL wml_ort_log_line(void *param, OrtLoggingLevel severity, const char *category, const char *id,
                                   const char *location, const char *message)
{
    (void)category;
    (void)id;
    (void)location;
    struct wml_ort *o = param;
    enum wml_log_level level = level_of(severity);
    struct wml_str text = wml_str_trim(wml_str(message ? message : ""));
    if (text.len > 2000) text.len = 2000;
    wml_mutex_lock(o->log_lock);
    if (level == WML_LOG_ERROR && wml_str_has(text, "GetCapability() for ") && !o->refusal.len)
        wml_buf_str(&o->refusal, text);
    if (level <= WML_LOG_WARN) {
        make_room(&o->log, text.len + 1);
        wml_buf_str(&o->log, text);
        wml_buf_char(&o->log, '\n');
    }
    if (o->cx->show_native && o->cx->log) {
        struct wml_buf line = {0};
        wml_buf_fmt(&line, "ort: %.*s", WML_ARG(text));
        o->cx->log(o->cx->sink, level, wml_buf_text(&line));
        wml_buf_release(&line);
    }
    wml_mutex_unlock(o->log_lock);
}

struct wml_str wml_ort_last_log(struct wml_ort *o)
{
    wml_mutex_lock(o->log_lock);
    wml_buf_clear(&o->log_view);
    wml_buf_str(&o->log_view, wml_buf_view(&o->log));
    wml_mutex_unlock(o->log_lock);
    return wml_buf_view(&o->log_view);
}

void wml_ort_clear_log(struct wml_ort *o)
{
    wml_mutex_lock(o->log_lock);
    wml_buf_clear(&o->log);
    wml_mutex_unlock(o->log_lock);
}
