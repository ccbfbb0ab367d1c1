// Device code of which images of all kinds are made.

struct Mixed {
  long long first;
  int second;
  char third;
};

__device__ int counter = 7;
__device__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ char room[100];
__constant__ double weights[16] = {0.5};
__managed__ int shared_by_all = 11;

extern "C" __global__ void plain(int *out, short one, Mixed mixed, char letter, double number) {
  __shared__ float scratch[64];
  scratch[threadIdx.x % 64] = one;
  __syncthreads();
  out[0] = static_cast<int>(scratch[1] + mixed.second + letter + number + weights[1]) + counter +
           shared_by_all + room[one];
  table[one & 3] = static_cast<float>(mixed.first + mixed.third);
}

namespace space {
template <class T>
__global__ void __launch_bounds__(128) bounded(T *out) {
  *out = 1;
}
}  // namespace space

template __global__ void space::bounded<int>(int *);

static __global__ void hidden(float *out) { *out = 2; }

void uses_it() { hidden<<<1, 1>>>(nullptr); }
