/* Tells of each signal that it gets. Ends with SIGUSR2, and with the number of signals that came before. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGCHLD);
    /* Nothing is held back that was not before luma. */
    sigprocmask(SIG_BLOCK, &all, &before);
    for (int signal = 1; signal < 32; signal++)
        if (sigismember(&before, signal) == 1)
            return 40;
    if (count > 1 && strcmp(arguments[1], "leave") == 0)
        return 7;
    if (count > 1 && strcmp(arguments[1], "stop") == 0) {
        puts("stops");
        fflush(stdout);
        raise(SIGSTOP);
        puts("goes on");
        return 7;
    }
    puts("ready");
    fflush(stdout);
    if (count > 1 && strcmp(arguments[1], "group") == 0)
        kill(0, SIGUSR1);
    if (count > 1 && strcmp(arguments[1], "child") == 0 && fork() == 0) {
        kill(0, SIGUSR1);
        /* It is asked for while somebody may ask whose child it is. */
        sleep(5);
        _exit(0);
    }
    for (int got = 0;; got++) {
        int signal = 0;
        sigwait(&all, &signal);
        if (signal == SIGUSR2)
            return got;
        printf("got %d\n", signal);
        fflush(stdout);
    }
}
