#ifndef WEAKFORM_PREAMBLE
#define WEAKFORM_PREAMBLE
typedef $T T;
typedef unsigned int uint32;

#define INFINITY (1.0 / 0.0)

/// Adds to an element that other threads may add to.
__device__ __forceinline__ void atomic_add(T* at, T value) { atomicAdd(at, value); }

/// The element that an index array names; none for the largest index.
__device__ __forceinline__ T gather_masked(const T* source, uint32 at, int scale, int offset)
{
    return at == 0xffffffffu ? (T)0 : source[(size_t)at * scale + offset];
}

/// 1 / a for a whose reciprocal is a normal number: an estimate and Newton steps, without branches.
__device__ __forceinline__ double reciprocal(double a)
{
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(a));
    double e = fma(-a, r, 1.0);
    e = fma(e, e, e);
    return fma(r, e, r);
}

__device__ __forceinline__ float reciprocal(float a) { return 1.0f / a; }
#endif
