/* Initialising, versions, error texts, devices and their attributes. */
#include "suite.h"

/* "If cuInit() has not been called, any function from the driver API will return
 * CUDA_ERROR_NOT_INITIALIZED." */
FRESH_RULE(calls_before_init_are_refused) {
  int count = 0;
  CUdevice device = 0;
  CUcontext context = NULL;
  CUdeviceptr block = 0;
  CUstream stream = NULL;
  CUevent event = NULL;
  void *host = NULL;
  size_t free_bytes, total_bytes;
  GIVES(cu.DeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.DeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.DevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.CtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.CtxCreate(&context, NULL, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.MemAlloc(&block, 1024), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.MemAllocHost(&host, 1024), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.MemGetInfo(&free_bytes, &total_bytes), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.StreamCreate(&stream, 0), CUDA_ERROR_NOT_INITIALIZED);
  GIVES(cu.EventCreate(&event, 0), CUDA_ERROR_NOT_INITIALIZED);
}

/* The version can be asked for without a driver that runs. */
FRESH_RULE(version_is_there_before_init) {
  int version = 0;
  OK(cu.DriverGetVersion(&version));
  CHECK(version >= 11020 && version < 100000);
  /* (1000 * major + 10 * minor) */
  SAME(version % 10, 0);
  GIVES(cu.DriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
}

/* "Currently, the Flags parameter must be 0." */
FRESH_RULE(init_takes_no_flags) {
  int count = 0;
  GIVES(cu.Init(1), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.DeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  OK(cu.Init(0));
  OK(cu.DeviceGetCount(&count));
}

/* "Repeated calls to cuInit() have no additional effect." */
FRESH_RULE(init_again_changes_nothing) {
  CUcontext context = NULL, again = NULL;
  OK(cu.Init(0));
  OK(cu.DevicePrimaryCtxRetain(&context, 0));
  OK(cu.CtxSetCurrent(context));
  CUdeviceptr block = must_alloc(1000);
  OK(cu.Init(0));
  OK(cu.CtxGetCurrent(&again));
  CHECK(again == context);
  OK(cu.MemFree(block));
}

static void CUDA_CB asks_for_the_count(void *argument) {
  int count = 0;
  *(CUresult *)argument = cu.DeviceGetCount(&count);
}

/* Initialising holds for the process, not for the thread. */
FRESH_RULE(init_holds_for_all_threads) {
  CUresult there = CUDA_ERROR_UNKNOWN;
  OK(cu.Init(0));
  on_a_thread(asks_for_the_count, &there);
  OK(there);
}

static void CUDA_CB asks_for_the_context(void *argument) {
  CUcontext context = (CUcontext)argument;
  OK(cu.CtxGetCurrent(&context));
  CHECK(context == NULL);
  CUdeviceptr block = 0;
  GIVES(cu.MemAlloc(&block, 1000), CUDA_ERROR_INVALID_CONTEXT);
}

/* The current context is a thread's own. */
RULE(a_new_thread_has_no_context) {
  CUcontext context = NULL;
  OK(cu.CtxGetCurrent(&context));
  CHECK(context != NULL);
  on_a_thread(asks_for_the_context, context);
  CUcontext after = NULL;
  OK(cu.CtxGetCurrent(&after));
  CHECK(after == context);
}

/* Errors have the names and the texts that the header's comments have. */
RULE(errors_have_names_and_texts) {
  static const struct {
    CUresult code;
    const char *name;
  } known[] = {
      {CUDA_SUCCESS, "CUDA_SUCCESS"},
      {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
      {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED"},
      {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
      {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
      {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
      {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
      {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY"},
      {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
      {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
      {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
      {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED"},
      {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
      {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"},
  };
  for (size_t at = 0; at < sizeof known / sizeof known[0]; at++) {
    const char *name = NULL, *text = NULL;
    OK(cu.GetErrorName(known[at].code, &name));
    CHECK(name != NULL);
    if (strcmp(name, known[at].name) != 0)
      suite_fail(__FILE__, __LINE__, "%s is called %s", known[at].name, name);
    OK(cu.GetErrorString(known[at].code, &text));
    CHECK(text != NULL && text[0] != '\0');
  }
}

/* "If the error code is not recognized, CUDA_ERROR_INVALID_VALUE will be returned and *pStr will be
 * set to the NULL address." */
RULE(unknown_errors_have_none) {
  const char *name = "before", *text = "before";
  GIVES(cu.GetErrorName((CUresult)123456, &name), CUDA_ERROR_INVALID_VALUE);
  CHECK(name == NULL);
  GIVES(cu.GetErrorString((CUresult)123456, &text), CUDA_ERROR_INVALID_VALUE);
  CHECK(text == NULL);
}

/* An error's name can be had before the driver is initialised: whoever reports why that failed needs
 * it. */
FRESH_RULE(error_names_need_no_init) {
  const char *name = NULL;
  OK(cu.GetErrorName(CUDA_ERROR_NOT_INITIALIZED, &name));
  CHECK(name != NULL && strcmp(name, "CUDA_ERROR_NOT_INITIALIZED") == 0);
}

/* "Returns a device handle given an ordinal in the range [0, cuDeviceGetCount()-1]." */
RULE(devices_are_counted_from_zero) {
  int count = 0;
  CUdevice device = -1;
  OK(cu.DeviceGetCount(&count));
  CHECK(count >= 1);
  for (int ordinal = 0; ordinal < count; ordinal++) {
    OK(cu.DeviceGet(&device, ordinal));
    CHECK(device >= 0);
  }
  GIVES(cu.DeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  GIVES(cu.DeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

/* "name is shortened to the specified len", and NULL-terminated. */
RULE(device_names_are_cut_to_the_room) {
  char name[256], cut[5];
  OK(cu.DeviceGetName(name, sizeof name, 0));
  CHECK(strlen(name) > 4);
  memset(cut, 'x', sizeof cut);
  OK(cu.DeviceGetName(cut, sizeof cut, 0));
  SAME(strlen(cut), 4);
  CHECK(strncmp(name, cut, 4) == 0);
}

/* "Returns a 16-octet universally unique identifier for the device." */
RULE(devices_have_ids_of_their_own) {
  CUuuid first, again, second;
  OK(cu.DeviceGetUuid(&first, 0));
  OK(cu.DeviceGetUuid(&again, 0));
  CHECK(memcmp(&first, &again, sizeof first) == 0);
  CUdevice other = second_device();
  OK(cu.DeviceGetUuid(&second, other));
  CHECK(memcmp(&first, &second, sizeof first) != 0);
}

/* The memory of a device is what its contexts see. */
RULE(device_memory_is_the_context_s) {
  size_t whole = 0, free_bytes = 0, total_bytes = 0;
  OK(cu.DeviceTotalMem(&whole, 0));
  OK(cu.MemGetInfo(&free_bytes, &total_bytes));
  CHECK(total_bytes <= whole && total_bytes >= whole / 2);
  CHECK(free_bytes <= total_bytes && free_bytes > 0);
}

/* The device is found again by the name of its place on the bus. */
RULE(devices_are_found_by_bus_id) {
  char id[32] = "";
  CUdevice device = -1;
  OK(cu.DeviceGetPCIBusId(id, sizeof id, 0));
  /* [domain]:[bus]:[device].[function] */
  unsigned int domain, bus, slot, function;
  SAME(sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function), 4);
  SAME(bus, attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID));
  OK(cu.DeviceGetByPCIBusId(&device, id));
  SAME(device, 0);
  GIVES_EITHER(cu.DeviceGetByPCIBusId(&device, "ffff:ff:1f.7"), CUDA_ERROR_INVALID_DEVICE,
               CUDA_ERROR_INVALID_VALUE);
}

/* The attributes that a memory pool decides by. */
RULE(attributes_are_sane) {
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 3);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) >= 0);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE) == 32);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) >= 512);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) >= 256);
  SAME(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
  SAME(attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY), 1);
  static const CUdevice_attribute yes_or_no[] = {
      CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
      CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
      CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
      CU_DEVICE_ATTRIBUTE_INTEGRATED,
      CU_DEVICE_ATTRIBUTE_ECC_ENABLED,
  };
  for (size_t at = 0; at < sizeof yes_or_no / sizeof yes_or_no[0]; at++) {
    int value = attribute(yes_or_no[at]);
    if (value != 0 && value != 1)
      suite_fail(__FILE__, __LINE__, "attribute %d is %d", (int)yes_or_no[at], value);
  }
}

/* What is no device or no attribute is refused. */
RULE(unknown_devices_and_attributes_are_refused) {
  int value = 0, count = 0;
  OK(cu.DeviceGetCount(&count));
  GIVES(cu.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, (CUdevice)count),
        CUDA_ERROR_INVALID_DEVICE);
  GIVES(cu.DeviceGetAttribute(&value, (CUdevice_attribute)99999, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.DeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_ERROR_INVALID_VALUE);
  size_t bytes = 0;
  GIVES(cu.DeviceTotalMem(&bytes, (CUdevice)count), CUDA_ERROR_INVALID_DEVICE);
  CUcontext context = NULL;
  GIVES(cu.DevicePrimaryCtxRetain(&context, (CUdevice)count), CUDA_ERROR_INVALID_DEVICE);
}
