// What the programs of the runtime interface share: checks.
#ifndef RUNTIME_H
#define RUNTIME_H

#include <fakecuda.h>

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
      std::fflush(nullptr);                                                           \
      _exit(1);                                                                       \
    }                                                                                 \
  } while (0)

#define GIVES(call, code)                                                                            \
  do {                                                                                               \
    cudaError_t given_ = (call);                                                                     \
    if (given_ != (code)) {                                                                          \
      std::fprintf(stderr, "%s:%d: %s gives %d, not %d\n", __FILE__, __LINE__, #call, int(given_),   \
                   int(code));                                                                       \
      std::fflush(nullptr);                                                                          \
      _exit(1);                                                                                      \
    }                                                                                                \
  } while (0)

#define OK(call) GIVES(call, cudaSuccess)

#endif
