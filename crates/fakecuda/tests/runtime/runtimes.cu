// Several runtimes in one process: this program's, and those of the libraries that the arguments name.
// Memory is the driver's, so one frees what another allocated; errors are each runtime's own.
#include "check.h"

#include <cuda_runtime.h>
#include <cstring>
#include <dlfcn.h>
#include <vector>

struct Part {
  int (*version)();
  void *(*allocate)(size_t, int);
  int (*free)(void *);
  void *(*identity)();
  void (*leave_error)();
  int (*last_error)();
};

template <typename Function>
static void find(void *library, Function &function, const char *name) {
  void *found = dlsym(library, name);
  CHECK(found != nullptr);
  memcpy(&function, &found, sizeof found);
}

static void check_filled(void *p, size_t bytes, unsigned char value) {
  std::vector<unsigned char> seen(bytes);
  OK(cudaMemcpy(seen.data(), p, bytes, cudaMemcpyDeviceToHost));
  for (unsigned char byte : seen) CHECK(byte == value);
}

__global__ void kernel() {}

int main(int count, char **arguments) {
  void *p;
  OK(cudaMalloc(&p, 4096));
  std::vector<Part> parts;
  for (int i = 1; i < count; i++) {
    void *library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fprintf(stderr, "%s\n", dlerror());
    CHECK(library != nullptr);
    Part part;
    find(library, part.version, "part_version");
    find(library, part.allocate, "part_allocate");
    find(library, part.free, "part_free");
    find(library, part.identity, "part_identity");
    find(library, part.leave_error, "part_leave_error");
    find(library, part.last_error, "part_last_error");
    // Another runtime than this program's.
    CHECK(part.identity() != reinterpret_cast<void *>(cudaFree));
    printf("%d\n", part.version());
    parts.push_back(part);
  }
  CHECK(!parts.empty());
  for (size_t i = 0; i < parts.size(); i++) {
    Part &part = parts[i], &next = parts[(i + 1) % parts.size()];
    void *q = part.allocate(4096, 40 + int(i));
    check_filled(q, 4096, static_cast<unsigned char>(40 + i));
    CHECK(next.free(q) == cudaSuccess);
    CHECK(part.free(q) == cudaErrorInvalidValue);
    CHECK(part.last_error() == cudaErrorInvalidValue);

    q = part.allocate(64, 1);
    OK(cudaFree(q));
    OK(cudaMalloc(&q, 64));
    CHECK(part.free(q) == cudaSuccess);

    part.leave_error();
    OK(cudaPeekAtLastError());
    CHECK(part.last_error() == cudaErrorInvalidDevice);
  }
  kernel<<<1, 1>>>();
  OK(cudaDeviceSynchronize());

  // A reset by one is a reset for all, and each goes on with what the next one makes.
  void *gone = parts[0].allocate(64, 1);
  OK(cudaDeviceReset());
  FAILS(cudaErrorInvalidValue, cudaFree(p));
  OK(cudaMalloc(&p, 64));
  for (size_t i = 0; i < parts.size(); i++) {
    CHECK(parts[i].free(gone) == cudaErrorInvalidValue);
    CHECK(parts[i].last_error() == cudaErrorInvalidValue);
    void *q = parts[i].allocate(64, 7);
    check_filled(q, 64, 7);
    CHECK(parts[i].free(q) == cudaSuccess);
  }
  kernel<<<1, 1>>>();
  OK(cudaDeviceSynchronize());
  OK(cudaFree(p));
  return 0;
}
