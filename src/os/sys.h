/* os/sys.h - the rest of what winml asks of the system: environment, clocks, memory, threads' sleep,
 * libraries, terminal, Ctrl-C. Each part is a few functions; see os/thread.h and os/spawn.h for more. */
#ifndef WML_OS_SYS_H
#define WML_OS_SYS_H

#include <stdatomic.h>
#include "base/str.h"

/* Environment. The value is copied to out; false when not set. An empty value counts as set. */
bool wml_env(const char *name, struct wml_buf *out);
bool wml_env_is_set(const char *name); /* set and not empty */
void wml_env_set(const char *name, const char *value); /* NULL: unset. Before threads start only. */

/* Clocks. */
uint64_t wml_now_ns(void); /* monotonic */
void wml_sleep_ms(uint64_t ms);
/* UTC as "2026-01-31T12:00:00Z"; local as "20260131-120000". */
enum { WML_TIME_TEXT = 32 };
void wml_time_utc(char out[WML_TIME_TEXT]);
void wml_time_stamp(char out[WML_TIME_TEXT]);

/* This process. Bytes; 0 when not known. */
uint64_t wml_rss(void);
uint64_t wml_rss_peak(void);
bool wml_rss_peak_reset(void); /* Linux: the peak counts from now; false: not possible */
uint64_t wml_rss_anon(void);   /* resident memory that is no file */
uint64_t wml_cpu_ns(void);     /* user + system time of this process */
int wml_pid(void);

/* Libraries. wml_dl_open keeps symbols local. Errors carry the loader's own message. */
struct wml_dl;
bool wml_dl_open(const char *path, struct wml_dl **out, struct wml_err *err);
void wml_dl_close(struct wml_dl *d);
/* Instead of closing: it stays loaded for the rest of the process, as those must that leave something running behind. */
void wml_dl_leave(struct wml_dl *d);
/* Function or data; NULL when absent. Copy the pointer with memcpy into a function pointer. */
void *wml_dl_symbol(struct wml_dl *d, const char *name);
/* Path of the file that holds this symbol's code, false: not known. */
bool wml_dl_path(struct wml_dl *d, struct wml_buf *out);

/* Terminal. fd 1 stdout, 2 stderr. */
bool wml_term_is(int fd);
unsigned wml_term_width(int fd); /* columns; 80 when not known */
void wml_term_prepare(void);     /* Windows: UTF-8 and escape codes */
void wml_term_write(int fd, struct wml_str bytes); /* all of it, unbuffered; errors ignored */

/* Ctrl-C, SIGTERM. The first sets the flag, the second removes open temporary files and ends (POSIX: when it comes
 * 200 ms after the first; sooner it is the first, passed on by a wrapper). */
const atomic_bool *wml_interrupt_watch(void);

/* A crash says so on stderr, removes temporary files and folders, and ends as it would have. document: written to
 * stdout then, NULL for none; must live as long as the program. */
void wml_fatal_watch(const char *document);

/* argv as UTF-8 (Windows: from the wide command line). Lives as long as the program. */
char **wml_args_utf8(int *argc, char **argv);
/* Sets stdin and stdout to binary on Windows. */
void wml_stdio_prepare(void);

#endif
