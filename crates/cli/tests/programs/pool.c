/* Allocates from luma's pool, which it finds where it is preloaded, and ends in the way that is asked for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void *(*allocate)(size_t);
static void (*release)(void *);

/* So many blocks of 1 MiB, one after the other. Gives how many were refused. */
static int use(int count) {
    int refused = 0;
    for (int i = 0; i < count; i++) {
        void *block = allocate(1 << 20);
        refused += block == NULL;
        release(block);
    }
    return refused;
}

static void end_in_handler(int signal) {
    (void)signal;
    _exit(9);
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    *(void **)&allocate = dlsym(RTLD_DEFAULT, "luma_alloc");
    *(void **)&release = dlsym(RTLD_DEFAULT, "luma_free");
    if (allocate == NULL || release == NULL) {
        puts("no luma");
        return 20;
    }
    if (strcmp(how, "child first") == 0) {
        /* Both allocate, each for itself. */
        if (fork() == 0)
            exit(use(10));
        wait(NULL);
        return use(20);
    }
    if (strcmp(how, "huge") == 0) {
        void *block = allocate((size_t)1 << 40);
        return block != NULL;
    }
    if (use(100) != 0)
        return 21;
    if (strcmp(how, "_exit") == 0)
        _exit(3);
    if (strcmp(how, "_Exit") == 0)
        _Exit(4);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(5);
    if (strcmp(how, "fork") == 0) {
        if (fork() == 0)
            _exit(7);
        wait(NULL);
    }
    if (strcmp(how, "vfork") == 0) {
        if (vfork() == 0)
            _exit(7);
        wait(NULL);
        /* The parent goes on as if nothing were. */
        return use(11);
    }
    if (strcmp(how, "handler") == 0) {
        struct itimerval soon = {{0, 0}, {0, 2000}};
        signal(SIGALRM, end_in_handler);
        setitimer(ITIMER_REAL, &soon, NULL);
        for (;;)
            use(1);
    }
    return 0;
}
