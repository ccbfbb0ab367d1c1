// A driver that tells that it was opened.
#include <unistd.h>

__attribute__((constructor)) static void tell(void) {
  static const char text[] = "the driver was opened\n";
  if (write(2, text, sizeof text - 1) < 0) _exit(1);
}
