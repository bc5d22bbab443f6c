/* Terminal, Ctrl-C and arguments on POSIX. */
#include "os/sys.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/num.h"
#include "os/file.h"

bool wml_term_is(int fd)
{
    return isatty(fd) == 1;
}

unsigned wml_term_width(int fd)
{
    struct winsize w;
    struct wml_buf columns = {0};
    uint64_t n = 0;
    if (ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col) return w.ws_col;
    if (!wml_env("COLUMNS", &columns) || !wml_parse_u64(wml_buf_view(&columns), &n) || n < 20 || n > 1000) n = 80;
    wml_buf_release(&columns);
    return (unsigned)n;
}

void wml_term_prepare(void)
{
}

void wml_term_write(int fd, struct wml_str bytes)
{
    while (bytes.len) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        bytes = wml_str_sub(bytes, (size_t)n, bytes.len);
    }
}

/* State of the process: a handler can be handed nothing. */
static atomic_bool interrupted;
static _Atomic uint64_t interrupted_ns;

/* A terminal sends Ctrl-C to the whole group, and wrappers (timeout, npm, uv) pass on what they got: one is two. */
enum { SAME_NS = 200000000 };

static void on_signal(int number)
{
    uint64_t first = 0, now = wml_now_ns();
    if (atomic_compare_exchange_strong(&interrupted_ns, &first, now)) {
        atomic_store(&interrupted, true);
    } else if (now - first > SAME_NS) {
        wml_out_remove_all();
        _exit(128 + number);
    }
}

static _Atomic(const char *) fatal_document;

static void say(int fd, const char *text)
{
    ssize_t n = write(fd, text, strlen(text));
    (void)n; /* nothing is left to try */
}

static void on_fatal(int number)
{
    const char *why = number == SIGFPE ? "an arithmetic error" : number == SIGBUS ? "a file that got shorter while it was read"
                    : number == SIGABRT ? "an internal check" : "a bad memory access", *document = atomic_load(&fatal_document);
    say(2, "\nError: stopped by ");
    say(2, why);
    say(2, ", in winml or in ONNX Runtime; unfinished files were removed\n"
           "Hint: where running the model is to blame, --no-verify does without it\n");
    if (document) say(1, document);
    wml_out_remove_all();
    raise(number); /* the handler is reset: the status and the core file are those of the signal */
}

void wml_fatal_watch(const char *document)
{
    static const int fatal[] = {SIGFPE, SIGSEGV, SIGBUS, SIGILL, SIGABRT};
    atomic_store(&fatal_document, document);
    for (size_t i = 0; i < WML_COUNT(fatal); i++) {
        struct sigaction act = {.sa_handler = on_fatal, .sa_flags = SA_RESETHAND | SA_NODEFER}, old;
        sigemptyset(&act.sa_mask);
        /* Sanitizers and debuggers that watch already know more. */
        if (sigaction(fatal[i], NULL, &old) == 0 && (old.sa_handler == SIG_DFL || old.sa_handler == on_fatal))
            sigaction(fatal[i], &act, NULL);
    }
}

const atomic_bool *wml_interrupt_watch(void)
{
    struct sigaction act = {.sa_handler = on_signal};
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
    return &interrupted;
}

char **wml_args_utf8(int *argc, char **argv)
{
    (void)argc;
    return argv;
}

void wml_stdio_prepare(void)
{
}
