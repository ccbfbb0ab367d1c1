/* Running out of memory: a limit, a handler that makes room, and the message when nothing helps. */
#include <luma.h>

#include <stdio.h>

#define MIB ((size_t)1 << 20)

/* What this program could compute again if it had to. */
struct cache {
    luma_pool_t *pool;
    void *block;
};

/* Called before an allocation fails, with no lock of luma's held. Non-zero: something was freed,
 * try again. */
static int drop_cache(size_t bytes, void *user) {
    struct cache *cache = user;
    if (cache->block == NULL) {
        printf("handler: %zu bytes are wanted, but there is nothing left to drop\n", bytes);
        return 0;
    }
    printf("handler: %zu bytes are wanted, dropping the cache\n", bytes);
    if (luma_pool_free(cache->pool, cache->block, NULL) != LUMA_SUCCESS) {
        return 0;
    }
    cache->block = NULL;
    return 1;
}

static int failed(const char *call) {
    fprintf(stderr, "%s: %s\n", call, luma_last_error());
    return 1;
}

int main(void) {
    luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
    struct cache cache = {NULL, NULL};
    void *batch;

    config.memory_limit = 64 * MIB;
    if (luma_pool_create(&config, &cache.pool) != LUMA_SUCCESS) {
        return failed("luma_pool_create");
    }
    if (luma_add_oom_handler(drop_cache, &cache) != LUMA_SUCCESS) {
        return failed("luma_add_oom_handler");
    }

    cache.block = luma_pool_alloc(cache.pool, 40 * MIB, 0, NULL);
    if (cache.block == NULL) {
        return failed("luma_pool_alloc");
    }
    printf("a cache of 40 MiB under a limit of 64 MiB\n");

    /* 40 + 48 MiB are more than the limit, so the handler has to help. */
    batch = luma_pool_alloc(cache.pool, 48 * MIB, 0, NULL);
    if (batch == NULL) {
        return failed("luma_pool_alloc");
    }
    printf("48 MiB were had after all\n");

    /* Now nothing can help, and the message says what there is and what can be done. */
    if (luma_pool_alloc(cache.pool, 48 * MIB, 0, NULL) != NULL) {
        fprintf(stderr, "96 MiB fitted under a limit of 64 MiB\n");
        return 1;
    }
    printf("%s\n", luma_last_error());

    /* A failed call changes nothing: what fits is still served. */
    if (luma_pool_free(cache.pool, batch, NULL) != LUMA_SUCCESS) {
        return failed("luma_pool_free");
    }
    batch = luma_pool_alloc(cache.pool, 64 * MIB, 0, NULL);
    if (batch == NULL) {
        return failed("luma_pool_alloc");
    }
    printf("the whole limit in one block: %zu MiB\n", 64 * MIB / MIB);

    if (luma_remove_oom_handler(drop_cache, &cache) != LUMA_SUCCESS) {
        return failed("luma_remove_oom_handler");
    }
    /* Gives everything back, the live block too. */
    return luma_pool_destroy(cache.pool) == LUMA_SUCCESS ? 0 : failed("luma_pool_destroy");
}
