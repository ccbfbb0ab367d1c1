/* Log messages: to the callback, of the right level, and a callback may call luma. */
#include "check.h"

typedef struct listener_t {
  int count;
  int most_level;
  char last[1024];
  int calls_luma;
} listener_t;

static void listen_to(int level, const char *message, void *user) {
  listener_t *listener = (listener_t *)user;
  CHECK(level >= 1 && level <= 4 && message != NULL && message[0] != '\0');
  listener->count++;
  listener->most_level = level > listener->most_level ? level : listener->most_level;
  snprintf(listener->last, sizeof listener->last, "%s", message);
  if (listener->calls_luma) {
    OK(luma_free(must_alloc(1000)));
    REFUSED(luma_alloc(SIZE_MAX / 2), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
    CHECK(stats_now().segments >= 1);
    OK(luma_check());
    luma_set_log_callback(listen_to, user);
    CHECK(luma_last_status() == LUMA_SUCCESS);
  }
}

static void destroy_with_live_blocks(int blocks) {
  luma_pool_config_t config = host_config(MIB);
  luma_pool_t *pool = must_create(&config);
  while (blocks-- > 0) {
    CHECK(must_pool_alloc(pool, 100) != NULL);
  }
  OK(luma_pool_destroy(pool));
}

/* The messages of a pool that ends with live blocks: in checked mode one for each block, too. */
static int messages_about(int blocks) { return getenv("LUMA_DEBUG") == NULL ? 1 : blocks + 1; }

static listener_t one, two;

int main(void) {
  int before;
  luma_set_log_callback(listen_to, &one);
  CHECK(luma_last_status() == LUMA_SUCCESS);

  /* Which backend was taken. */
  OK(luma_free(must_alloc(1)));
  CHECK(one.count == 1 && one.most_level == 3 && strstr(one.last, "host") != NULL);

  /* Blocks that a program forgot are a warning; none is nothing to tell. */
  destroy_with_live_blocks(0);
  CHECK(one.count == 1);
  one.most_level = 0;
  destroy_with_live_blocks(7);
  CHECK(one.count == 1 + messages_about(7) && one.most_level == 2);
  CHECK(strstr(one.last, "7 live blocks") != NULL);
  before = one.count;

  /* A refusal is information: the caller hears of it anyway. */
  one.most_level = 0;
  REFUSED(luma_alloc(SIZE_MAX / 4), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  CHECK(one.count == before + 1 && one.most_level == 3 && strcmp(one.last, luma_last_error()) == 0);

  /* What a callback does inside is not told to it again. */
  one.calls_luma = 1;
  REFUSED(luma_alloc(SIZE_MAX / 4), LUMA_ERROR_OUT_OF_MEMORY, "out of memory");
  CHECK(one.count == before + 2);
  CHECK(luma_last_status() == LUMA_ERROR_OUT_OF_MEMORY && strcmp(one.last, luma_last_error()) == 0);
  one.calls_luma = 0;

  /* Another one takes its place, and none. */
  luma_set_log_callback(listen_to, &two);
  destroy_with_live_blocks(1);
  CHECK(one.count == before + 2 && two.count == messages_about(1));
  luma_set_log_callback(NULL, NULL);
  destroy_with_live_blocks(1);
  CHECK(one.count == before + 2 && two.count == messages_about(1));
  return 0;
}
