/* One default pool of managed memory, which luma_init makes: it is that of one device. */
#include "driver.h"

int main(void) {
  luma_pool_config_t config = LUMA_POOL_CONFIG_INIT;
  int count, last;
  unsigned char *block;
  start_driver();
  DRIVER(device_count(&count));
  last = count - 1;
  config.backend = LUMA_BACKEND_CUDA_MANAGED;
  config.device = last;
  OK(luma_init(&config));
  CHECK(luma_default_pool(last) == luma_default_pool(LUMA_CURRENT_DEVICE));
  DRIVER(set_current(primary_context(last)));
  block = must_alloc(3 * MIB);
  use(block, 3 * MIB, 1);
  if (count > 1) {
    REFUSED(luma_default_pool(0), LUMA_ERROR_NO_DEVICE, "device 0 has no default pool");
    OK(luma_device_reset(0));
  }
  FAILS(luma_device_reset(count), LUMA_ERROR_NO_DEVICE, "there is no device");
  CHECK(stats_now().live_blocks == 1 && holds(block, 3 * MIB, 1));
  DRIVER(primary_reset(last));
  OK(luma_device_reset(last));
  CHECK(stats_now().live_blocks == 0 && stats_now().reserved_bytes == 0);
  DRIVER(set_current(primary_context(last)));
  block = must_alloc(3 * MIB);
  use(block, 3 * MIB, 2);
  OK(luma_free(block));
  return 0;
}
