/* What the suite's programs share: rules, checks, and the driver as a table of functions.
 *
 * Each program holds the rules of one part of the driver's documentation. A rule is one function;
 * it is run in a process of its own, or, on a board and with --together, after others in one
 * process, and answers with one line:
 *
 *   ok PROGRAM.RULE
 *   FAIL PROGRAM.RULE: what was expected and what came
 *   skip PROGRAM.RULE: why it cannot be asked here
 *
 * The programs use the public header only, and run on any driver: `fakecuda_present()` tells the
 * few rules about the double's own extras that they are on a board.
 *
 * Arguments: link | dlsym | gpa (how the functions are looked up), --together, and names of rules.
 */
#ifndef FAKECUDA_SUITE_H
#define FAKECUDA_SUITE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <cuda.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"
#include "fakecuda.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* ---- Rules ------------------------------------------------------------------------------- */

typedef enum {
  /* The driver is initialised, and device 0's primary context is current. */
  RULE_READY,
  /* Nothing of the driver was called yet; always in a process of its own. */
  RULE_FRESH,
} rule_kind_t;

/* A rule that takes longer has failed. */
enum { SECONDS_FOR_A_RULE = 20 };

void suite_add(const char *name, rule_kind_t kind, void (*rule)(void));

#define RULE_OF_KIND(name, kind)                                           \
  static void name(void);                                                  \
  __attribute__((constructor)) static void add_##name(void) { suite_add(#name, kind, name); } \
  static void name(void)

#define RULE(name) RULE_OF_KIND(name, RULE_READY)
#define FRESH_RULE(name) RULE_OF_KIND(name, RULE_FRESH)

/* ---- Answers ------------------------------------------------------------------------------ */

/* Ends the rule, and the process; may be called from any thread. */
_Noreturn void suite_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void suite_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The code's name as the header has it, for messages; the driver is not asked. */
const char *suite_code(CUresult code);

#define CHECK(condition) \
  ((condition) ? (void)0 : suite_fail(__FILE__, __LINE__, "not so: %s", #condition))

/* Two integers are equal. */
#define SAME(got, wanted)                                                                     \
  do {                                                                                        \
    unsigned long long got_ = (unsigned long long)(got), wanted_ = (unsigned long long)(wanted); \
    if (got_ != wanted_)                                                                      \
      suite_fail(__FILE__, __LINE__, "%s is %llu (0x%llx), not %llu (0x%llx)", #got, got_, got_, \
                 wanted_, wanted_);                                                           \
  } while (0)

#define GIVES(call, code)                                                                 \
  do {                                                                                    \
    CUresult code_ = (call), wanted_ = (code);                                            \
    if (code_ != wanted_)                                                                 \
      suite_fail(__FILE__, __LINE__, "%s gives %s, not %s", #call, suite_code(code_),     \
                 suite_code(wanted_));                                                    \
  } while (0)

#define OK(call) GIVES(call, CUDA_SUCCESS)

/* Either code is within the documentation. */
#define GIVES_EITHER(call, one, other)                                                       \
  do {                                                                                       \
    CUresult code_ = (call);                                                                 \
    if (code_ != (one) && code_ != (other))                                                  \
      suite_fail(__FILE__, __LINE__, "%s gives %s, not %s or %s", #call, suite_code(code_),  \
                 suite_code(one), suite_code(other));                                        \
  } while (0)

/* An error, whichever: where the documentation says that it fails but not how. */
#define REFUSED(call)                                                                  \
  do {                                                                                 \
    if ((call) == CUDA_SUCCESS) suite_fail(__FILE__, __LINE__, "%s succeeds", #call);  \
  } while (0)

/* Skips a rule about what only the double has. */
#define ONLY_ON_THE_DOUBLE() (fakecuda_present() ? (void)0 : suite_skip("a board's driver"))

/* ---- What most rules need -------------------------------------------------------------------- */

/* Initialises the driver, makes device 0's primary context current, and gives it. */
CUcontext suite_begin(void);

/* The second device, or the rule is skipped. */
CUdevice second_device(void);

/* The second device's primary context, retained; the current context stays. */
CUcontext second_context(void);

int attribute(CUdevice_attribute which);

/* The rule is skipped where the device has none. */
static inline void need_pools(void) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) suite_skip("no memory pools");
}

static inline void need_virtual_memory(void) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) suite_skip("no virtual memory");
}

/* Whether the double runs queues as late as it may, or hides device memory from the host. */
bool suite_is_lazy(void);
bool suite_is_strict(void);

static inline CUdeviceptr must_alloc(size_t bytes) {
  CUdeviceptr block = 0;
  OK(cu.MemAlloc(&block, bytes));
  CHECK(block != 0);
  return block;
}

static inline void *must_alloc_host(size_t bytes) {
  void *block = NULL;
  OK(cu.MemAllocHost(&block, bytes));
  CHECK(block != NULL);
  return block;
}

static inline CUstream must_stream(unsigned int flags) {
  CUstream stream = NULL;
  OK(cu.StreamCreate(&stream, flags));
  CHECK(stream != NULL);
  return stream;
}

static inline CUevent must_event(unsigned int flags) {
  CUevent event = NULL;
  OK(cu.EventCreate(&event, flags));
  CHECK(event != NULL);
  return event;
}

/* Every byte of `bytes` bytes of device memory at `at` is `value`. */
void must_hold(CUdeviceptr at, unsigned char value, size_t bytes);

void sleep_ms(unsigned int milliseconds);

/* ---- A host function that keeps its stream busy -------------------------------------------- */

/* Closed until `gate_open`; `started` says that the stream reached it. */
typedef struct {
  atomic_bool open;
  atomic_bool started;
  atomic_bool passed;
} gate_t;

/* Puts the gate into the stream: work after it waits until `gate_open`. */
void gate_close(gate_t *gate, CUstream stream);
/* Waits until the stream has come to the gate; where queues run late, until the driver is asked to
 * bring it there. */
void gate_reach(gate_t *gate, CUstream stream);
void gate_open(gate_t *gate);

/* ---- Threads and processes ------------------------------------------------------------------ */

/* Runs the function on a thread of its own, to its end. */
void on_a_thread(void (*function)(void *), void *argument);

/* Runs the function in a forked child; gives the child's exit status, or 128 and the signal. */
int in_a_child(void (*function)(void *), void *argument);

/* Ends the rule if the child that ended so did, which has answered for it; nothing after 0. */
void suite_follow(int status);

/* Runs two processes of which neither has called the driver before, joined by a socket: `ours` in
 * this one, `theirs` in a child. For fresh rules. */
void with_another_process(void (*ours)(int socket), void (*theirs)(int socket));

void send_bytes(int socket, const void *bytes, size_t count);
void receive_bytes(int socket, void *bytes, size_t count);
void send_file(int socket, int file);
int receive_file(int socket);

/* One process waits until the other has come to the same place. */
void meet(int socket);

#endif
