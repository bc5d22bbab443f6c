/* The child's side of os/spawn.h on Windows. */
#include "os/spawn.h"

#include "base/num.h"
#include "os/fail.h"
#include "os/sys.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#define CHANNEL_ENV "WINML_CHANNEL"
enum { PIECE = 65536 };

bool wml_channel_open(intptr_t *channel)
{
    struct wml_buf text = {0};
    int64_t n = 0;
    *channel = 0;
    bool ok = wml_env(CHANNEL_ENV, &text) && wml_parse_i64(wml_buf_view(&text), &n) && n > 0 &&
              GetFileType((HANDLE)(intptr_t)n) == FILE_TYPE_PIPE;
    wml_buf_release(&text);
    wml_env_set(CHANNEL_ENV, NULL);
    if (!ok) return false;
    SetHandleInformation((HANDLE)(intptr_t)n, HANDLE_FLAG_INHERIT, 0);
    /* A crash is told to the parent by the exit code; no dialog may wait for a user. */
    SetErrorMode(GetErrorMode() | SEM_NOGPFAULTERRORBOX | SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX);
    *channel = (intptr_t)n;
    return true;
}

bool wml_channel_write(intptr_t channel, struct wml_str bytes)
{
    while (bytes.len) {
        DWORD done = 0;
        if (!WriteFile((HANDLE)channel, bytes.ptr, (DWORD)WML_MIN(bytes.len, (size_t)1 << 20), &done, NULL)) return false;
        bytes = wml_str_sub(bytes, done, bytes.len);
    }
    return true;
}

bool wml_stdin_read(struct wml_buf *out, uint64_t max, struct wml_err *err)
{
    char piece[PIECE];
    DWORD n = 0;
    for (;;) {
        if (!ReadFile(GetStdHandle(STD_INPUT_HANDLE), piece, sizeof piece, &n, NULL)) {
            DWORD code = GetLastError();
            if (code == ERROR_BROKEN_PIPE || code == ERROR_HANDLE_EOF) return true;
            return wml_fail_system(err, (int)code, "read", "standard input");
        }
        if (!n) return true;
        if (out->len + n > max) return wml_fail(err, WML_E_FORMAT, "standard input is too long");
        wml_buf_add(out, piece, n);
    }
}

/* A console gives lines as UTF-16. */
static bool console_line(HANDLE in, struct wml_buf *out)
{
    wchar_t piece[1024];
    DWORD n = 0;
    if (!ReadConsoleW(in, piece, WML_COUNT(piece) - 1, &n, NULL) || !n || piece[0] == 0x1a) return false; /* Ctrl-Z ends the input */
    while (n && (piece[n - 1] == L'\n' || piece[n - 1] == L'\r')) n--;
    piece[n] = 0;
    wml_narrow(piece, out);
    return true;
}

bool wml_stdin_line(struct wml_buf *out, size_t max, const atomic_bool *cancel)
{
    HANDLE in = GetStdHandle(STD_INPUT_HANDLE);
    DWORD mode = 0, n = 0;
    bool any = false;
    char c;
    if (GetConsoleMode(in, &mode)) return console_line(in, out) && !(cancel && atomic_load(cancel));
    while (out->len < max && (!cancel || !atomic_load(cancel))) {
        if (!ReadFile(in, &c, 1, &n, NULL) || !n) return any;
        any = true;
        if (c == '\n') return true;
        if (c != '\r') wml_buf_char(out, c);
    }
    return any;
}

void wml_exit_now(int status)
{
    fflush(NULL);
    /* ExitProcess would run the detach code of every library. */
    TerminateProcess(GetCurrentProcess(), (UINT)status);
    _exit(status);
}
