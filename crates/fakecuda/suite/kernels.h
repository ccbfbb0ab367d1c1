/* Device code that the suite loads, and what stands in for it on the double. */
#ifndef FAKECUDA_SUITE_KERNELS_H
#define FAKECUDA_SUITE_KERNELS_H

#include "suite.h"

/* What the kernels are called in the code. */
#define FILL "_Z4fillPhji"
#define ADD "add"
#define BOUNDED "bounded"

/* fill(bytes, count, value): one byte a thread. add(words, count, term): one word a thread. */
#define KERNELS                                                                             \
  ".version 7.0\n"                                                                          \
  ".target sm_75\n"                                                                         \
  ".address_size 64\n"                                                                      \
  "// .visible .entry commented(.param .u64 nothing) { ret; }\n"                            \
  ".visible .global .align 4 .u32 numbers[2][2] = {{1, 2}, {0xffffffff, 4}};\n"             \
  ".visible .global .align 1 .b8 blank[1000];\n"                                            \
  ".visible .const .align 8 .f64 half = 0d3FE0000000000000;\n"                              \
  ".visible .entry " FILL "(.param .u64 bytes, .param .u32 count, .param .u32 value)\n"     \
  "{\n"                                                                                     \
  "  .reg .pred %p<2>; .reg .b32 %r<7>; .reg .b64 %rd<5>;\n"                                \
  "  ld.param.u64 %rd1, [bytes]; ld.param.u32 %r1, [count]; ld.param.u32 %r2, [value];\n"   \
  "  cvta.to.global.u64 %rd2, %rd1;\n"                                                      \
  "  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"                   \
  "  mad.lo.s32 %r6, %r3, %r4, %r5;\n"                                                      \
  "  setp.ge.u32 %p1, %r6, %r1;\n"                                                          \
  "  @%p1 bra done;\n"                                                                      \
  "  cvt.u64.u32 %rd3, %r6;\n"                                                              \
  "  add.s64 %rd4, %rd2, %rd3;\n"                                                           \
  "  st.global.u8 [%rd4], %r2;\n"                                                           \
  "done:\n"                                                                                 \
  "  ret;\n"                                                                                \
  "}\n"                                                                                     \
  ".visible .entry " ADD "(.param .u64 words, .param .u32 count, .param .u32 term)\n"       \
  "{\n"                                                                                     \
  "  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<5>;\n"                                \
  "  ld.param.u64 %rd1, [words]; ld.param.u32 %r1, [count]; ld.param.u32 %r2, [term];\n"    \
  "  cvta.to.global.u64 %rd2, %rd1;\n"                                                      \
  "  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"                   \
  "  mad.lo.s32 %r6, %r3, %r4, %r5;\n"                                                      \
  "  setp.ge.u32 %p1, %r6, %r1;\n"                                                          \
  "  @%p1 bra done;\n"                                                                      \
  "  mul.wide.u32 %rd3, %r6, 4;\n"                                                          \
  "  add.s64 %rd4, %rd2, %rd3;\n"                                                           \
  "  ld.global.u32 %r7, [%rd4];\n"                                                          \
  "  add.s32 %r8, %r7, %r2;\n"                                                              \
  "  st.global.u32 [%rd4], %r8;\n"                                                          \
  "done:\n"                                                                                 \
  "  ret;\n"                                                                                \
  "}\n"                                                                                     \
  ".visible .entry " BOUNDED "(.param .u8 first, .param .align 8 .b8 second[24],\n"         \
  "  .param .u16 third) .maxntid 64, 2, 1\n"                                                \
  "{\n"                                                                                     \
  "  ret;\n"                                                                                \
  "}\n"

/* The module, in the current context. */
static inline CUmodule must_load(void) {
  CUmodule module = NULL;
  OK(cu.ModuleLoadData(&module, KERNELS));
  return module;
}

static inline CUfunction must_find(CUmodule module, const char *name) {
  CUfunction function = NULL;
  OK(cu.ModuleGetFunction(&function, module, name));
  CHECK(function != NULL);
  return function;
}

static inline void fill_on_the_host(const fakecuda_launch_t *launch, void *user) {
  (void)user;
  CUdeviceptr bytes = *(const CUdeviceptr *)launch->params[0];
  unsigned int count = *(const unsigned int *)launch->params[1];
  unsigned int threads = launch->grid[0] * launch->block[0];
  memset(fakecuda_host_pointer(bytes), *(const int *)launch->params[2],
         count < threads ? count : threads);
}

static inline void add_on_the_host(const fakecuda_launch_t *launch, void *user) {
  (void)user;
  uint32_t *words = fakecuda_host_pointer(*(const CUdeviceptr *)launch->params[0]);
  unsigned int count = *(const unsigned int *)launch->params[1];
  unsigned int threads = launch->grid[0] * launch->block[0];
  for (unsigned int at = 0; at < count && at < threads; at++)
    words[at] += *(const uint32_t *)launch->params[2];
}

/* Lets the kernels do on the double what they do on a board. */
static inline void suite_kernels(void) {
  static const size_t sizes[] = {8, 4, 4};
  if (!fakecuda_present()) return;
  SAME(fakecuda_register_kernel("fill", fill_on_the_host, NULL, 3, sizes), FAKECUDA_OK);
  SAME(fakecuda_register_kernel(ADD, add_on_the_host, NULL, 3, sizes), FAKECUDA_OK);
}

#endif
