// Names and texts of errors. They need no driver.
#include "runtime.h"

namespace {

struct Text {
    int number;
    const char *name;
    const char *text;
};

// Names are of the newest runtime, so that an older one can name what a newer driver answers.
constexpr Text texts[] = {
#define F(number, name, text) {number, #name, text},
#include "errors.inc"
#undef F
};

#if CUDART_VERSION >= 13000
#define F(number, name, text) static_assert(static_cast<int>(name) == number, #name);
#include "errors.inc"
#undef F
#endif

const Text unknown = {0, "unrecognized error code", "unrecognized error code"};

const Text &find(cudaError_t error) {
    for (const Text &text : texts)
        if (text.number == static_cast<int>(error))
            return text;
    return unknown;
}

} // namespace

RT_API const char *cudaGetErrorName(cudaError_t error) { return find(error).name; }

RT_API const char *cudaGetErrorString(cudaError_t error) { return find(error).text; }
