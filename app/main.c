/* app/main.c - the program: a child process of winml itself, or the command line. */
#include "cli/cli.h"
#include "cmd/cmd.h"
#include "os/spawn.h"
#include "os/sys.h"
#include "worker/worker.h"

int main(int argc, char **argv)
{
    struct wml_ctx cx = {0};
    argv = wml_args_utf8(&argc, argv);
    if (argc > 1 && strcmp(argv[1], WML_WORKER_COMMAND) == 0) return wml_worker_main(&cx, argc, argv);
    const struct wml_program program = {
        .name = "winml",
        .version = WML_VERSION,
        .tagline = "From a model to a measured, verified artifact for NPU, GPU and CPU",
        .command = wml_commands,
        .n_commands = wml_n_commands,
        .absent = "analyze config eval serve",
    };
    int status = wml_cli_main(&program, &cx, argc, argv);
    /* Libraries of vendors that were loaded here must not change the status while they unload. */
    if (cx.ort) wml_exit_now(status);
    return status;
}
