/* The first use is on the last device: no other device gets a context. */
#include "driver.h"

int main(void) {
  int count, device;
  start_driver();
  DRIVER(device_count(&count));
  DRIVER(set_current(primary_context(count - 1)));
  OK(luma_free(must_alloc(1000)));
  CHECK(luma_default_pool(LUMA_CURRENT_DEVICE) == luma_default_pool(count - 1));
  for (device = 0; device < count - 1; device++) {
    CHECK(!is_active(device));
  }
  return 0;
}
