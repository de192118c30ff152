#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif
typedef $T T;
typedef $U U;
typedef uint uint32;
#define INLINE static inline

/// The threads of a group. NVIDIA's compiler heeds a bound of registers only where it is not told.
#if defined(REGISTERS) && REGISTERS < 255
#define group_of(threads)
#else
#define group_of(threads) __attribute__((reqd_work_group_size(threads, 1, 1)))
#endif

/// Accesses to memory stay on their side.
#ifdef __NV_CL_C_VERSION
#define fence() asm volatile("" ::: "memory")
#else
#define fence()
#endif

/// Adds to an element that other threads may add to: OpenCL 1.2 has no such operation for reals, NVIDIA an instruction.
INLINE void atomic_add_real(volatile __global T* at, T value)
{
#ifdef __NV_CL_C_VERSION
    asm volatile("red.global.add.$P [%0], %1;" :: "l"(at), "$C"(value) : "memory");
#else
    union { U bits; T real; } old, sum;
    old.real = *at;
    for (;;) {
        sum.real = old.real + value;
        const U seen = $EXCHANGE((volatile __global U*)at, old.bits, sum.bits);
        if (seen == old.bits) return;
        old.bits = seen;
    }
#endif
}
#define atomic_add(at, value) atomic_add_real(at, value)

/// Two nodes to add to, none being the largest index.
typedef struct { uint32 near, far; } Edge;
INLINE Edge edge_of(uint32 near, uint32 far)
{
    const Edge edge = { near, far };
    return edge;
}
/// Adds to both ends of an edge: OpenCL 1.2 does not let threads see each other's registers.
INLINE void add_edge(volatile __global T* to, Edge edge, int scale, int offset, T near, T far)
{
    if (edge.near != 0xffffffffu) atomic_add(&to[(size_t)edge.near * scale + offset], near);
    if (edge.far != 0xffffffffu) atomic_add(&to[(size_t)edge.far * scale + offset], far);
}

/// The element that an index array names; none for the largest index.
INLINE T gather_masked(__global const T* source, uint32 at, int scale, int offset)
{
    return at == 0xffffffffu ? (T)0 : source[(size_t)at * scale + offset];
}

/// A number from the memory of constants, which NVIDIA's instructions read as they read registers: a compiler that knew it
/// would put it together from two halves.
#ifdef __NV_CL_C_VERSION
INLINE T listed_at(__constant const T* at)
{
    T number;
    asm("ld.const.$P %0, [%1];" : "=$C"(number) : "l"(at));
    return number;
}
#define listed(number) listed_at(&(number))
#else
#define listed(number) (number)
#endif

#ifdef __NV_CL_C_VERSION
$RECIPROCAL#else
INLINE T reciprocal(T a) { return (T)1 / a; }
#endif

/// Two neighbours, the first of them at an even place.
INLINE $T2 pair(__global const T* at) { return *(__global const $T2*)at; }

/// An index once more, from memory: so that it need not be kept.
INLINE uint32 again(__global const uint32* at)
{
#ifdef __NV_CL_C_VERSION
    uint32 index;
    asm("ld.global.nc.u32 %0, [%1];" : "=r"(index) : "l"(at));
    return index;
#else
    return *at;
#endif
}

/// The number of the thread once more: so that what follows from it need not be kept.
INLINE int thread_again(void) { return (int)get_local_id(0); }
