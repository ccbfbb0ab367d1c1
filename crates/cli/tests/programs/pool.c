/* Allocates from luma's pool, which it finds where it is preloaded, and ends in the way that is asked for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* Ends on a stack for handlers of signals, below which nobody may write. */
static void end_on_small_stack(size_t size) {
    const size_t guard = 65536;
    char *memory = mmap(NULL, guard + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t small = {.ss_sp = memory + guard, .ss_size = size};
    struct sigaction action = {.sa_handler = end_in_handler, .sa_flags = SA_ONSTACK};
    if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0 || sigaltstack(&small, NULL) != 0)
        exit(30);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    *(void **)&allocate = dlsym(RTLD_DEFAULT, "luma_alloc");
    *(void **)&release = dlsym(RTLD_DEFAULT, "luma_free");
    if (allocate == NULL || release == NULL) {
        puts("no luma");
        return 20;
    }
    /* The size that is usual. */
    if (strcmp(how, "small stack first") == 0)
        end_on_small_stack(8192);
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
    /* Twice that: luma as it is tested is not optimized. */
    if (strcmp(how, "small stack") == 0)
        end_on_small_stack(16384);
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
