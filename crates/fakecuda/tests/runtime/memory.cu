// Memory of every kind, and copies and sets of every shape, by their contents.
#include "check.h"

#include <cuda_runtime.h>
#include <cstdint>
#include <cstring>
#include <vector>

using Bytes = std::vector<unsigned char>;

static Bytes pattern(size_t n, unsigned seed) {
  Bytes bytes(n);
  for (size_t i = 0; i < n; i++) bytes[i] = static_cast<unsigned char>(i * 31 + seed);
  return bytes;
}

static void device_memory() {
  size_t before, during, total;
  void *p, *q;
  OK(cudaMemGetInfo(&before, &total));
  OK(cudaMalloc(&p, 100 << 20));
  OK(cudaMemGetInfo(&during, &total));
  CHECK(before - during >= 100u << 20 && during < total);
  CHECK(reinterpret_cast<uintptr_t>(p) % 256 == 0);
  OK(cudaFree(p));
  OK(cudaFree(nullptr));
  q = &p;
  OK(cudaMalloc(&q, 0));
  CHECK(q == nullptr);
}

static void copies() {
  const size_t n = 5000;
  Bytes in = pattern(n, 7), out(n);
  char *a, *b;
  OK(cudaMalloc(&a, n));
  OK(cudaMalloc(&b, n));
  OK(cudaMemcpy(a, in.data(), n, cudaMemcpyDefault));
  OK(cudaMemcpy(b, a, n, cudaMemcpyDeviceToDevice));
  OK(cudaMemcpy(out.data(), b, n, cudaMemcpyDeviceToHost));
  CHECK(out == in);
  OK(cudaMemset(b + 10, 0x5a, n - 20));
  OK(cudaMemcpy(out.data(), b, n, cudaMemcpyDefault));
  CHECK(out[9] == in[9] && out[10] == 0x5a && out[n - 11] == 0x5a && out[n - 10] == in[n - 10]);
  OK(cudaMemcpy(out.data(), in.data(), n, cudaMemcpyHostToHost));
  CHECK(out == in);
  OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
  OK(cudaMemset(nullptr, 0, 0));
  // Past the end.
  Bytes more(1 << 20);
  FAILS(cudaErrorInvalidValue, cudaMemcpy(a + 1, more.data(), more.size(), cudaMemcpyHostToDevice));

  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaMemsetAsync(a, 1, n, stream));
  OK(cudaMemcpyAsync(b, a, n, cudaMemcpyDeviceToDevice, stream));
  OK(cudaMemcpyAsync(a, in.data(), n, cudaMemcpyHostToDevice, stream));
  OK(cudaMemcpyAsync(out.data(), b, n, cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(out == Bytes(n, 1));
  OK(cudaMemcpyAsync(out.data(), a, n, cudaMemcpyDefault, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(out == in);
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(a));
  OK(cudaFree(b));
}

static void batch() {
  Bytes in = pattern(300, 9), out(300);
  char *p;
  cudaStream_t stream;
  OK(cudaMalloc(&p, 300));
  OK(cudaStreamCreate(&stream));
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0, sizes[] = {100, 200};
  void *up[] = {p, p + 100}, *down[] = {out.data() + 200, out.data()};
  const void *from[] = {in.data(), in.data() + 100}, *back[] = {p, p + 100};
  OK(cudaMemcpyBatchAsync(up, from, sizes, 2, &attributes, &first, 1, stream));
  OK(cudaMemcpyBatchAsync(down, back, sizes, 2, &attributes, &first, 1, stream));
  OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < 300; i++) CHECK(out[i] == in[(i + 100) % 300]);
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(p));
}

static void planes() {
  const size_t width = 100, height = 7;
  Bytes in = pattern(width * height, 3), out(width * height);
  char *p;
  size_t pitch;
  OK(cudaMallocPitch(&p, &pitch, width, height));
  CHECK(pitch >= width && pitch % 32 == 0);
  OK(cudaMemcpy2D(p, pitch, in.data(), width, width, height, cudaMemcpyHostToDevice));
  OK(cudaMemcpy2D(out.data(), width, p, pitch, width, height, cudaMemcpyDeviceToHost));
  CHECK(out == in);
  OK(cudaMemset2D(p + 10, pitch, 9, 20, height - 1));
  OK(cudaMemcpy2DAsync(out.data(), width, p, pitch, width, height, cudaMemcpyDefault, nullptr));
  OK(cudaDeviceSynchronize());
  for (size_t y = 0; y < height; y++)
    for (size_t x = 0; x < width; x++) {
      bool set = y < height - 1 && x >= 10 && x < 30;
      CHECK(out[y * width + x] == (set ? 9 : in[y * width + x]));
    }
  OK(cudaFree(p));
}

static void volumes() {
  const size_t width = 20, height = 5, depth = 3;
  Bytes in = pattern(width * height * depth, 5), out(in.size());
  cudaPitchedPtr p;
  OK(cudaMalloc3D(&p, make_cudaExtent(width, height, depth)));
  CHECK(p.xsize == width && p.ysize == height && p.pitch >= width);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(in.data(), width, width, height);
  copy.dstPtr = p;
  copy.extent = make_cudaExtent(width, height, depth);
  copy.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&copy));
  OK(cudaMemset3D(p, 0xee, make_cudaExtent(4, 2, depth)));
  // A part from the middle of each slice but the first.
  cudaMemcpy3DParms back = {};
  back.srcPtr = p;
  back.srcPos = make_cudaPos(2, 1, 1);
  back.dstPtr = make_cudaPitchedPtr(out.data(), 6, 6, 3);
  back.extent = make_cudaExtent(6, 3, 2);
  back.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3DAsync(&back, nullptr));
  OK(cudaDeviceSynchronize());
  for (size_t z = 0; z < 2; z++)
    for (size_t y = 0; y < 3; y++)
      for (size_t x = 0; x < 6; x++) {
        size_t sx = x + 2, sy = y + 1, sz = z + 1;
        unsigned char wanted = sx < 4 && sy < 2 ? 0xee : in[(sz * height + sy) * width + sx];
        CHECK(out[(z * 3 + y) * 6 + x] == wanted);
      }
  OK(cudaFree(p.ptr));
}

static void host_memory() {
  cudaPointerAttributes attributes;
  void *p, *mapped;
  unsigned flags;
  OK(cudaMallocHost(&p, 4096));
  memset(p, 3, 4096);
  OK(cudaPointerGetAttributes(&attributes, static_cast<char *>(p) + 5));
  CHECK(attributes.type == cudaMemoryTypeHost && attributes.device == 0);
  CHECK(attributes.hostPointer == static_cast<char *>(p) + 5);
  OK(cudaFreeHost(p));
  OK(cudaFreeHost(nullptr));
  FAILS(cudaErrorInvalidValue, cudaFreeHost(p));
  OK(cudaHostAlloc(&p, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
  OK(cudaHostGetDevicePointer(&mapped, p, 0));
  OK(cudaHostGetFlags(&flags, p));
  CHECK((flags & cudaHostAllocMapped) && (flags & cudaHostAllocPortable));
  OK(cudaFreeHost(p));

  Bytes own(8192, 1);
  OK(cudaHostRegister(own.data(), own.size(), cudaHostRegisterDefault));
  FAILS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(own.data(), own.size(), cudaHostRegisterDefault));
  OK(cudaPointerGetAttributes(&attributes, own.data()));
  CHECK(attributes.type == cudaMemoryTypeHost);
  OK(cudaHostUnregister(own.data()));
  FAILS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own.data()));
  OK(cudaPointerGetAttributes(&attributes, own.data()));
  CHECK(attributes.type == cudaMemoryTypeUnregistered && attributes.hostPointer == own.data());
}

static void managed_memory() {
  cudaPointerAttributes attributes;
  int *p, seen = 0;
  OK(cudaMallocManaged(&p, 4096));
  p[1] = 77;
  OK(cudaMemcpy(&seen, p + 1, sizeof seen, cudaMemcpyDefault));
  CHECK(seen == 77);
  OK(cudaPointerGetAttributes(&attributes, p));
  CHECK(attributes.type == cudaMemoryTypeManaged && attributes.devicePointer == p && attributes.hostPointer == p);
  cudaMemLocation location = {};
  location.type = cudaMemLocationTypeDevice;
  OK(cudaMemAdvise(p, 4096, cudaMemAdviseSetPreferredLocation, location));
  OK(cudaMemPrefetchAsync(p, 4096, location, 0, nullptr));
  OK(cudaDeviceSynchronize());
  OK(cudaFree(p));
}

static void attributes_of_device_memory() {
  cudaPointerAttributes attributes;
  char *p;
  OK(cudaMalloc(&p, 4096));
  OK(cudaPointerGetAttributes(&attributes, p + 100));
  CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  CHECK(attributes.devicePointer == p + 100 && attributes.hostPointer == nullptr);
  OK(cudaFree(p));
  OK(cudaPointerGetAttributes(&attributes, p));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

int main() {
  device_memory();
  copies();
  batch();
  planes();
  volumes();
  host_memory();
  managed_memory();
  attributes_of_device_memory();
  OK(cudaGetLastError());
  return 0;
}
