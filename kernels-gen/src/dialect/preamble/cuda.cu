typedef $T T;
typedef unsigned int uint32;
#define INLINE __device__ __forceinline__

#define INFINITY (1.0 / 0.0)

/// Adds to an element that other threads may add to.
INLINE void atomic_add(T* at, T value) { atomicAdd(at, value); }

/// Two nodes to add to, none being the largest index, and what is shared with the threads before and after this one.
struct Edge { uint32 near, far; bool takes, gives; };
/// The edge of this thread. All threads of a warp come here together.
INLINE Edge edge_of(uint32 near, uint32 far)
{
    const uint32 before = __shfl_up_sync(0xffffffffu, far, 1);
    const uint32 after = __shfl_down_sync(0xffffffffu, near, 1);
    const unsigned lane = threadIdx.x % 32;
    const bool last = lane == 31 || threadIdx.x + 1 == blockDim.x;
    return Edge{near, far, lane > 0 && before == near, !last && after == far};
}
/// Adds to both ends of an edge; where the next thread's begins at the far end, it adds for both.
INLINE void add_edge(T* to, Edge edge, int scale, int offset, T near, T far)
{
    const T before = __shfl_up_sync(0xffffffffu, far, 1);
    const T sum = edge.takes ? near + before : near;
    if (edge.near != 0xffffffffu) atomic_add(&to[(size_t)edge.near * scale + offset], sum);
    if (edge.far != 0xffffffffu && !edge.gives) atomic_add(&to[(size_t)edge.far * scale + offset], far);
}

/// The element that an index array names; none for the largest index.
INLINE T gather_masked(const T* source, uint32 at, int scale, int offset)
{
    return at == 0xffffffffu ? (T)0 : source[(size_t)at * scale + offset];
}

/// An index once more, from memory: so that it need not be kept.
INLINE uint32 again(const uint32* at)
{
    uint32 index;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(index) : "l"(at));
    return index;
}

/// The number of the thread once more: so that what follows from it need not be kept.
INLINE int thread_again()
{
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

/// Two neighbours, the first of them at an even place.
INLINE $T2 pair(const T* at) { return __ldg(reinterpret_cast<const $T2*>(at)); }

#define fence() asm volatile("" ::: "memory")

$RECIPROCAL
