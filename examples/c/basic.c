/* Allocate, free, look at the numbers, and see what a mistake says.
 *
 * luma_alloc gives memory of the current device: CUDA memory where there is a GPU, host memory
 * where there is none. Nothing here reads or writes it, so both will do. */
#include <luma.h>

#include <inttypes.h>
#include <stdio.h>

static int show(const char *when) {
    luma_stats_t stats = LUMA_STATS_INIT;
    if (luma_stats(&stats) != LUMA_SUCCESS) {
        fprintf(stderr, "luma_stats: %s\n", luma_last_error());
        return 1;
    }
    printf("%-18s %2" PRIu64 " live blocks, %8" PRIu64 " bytes allocated, %8" PRIu64
           " reserved in %" PRIu64 " segment(s)\n",
           when, stats.live_blocks, stats.allocated_bytes, stats.reserved_bytes, stats.segments);
    return 0;
}

int main(void) {
    void *weights, *activations, *again;

    printf("luma %s\n", luma_version());

    /* NULL means failure (or a request for 0 bytes); the reason waits in luma_last_error. */
    weights = luma_alloc(1000000);
    activations = luma_alloc(300000);
    if (weights == NULL || activations == NULL) {
        fprintf(stderr, "luma_alloc: %s\n", luma_last_error());
        return 1;
    }
    printf("1000000 bytes asked for, %zu usable\n", luma_usable_size(weights));
    if (show("two blocks:") != 0) {
        return 1;
    }

    /* A freed block stays with the pool, so that the next request costs no driver call. */
    luma_free(activations);
    again = luma_alloc(300000);
    printf("the next 300000 bytes %s\n",
           again == activations ? "are the same block again" : "are another block");
    luma_free(again);
    luma_free(weights);
    if (show("both freed:") != 0) {
        return 1;
    }

    /* A wrong free changes nothing and says what was wrong. */
    if (luma_free(weights) == LUMA_SUCCESS) {
        fprintf(stderr, "a second free of the same block went through\n");
        return 1;
    }
    printf("freed twice: %s: %s\n", luma_status_string((int)luma_last_status()),
           luma_last_error());

    printf("emptying the cache gave %zu bytes back\n", luma_empty_cache());
    return show("cache emptied:");
}
