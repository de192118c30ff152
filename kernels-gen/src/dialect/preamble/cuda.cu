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

/// An index once more, from memory: so that it need not be kept.
__device__ __forceinline__ uint32 again(const uint32* at)
{
    uint32 index;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(index) : "l"(at));
    return index;
}

/// Two neighbours, the first of them at an even place.
__device__ __forceinline__ $T2 pair(const T* at) { return __ldg(reinterpret_cast<const $T2*>(at)); }

#define fence() asm volatile("" ::: "memory")

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
