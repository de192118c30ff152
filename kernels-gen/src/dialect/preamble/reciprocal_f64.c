/// 1 / a for a whose reciprocal is a normal number: an estimate and Newton steps, without branches.
INLINE T reciprocal(T a)
{
    T r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(a));
    T e = fma(-a, r, 1.0);
    e = fma(e, e, e);
    return fma(r, e, r);
}
