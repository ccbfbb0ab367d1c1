// versions: table HOOKED... -- NAME...: at every version and in every flavour, a name gives luma's function exactly
// where the driver gives one that is hooked.
// symbols: table HOOKED...: the driver's symbol gives luma's function of the same name.
//
// Linked with the driver, under the library and behind.c.
#include "check.h"

typedef int (*get)(const char *, void **, int, unsigned long long, int *);

static void *driver(const char *name) {
  void *(*behind)(const char *) = (void *(*)(const char *))dlsym(RTLD_DEFAULT, "behind");
  CHECK(behind);
  void *found = behind(name);
  CHECK(found == NULL || is_driver(found));
  return found;
}

int main(int count, char **arguments) {
  int hooked = 1;
  while (hooked < count && strcmp(arguments[hooked], "--")) hooked++;
  void *handle = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(handle);
  for (int i = 1; i < hooked; i++) {
    if (driver(arguments[i]) == NULL) fprintf(stderr, "the driver has no %s\n", arguments[i]);
    if (!is_hook(dlsym(handle, arguments[i]), arguments[i])) fprintf(stderr, "%s is not hooked\n", arguments[i]);
  }

  get hook = (get)dlsym(handle, "cuGetProcAddress_v2");
  get real = (get)driver("cuGetProcAddress_v2");
  CHECK((void *)hook != (void *)real);
  int compared = 0;
  for (int name = hooked + 1; name < count; name++) {
    for (int version = 2000; version <= 13060; version += 10) {
      for (unsigned long long flags = 0; flags < 3; flags++) {
        void *theirs = NULL, *ours = NULL;
        int their_status = -1, our_status = -1;
        int their_code = real(arguments[name], &theirs, version, flags, &their_status);
        int our_code = hook(arguments[name], &ours, version, flags, &our_status);
        CHECK(their_code == our_code && their_status == our_status);
        const char *expected = NULL;
        Dl_info info;
        CHECK(theirs == NULL || dladdr(theirs, &info));
        for (int i = 1; theirs && i < hooked; i++) {
          if (strcmp(arguments[i], info.dli_sname) == 0) expected = arguments[i];
        }
        if (expected ? !is_hook(ours, expected) : ours != theirs) {
          fprintf(stderr, "%s, version %d, flags %llu: the driver has %s\n", arguments[name], version, flags,
                  theirs ? info.dli_sname : "nothing");
        }
        compared += expected != NULL;
      }
    }
  }
  // Each is reached by a name.
  for (int i = 1; hooked < count && i < hooked; i++) {
    if (answers(arguments[i]) < 2) fprintf(stderr, "no name gives %s\n", arguments[i]);
  }
  printf("%d\n", compared);
  return 0;
}
