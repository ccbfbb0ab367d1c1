// What the programs here check with. A failed check says where and what, and ends the program; with
// CHECK_GOES_ON in the environment it goes on.
#ifndef CHECK_H
#define CHECK_H

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static inline void check_failed(void) {
  if (!getenv("CHECK_GOES_ON")) exit(1);
}

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);  \
      check_failed();                                                          \
    }                                                                          \
  } while (0)

/* The call answers `wanted`. */
#define GIVES(wanted, call)                                                    \
  do {                                                                         \
    cudaError_t given_ = (call), wanted_ = (wanted);                           \
    if (given_ != wanted_) {                                                   \
      fprintf(stderr, "%s:%d: %s: %s, not %s\n", __FILE__, __LINE__, #call,    \
              cudaGetErrorName(given_), cudaGetErrorName(wanted_));            \
      check_failed();                                                          \
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
