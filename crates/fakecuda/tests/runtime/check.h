// What the programs here check with. A failed check says where and what, and ends the program.
#ifndef CHECK_H
#define CHECK_H

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* The call answers `wanted`. */
#define GIVES(wanted, call)                                                    \
  do {                                                                         \
    cudaError_t given_ = (call), wanted_ = (wanted);                           \
    if (given_ != wanted_) {                                                   \
      fprintf(stderr, "%s:%d: %s: %s, not %s\n", __FILE__, __LINE__, #call,    \
              cudaGetErrorName(given_), cudaGetErrorName(wanted_));            \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* The call succeeds. */
#define OK(call) GIVES(cudaSuccess, call)

/* The call answers `wanted`, which becomes the last error and is taken back. */
#define FAILS(wanted, call)                                                    \
  do {                                                                         \
    GIVES(wanted, call);                                                       \
    GIVES(wanted, cudaGetLastError());                                         \
  } while (0)

#endif
