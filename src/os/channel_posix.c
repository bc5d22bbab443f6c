/* The child's side of os/spawn.h on POSIX. */
#include "os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include "base/num.h"
#include "os/fail.h"
#include "os/sys.h"

#define CHANNEL_ENV "WINML_CHANNEL"
enum { PIECE = 65536, POLL_MS = 100 };

bool wml_channel_open(intptr_t *channel)
{
    struct wml_buf text = {0};
    uint64_t n = 0;
    bool ok = wml_env(CHANNEL_ENV, &text) && wml_parse_u64(wml_buf_view(&text), &n) && n < 1024 &&
              fcntl((int)n, F_SETFD, FD_CLOEXEC) == 0;
    wml_buf_release(&text);
    unsetenv(CHANNEL_ENV);
    *channel = (intptr_t)n;
    return ok;
}

bool wml_channel_write(intptr_t channel, struct wml_str bytes)
{
    signal(SIGPIPE, SIG_IGN);
    while (bytes.len) {
        ssize_t n = write((int)channel, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes = wml_str_sub(bytes, (size_t)n, bytes.len);
    }
    return true;
}

bool wml_stdin_read(struct wml_buf *out, uint64_t max, struct wml_err *err)
{
    char piece[PIECE];
    ssize_t n;
    while ((n = read(0, piece, sizeof piece)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return wml_fail_system(err, errno, "read", "standard input");
        if (out->len + (size_t)n > max) return wml_fail(err, WML_E_FORMAT, "standard input is too long");
        wml_buf_add(out, piece, (size_t)n);
    }
    return true;
}

bool wml_stdin_line(struct wml_buf *out, size_t max, const atomic_bool *cancel)
{
    struct pollfd p = {.fd = 0, .events = POLLIN};
    bool any = false;
    while (!cancel || !atomic_load(cancel)) {
        char c;
        if (cancel && poll(&p, 1, POLL_MS) <= 0) continue; /* nothing yet, or a signal */
        ssize_t n = read(0, &c, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return any;
        any = true;
        if (c == '\n') return true;
        wml_buf_char(out, c);
        if (out->len >= max) return true;
    }
    return false;
}

void wml_exit_now(int status)
{
    fflush(NULL);
    _exit(status);
}
