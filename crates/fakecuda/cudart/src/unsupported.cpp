// What the names answer that this runtime does not implement.
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>

// FAKECUDA_LOG_STUBS names them on the standard error, as it does the driver's.
RT_API int rt_unsupported(const char *name) {
    const char *wish = getenv("FAKECUDA_LOG_STUBS");
    if (wish != nullptr && wish[0] != '\0' && !(wish[0] == '0' && wish[1] == '\0'))
        fprintf(stderr, "fakecudart: %s is not supported\n", name);
    return rt::report(cudaErrorNotSupported);
}
