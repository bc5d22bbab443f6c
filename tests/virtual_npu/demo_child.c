/* demo_child.c - runs this program again and tells how it ended: the faults that end a process need
 * one. */
#define _POSIX_C_SOURCE 200809L

#include "demo_child.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(_WIN32)

#include <process.h>
#include <windows.h>

enum demo_end demo_child(const char *const *argv, unsigned limit_ms, int *code)
{
    intptr_t h = _spawnv(_P_NOWAIT, argv[0], argv);
    DWORD status = 0;
    *code = -1;
    if (h == -1) return DEMO_EXITED;
    if (WaitForSingleObject((HANDLE)h, limit_ms) == WAIT_TIMEOUT) {
        TerminateProcess((HANDLE)h, 1);
        CloseHandle((HANDLE)h);
        return DEMO_HUNG;
    }
    GetExitCodeProcess((HANDLE)h, &status);
    CloseHandle((HANDLE)h);
    *code = (int)status;
    if (status == EXCEPTION_ACCESS_VIOLATION) return DEMO_CRASHED;
    return status == 9 ? DEMO_KILLED : DEMO_EXITED; /* abort() ends with exit code 3 here */
}

#else

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum demo_end demo_child(const char *const *argv, unsigned limit_ms, int *code)
{
    int status = 0;
    bool done = false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char *copy[8] = {NULL};
        for (size_t i = 0; i < 7 && argv[i] != NULL; i++) {
            copy[i] =
                malloc(4096); /* execv wants writable strings; the child has no time to leak */
            if (copy[i] != NULL) snprintf(copy[i], 4096, "%s", argv[i]);
        }
        execv(copy[0], copy);
        _exit(127);
    }
    for (unsigned waited = 0; !done && waited < limit_ms; waited += 5) {
        struct timespec t = {.tv_nsec = 5000000};
        done = waitpid(pid, &status, WNOHANG) == pid;
        if (!done) nanosleep(&t, NULL);
    }
    *code = -1;
    if (!done) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        return DEMO_HUNG;
    }
    if (WIFSIGNALED(status)) {
        *code = WTERMSIG(status);
        return *code == SIGKILL ? DEMO_KILLED : *code == SIGABRT ? DEMO_ABORTED : DEMO_CRASHED;
    }
    *code = WEXITSTATUS(status);
    return DEMO_EXITED;
}

#endif
