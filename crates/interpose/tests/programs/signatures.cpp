// The arguments of each hooked function, as the toolkit's header has them: name, sizes of the arguments.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <cstdio>
#include <initializer_list>

template <typename... Arguments>
static void show(const char *name, CUresult (*)(Arguments...)) {
  std::printf("%s", name);
  for (std::size_t bytes : {std::size_t(0), sizeof(Arguments)...}) {
    if (bytes) std::printf(" %zu", bytes);
  }
  std::printf("\n");
}

#define SHOW(name) show(#name, name)

int main() {
#include "list.inc"
}
