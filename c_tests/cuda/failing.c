/* Each call of the driver that the default pools make fails once, in every kind of context: the current
 * context is as it was, and the pool is the same and loses nothing. */
#include "driver.h"

static int (*fail)(const char *name, unsigned long long skip, int code, unsigned long long count);
static int (*fail_clear)(void);
static unsigned long long (*failed)(void);
static unsigned long long (*calls)(const char *name);

#define CONTROL(name) \
  do { \
    void *found = driver_function("fakecuda_" #name); \
    memcpy(&name, &found, sizeof found); \
  } while (0)

/* One round; 0: no call was left to fail. */
static int with_one_failure(context_t own, unsigned long long skip, int code, int is_filled) {
  unsigned long long before = failed();
  luma_pool_t *pool = luma_default_pool(LUMA_CURRENT_DEVICE);
  void *kept = must_alloc(3 * MIB), *block;
  size_t free_bytes, total;
  CHECK(pool != NULL);
  if (is_filled) {
    OK(luma_free(must_alloc(7 * MIB)));
  }
  CHECK(fail("*", skip, code, 1) == 0);
  block = luma_alloc(7 * MIB);
  CHECK(block != NULL || failed() > before);
  if (luma_memory_info(&free_bytes, &total) != LUMA_SUCCESS) {
    CHECK(failed() > before && luma_last_error()[0] != '\0');
  }
  if (block != NULL) {
    OK(luma_free(block));
  }
  (void)luma_empty_cache();
  (void)fail_clear();
  CHECK(current_context() == own);
  CHECK(luma_default_pool(LUMA_CURRENT_DEVICE) == pool);
  OK(luma_free(must_alloc(7 * MIB)));
  OK(luma_free(kept));
  OK(luma_check());
  (void)luma_empty_cache();
  CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
  CHECK(current_context() == own);
  return failed() > before;
}

static void in_context(context_t own) {
  static const int codes[] = {1, 2, 3, 700, 999};
  size_t code;
  int is_filled;
  for (code = 0; code < sizeof codes / sizeof *codes; code++) {
    for (is_filled = 0; is_filled < 2; is_filled++) {
      unsigned long long skip = 0;
      while (with_one_failure(own, skip, codes[code], is_filled)) {
        skip++;
      }
      CHECK(skip >= 5);
    }
  }
}

/* What the device cannot give is not taken from it bit by bit before that is seen. */
static void what_is_too_large(void) {
  size_t free_bytes, total;
  unsigned long long before;
  void *kept = must_alloc(64 * MIB);
  OK(luma_memory_info(&free_bytes, &total));
  before = calls("cuMemCreate");
  REFUSED(luma_alloc(free_bytes + 4 * MIB), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  CHECK(calls("cuMemCreate") < before + 8);
  OK(luma_free(kept));
  (void)luma_empty_cache();
}

int main(void) {
  context_t own, primary;
  start_driver();
  if (!has_driver_function("fakecuda_fail")) {
    puts("SKIPPED: this is a driver that cannot be made to fail");
    return 0;
  }
  CONTROL(fail);
  CONTROL(fail_clear);
  CONTROL(failed);
  CONTROL(calls);
  CHECK(current_context() == NULL);
  in_context(NULL);
  primary = primary_context(0);
  DRIVER(set_current(primary));
  in_context(primary);
  what_is_too_large();
  DRIVER(context_create(&own, 0, 0));
  in_context(own);
  return 0;
}
