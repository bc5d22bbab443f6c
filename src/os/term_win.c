/* Terminal, Ctrl-C and arguments on Windows. */
#include "os/sys.h"

#include <fcntl.h>
#include <io.h>
#include "base/arena.h"
#include "base/num.h"
#include "os/file.h"
#include "os/wide.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <shellapi.h>

static HANDLE handle_of(int fd)
{
    return GetStdHandle(fd == 2 ? STD_ERROR_HANDLE : STD_OUTPUT_HANDLE);
}

bool wml_term_is(int fd)
{
    DWORD mode;
    return GetConsoleMode(handle_of(fd), &mode) != 0;
}

unsigned wml_term_width(int fd)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    struct wml_buf columns = {0};
    uint64_t n = 0;
    if (GetConsoleScreenBufferInfo(handle_of(fd), &info) && info.srWindow.Right > info.srWindow.Left)
        return (unsigned)(info.srWindow.Right - info.srWindow.Left + 1);
    if (!wml_env("COLUMNS", &columns) || !wml_parse_u64(wml_buf_view(&columns), &n) || n < 20 || n > 1000) n = 80;
    wml_buf_release(&columns);
    return (unsigned)n;
}

void wml_term_prepare(void)
{
    SetConsoleOutputCP(CP_UTF8);
    for (int fd = 1; fd <= 2; fd++) {
        DWORD mode;
        if (GetConsoleMode(handle_of(fd), &mode))
            SetConsoleMode(handle_of(fd), mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
}

/* A console takes UTF-16 whatever its code page is. */
static void write_console(HANDLE h, struct wml_str bytes)
{
    while (bytes.len) {
        wchar_t wide[1024];
        size_t n = WML_MIN(bytes.len, (size_t)1000);
        /* Not through the middle of a character. */
        while (n < bytes.len && n > 1 && ((unsigned char)bytes.ptr[n] & 0xc0) == 0x80) n--;
        int units = MultiByteToWideChar(CP_UTF8, 0, bytes.ptr, (int)n, wide, (int)WML_COUNT(wide));
        DWORD done;
        if (units <= 0 || !WriteConsoleW(h, wide, (DWORD)units, &done, NULL)) return;
        bytes = wml_str_sub(bytes, n, bytes.len);
    }
}

void wml_term_write(int fd, struct wml_str bytes)
{
    HANDLE h = handle_of(fd);
    DWORD done, mode;
    if (GetConsoleMode(h, &mode)) {
        write_console(h, bytes);
        return;
    }
    while (bytes.len) {
        if (!WriteFile(h, bytes.ptr, (DWORD)WML_MIN(bytes.len, (size_t)1 << 30), &done, NULL) || !done) return;
        bytes = wml_str_sub(bytes, done, bytes.len);
    }
}

/* State of the process: a handler can be handed nothing. */
static atomic_bool interrupted;

static BOOL WINAPI on_event(DWORD event)
{
    if (event == CTRL_CLOSE_EVENT || event == CTRL_SHUTDOWN_EVENT || event == CTRL_LOGOFF_EVENT ||
        atomic_exchange(&interrupted, true)) {
        wml_out_remove_all();
        TerminateProcess(GetCurrentProcess(), 130);
    }
    return TRUE;
}

static _Atomic(const char *) fatal_document;

static LONG WINAPI on_fatal(EXCEPTION_POINTERS *e)
{
    const char *document = atomic_load(&fatal_document);
    (void)e;
    wml_term_write(2, WML_STR("\nError: stopped by an exception, in winml or in ONNX Runtime; unfinished files were removed\n"
                              "Hint: where running the model is to blame, --no-verify does without it\n"));
    if (document) wml_term_write(1, wml_str(document));
    wml_out_remove_all();
    return EXCEPTION_CONTINUE_SEARCH;
}

void wml_fatal_watch(const char *document)
{
    atomic_store(&fatal_document, document);
    SetUnhandledExceptionFilter(on_fatal);
}

const atomic_bool *wml_interrupt_watch(void)
{
    SetConsoleCtrlHandler(on_event, TRUE);
    return &interrupted;
}

char **wml_args_utf8(int *argc, char **argv)
{
    int n = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
    if (!wide) return argv;
    char **args = wml_xcalloc((size_t)n + 1, sizeof *args);
    for (int i = 0; i < n; i++) {
        struct wml_buf text = {0};
        wml_narrow(wide[i], &text);
        args[i] = wml_xstrdup(wml_buf_text(&text));
        wml_buf_release(&text);
    }
    LocalFree(wide);
    *argc = n;
    return args;
}

void wml_stdio_prepare(void)
{
    _setmode(0, _O_BINARY);
    _setmode(1, _O_BINARY);
    _setmode(2, _O_BINARY);
}
