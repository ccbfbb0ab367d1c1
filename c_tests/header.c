/* The header alone, twice; and every function is there to be linked, by either library. */
#include "luma.h"
#include "luma.h"

typedef void (*function_t)(void);

static const function_t FUNCTIONS[] = {
    (function_t)luma_add_oom_handler,
    (function_t)luma_alloc,
    (function_t)luma_alloc_aligned,
    (function_t)luma_alloc_async,
    (function_t)luma_check,
    (function_t)luma_check_plan,
    (function_t)luma_default_pool,
    (function_t)luma_device_reset,
    (function_t)luma_empty_cache,
    (function_t)luma_free,
    (function_t)luma_free_async,
    (function_t)luma_init,
    (function_t)luma_last_error,
    (function_t)luma_last_status,
    (function_t)luma_memory_info,
    (function_t)luma_oom_report,
    (function_t)luma_place,
    (function_t)luma_plan_edges,
    (function_t)luma_plan_free,
    (function_t)luma_plan_spills,
    (function_t)luma_plan_view,
    (function_t)luma_pool_alloc,
    (function_t)luma_pool_check,
    (function_t)luma_pool_create,
    (function_t)luma_pool_destroy,
    (function_t)luma_pool_empty_cache,
    (function_t)luma_pool_free,
    (function_t)luma_pool_is_host_accessible,
    (function_t)luma_pool_set_limit,
    (function_t)luma_pool_stats,
    (function_t)luma_record_stream,
    (function_t)luma_release_stream,
    (function_t)luma_remove_oom_handler,
    (function_t)luma_reset_peak,
    (function_t)luma_set_log_callback,
    (function_t)luma_spill_cycles,
    (function_t)luma_spill_extra_bytes,
    (function_t)luma_stats,
    (function_t)luma_status_string,
    (function_t)luma_torch_alloc,
    (function_t)luma_torch_empty_cache,
    (function_t)luma_torch_free,
    (function_t)luma_torch_record_stream,
    (function_t)luma_torch_set_memory_fraction,
    (function_t)luma_usable_size,
    (function_t)luma_version,
    (function_t)plan_spills,
};

int main(void) {
  size_t at;
  for (at = 0; at < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; at++) {
    if (FUNCTIONS[at] == NULL) {
      return 1;
    }
  }
  return 0;
}
