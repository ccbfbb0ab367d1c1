// What the C++ tests share: checks that hold in release builds too, and say where they failed.
#ifndef LUMA_CPP_CHECK_HPP
#define LUMA_CPP_CHECK_HPP

#include "luma.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

[[noreturn]] inline void failed(const char *file, int line, const std::string &what) {
    std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
    std::exit(1);
}

#define CHECK(condition) \
    ((condition) ? static_cast<void>(0) : failed(__FILE__, __LINE__, "failed: " #condition))

/// Runs `call`, which must throw an Exception, and returns a copy of it.
template <class Exception, class Call>
Exception thrown_by(Call call, const char *file, int line, const char *text) {
    try {
        call();
    } catch (const Exception &caught) {
        return caught;
    } catch (const std::exception &other) {
        failed(file, line, std::string(text) + " threw another type: " + other.what());
    }
    failed(file, line, std::string(text) + " did not throw");
}

#define THROWN(Exception, expression)                                                   \
    thrown_by<Exception>([&] { static_cast<void>(expression); }, __FILE__, __LINE__, #expression)

/// The last message of the C interface, as a string that stays.
inline std::string last_error() { return luma_last_error(); }

inline bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

inline bool aligned(const volatile void *ptr, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(ptr) % alignment == 0;
}

/// A pool of host memory with a device of its own, so that tests cannot disturb each other.
inline luma::pool_config host_config(std::uint64_t memory_limit = 0) {
    luma::pool_config config;
    config.backend = LUMA_BACKEND_HOST;
    config.capacity = std::uint64_t{1} << 30;
    config.memory_limit = memory_limit;
    return config;
}

/// A pool of addresses without memory behind them, as a stand-in for a device's.
inline luma::pool_config simulated_config() {
    luma::pool_config config;
    config.backend = LUMA_BACKEND_SIMULATED;
    config.capacity = std::uint64_t{1} << 30;
    return config;
}

#endif
