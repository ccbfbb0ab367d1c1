/* Typed views over untyped blocks. A pool hands out bytes; which type they hold is the program's
 * business, and may change from one use of the same memory to the next. Here f32 and f64 arrays
 * live in one pool of host memory, and the memory of the one becomes the other's. */
#include <luma.h>

#include <stdint.h>
#include <stdio.h>

/* A view: whose memory, how many elements, of which type. */
typedef struct f32_view {
    float *data;
    size_t count;
} f32_view;

typedef struct f64_view {
    double *data;
    size_t count;
} f64_view;

/* `count` elements of `size` bytes, or NULL; the product must not wrap. */
static void *array_of(luma_pool_t *pool, size_t count, size_t size) {
    void *block;
    if (count > SIZE_MAX / size) {
        fprintf(stderr, "%zu elements of %zu bytes are more than there can be\n", count, size);
        return NULL;
    }
    block = luma_pool_alloc(pool, count * size, 0, NULL);
    if (block == NULL) {
        fprintf(stderr, "luma_pool_alloc: %s\n", luma_last_error());
    }
    return block;
}

static f32_view f32_array(luma_pool_t *pool, size_t count) {
    f32_view view = {NULL, 0};
    view.data = array_of(pool, count, sizeof(float));
    view.count = view.data != NULL ? count : 0;
    return view;
}

static f64_view f64_array(luma_pool_t *pool, size_t count) {
    f64_view view = {NULL, 0};
    view.data = array_of(pool, count, sizeof(double));
    view.count = view.data != NULL ? count : 0;
    return view;
}

int main(void) {
    luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
    luma_pool_t *pool = NULL;
    f32_view samples;
    f64_view sums, wide;
    void *first;
    float total32 = 0.0F;
    size_t i;

    config.backend = LUMA_BACKEND_HOST; /* the host reads and writes these blocks itself */
    if (luma_pool_create(&config, &pool) != LUMA_SUCCESS) {
        fprintf(stderr, "luma_pool_create: %s\n", luma_last_error());
        return 1;
    }

    samples = f32_array(pool, 100000);
    sums = f64_array(pool, 100000);
    if (samples.data == NULL || sums.data == NULL) {
        return 1;
    }

    /* Running sums of 0.1f: in f32 the rounding errors add up, in f64 they hardly do. */
    for (i = 0; i < samples.count; ++i) {
        samples.data[i] = 0.1F;
        total32 += samples.data[i];
        sums.data[i] = (i == 0 ? 0.0 : sums.data[i - 1]) + (double)samples.data[i];
    }
    printf("sum of %zu times 0.1f: %.4f in f32, %.4f in f64\n", samples.count, (double)total32,
           sums.data[sums.count - 1]);

    /* 100000 f32 are the bytes of 50000 f64: the same block serves both, one after the other. */
    first = samples.data;
    if (luma_pool_free(pool, samples.data, NULL) != LUMA_SUCCESS) {
        fprintf(stderr, "luma_pool_free: %s\n", luma_last_error());
        return 1;
    }
    wide = f64_array(pool, samples.count / 2);
    if (wide.data == NULL) {
        return 1;
    }
    for (i = 0; i < wide.count; ++i) {
        wide.data[i] = (double)i;
    }
    printf("%zu f64 %s; the last is %.1f\n", wide.count,
           (void *)wide.data == first ? "lie where the f32 were" : "lie in a block of their own",
           wide.data[wide.count - 1]);

    if (luma_pool_free(pool, wide.data, NULL) != LUMA_SUCCESS ||
        luma_pool_free(pool, sums.data, NULL) != LUMA_SUCCESS ||
        luma_pool_destroy(pool) != LUMA_SUCCESS) {
        fprintf(stderr, "%s\n", luma_last_error());
        return 1;
    }
    return 0;
}
