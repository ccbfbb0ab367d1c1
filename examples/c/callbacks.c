/* A pool over memory of your own: shared memory, another vendor's device, a file, or, as here, the
 * C library. luma asks in large pieces, and cuts and joins blocks inside them. */
#define _POSIX_C_SOURCE 200112L
#include <luma.h>

#include <stdio.h>
#include <stdlib.h>

#define ALIGNMENT ((size_t)2 << 20)

/* luma calls from any thread, but never with a lock of its own held. This program has one thread;
 * with more, the counters would need a mutex. */
struct source {
    size_t held, calls;
};

static void *source_alloc(size_t bytes, void *user) {
    struct source *source = user;
    void *ptr = NULL;
    if (posix_memalign(&ptr, ALIGNMENT, bytes) != 0) {
        return NULL; /* luma then tries to make room, and fails with a message if it cannot */
    }
    source->held += bytes;
    source->calls += 1;
    printf("  source gives  %8zu bytes\n", bytes);
    return ptr;
}

static void source_free(void *ptr, size_t bytes, void *user) {
    struct source *source = user;
    source->held -= bytes;
    printf("  source gets   %8zu bytes back\n", bytes);
    free(ptr);
}

int main(void) {
    struct source source = {0, 0};
    luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
    luma_pool_t *pool = NULL;
    void *blocks[1000];
    size_t i, returned;

    config.backend = LUMA_BACKEND_CALLBACKS;
    config.alloc_fn = source_alloc;
    config.free_fn = source_free;
    config.user = &source;
    if (luma_pool_create(&config, &pool) != LUMA_SUCCESS) {
        fprintf(stderr, "luma_pool_create: %s\n", luma_last_error());
        return 1;
    }

    printf("1000 blocks of up to 10 KiB:\n");
    for (i = 0; i < 1000; ++i) {
        blocks[i] = luma_pool_alloc(pool, 1 + (i * 7919) % 10240, 0, NULL);
        if (blocks[i] == NULL) {
            fprintf(stderr, "luma_pool_alloc: %s\n", luma_last_error());
            return 1;
        }
    }
    printf("took %zu calls of the source, %zu bytes\n", source.calls, source.held);

    for (i = 0; i < 1000; ++i) {
        if (luma_pool_free(pool, blocks[i], NULL) != LUMA_SUCCESS) {
            fprintf(stderr, "luma_pool_free: %s\n", luma_last_error());
            return 1;
        }
    }
    printf("freed, and %zu bytes are kept for later; emptying the cache:\n", source.held);
    returned = luma_pool_empty_cache(pool);
    printf("%zu bytes went back, %zu are held\n", returned, source.held);

    if (luma_pool_destroy(pool) != LUMA_SUCCESS) {
        fprintf(stderr, "luma_pool_destroy: %s\n", luma_last_error());
        return 1;
    }
    return source.held == 0 ? 0 : 1;
}
