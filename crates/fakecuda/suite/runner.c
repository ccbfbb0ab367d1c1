/* Runs the rules of a program: one process a rule, a line of answer each. See suite.h. */
#include "suite.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>

enum { MOST_RULES = 128, EXIT_FAILED = 1, EXIT_SKIPPED = 2 };

typedef struct {
  const char *name;
  rule_kind_t kind;
  void (*run)(void);
  bool asked_for;
} rule_t;

/* What a rule's process tells the one that started it. */
typedef struct {
  int done; /* how many rules of this process have ended well */
  bool answered; /* the rule that did not end well has said why */
} progress_t;

static rule_t rules[MOST_RULES];
static size_t rule_count;
static progress_t *progress;
static const rule_t *current;
static const char *const program = SUITE_PROGRAM;

void suite_add(const char *name, rule_kind_t kind, void (*rule)(void)) {
  if (rule_count == MOST_RULES) abort();
  rules[rule_count++] = (rule_t){name, kind, rule, true};
}

/* ---- Answers ---------------------------------------------------------------------------------- */

static void answer(const char *word, const char *detail) {
  printf("%s %s.%s%s%s\n", word, program, current ? current->name : "start", detail ? ": " : "",
         detail ? detail : "");
  fflush(stdout);
}

_Noreturn void suite_fail(const char *file, int line, const char *format, ...) {
  char what[800], detail[1000];
  va_list list;
  va_start(list, format);
  vsnprintf(what, sizeof what, format, list);
  va_end(list);
  const char *slash = strrchr(file, '/');
  snprintf(detail, sizeof detail, "%s (%s:%d)", what, slash ? slash + 1 : file, line);
  answer("FAIL", detail);
  if (progress) progress->answered = true;
  /* No exit handlers: what failed may be the driver. */
  _exit(EXIT_FAILED);
}

_Noreturn void suite_skip(const char *format, ...) {
  char why[500];
  va_list list;
  va_start(list, format);
  vsnprintf(why, sizeof why, format, list);
  va_end(list);
  answer("skip", why);
  if (progress) progress->answered = true;
  _exit(EXIT_SKIPPED);
}

const char *suite_code(CUresult code) {
  static _Thread_local char text[4][40];
  static _Thread_local unsigned int turn;
  static const struct {
    CUresult code;
    const char *name;
  } names[] = {
      {CUDA_SUCCESS, "SUCCESS"},
      {CUDA_ERROR_INVALID_VALUE, "INVALID_VALUE"},
      {CUDA_ERROR_OUT_OF_MEMORY, "OUT_OF_MEMORY"},
      {CUDA_ERROR_NOT_INITIALIZED, "NOT_INITIALIZED"},
      {CUDA_ERROR_DEINITIALIZED, "DEINITIALIZED"},
      {CUDA_ERROR_NO_DEVICE, "NO_DEVICE"},
      {CUDA_ERROR_INVALID_DEVICE, "INVALID_DEVICE"},
      {CUDA_ERROR_INVALID_IMAGE, "INVALID_IMAGE"},
      {CUDA_ERROR_INVALID_CONTEXT, "INVALID_CONTEXT"},
      {CUDA_ERROR_MAP_FAILED, "MAP_FAILED"},
      {CUDA_ERROR_ALREADY_MAPPED, "ALREADY_MAPPED"},
      {CUDA_ERROR_INVALID_HANDLE, "INVALID_HANDLE"},
      {CUDA_ERROR_ILLEGAL_STATE, "ILLEGAL_STATE"},
      {CUDA_ERROR_NOT_FOUND, "NOT_FOUND"},
      {CUDA_ERROR_NOT_READY, "NOT_READY"},
      {CUDA_ERROR_ILLEGAL_ADDRESS, "ILLEGAL_ADDRESS"},
      {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "PEER_ACCESS_UNSUPPORTED"},
      {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "PEER_ACCESS_ALREADY_ENABLED"},
      {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "PEER_ACCESS_NOT_ENABLED"},
      {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "PRIMARY_CONTEXT_ACTIVE"},
      {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CONTEXT_IS_DESTROYED"},
      {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "HOST_MEMORY_ALREADY_REGISTERED"},
      {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "HOST_MEMORY_NOT_REGISTERED"},
      {CUDA_ERROR_NOT_PERMITTED, "NOT_PERMITTED"},
      {CUDA_ERROR_NOT_SUPPORTED, "NOT_SUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "STREAM_CAPTURE_UNSUPPORTED"},
      {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "STREAM_CAPTURE_INVALIDATED"},
      {CUDA_ERROR_STREAM_CAPTURE_MERGE, "STREAM_CAPTURE_MERGE"},
      {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "STREAM_CAPTURE_UNMATCHED"},
      {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "STREAM_CAPTURE_UNJOINED"},
      {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "STREAM_CAPTURE_ISOLATION"},
      {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "STREAM_CAPTURE_IMPLICIT"},
      {CUDA_ERROR_CAPTURED_EVENT, "CAPTURED_EVENT"},
      {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "STREAM_CAPTURE_WRONG_THREAD"},
      {CUDA_ERROR_UNKNOWN, "UNKNOWN"},
  };
  char *place = text[turn++ % 4];
  snprintf(place, sizeof text[0], "%d", (int)code);
  for (size_t at = 0; at < sizeof names / sizeof names[0]; at++)
    if (names[at].code == code)
      snprintf(place, sizeof text[0], "%s", names[at].name);
  return place;
}

void suite_follow(int status) {
  if (progress->answered && (status == EXIT_FAILED || status == EXIT_SKIPPED)) _exit(status);
  SAME(status, 0);
}

/* ---- The driver's functions -------------------------------------------------------------------- */

driver_t cu;

/* Stands for a function that the driver lacks: whoever calls it cannot ask its question. The double lacks
 * only what is newer than the version that it was told to have. */
_Noreturn static void missing(const char *name, int version) {
  int driver = 0;
  OK(cu.DriverGetVersion(&driver));
  if (fakecuda_present() && driver >= version)
    suite_fail(__FILE__, __LINE__, "the double has no %s", name);
  suite_skip("this driver has no %s", name);
}

#define STRING_OF(text) #text
#define STRING(text) STRING_OF(text)

#define MISSING(name, version) \
  _Noreturn static void missing_##name(void) { missing("cu" #name, version); }
DRIVER_FUNCTIONS(MISSING)

#ifdef SUITE_LINKED
/* Weak, so that a program starts on an older driver too; what it lacks is then NULL. */
#define WEAK(name, version) extern __typeof__(cu##name) cu##name __attribute__((weak));
DRIVER_FUNCTIONS(WEAK)

static void *linked(const char *symbol) {
#define LINKED(name, version) \
  if (strcmp(symbol, STRING(cu##name)) == 0) return (void *)&cu##name;
  DRIVER_FUNCTIONS(LINKED)
  return NULL;
}
#endif

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
enum { LOOK_UP_FLAGS = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM };
#define AT_LEAST_PER_THREAD(version) ((version) < 7000 ? 7000 : (version))
#else
enum { LOOK_UP_FLAGS = CU_GET_PROC_ADDRESS_DEFAULT };
#define AT_LEAST_PER_THREAD(version) (version)
#endif

typedef CUresult (*look_up_t)(const char *, void **, int, cuuint64_t,
                              CUdriverProcAddressQueryResult *);

static void fill(const char *way) {
  if (strcmp(way, "link") == 0) {
#ifdef SUITE_LINKED
#define FILL_LINKED(name, version) *(void **)&cu.name = linked(STRING(cu##name));
    DRIVER_FUNCTIONS(FILL_LINKED)
#else
    fprintf(stderr, "%s: not linked with libcuda\n", program);
    exit(EXIT_FAILED);
#endif
  } else {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
      fprintf(stderr, "%s: %s\n", program, dlerror());
      exit(EXIT_FAILED);
    }
    if (strcmp(way, "dlsym") == 0) {
#define FILL_DLSYM(name, version) *(void **)&cu.name = dlsym(library, STRING(cu##name));
      DRIVER_FUNCTIONS(FILL_DLSYM)
    } else {
      look_up_t look_up = NULL;
      *(void **)&look_up = dlsym(library, "cuGetProcAddress_v2");
      if (look_up == NULL) {
        fprintf(stderr, "%s: this driver has no cuGetProcAddress_v2\n", program);
        exit(EXIT_SKIPPED);
      }
#define FILL_LOOKED_UP(name, version)                                                           \
  {                                                                                             \
    void *found = NULL;                                                                         \
    CUresult code = look_up("cu" #name, &found, AT_LEAST_PER_THREAD(version), LOOK_UP_FLAGS, NULL); \
    *(void **)&cu.name = code == CUDA_SUCCESS ? found : NULL;                                   \
  }
      DRIVER_FUNCTIONS(FILL_LOOKED_UP)
    }
  }
#define FILL_MISSING(name, version) \
  if (cu.name == NULL) *(void **)&cu.name = (void *)missing_##name;
  DRIVER_FUNCTIONS(FILL_MISSING)
}

/* ---- Running ------------------------------------------------------------------------------------- */

static bool fits(size_t rule, bool fresh) {
  return rules[rule].asked_for && (rules[rule].kind == RULE_FRESH) == fresh;
}

/* Runs the rules one after another in this process, which ends with the first that does not hold. */
static void run_in_this_process(const size_t *list, size_t count) {
  for (size_t at = 0; at < count; at++) {
    current = &rules[list[at]];
    /* Of each rule; a rule that hangs ends the process by the signal. */
    alarm(SECONDS_FOR_A_RULE);
    if (current->kind == RULE_READY) suite_begin();
    current->run();
    answer("ok", NULL);
    progress->done++;
  }
  _exit(0);
}

/* Runs the listed rules in processes that take as many as end well, one at least. Returns how many
 * failed. */
static int run(const size_t *list, size_t count, size_t most_a_process) {
  int failed = 0;
  for (size_t next = 0; next < count;) {
    size_t some = count - next < most_a_process ? count - next : most_a_process;
    *progress = (progress_t){0, false};
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
      perror("fork");
      exit(EXIT_FAILED);
    }
    if (child == 0) run_in_this_process(list + next, some);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    next += (size_t)progress->done;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && (size_t)progress->done == some) continue;
    if (!progress->answered) {
      char what[100];
      if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(what, sizeof what, "does not end in %d seconds", SECONDS_FOR_A_RULE);
      else if (WIFSIGNALED(status))
        snprintf(what, sizeof what, "ends by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
      else
        snprintf(what, sizeof what, "ends the process with status %d", WEXITSTATUS(status));
      current = &rules[list[next]];
      answer("FAIL", what);
      failed++;
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILED) {
      failed++;
    }
    next++;
  }
  return failed;
}

int main(int argc, char **argv) {
#ifdef SUITE_LINKED
  const char *way = "link";
#else
  const char *way = "dlsym";
#endif
  bool together = false, chosen = false;
  for (int at = 1; at < argc; at++) {
    if (strcmp(argv[at], "link") == 0 || strcmp(argv[at], "dlsym") == 0 ||
        strcmp(argv[at], "gpa") == 0)
      way = argv[at];
    else if (strcmp(argv[at], "--together") == 0)
      together = true;
    else {
      bool found = false;
      for (size_t rule = 0; rule < rule_count; rule++) {
        if (!chosen) rules[rule].asked_for = false;
        if (strcmp(rules[rule].name, argv[at]) == 0) rules[rule].asked_for = found = true;
      }
      chosen = true;
      if (!found) {
        fprintf(stderr, "%s: no rule %s\n", program, argv[at]);
        return EXIT_FAILED;
      }
    }
  }
  progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (progress == MAP_FAILED) {
    perror("mmap");
    return EXIT_FAILED;
  }
  fill(way);
  /* A board takes long to make a context for each process. */
  if (!fakecuda_present()) together = true;
  size_t list[MOST_RULES], count = 0;
  int failed = 0;
  for (size_t rule = 0; rule < rule_count; rule++)
    if (fits(rule, true)) list[count++] = rule;
  failed += run(list, count, 1);
  count = 0;
  for (size_t rule = 0; rule < rule_count; rule++)
    if (fits(rule, false)) list[count++] = rule;
  failed += run(list, count, together ? MOST_RULES : 1);
  return failed == 0 ? 0 : EXIT_FAILED;
}
