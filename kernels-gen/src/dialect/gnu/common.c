#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline, unused))

#define NOINLINE static __attribute__((noinline, unused))

#ifndef __has_builtin
#define __has_builtin(name) 0
#endif

// Asks for a cache line, into the first level.
INLINE void prefetch_0(uintptr_t from)
{
    __builtin_prefetch((const void *)from, 0, 3);
}

// The same, into the second level.
INLINE void prefetch_1(uintptr_t from)
{
    __builtin_prefetch((const void *)from, 0, 2);
}

INLINE size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}
