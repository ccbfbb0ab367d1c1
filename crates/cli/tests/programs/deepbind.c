/* Opens a library with RTLD_DEEPBIND. */
#define _GNU_SOURCE
#include <dlfcn.h>

int main(int count, char **arguments) {
    return count > 1 && dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND) != 0 ? 0 : 50;
}
