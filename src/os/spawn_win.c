/* Child processes on Windows: a Job object that dies with us, a list of the handles that the child inherits,
 * and a thread per pipe, since anonymous pipes cannot be waited for. The calling thread does the rest. */
#include "os/spawn_hear.h"

#include <inttypes.h>
#include <process.h>
#include "base/arena.h"
#include "os/fail.h"
#include "os/spawn_win.h"
#include "os/sys.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <psapi.h>

enum { DRAIN_MS = 200, CANCEL_POLL_MS = 50, PENDING_MAX = 8 << 20 };

/* Our end of one pipe and the thread that serves it. */
struct stream {
    HANDLE pipe, thread;
    SRWLOCK *lock;
    HANDLE wake;
    struct wml_buf got;   /* reading: what nobody has looked at yet; guarded by lock */
    struct wml_str input; /* writing */
    bool stays;           /* open when the input is written */
};

struct child {
    PROCESS_INFORMATION process;
    HANDLE job, wake;
    SRWLOCK lock;
    struct stream in, out, channel;
    const struct wml_spawn *s;
    const struct wml_child_hooks *hooks;
    struct wml_child_result *result;
    struct wml_buf line, taken;
    uint64_t deadline; /* 0: none */
    struct wml_spawn_silence silence;
};

static void shut(HANDLE *h)
{
    if (*h && *h != INVALID_HANDLE_VALUE) CloseHandle(*h);
    *h = NULL;
}

static unsigned __stdcall read_pipe(void *arg)
{
    struct stream *s = arg;
    char piece[8192];
    DWORD n;
    while (ReadFile(s->pipe, piece, sizeof piece, &n, NULL)) {
        AcquireSRWLockExclusive(s->lock);
        bool full = s->got.len > PENDING_MAX;
        wml_buf_add(&s->got, piece, n);
        ReleaseSRWLockExclusive(s->lock);
        SetEvent(s->wake);
        if (full) Sleep(1); /* the child writes faster than we look */
    }
    return 0;
}

static unsigned __stdcall write_pipe(void *arg)
{
    struct stream *s = arg;
    DWORD n = 0;
    while (s->input.len && WriteFile(s->pipe, s->input.ptr, (DWORD)WML_MIN(s->input.len, (size_t)1 << 16), &n, NULL))
        s->input = wml_str_sub(s->input, n, s->input.len);
    if (!s->stays) shut(&s->pipe);
    return 0;
}

static bool start_stream(struct child *c, struct stream *s, unsigned(__stdcall *f)(void *arg))
{
    s->lock = &c->lock;
    s->wake = c->wake;
    s->thread = (HANDLE)_beginthreadex(NULL, 0, f, s, 0, NULL);
    return s->thread != NULL;
}

/* A pipe of which only the child's end can be inherited. */
static bool make_pipe(HANDLE *ours, HANDLE *theirs, bool child_reads)
{
    SECURITY_ATTRIBUTES inherit = {.nLength = sizeof inherit, .bInheritHandle = TRUE};
    if (!CreatePipe(child_reads ? theirs : ours, child_reads ? ours : theirs, &inherit, 1 << 16)) return false;
    return SetHandleInformation(*ours, HANDLE_FLAG_INHERIT, 0) != 0;
}

static bool make_job(struct child *c)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limit = {0};
    limit.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    c->job = CreateJobObjectW(NULL, NULL);
    c->wake = CreateEventW(NULL, FALSE, FALSE, NULL);
    return c->job && c->wake &&
           SetInformationJobObject(c->job, JobObjectExtendedLimitInformation, &limit, sizeof limit);
}

/* The process, not yet running, with exactly these handles. */
static bool create_process(struct child *c, HANDLE inherited[3])
{
    STARTUPINFOEXW info = {.StartupInfo.cb = sizeof info};
    SIZE_T size = 0;
    bool ok = false;
    wchar_t *program = wml_wide_path(c->s->program), *line = wml_command_line(c->s->argv);
    wchar_t *env = wml_environment(c->s->env, c->s->channel ? (intptr_t)inherited[2] : 0);
    wchar_t *dir = c->s->dir ? wml_wide(c->s->dir) : NULL;
    for (wchar_t *p = program; *p; p++)
        if (*p == L'/') *p = L'\\';
    InitializeProcThreadAttributeList(NULL, 1, 0, &size);
    info.lpAttributeList = wml_xcalloc(1, size);
    info.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    info.StartupInfo.hStdInput = inherited[0];
    info.StartupInfo.hStdOutput = info.StartupInfo.hStdError = inherited[1];
    SIZE_T n = (c->s->channel ? 3 : 2) * sizeof *inherited;
    DWORD flags = CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT | CREATE_NEW_PROCESS_GROUP | EXTENDED_STARTUPINFO_PRESENT;
    if (InitializeProcThreadAttributeList(info.lpAttributeList, 1, 0, &size)) {
        ok = UpdateProcThreadAttribute(info.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, inherited, n, NULL,
                                       NULL) &&
             CreateProcessW(program, line, NULL, NULL, TRUE, flags, env, dir, &info.StartupInfo, &c->process);
        DWORD code = GetLastError();
        DeleteProcThreadAttributeList(info.lpAttributeList);
        SetLastError(code);
    }
    DWORD code = GetLastError();
    free(info.lpAttributeList);
    free(program);
    free(line);
    free(env);
    free(dir);
    SetLastError(code);
    return ok;
}

static bool start(struct child *c, struct wml_err *err)
{
    HANDLE theirs[3] = {0};
    bool ok = make_job(c) && make_pipe(&c->in.pipe, &theirs[0], true) && make_pipe(&c->out.pipe, &theirs[1], false) &&
              make_pipe(&c->channel.pipe, &theirs[2], false) && create_process(c, theirs);
    ok = ok && AssignProcessToJobObject(c->job, c->process.hProcess);
    DWORD code = GetLastError();
    for (size_t i = 0; i < WML_COUNT(theirs); i++) shut(&theirs[i]);
    c->in.input = c->s->input;
    c->in.stays = c->hooks->more != NULL;
    ok = ok && start_stream(c, &c->in, write_pipe) && start_stream(c, &c->out, read_pipe) &&
         start_stream(c, &c->channel, read_pipe) && ResumeThread(c->process.hThread) != (DWORD)-1;
    if (ok) return true;
    if (c->process.hProcess) TerminateProcess(c->process.hProcess, 127);
    return wml_fail_system(err, (int)code, "start", c->s->program);
}

static void take(struct child *c, struct stream *s)
{
    wml_buf_clear(&c->taken);
    AcquireSRWLockExclusive(&c->lock);
    struct wml_buf full = s->got;
    s->got = c->taken;
    c->taken = full;
    ReleaseSRWLockExclusive(&c->lock);
}

static void hear(struct child *c)
{
    size_t keep = c->s->keep_output ? c->s->keep_output : 65536;
    take(c, &c->out);
    if (c->taken.len) {
        if (c->s->echo_output) wml_term_write(2, wml_buf_view(&c->taken));
        wml_buf_str(&c->result->output, wml_buf_view(&c->taken));
        wml_spawn_keep_tail(&c->result->output, keep, 2 * keep);
    }
    take(c, &c->channel);
    if (c->taken.len) {
        wml_buf_str(&c->line, wml_buf_view(&c->taken));
        wml_spawn_say_lines(&c->line, c->hooks, &c->deadline);
        c->silence.heard_ns = wml_now_ns();
    }
}

/* Later input is lines for a child that waits for them: they fit into the pipe. */
static void feed(struct child *c)
{
    DWORD n = 0;
    if (!c->hooks->more || !c->in.pipe || WaitForSingleObject(c->in.thread, 0) != WAIT_OBJECT_0) return;
    wml_buf_clear(&c->taken);
    bool open = c->hooks->more(c->hooks->arg, &c->taken);
    for (struct wml_str left = wml_buf_view(&c->taken); left.len && open; left = wml_str_sub(left, n, left.len))
        open = WriteFile(c->in.pipe, left.ptr, (DWORD)WML_MIN(left.len, (size_t)1 << 16), &n, NULL) != 0;
    if (!open) shut(&c->in.pipe);
}

static void stop(struct child *c, enum wml_child_how how)
{
    c->result->how = how;
    TerminateJobObject(c->job, 1);
    c->deadline = 0;
}

static DWORD wait_limit(const struct child *c)
{
    uint64_t limit = c->hooks->cancel ? CANCEL_POLL_MS : 1000, now = wml_now_ns();
    if (c->deadline) limit = WML_MIN(limit, c->deadline > now ? (c->deadline - now) / 1000000 + 1 : 0);
    return (DWORD)limit;
}

/* Asked while it lives too: not every system knows it of a process that has ended. */
static void note_memory(struct child *c)
{
    PROCESS_MEMORY_COUNTERS m = {.cb = sizeof m};
    if (GetProcessMemoryInfo(c->process.hProcess, &m, sizeof m))
        c->result->peak_rss = WML_MAX(c->result->peak_rss, (uint64_t)m.PeakWorkingSetSize);
}

/* What NTSTATUS calls an error is an exception that nobody caught. */
static void judge(struct child *c)
{
    DWORD code = 0;
    note_memory(c);
    if (c->result->how != WML_CHILD_RUNNING) return; /* our own kill */
    GetExitCodeProcess(c->process.hProcess, &code);
    c->result->how = code >= 0xc0000000u ? WML_CHILD_SIGNAL : WML_CHILD_EXIT;
    c->result->status = code;
}

static void attend(struct child *c)
{
    HANDLE both[2] = {c->process.hProcess, c->wake};
    while (WaitForMultipleObjects(2, both, FALSE, wait_limit(c)) != WAIT_OBJECT_0) {
        hear(c);
        feed(c);
        wml_spawn_tell_quiet(&c->silence, c->hooks);
        note_memory(c);
        if (c->result->how != WML_CHILD_RUNNING) continue;
        if (c->hooks->cancel && atomic_load(c->hooks->cancel)) stop(c, WML_CHILD_CANCEL);
        else if (c->deadline && wml_now_ns() >= c->deadline) stop(c, WML_CHILD_TIMEOUT);
    }
    judge(c);
    TerminateJobObject(c->job, 1); /* whatever it started; the pipes have no other writer then */
}

/* The thread ends by itself once the other end is closed. Who still holds it open does not hold us. */
static void end_stream(struct stream *s)
{
    if (s->thread && WaitForSingleObject(s->thread, DRAIN_MS) != WAIT_OBJECT_0)
        do CancelSynchronousIo(s->thread);
        while (WaitForSingleObject(s->thread, 20) != WAIT_OBJECT_0);
    shut(&s->thread);
    shut(&s->pipe);
}

bool wml_child_run(const struct wml_spawn *s, const struct wml_child_hooks *hooks,
                   struct wml_child_result *result, struct wml_err *err)
{
    uint64_t begin = wml_now_ns();
    struct child c = {.s = s, .hooks = hooks, .result = result};
    InitializeSRWLock(&c.lock);
    *result = (struct wml_child_result){.output.max = (size_t)1 << 28};
    bool ok = start(&c, err);
    if (ok) {
        if (hooks->timeout_ms) c.deadline = wml_now_ns() + hooks->timeout_ms * 1000000;
        attend(&c);
    }
    end_stream(&c.in);
    end_stream(&c.out);
    end_stream(&c.channel);
    if (ok) hear(&c);
    size_t keep = s->keep_output ? s->keep_output : 65536;
    wml_spawn_keep_tail(&result->output, keep, keep);
    shut(&c.process.hThread);
    shut(&c.process.hProcess);
    shut(&c.job);
    shut(&c.wake);
    wml_buf_release(&c.in.got);
    wml_buf_release(&c.out.got);
    wml_buf_release(&c.channel.got);
    wml_buf_release(&c.line);
    wml_buf_release(&c.taken);
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
    static const struct {
        uint32_t code;
        const char *name;
    } names[] = {{0xc0000005, "access violation"}, {0xc00000fd, "stack overflow"}, {0xc000001d, "illegal instruction"},
                 {0xc0000094, "division by zero"}, {0xc0000409, "abort"},          {0xc0000374, "heap corruption"},
                 {0xc0000135, "a library is missing"}, {0xc000013a, "Ctrl-C"},     {0xc0000017, "out of memory"}};
    const char *name = NULL;
    for (size_t i = 0; i < WML_COUNT(names); i++)
        if (names[i].code == (uint64_t)r->status) name = names[i].name;
    if (r->how == WML_CHILD_TIMEOUT) wml_buf_cstr(out, "timeout");
    else if (r->how == WML_CHILD_CANCEL) wml_buf_cstr(out, "cancelled");
    else if (r->how == WML_CHILD_EXIT) wml_buf_fmt(out, "exit status %" PRId64, r->status);
    else {
        wml_buf_fmt(out, "exception 0x%08" PRIX64, (uint64_t)r->status);
        if (name) wml_buf_fmt(out, " (%s)", name);
    }
}
