/* Default pools of CUDA: one a device, one a further context, and the caller's current context as it was
 * after every call. Wants a driver with at least one device; says what it skips where there is only one. */
#include "driver.h"

#include <pthread.h>

/* Every call of the default pools, in whatever context is current. */
static void call_everything(void) {
  context_t before = current_context();
  size_t free_bytes, total;
  void *block = luma_alloc(3 * MIB), *aligned = luma_alloc_aligned(1000, 4 * MIB);
  CHECK(block != NULL && aligned != NULL && is_aligned(aligned, 4 * MIB));
  CHECK(current_context() == before);
  CHECK(luma_usable_size(block) >= 3 * MIB);
  OK(luma_check());
  OK(luma_memory_info(&free_bytes, &total));
  CHECK(0 < free_bytes && free_bytes < total);
  OK(luma_free(block));
  OK(luma_free(aligned));
  CHECK(stats_now().live_blocks == 0);
  OK(luma_reset_peak());
  REFUSED(luma_alloc(SIZE_MAX / 2), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  CHECK(says("the cuda device has") && says(" free of "));
  CHECK(luma_empty_cache() > 0 && stats_now().reserved_bytes == 0);
  CHECK(luma_default_pool(LUMA_CURRENT_DEVICE) != NULL);
  CHECK(current_context() == before);
}

/* Nothing current: device 0, whose primary context is made and not left current. */
static void without_a_context(void) {
  void *block;
  CHECK(current_context() == NULL);
  call_everything();
  CHECK(is_active(0));
  block = must_alloc(1000);
  CHECK(luma_default_pool(0) == luma_default_pool(LUMA_CURRENT_DEVICE));
  CHECK(pool_stats_now(luma_default_pool(0)).live_blocks == 1);
  OK(luma_free(block));
}

static void in_the_primary_context(void) {
  luma_pool_t *before = luma_default_pool(0);
  unsigned char *block;
  DRIVER(set_current(primary_context(0)));
  call_everything();
  CHECK(luma_default_pool(LUMA_CURRENT_DEVICE) == before);
  block = must_alloc(5 * MIB + 1);
  use(block, 5 * MIB + 1, 7);
  OK(luma_free(block));
}

/* A context of one's own has a pool of its own; its blocks are freed from anywhere. */
static void in_a_context_of_its_own(void) {
  context_t own, primary = primary_context(0);
  luma_pool_t *pool;
  void *here, *there;
  DRIVER(context_create(&own, 0, 0));
  CHECK(current_context() == own);
  call_everything();
  pool = luma_default_pool(LUMA_CURRENT_DEVICE);
  CHECK(pool != NULL && pool != luma_default_pool(0));
  here = must_alloc(1000);
  CHECK(pool_stats_now(pool).live_blocks == 1);
  CHECK(pool_stats_now(luma_default_pool(0)).live_blocks == 0);
  DRIVER(set_current(primary));
  there = must_alloc(2000);
  CHECK(pool_stats_now(luma_default_pool(0)).live_blocks == 1);
  CHECK(luma_usable_size(here) == 1024 && luma_usable_size(there) == 2048);
  OK(luma_free(here));
  DRIVER(set_current(own));
  OK(luma_free(there));
  FAILS(luma_free(there), LUMA_ERROR_INVALID_POINTER, "free already");
  FAILS(luma_free(&own), LUMA_ERROR_INVALID_POINTER, "not from this pool");
  CHECK(pool_stats_now(pool).live_blocks == 0);
  (void)luma_empty_cache();
  DRIVER(set_current(primary));
}

/* A context that is destroyed takes its memory along; the next one under its handle begins anew. */
static void in_a_context_that_is_destroyed(void) {
  int round;
  context_t primary = primary_context(0);
  for (round = 0; round < 5; round++) {
    context_t own;
    unsigned char *block;
    DRIVER(context_create(&own, 0, 0));
    CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
    block = must_alloc(5 * MIB);
    use(block, 5 * MIB, (unsigned char)round);
    OK(luma_check());
    DRIVER(context_destroy(own));
    DRIVER(set_current(primary));
  }
}

static void *free_without_a_context(void *block) {
  CHECK(current_context() == NULL);
  OK(luma_free(block));
  CHECK(current_context() == NULL);
  return NULL;
}

static void *allocate_without_a_context(void *unused) {
  (void)unused;
  CHECK(current_context() == NULL);
  call_everything();
  CHECK(current_context() == NULL);
  return NULL;
}

static void in_a_thread(void *(*body)(void *), void *argument) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, body, argument) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

static void on_two_devices(void) {
  context_t contexts[2];
  void *blocks[2];
  int device;
  for (device = 0; device < 2; device++) {
    contexts[device] = primary_context(device);
    DRIVER(set_current(contexts[device]));
    call_everything();
    blocks[device] = must_alloc(1000);
    CHECK(luma_default_pool(LUMA_CURRENT_DEVICE) == luma_default_pool(device));
    CHECK(pool_stats_now(luma_default_pool(device)).live_blocks == 1);
  }
  CHECK(luma_default_pool(0) != luma_default_pool(1));
  /* Each under the other device, then from a thread that has none. */
  DRIVER(set_current(contexts[1]));
  OK(luma_free(blocks[0]));
  in_a_thread(free_without_a_context, blocks[1]);
  for (device = 0; device < 2; device++) {
    CHECK(pool_stats_now(luma_default_pool(device)).live_blocks == 0);
  }
  DRIVER(set_current(contexts[0]));
}

int main(void) {
  int count;
  start_driver();
  DRIVER(device_count(&count));
  REFUSED(luma_default_pool(count), LUMA_ERROR_NO_DEVICE, "the CUDA driver counts");
  without_a_context();
  /* One device's pool makes no context on another. */
  CHECK(count < 2 || !is_active(1));
  in_the_primary_context();
  in_a_thread(allocate_without_a_context, NULL);
  in_a_context_of_its_own();
  in_a_context_that_is_destroyed();
  if (count >= 2) {
    on_two_devices();
  } else {
    puts("SKIPPED: on_two_devices: there is one device");
  }
  REFUSED(luma_default_pool(count), LUMA_ERROR_NO_DEVICE, "there is no device");
  REFUSED(luma_default_pool(-2), LUMA_ERROR_NO_DEVICE, "there is no device -2");
  FAILS(luma_device_reset(count), LUMA_ERROR_NO_DEVICE, "there is no device");
  return 0;
}
