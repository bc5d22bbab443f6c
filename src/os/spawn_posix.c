/* Child processes on POSIX: one poll loop over stdin, output, channel and the child's end. Between fork
 * and exec only async-signal-safe calls are made; everything they need is prepared before. */
#include "os/spawn_hear.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/arena.h"
#include "os/fail.h"
#include "os/sys.h"

extern char **environ;

/* READS bounds one round, so that a child that never stops writing cannot keep us from the clock. */
enum { CHANNEL_FD = 3, DRAIN_MS = 200, CANCEL_POLL_MS = 50, READS = 64 };
#define CHANNEL_ENV "WINML_CHANNEL"

struct child {
    pid_t pid;
    int pidfd;                  /* -1: this kernel has none */
    int in, out, channel, fault; /* our ends; -1: closed */
    const struct wml_spawn *s;
    const struct wml_child_hooks *hooks;
    struct wml_child_result *result;
    size_t fed;
    struct wml_str input;       /* what the child is being fed with */
    struct wml_buf line, more;
    uint64_t deadline; /* 0: none */
    struct wml_spawn_silence silence;
    bool ended;
};

static void shut(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* A pipe whose ends no other program inherits; both above the numbers that the child reassigns. */
static bool make_pipe(int end[2])
{
    int raw[2];
    if (pipe2(raw, O_CLOEXEC) != 0) return false;
    for (int i = 0; i < 2; i++) {
        end[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, 10);
        close(raw[i]);
    }
    if (end[0] >= 0 && end[1] >= 0) return true;
    shut(&end[0]);
    shut(&end[1]);
    return false;
}

static char **make_env(const struct wml_spawn *s)
{
    size_t n = 0, extra = 0, at = 0;
    while (environ[n]) n++;
    while (s->env && s->env[extra]) extra++;
    char **env = wml_xcalloc(n + extra + 2, sizeof *env);
    /* Ours come first: the first of equal names counts. */
    for (size_t i = 0; i < extra; i++) env[at++] = (char *)(uintptr_t)s->env[i];
    if (s->channel) env[at++] = (char *)(uintptr_t)CHANNEL_ENV "=3";
    for (size_t i = 0; i < n; i++) {
        const char *eq = strchr(environ[i], '=');
        size_t name = eq ? (size_t)(eq - environ[i]) + 1 : strlen(environ[i]);
        bool hidden = strncmp(environ[i], CHANNEL_ENV "=", sizeof CHANNEL_ENV) == 0;
        for (size_t k = 0; k < extra; k++) hidden = hidden || strncmp(environ[i], s->env[k], name) == 0;
        if (!hidden) env[at++] = environ[i];
    }
    return env;
}

WML_NORETURN static void become(const struct wml_spawn *s, char **env, pid_t parent, int in, int out, int channel,
                                int fault)
{
    int code = 0;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || (s->channel && dup2(channel, CHANNEL_FD) < 0) ||
        (s->dir && chdir(s->dir) != 0))
        code = errno;
    if (!code) {
        execve(s->program, (char *const *)(uintptr_t)s->argv, env);
        code = errno;
    }
    if (write(fault, &code, sizeof code) < 0) _exit(126);
    _exit(127);
}

/* The child's reason for not becoming the program; 0: it did. */
static int read_fault(int fd)
{
    int code = 0;
    ssize_t n;
    while ((n = read(fd, &code, sizeof code)) < 0 && errno == EINTR) {
    }
    return n == (ssize_t)sizeof code ? code : 0;
}

static bool start(struct child *c, struct wml_err *err)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, channel[2] = {-1, -1}, fault[2] = {-1, -1};
    char **env = make_env(c->s);
    pid_t parent = getpid();
    int code = 0;
    bool ok = make_pipe(in) && make_pipe(out) && make_pipe(channel) && make_pipe(fault);
    if (ok) {
        /* Until exec the child still has our handlers: no signal may run one of them there. */
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        c->pid = fork();
        if (c->pid == 0) become(c->s, env, parent, in[0], out[1], channel[1], fault[1]);
        code = errno;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        ok = c->pid > 0;
    } else code = errno;
    shut(&in[0]);
    shut(&out[1]);
    shut(&channel[1]);
    shut(&fault[1]);
    c->in = in[1];
    c->out = out[0];
    c->channel = channel[0];
    free(env);
    if (ok && (code = read_fault(fault[0])) != 0) {
        waitpid(c->pid, NULL, 0);
        ok = false;
    }
    shut(&fault[0]);
    if (!ok) return wml_fail_system(err, code, "start", c->s->program);
    setpgid(c->pid, c->pid);
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    fcntl(c->in, F_SETFL, O_NONBLOCK);
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    fcntl(c->channel, F_SETFL, O_NONBLOCK);
    return true;
}

static void feed(struct child *c)
{
    struct wml_str left = wml_str_sub(c->input, c->fed, c->input.len);
    if (left.len) {
        ssize_t n = write(c->in, left.ptr, left.len);
        if (n > 0) c->fed += (size_t)n;
        else if (errno != EAGAIN && errno != EINTR) shut(&c->in);
    }
    if (c->in < 0 || c->fed < c->input.len) return;
    wml_buf_clear(&c->more);
    if (!c->hooks->more || !c->hooks->more(c->hooks->arg, &c->more)) shut(&c->in);
    c->input = wml_buf_view(&c->more);
    c->fed = 0;
}

static void hear_output(struct child *c)
{
    char piece[8192];
    ssize_t n = 1;
    size_t keep = c->s->keep_output ? c->s->keep_output : 65536;
    for (int i = 0; i < READS && (n = read(c->out, piece, sizeof piece)) > 0; i++) {
        wml_buf_add(&c->result->output, piece, (size_t)n);
        wml_spawn_keep_tail(&c->result->output, keep, 2 * keep);
        if (c->s->echo_output) wml_term_write(2, (struct wml_str){piece, (size_t)n});
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) shut(&c->out);
}

static void hear_channel(struct child *c)
{
    char piece[8192];
    ssize_t n = 1;
    for (int i = 0; i < READS && (n = read(c->channel, piece, sizeof piece)) > 0; i++) {
        wml_buf_add(&c->line, piece, (size_t)n);
        wml_spawn_say_lines(&c->line, c->hooks, &c->deadline);
        c->silence.heard_ns = wml_now_ns();
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) shut(&c->channel);
}

static void stop(struct child *c, enum wml_child_how how)
{
    c->result->how = how;
    kill(-c->pid, SIGKILL);
    kill(c->pid, SIGKILL);
    c->deadline = 0;
}

/* The group is killed while its leader is still a zombie: afterwards its number may be somebody else's. */
static void reap(struct child *c)
{
    int status = 0;
    struct rusage usage = {0};
    siginfo_t info = {0};
    int got = waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (got != 0 && errno != ECHILD) return;
    if (got == 0 && info.si_pid == 0) return;
    c->ended = true;
    if (got == 0) kill(-c->pid, SIGKILL);
    bool known = got == 0 && wait4(c->pid, &status, 0, &usage) == c->pid;
    c->result->peak_rss = (uint64_t)usage.ru_maxrss * 1024;
    if (c->result->how != WML_CHILD_RUNNING) return; /* our own kill */
    c->result->how = WIFSIGNALED(status) ? WML_CHILD_SIGNAL : WML_CHILD_EXIT;
    c->result->status = !known ? -1 : WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void listen_once(struct child *c, int limit_ms)
{
    bool fed = c->hooks->more && c->fed >= c->input.len;
    if (fed && c->in >= 0) feed(c); /* it can always be written to: asking poll would not wait */
    fed = c->hooks->more && c->fed >= c->input.len;
    struct pollfd p[4] = {{.fd = fed ? -1 : c->in, .events = POLLOUT}, {.fd = c->out, .events = POLLIN},
                          {.fd = c->channel, .events = POLLIN}, {.fd = c->ended ? -1 : c->pidfd, .events = POLLIN}};
    int n = poll(p, 4, limit_ms);
    if (n < 0) return;
    if (p[0].revents && c->in >= 0) feed(c);
    if (p[1].revents && c->out >= 0) hear_output(c);
    if (p[2].revents && c->channel >= 0) hear_channel(c);
}

static int wait_limit(const struct child *c)
{
    uint64_t limit = c->hooks->cancel || c->pidfd < 0 ? CANCEL_POLL_MS : 1000, now = wml_now_ns();
    if (c->deadline) {
        uint64_t left = c->deadline > now ? (c->deadline - now) / 1000000 + 1 : 0;
        limit = WML_MIN(limit, left);
    }
    return (int)limit;
}

/* Until the child has ended; then what is still in the pipes, but not for long: a grandchild may hold
 * them open. */
static void attend(struct child *c)
{
    while (!c->ended) {
        listen_once(c, wait_limit(c));
        reap(c);
        wml_spawn_tell_quiet(&c->silence, c->hooks);
        if (c->ended || c->result->how != WML_CHILD_RUNNING) continue;
        if (c->hooks->cancel && atomic_load(c->hooks->cancel)) stop(c, WML_CHILD_CANCEL);
        else if (c->deadline && wml_now_ns() >= c->deadline) stop(c, WML_CHILD_TIMEOUT);
    }
    uint64_t until = wml_now_ns() + (uint64_t)DRAIN_MS * 1000000;
    shut(&c->in);
    while ((c->out >= 0 || c->channel >= 0) && wml_now_ns() < until) listen_once(c, 20);
}

bool wml_child_run(const struct wml_spawn *s, const struct wml_child_hooks *hooks,
                   struct wml_child_result *result, struct wml_err *err)
{
    uint64_t begin = wml_now_ns();
    struct child c = {.pidfd = -1, .in = -1, .out = -1, .channel = -1, .s = s, .hooks = hooks, .result = result};
    *result = (struct wml_child_result){.output.max = (size_t)1 << 28};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored by whoever started us, it would take the status away */
    c.input = s->input;
    bool ok = start(&c, err);
    if (ok) {
        if (hooks->timeout_ms) c.deadline = wml_now_ns() + hooks->timeout_ms * 1000000;
        attend(&c);
        size_t keep = s->keep_output ? s->keep_output : 65536;
        wml_spawn_keep_tail(&result->output, keep, keep);
    }
    shut(&c.in);
    shut(&c.out);
    shut(&c.channel);
    shut(&c.pidfd);
    wml_buf_release(&c.line);
    wml_buf_release(&c.more);
    result->wall_ms = (double)(wml_now_ns() - begin) / 1e6;
    return ok;
}

void wml_child_result_release(struct wml_child_result *r)
{
    wml_buf_release(&r->output);
    *r = (struct wml_child_result){0};
}

void wml_child_describe(const struct wml_child_result *r, struct wml_buf *out)
{
    const char *name = r->how == WML_CHILD_SIGNAL ? sigabbrev_np((int)r->status) : NULL;
    if (r->how == WML_CHILD_TIMEOUT) wml_buf_cstr(out, "timeout");
    else if (r->how == WML_CHILD_CANCEL) wml_buf_cstr(out, "cancelled");
    else if (name) wml_buf_fmt(out, "SIG%s", name);
    else if (r->how == WML_CHILD_SIGNAL) wml_buf_fmt(out, "signal %" PRId64, r->status);
    else wml_buf_fmt(out, "exit status %" PRId64, r->status);
}
