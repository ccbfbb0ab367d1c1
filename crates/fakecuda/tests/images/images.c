/* Loads one image in every way, and finds in it what its source has. Arguments: the file, and
 * "readable" or "opaque": whether all of it is compressed, so that any kernel may be in it. */
#include <cuda.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda.h"

#define BOUNDED "_ZN5space7boundedIiEEvPT_"
#define HIDDEN "_Z6hiddenPf"

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

#define GIVES(call, code)                                                                  \
  do {                                                                                     \
    int code_ = (int)(call);                                                               \
    if (code_ != (int)(code)) {                                                            \
      fprintf(stderr, "%s:%d: %s gives %d, not %d\n", __FILE__, __LINE__, #call, code_, (int)(code)); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

#define OK(call) GIVES(call, CUDA_SUCCESS)

typedef struct {
  long long first;
  int second;
  char third;
} mixed_t;

/* The parameters of `plain`, as they lie in memory. */
typedef struct {
  CUdeviceptr out;
  short one;
  mixed_t mixed;
  char letter;
  double number;
} parameters_t;

static int calls;

/* No sizes were registered: what is copied is what the image declares. */
static void plain(const fakecuda_launch_t *launch, void *user) {
  const parameters_t *wanted = user;
  calls++;
  CHECK(launch->nparams == 5);
  CHECK(memcmp(launch->params[0], &wanted->out, sizeof wanted->out) == 0);
  CHECK(memcmp(launch->params[1], &wanted->one, sizeof wanted->one) == 0);
  CHECK(memcmp(launch->params[2], &wanted->mixed, sizeof wanted->mixed) == 0);
  CHECK(*(char *)launch->params[3] == wanted->letter);
  CHECK(memcmp(launch->params[4], &wanted->number, sizeof wanted->number) == 0);
}

static void launches(CUfunction function) {
  parameters_t wanted;
  memset(&wanted, 0x5a, sizeof wanted);
  wanted.letter = 'x';
  void *parameters[] = {&wanted.out, &wanted.one, &wanted.mixed, &wanted.letter, &wanted.number};
  GIVES(fakecuda_register_kernel("plain", plain, &wanted, 0, NULL), FAKECUDA_OK);
  int before = calls;
  OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
  OK(cuCtxSynchronize());
  size_t bytes = sizeof wanted;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &wanted, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
  OK(cuCtxSynchronize());
  CHECK(calls == before + 2);
  GIVES(fakecuda_register_kernel("plain", NULL, NULL, 0, NULL), FAKECUDA_OK);
}

static void has_parameters(CUfunction function) {
  static const size_t places[][2] = {
      {offsetof(parameters_t, out), sizeof(CUdeviceptr)},
      {offsetof(parameters_t, one), sizeof(short)},
      {offsetof(parameters_t, mixed), sizeof(mixed_t)},
      {offsetof(parameters_t, letter), sizeof(char)},
      {offsetof(parameters_t, number), sizeof(double)},
  };
  size_t offset = 0, bytes = 0;
  for (size_t index = 0; index < 5; index++) {
    OK(cuFuncGetParamInfo(function, index, &offset, &bytes));
    CHECK(offset == places[index][0] && bytes == places[index][1]);
  }
  GIVES(cuFuncGetParamInfo(function, 5, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
}

static void has_variables(CUmodule module) {
  CUdeviceptr at = 0;
  size_t bytes = 0;
  float table[4];
  double weights[16];
  int counter = 0;
  char room[100];
  OK(cuModuleGetGlobal(&at, &bytes, module, "table"));
  CHECK(bytes == sizeof table);
  OK(cuMemcpyDtoH(table, at, bytes));
  CHECK(table[0] == 1 && table[3] == 4);
  OK(cuModuleGetGlobal(&at, &bytes, module, "counter"));
  CHECK(bytes == sizeof counter);
  OK(cuMemcpyDtoH(&counter, at, bytes));
  CHECK(counter == 7);
  OK(cuModuleGetGlobal(&at, &bytes, module, "weights"));
  CHECK(bytes == sizeof weights);
  OK(cuMemcpyDtoH(weights, at, bytes));
  CHECK(weights[0] == 0.5 && weights[15] == 0);
  OK(cuModuleGetGlobal(&at, &bytes, module, "room"));
  CHECK(bytes == sizeof room);
  OK(cuMemcpyDtoH(room, at, bytes));
  CHECK(room[0] == 0 && room[99] == 0);
  OK(cuModuleGetGlobal(&at, &bytes, module, "shared_by_all"));
  CHECK(bytes == sizeof(int) && *(int *)at == 11);
  GIVES(cuModuleGetGlobal(&at, &bytes, module, "plain"), CUDA_ERROR_NOT_FOUND);
}

static void has_attributes(CUfunction function, CUfunction bounded) {
  int value = 0;
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  CHECK(value == 64 * sizeof(float));
  OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded));
  CHECK(value == 128);
}

static void is_a_module(CUmodule module, int is_readable) {
  CUfunction function = NULL, bounded = NULL, hidden = NULL, nothing = NULL;
  OK(cuModuleGetFunction(&function, module, "plain"));
  OK(cuModuleGetFunction(&bounded, module, BOUNDED));
  OK(cuModuleGetFunction(&hidden, module, HIDDEN));
  CHECK(function != bounded && bounded != hidden);
  if (!is_readable) return;
  unsigned int count = 0;
  GIVES(cuModuleGetFunction(&nothing, module, "nothing"), CUDA_ERROR_NOT_FOUND);
  OK(cuModuleGetFunctionCount(&count, module));
  CHECK(count == 3);
  has_parameters(function);
  has_attributes(function, bounded);
  has_variables(module);
  launches(function);
}

static void is_a_library(CUlibrary library, int is_readable) {
  CUkernel kernel = NULL;
  CUmodule module = NULL;
  CUdeviceptr at = 0;
  size_t bytes = 0;
  OK(cuLibraryGetKernel(&kernel, library, "plain"));
  OK(cuLibraryGetModule(&module, library));
  is_a_module(module, is_readable);
  if (is_readable) {
    launches((CUfunction)kernel);
    OK(cuLibraryGetManaged(&at, &bytes, library, "shared_by_all"));
    CHECK(bytes == sizeof(int) && *(int *)at == 11);
    GIVES(cuLibraryGetManaged(&at, &bytes, library, "table"), CUDA_ERROR_NOT_FOUND);
  }
  OK(cuLibraryUnload(library));
}

static char *contents(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  CHECK(fseek(file, 0, SEEK_END) == 0);
  *bytes = (size_t)ftell(file);
  rewind(file);
  /* A text is given with the zero at its end. */
  char *image = calloc(1, *bytes + 1);
  CHECK(image != NULL && fread(image, 1, *bytes, file) == *bytes);
  fclose(file);
  return image;
}

int main(int count, char **arguments) {
  CHECK(count == 3);
  int is_readable = strcmp(arguments[2], "readable") == 0;
  size_t bytes = 0;
  char *image = contents(arguments[1], &bytes);
  CUdevice device;
  CUcontext context;
  CUmodule module = NULL;
  CUlibrary library = NULL;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));

  OK(cuModuleLoad(&module, arguments[1]));
  is_a_module(module, is_readable);
  OK(cuModuleUnload(module));
  OK(cuModuleLoadData(&module, image));
  is_a_module(module, is_readable);
  OK(cuModuleUnload(module));
  OK(cuLibraryLoadFromFile(&library, arguments[1], NULL, NULL, 0, NULL, NULL, 0));
  is_a_library(library, is_readable);
  OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
  /* The driver has its own copy. */
  memset(image, 0, bytes);
  free(image);
  is_a_library(library, is_readable);

  CUlinkState link = NULL;
  void *linked = NULL;
  OK(cuLinkCreate(0, NULL, NULL, &link));
  OK(cuLinkAddFile(link, CU_JIT_INPUT_FATBINARY, arguments[1], 0, NULL, NULL));
  OK(cuLinkComplete(link, &linked, &bytes));
  OK(cuModuleLoadData(&module, linked));
  OK(cuLinkDestroy(link));
  is_a_module(module, is_readable);
  OK(cuModuleUnload(module));

  OK(cuDevicePrimaryCtxRelease(device));
  CHECK(fakecuda_used(0) == 0);
  CHECK(fakecuda_live(FAKECUDA_LIVE_MODULES) == 0);
  return 0;
}
