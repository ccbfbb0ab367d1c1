/* A kernel that fills memory, and what stands in for it on the driver double. */
#ifndef FILL_KERNEL_H
#define FILL_KERNEL_H

#include "program.h"

#define FILL_IMAGE                                                                           \
  ".version 7.0\n"                                                                           \
  ".target sm_75\n"                                                                          \
  ".address_size 64\n"                                                                       \
  ".visible .entry fill(.param .u64 bytes, .param .u32 count, .param .u32 value)\n"          \
  "{\n"                                                                                      \
  "  .reg .pred %p<2>; .reg .b32 %r<7>; .reg .b64 %rd<5>;\n"                                 \
  "  ld.param.u64 %rd1, [bytes]; ld.param.u32 %r1, [count]; ld.param.u32 %r2, [value];\n"    \
  "  cvta.to.global.u64 %rd2, %rd1;\n"                                                       \
  "  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"                    \
  "  mad.lo.s32 %r6, %r3, %r4, %r5;\n"                                                       \
  "  setp.ge.u32 %p1, %r6, %r1;\n"                                                           \
  "  @%p1 bra done;\n"                                                                       \
  "  cvt.u64.u32 %rd3, %r6;\n"                                                               \
  "  add.s64 %rd4, %rd2, %rd3;\n"                                                            \
  "  st.global.u8 [%rd4], %r2;\n"                                                            \
  "done:\n"                                                                                  \
  "  ret;\n"                                                                                 \
  "}\n"

static inline void fill_on_the_host(const fakecuda_launch_t *launch, void *user) {
  (void)user;
  memset(fakecuda_host_pointer(*(const CUdeviceptr *)launch->params[0]), *(const int *)launch->params[2],
         *(const unsigned int *)launch->params[1]);
}

/* Loads the kernel into the current context. */
static inline CUfunction load_fill(void) {
  static const size_t sizes[] = {8, 4, 4};
  CUmodule module = NULL;
  CUfunction fill = NULL;
  (void)fakecuda_register_kernel("fill", fill_on_the_host, NULL, 3, sizes);
  OK(cuModuleLoadData(&module, FILL_IMAGE));
  OK(cuModuleGetFunction(&fill, module, "fill"));
  return fill;
}

static inline void launch_fill(CUfunction fill, CUdeviceptr block, unsigned char value, size_t bytes,
                               CUstream stream) {
  unsigned int count = (unsigned int)bytes, word = value;
  void *params[] = {&block, &count, &word};
  OK(cuLaunchKernel(fill, (count + 255) / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL));
}

#endif
