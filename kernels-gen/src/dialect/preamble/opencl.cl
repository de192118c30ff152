#ifndef WEAKFORM_PREAMBLE
#define WEAKFORM_PREAMBLE
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif

typedef $T T;
typedef $U U;
typedef uint uint32;

/// Adds to an element that other threads may add to: OpenCL 1.2 has no such operation for reals.
static inline void atomic_add_real(volatile __global T* at, T value)
{
    union { U bits; T real; } old, sum;
    old.real = *at;
    for (;;) {
        sum.real = old.real + value;
        const U seen = $EXCHANGE((volatile __global U*)at, old.bits, sum.bits);
        if (seen == old.bits) return;
        old.bits = seen;
    }
}
#define atomic_add(at, value) atomic_add_real(at, value)

/// The element that an index array names; none for the largest index.
static inline T gather_masked(__global const T* source, uint32 at, int scale, int offset)
{
    return at == 0xffffffffu ? (T)0 : source[(size_t)at * scale + offset];
}

static inline T reciprocal(T a) { return (T)1 / a; }
#endif
