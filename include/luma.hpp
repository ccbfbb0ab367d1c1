/// @file
/// luma for C++17 and later: a header-only face of the C interface in luma.h.
///
/// | name                        | what it is                                                      |
/// |-----------------------------|-----------------------------------------------------------------|
/// | luma::pool, luma::pool_ref  | a pool that is owned, and a handle of one that is not           |
/// | luma::unique_ptr            | an owned block, seen as elements of a type; on host or device   |
/// | luma::memory_resource       | a pool as a std::pmr::memory_resource; host memory only         |
/// | luma::allocator             | the default pool as a standard allocator; host memory only      |
/// | luma::pool_allocator        | any pool as a standard allocator; host memory only              |
/// | luma::CachingAllocator      | the class of luma-cuda 0.3.2                                    |
///
/// What fails throws, and what() is the message of luma_last_error: luma::out_of_memory (a
/// std::bad_alloc) where memory was refused, luma::error (a std::runtime_error) for everything
/// else. Destructors and moves never throw. Every function may be called from any thread; one
/// object must not be changed by one thread while another uses it, as usual.
#ifndef LUMA_HPP
#define LUMA_HPP

#include "luma.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#if __has_include(<memory_resource>)
#include <memory_resource>
#endif

namespace luma {

/// A call failed. what() says what was wrong and what can be done.
class error : public std::runtime_error {
public:
    error(luma_status_t status, const std::string &message)
        : std::runtime_error(message), status_(status) {}

    /// The code that the C interface answered.
    [[nodiscard]] luma_status_t status() const noexcept { return status_; }

private:
    luma_status_t status_;
};

/// The backend and the pool have nothing left, or the limit is reached. what() states the sizes.
///
/// It is a std::bad_alloc and not a luma::error: a class that is both would hold std::exception
/// twice, and `catch (const std::exception &)` would let it pass.
class out_of_memory : public std::bad_alloc {
public:
    explicit out_of_memory(const std::string &message) : message_(message) {}

    [[nodiscard]] const char *what() const noexcept override { return message_.what(); }

    /// Always LUMA_ERROR_OUT_OF_MEMORY.
    [[nodiscard]] luma_status_t status() const noexcept { return LUMA_ERROR_OUT_OF_MEMORY; }

private:
    // Exceptions are copied without throwing; runtime_error holds its text in such a way, a
    // string does not.
    std::runtime_error message_;
};

namespace detail {

/// Throws what the failed call left in this thread's last message.
[[noreturn]] inline void raise(luma_status_t status) {
    const char *text = luma_last_error();
    std::string message = text != nullptr ? text : "";
    if (message.empty()) {
        message = luma_status_string(status);
    }
    if (status == LUMA_ERROR_OUT_OF_MEMORY) {
        throw out_of_memory(message);
    }
    throw error(status, message);
}

inline void require(luma_status_t status) {
    if (status != LUMA_SUCCESS) {
        raise(status);
    }
}

/// NULL is a failure unless the call says that it succeeded (a block of no bytes).
inline void *require(void *ptr) {
    if (ptr == nullptr) {
        require(luma_last_status());
    }
    return ptr;
}

/// For calls whose failure a destructor or deallocate cannot report.
inline void ignore(luma_status_t) noexcept {}

/// `count` elements of `size` bytes, or std::bad_array_new_length where that has no std::size_t.
inline std::size_t array_bytes(std::size_t count, std::size_t size) {
    if (count > std::numeric_limits<std::size_t>::max() / size) {
        throw std::bad_array_new_length();
    }
    return count * size;
}

/// Refuses a pool that containers cannot live in; `user` is the class that wants it.
inline void require_host_memory(luma_pool_t *pool, const char *user) {
    if (pool == nullptr) {
        throw error(LUMA_ERROR_INVALID_VALUE,
                    std::string(user) + ": the pool is empty (moved from, or never made)");
    }
    if (luma_pool_is_host_accessible(pool) == 0) {
        require(luma_last_status());
        throw error(LUMA_ERROR_UNSUPPORTED,
                    std::string(user) +
                        ": the host cannot touch this pool's memory (what callbacks give counts "
                        "as a device's); use a pool of LUMA_BACKEND_HOST (for the default pool: "
                        "LUMA_BACKEND=host), or luma::unique_ptr, which does not touch what it "
                        "owns");
    }
}

/// Refuses default pools that containers cannot live in. All default pools have one backend, so
/// the answer for the device that is current now holds for all; a failure is asked again the next
/// time.
inline void require_host_default_pool() {
    static const bool accessible = [] {
        luma_pool_t *pool = luma_default_pool(LUMA_CURRENT_DEVICE);
        if (pool == nullptr) {
            raise(luma_last_status());
        }
        require_host_memory(pool, "luma::allocator");
        return true;
    }();
    static_cast<void>(accessible);
}

/// The calls of a pool, for any class that has native_handle().
template <class Handle> class pool_calls {
public:
    /// At least `bytes` bytes for work on `stream`; nullptr for none. `alignment`: 0 or a power
    /// of two; below 256 is 256.
    [[nodiscard]] void *alloc(std::size_t bytes, std::size_t alignment = 0,
                              luma_stream_t stream = nullptr) const {
        return require(luma_pool_alloc(handle(), bytes, alignment, stream));
    }

    /// Gives a block of this pool back; nullptr does nothing. Anything but a live block's start
    /// changes nothing and throws.
    void free(void *ptr, luma_stream_t stream = nullptr) const {
        require(luma_pool_free(handle(), ptr, stream));
    }

    /// Gives wholly free segments back to the backend and returns their bytes.
    std::size_t empty_cache() const {
        const std::size_t given = luma_pool_empty_cache(handle());
        if (given == 0) {
            require(luma_last_status());
        }
        return given;
    }

    [[nodiscard]] luma_stats_t stats() const {
        luma_stats_t out{};
        out.struct_size = sizeof(out);
        require(luma_pool_stats(handle(), &out));
        return out;
    }

    /// Walks all book-keeping; throws LUMA_ERROR_CORRUPTED that names the first broken rule.
    void check() const { require(luma_pool_check(handle())); }

    /// The most bytes that the pool may hold from its backend; 0: no limit.
    void set_limit(std::uint64_t bytes) const { require(luma_pool_set_limit(handle(), bytes)); }

    /// Whether the host can read and write the pool's memory.
    [[nodiscard]] bool is_host_accessible() const noexcept {
        return luma_pool_is_host_accessible(handle()) != 0;
    }

protected:
    pool_calls() = default;
    ~pool_calls() = default;
    pool_calls(const pool_calls &) = default;
    pool_calls &operator=(const pool_calls &) = default;

private:
    [[nodiscard]] luma_pool_t *handle() const noexcept {
        return static_cast<const Handle *>(this)->native_handle();
    }
};

} // namespace detail

/// What the pool held when this thread's last request failed for want of memory, what was tried, and
/// which single action (a luma_oom_action_t) would have made it fit. For a handler of
/// luma::out_of_memory; throws LUMA_ERROR_INVALID_VALUE where no request has failed so.
[[nodiscard]] inline luma_oom_report_t oom_report() {
    luma_oom_report_t out{};
    out.struct_size = sizeof(out);
    detail::require(luma_oom_report(&out));
    return out;
}

/// A pool that someone else owns: copied like a pointer, and valid as long as the pool is.
class pool_ref : public detail::pool_calls<pool_ref> {
public:
    explicit pool_ref(luma_pool_t *handle) noexcept : handle_(handle) {}

    /// The default pool of a device. It lives until the process ends.
    [[nodiscard]] static pool_ref default_pool(int device = LUMA_CURRENT_DEVICE) {
        luma_pool_t *handle = luma_default_pool(device);
        if (handle == nullptr) {
            detail::raise(luma_last_status());
        }
        return pool_ref(handle);
    }

    [[nodiscard]] luma_pool_t *native_handle() const noexcept { return handle_; }

    friend bool operator==(pool_ref a, pool_ref b) noexcept { return a.handle_ == b.handle_; }
    friend bool operator!=(pool_ref a, pool_ref b) noexcept { return a.handle_ != b.handle_; }

private:
    luma_pool_t *handle_;
};

/// What a pool is made from: the fields of luma_pool_config_t, all of them at their defaults.
struct pool_config : luma_pool_config_t {
    pool_config() noexcept : luma_pool_config_t{} { struct_size = sizeof(luma_pool_config_t); }
};

/// An owned pool. Its destructor gives everything back to the backend, live blocks too, so what
/// was allocated from it must not be used after it.
class pool : public detail::pool_calls<pool> {
public:
    /// A pool with default settings.
    pool() : pool(pool_config()) {}

    explicit pool(const luma_pool_config_t &config) : handle_(nullptr) {
        detail::require(luma_pool_create(&config, &handle_));
    }

    pool(pool &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

    pool &operator=(pool &&other) noexcept {
        pool taken(std::move(other));
        std::swap(handle_, taken.handle_);
        return *this;
    }

    pool(const pool &) = delete;
    pool &operator=(const pool &) = delete;

    ~pool() {
        if (handle_ != nullptr) {
            detail::ignore(luma_pool_destroy(handle_));
        }
    }

    /// The default pool of a device, which nobody owns.
    [[nodiscard]] static pool_ref default_pool(int device = LUMA_CURRENT_DEVICE) {
        return pool_ref::default_pool(device);
    }

    /// The C handle; NULL once moved from.
    [[nodiscard]] luma_pool_t *native_handle() const noexcept { return handle_; }

    /// Gives the ownership up: luma_pool_destroy is the caller's to call.
    [[nodiscard]] luma_pool_t *release() noexcept { return std::exchange(handle_, nullptr); }

    [[nodiscard]] pool_ref ref() const & noexcept { return pool_ref(handle_); }
    operator pool_ref() const & noexcept { return pool_ref(handle_); }

    // A handle of a temporary would be dead at the end of the statement.
    pool_ref ref() const && = delete;
    operator pool_ref() const && = delete;

private:
    luma_pool_t *handle_;
};

/// An owned block of a pool, seen as `size()` elements of T. `T[]` means the same as `T`.
///
/// The memory may lie on a device, so nothing here touches it: elements are neither made nor
/// destroyed, and there is no operator to reach them. get() goes to kernels and copies, or is
/// used as a pointer where is_host_accessible() says so. The pool must outlive the block.
template <class T> class unique_ptr {
public:
    using element_type = std::remove_extent_t<T>;
    using pointer = element_type *;

    static_assert(std::extent_v<T> == 0, "the number of elements is make_unique's argument");
    static_assert(std::is_trivially_destructible_v<element_type>,
                  "elements are never destroyed, so their type must not need it");

    unique_ptr() noexcept = default;
    unique_ptr(std::nullptr_t) noexcept {}

    /// Takes a live block of `pool` over, which holds at least `count` elements. An empty `pool`
    /// stands for the default pools.
    unique_ptr(pointer ptr, std::size_t count, pool_ref pool,
               luma_stream_t stream = nullptr) noexcept
        : ptr_(ptr), count_(count), pool_(pool), stream_(stream) {}

    unique_ptr(unique_ptr &&other) noexcept
        : ptr_(std::exchange(other.ptr_, nullptr)), count_(std::exchange(other.count_, 0)),
          pool_(other.pool_), stream_(other.stream_) {}

    unique_ptr &operator=(unique_ptr &&other) noexcept {
        unique_ptr taken(std::move(other));
        swap(taken);
        return *this;
    }

    unique_ptr(const unique_ptr &) = delete;
    unique_ptr &operator=(const unique_ptr &) = delete;

    ~unique_ptr() { reset(); }

    /// The first element; nullptr where there are none.
    [[nodiscard]] pointer get() const noexcept { return ptr_; }
    /// The number of elements.
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    /// The bytes of all elements.
    [[nodiscard]] std::size_t size_bytes() const noexcept { return count_ * sizeof(element_type); }
    /// The pool that the block goes back to; empty for a default pool.
    [[nodiscard]] pool_ref get_pool() const noexcept { return pool_; }
    /// The stream that the block is freed on.
    [[nodiscard]] luma_stream_t stream() const noexcept { return stream_; }
    [[nodiscard]] explicit operator bool() const noexcept { return ptr_ != nullptr; }

    /// Gives the block back now. A block that the pool no longer knows (it was freed behind this
    /// object's back) is dropped; luma_last_status tells.
    void reset() noexcept {
        count_ = 0;
        if (pointer ptr = std::exchange(ptr_, nullptr); ptr != nullptr) {
            if (pool_.native_handle() != nullptr) {
                detail::ignore(luma_pool_free(pool_.native_handle(), ptr, stream_));
            } else {
                detail::ignore(luma_free(ptr));
            }
        }
    }

    /// Gives the ownership up: the block is the caller's to free.
    [[nodiscard]] pointer release() noexcept {
        count_ = 0;
        return std::exchange(ptr_, nullptr);
    }

    void swap(unique_ptr &other) noexcept {
        std::swap(ptr_, other.ptr_);
        std::swap(count_, other.count_);
        std::swap(pool_, other.pool_);
        std::swap(stream_, other.stream_);
    }
    friend void swap(unique_ptr &a, unique_ptr &b) noexcept { a.swap(b); }

    friend bool operator==(const unique_ptr &a, std::nullptr_t) noexcept { return !a; }
    friend bool operator==(std::nullptr_t, const unique_ptr &a) noexcept { return !a; }
    friend bool operator!=(const unique_ptr &a, std::nullptr_t) noexcept { return a.get() != nullptr; }
    friend bool operator!=(std::nullptr_t, const unique_ptr &a) noexcept { return a.get() != nullptr; }

private:
    pointer ptr_ = nullptr;
    std::size_t count_ = 0;
    pool_ref pool_{nullptr};
    luma_stream_t stream_ = nullptr;
};

/// `count` elements of T from `pool`, with unspecified contents.
template <class T>
[[nodiscard]] unique_ptr<T> make_unique(pool_ref pool, std::size_t count,
                                        luma_stream_t stream = nullptr) {
    using element = std::remove_extent_t<T>;
    void *ptr = pool.alloc(detail::array_bytes(count, sizeof(element)), alignof(element), stream);
    return unique_ptr<T>(static_cast<element *>(ptr), count, pool, stream);
}

/// `count` elements of T from the default pool of the device that is current.
template <class T> [[nodiscard]] unique_ptr<T> make_unique(std::size_t count) {
    using element = std::remove_extent_t<T>;
    void *ptr = detail::require(
        luma_alloc_aligned(detail::array_bytes(count, sizeof(element)), alignof(element)));
    return unique_ptr<T>(static_cast<element *>(ptr), count, pool_ref(nullptr));
}

#if defined(__cpp_lib_memory_resource)
/// A pool as a std::pmr::memory_resource. The pool must outlive it and what is allocated from it.
///
/// Memory that its pool does not know is not freed, and deallocate does not throw, as the standard
/// asks; luma_last_status tells.
class memory_resource : public std::pmr::memory_resource {
public:
    /// Throws luma::error (LUMA_ERROR_UNSUPPORTED) for a pool whose memory the host cannot touch.
    explicit memory_resource(pool_ref pool) : pool_(pool) {
        detail::require_host_memory(pool.native_handle(), "luma::memory_resource");
    }

    [[nodiscard]] pool_ref get_pool() const noexcept { return pool_; }

private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        // The standard wants an address even for no bytes; luma answers that with NULL.
        return pool_.alloc(bytes == 0 ? 1 : bytes, alignment);
    }

    void do_deallocate(void *ptr, std::size_t, std::size_t) override {
        detail::ignore(luma_pool_free(pool_.native_handle(), ptr, nullptr));
    }

    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        const auto *same = dynamic_cast<const memory_resource *>(&other);
        return same != nullptr && same->pool_ == pool_;
    }

    pool_ref pool_;
};
#endif

/// The default pool of the device that is current, as a standard allocator. All are equal.
///
/// allocate throws luma::error (LUMA_ERROR_UNSUPPORTED) where the host cannot touch the default
/// pool's memory, and std::bad_array_new_length where the size has no std::size_t.
template <class T> class allocator {
public:
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    allocator() noexcept = default;
    template <class U> allocator(const allocator<U> &) noexcept {}

    [[nodiscard]] T *allocate(std::size_t count) {
        const std::size_t bytes = detail::array_bytes(count, sizeof(T));
        detail::require_host_default_pool();
        return static_cast<T *>(detail::require(luma_alloc_aligned(bytes, alignof(T))));
    }

    void deallocate(T *ptr, std::size_t) noexcept { detail::ignore(luma_free(ptr)); }

    template <class U> friend bool operator==(const allocator &, const allocator<U> &) noexcept {
        return true;
    }
    template <class U> friend bool operator!=(const allocator &, const allocator<U> &) noexcept {
        return false;
    }
};

/// A pool as a standard allocator. The pool must outlive every container that uses it.
///
/// Two are equal when their pool is the same. A container keeps its pool when it is assigned a
/// copy of another; it takes the other's pool along when it is moved to or swapped, so neither
/// ever copies elements or is undefined. A copied container uses the pool of its original.
template <class T> class pool_allocator {
public:
    using value_type = T;
    using is_always_equal = std::false_type;
    using propagate_on_container_copy_assignment = std::false_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    /// Throws luma::error (LUMA_ERROR_UNSUPPORTED) for a pool whose memory the host cannot touch.
    pool_allocator(pool_ref pool) : pool_(pool) {
        detail::require_host_memory(pool.native_handle(), "luma::pool_allocator");
    }
    pool_allocator(const pool &owner) : pool_allocator(owner.ref()) {}
    pool_allocator(pool &&) = delete;

    template <class U>
    pool_allocator(const pool_allocator<U> &other) noexcept : pool_(other.get_pool()) {}

    [[nodiscard]] T *allocate(std::size_t count) {
        const std::size_t bytes = detail::array_bytes(count, sizeof(T));
        return static_cast<T *>(pool_.alloc(bytes, alignof(T)));
    }

    void deallocate(T *ptr, std::size_t) noexcept {
        detail::ignore(luma_pool_free(pool_.native_handle(), ptr, nullptr));
    }

    [[nodiscard]] pool_ref get_pool() const noexcept { return pool_; }

    template <class U>
    friend bool operator==(const pool_allocator &a, const pool_allocator<U> &b) noexcept {
        return a.get_pool() == b.get_pool();
    }
    template <class U>
    friend bool operator!=(const pool_allocator &a, const pool_allocator<U> &b) noexcept {
        return a.get_pool() != b.get_pool();
    }

private:
    pool_ref pool_;
};

/// The class of luma-cuda 0.3.2, over a pool of its own with that version's policies. Code that
/// was written against it needs this header's name and namespace, and nothing else.
///
/// Its destructor gives all memory back, blocks that were never freed too.
class CachingAllocator {
public:
    /// Sizes in bytes; the fields of luma_stats_t with the same names.
    struct Stats {
        std::uint64_t allocated_bytes;
        std::uint64_t reserved_bytes;
        std::uint64_t peak_bytes;
        std::uint64_t live_blocks;
        std::uint64_t free_blocks;
        std::uint64_t segments;
        std::uint64_t cuda_malloc_calls;
        std::uint64_t cuda_free_calls;
    };

    /// Memory of device `device`.
    explicit CachingAllocator(int device = 0) : pool_(config(device)) {}

    CachingAllocator(const CachingAllocator &) = delete;
    CachingAllocator &operator=(const CachingAllocator &) = delete;

    /// At least `bytes` bytes, aligned to 256; nullptr for none.
    [[nodiscard]] void *alloc(std::size_t bytes) { return pool_.alloc(bytes); }

    /// Keeps the block for later requests; nullptr does nothing. Throws luma::error for anything
    /// but a live block's start.
    void free(void *ptr) { pool_.free(ptr); }

    /// Gives wholly free segments back to the backend.
    void empty_cache() { pool_.empty_cache(); }

    [[nodiscard]] Stats stats() const {
        const luma_stats_t all = pool_.stats();
        return {all.allocated_bytes, all.reserved_bytes, all.peak_bytes,        all.live_blocks,
                all.free_blocks,     all.segments,       all.cuda_malloc_calls, all.cuda_free_calls};
    }

    /// Throws luma::error (LUMA_ERROR_CORRUPTED) where the book-keeping breaks one of its rules.
    void assert_consistency() const { pool_.check(); }

private:
    static pool_config config(int device) {
        pool_config config;
        config.device = device;
        config.preset = LUMA_PRESET_LUMA_0_3;
        return config;
    }

    pool pool_;
};

} // namespace luma

#endif // LUMA_HPP
