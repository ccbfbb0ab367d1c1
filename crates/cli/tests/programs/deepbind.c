/* Opens libraries with RTLD_DEEPBIND, one after the other, and has no variable of luma's after the first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        if (dlopen(arguments[i], RTLD_NOW | RTLD_DEEPBIND) == NULL)
            return 50;
        unsetenv("LUMA_INTERPOSE_DEEPBIND");
    }
    return count > 1 ? 0 : 50;
}
