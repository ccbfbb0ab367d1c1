/* What the driver says of pointers: of all kinds of memory, at the first, at an inner and at the last byte, one
 * past the end, and after the free. The lines that this writes are the same with anything in front of the driver.
 *
 * Of addresses and numbers only what a program may rely on is written: whether there is one, and that the range
 * holds the block. One block lives beside those that are asked about: where a range is that of several blocks, it
 * begins with that one, and is nobody's after their ends. */
#include "program.h"

enum { BYTES = 196 * 512, STEP = 100 };

/* How a value is written. */
typedef enum { NUMBER, FLAG, POINTER, IS_THERE, CONTEXT, RANGE_START, RANGE_SIZE } form_t;

static const struct {
  const char *name;
  CUpointer_attribute attribute;
  form_t form;
  /* Whether memory of cuMemAllocAsync may have another value in front of the driver: it need be no pool's. */
  bool is_about_pools;
} attributes[] = {
    {"context", CU_POINTER_ATTRIBUTE_CONTEXT, CONTEXT, true},
    {"memory type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, NUMBER, false},
    {"device pointer", CU_POINTER_ATTRIBUTE_DEVICE_POINTER, POINTER, false},
    {"host pointer", CU_POINTER_ATTRIBUTE_HOST_POINTER, POINTER, false},
    {"sync memops", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, FLAG, false},
    {"buffer id", CU_POINTER_ATTRIBUTE_BUFFER_ID, IS_THERE, false},
    {"is managed", CU_POINTER_ATTRIBUTE_IS_MANAGED, FLAG, false},
    {"device", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, NUMBER, false},
    {"legacy IPC", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, FLAG, true},
    {"range start", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, RANGE_START, false},
    {"range size", CU_POINTER_ATTRIBUTE_RANGE_SIZE, RANGE_SIZE, false},
    {"mapped", CU_POINTER_ATTRIBUTE_MAPPED, FLAG, false},
    {"handle types", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, NUMBER, false},
    {"GPUDirect RDMA", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, FLAG, true},
    {"access", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, NUMBER, false},
    {"pool", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, IS_THERE, true},
    {"mapping size", CU_POINTER_ATTRIBUTE_MAPPING_SIZE, RANGE_SIZE, false},
    {"mapping base", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, RANGE_START, false},
    {"block id", CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, IS_THERE, false},
    {"decompression", CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, FLAG, false},
};

static CUcontext context;

/* A block, and whether its attributes about pools are left out. */
typedef struct {
  CUdeviceptr start;
  size_t bytes;
  bool is_ordered;
} block_t;

static void say_value(form_t form, unsigned long long value, CUdeviceptr at, const block_t *block) {
  const char *text = "none";
  if (form == NUMBER)
    printf("%d", (int)value);
  else if (form == FLAG)
    printf("%d", (int)(value & 0xff));
  else {
    if (form == POINTER && value != 0) text = value == at ? "itself" : "another";
    if (form == IS_THERE && value != 0) text = "there";
    if (form == CONTEXT && value != 0) text = value == (uintptr_t)context ? "current" : "another";
    if (form == RANGE_START && value != 0) text = value <= block->start ? "holds it" : "too late";
    if (form == RANGE_SIZE && value != 0) text = value >= block->bytes ? "holds it" : "too small";
    fputs(text, stdout);
  }
}

static void say_at(const char *where, CUdeviceptr at, const block_t *block) {
  enum { COUNT = COUNT_OF(attributes) };
  CUpointer_attribute which[COUNT];
  unsigned long long values[COUNT] = {0};
  void *data[COUNT];
  printf(" %s\n", where);
  for (size_t number = 0; number < COUNT; number++) {
    which[number] = attributes[number].attribute;
    data[number] = &values[number];
  }
  CUresult code = cuPointerGetAttributes(COUNT, which, data, at);
  printf("  all: %d\n", (int)code);
  for (size_t number = 0; number < COUNT; number++) {
    unsigned long long value = 0;
    if (block->is_ordered && attributes[number].is_about_pools) continue;
    code = cuPointerGetAttribute(&value, attributes[number].attribute, at);
    printf("  %s: %d ", attributes[number].name, (int)code);
    say_value(attributes[number].form, value, at, block);
    fputs(" and ", stdout);
    say_value(attributes[number].form, values[number], at, block);
    puts("");
  }
  CUdeviceptr base = 0;
  size_t bytes = 0;
  code = cuMemGetAddressRange(&base, &bytes, at);
  printf("  range: %d %s\n", (int)code,
         code == CUDA_SUCCESS && base <= block->start && base + bytes >= block->start + block->bytes ? "holds it"
                                                                                                    : "no");
  /* No such attribute, and no place for the answer. */
  printf("  %d %d\n", (int)cuPointerGetAttribute(&bytes, (CUpointer_attribute)99, at),
         (int)cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
}

static void say_live(const char *kind, const block_t *block) {
  puts(kind);
  say_at("first", block->start, block);
  say_at("inner", block->start + STEP, block);
  say_at("last", block->start + block->bytes - 1, block);
}

static void say_dead(const block_t *block) {
  say_at("freed", block->start, block);
  say_at("freed, inner", block->start + STEP, block);
}

int main(void) {
  context = start();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  void *host = NULL;
  int on_stack = 0;
  CUdeviceptr first = must_alloc(512);
  for (int round = 0; round < 2; round++) {
    block_t block = {must_alloc(BYTES), BYTES, false};
    say_live("cuMemAlloc", &block);
    say_at("one past", block.start + BYTES, &block);
    OK(cuMemFree(block.start));
    say_dead(&block);

    size_t pitch = 0;
    OK(cuMemAllocPitch(&block.start, &pitch, 1000, 98, 4));
    say_live("cuMemAllocPitch", &block);
    OK(cuMemFree(block.start));
    say_dead(&block);

    block = (block_t){must_alloc_async(BYTES, stream), BYTES, true};
    OK(cuStreamSynchronize(stream));
    say_live("cuMemAllocAsync", &block);
    OK(cuMemFreeAsync(block.start, stream));
    OK(cuStreamSynchronize(stream));
    say_dead(&block);

    block.is_ordered = false;
    OK(cuMemAllocManaged(&block.start, BYTES, CU_MEM_ATTACH_GLOBAL));
    say_live("cuMemAllocManaged", &block);
    OK(cuMemFree(block.start));

    OK(cuMemHostAlloc(&host, BYTES, CU_MEMHOSTALLOC_PORTABLE));
    block.start = (CUdeviceptr)(uintptr_t)host;
    say_live("cuMemHostAlloc", &block);
    OK(cuMemFreeHost(host));
  }
  OK(cuMemFree(first));
  block_t stack = {(CUdeviceptr)(uintptr_t)&on_stack, sizeof on_stack, false};
  say_at("host memory", stack.start, &stack);
  say_at("NULL", 0, &stack);
  return 0;
}
