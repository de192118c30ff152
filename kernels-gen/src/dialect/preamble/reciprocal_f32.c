/// 1 / a, to the last place or two.
INLINE T reciprocal(T a)
{
    T r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}
