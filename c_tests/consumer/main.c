/* Uses the installed C header and library: they belong together, and memory can be had. */
#include <luma.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    char header[32];
    void *block;

    snprintf(header, sizeof(header), "%d.%d.%d", LUMA_VERSION_MAJOR, LUMA_VERSION_MINOR,
             LUMA_VERSION_PATCH);
    if (strcmp(header, luma_version()) != 0) {
        fprintf(stderr, "luma.h is %s, the library %s\n", header, luma_version());
        return 1;
    }

    block = luma_alloc(1000);
    if (block == NULL || luma_usable_size(block) != 1024) {
        fprintf(stderr, "luma_alloc: %s\n", luma_last_error());
        return 1;
    }
    if (luma_free(block) != LUMA_SUCCESS || luma_free(block) != LUMA_ERROR_INVALID_POINTER) {
        fprintf(stderr, "luma_free: %s\n", luma_last_error());
        return 1;
    }
    printf("C: luma %s\n", luma_version());
    return 0;
}
