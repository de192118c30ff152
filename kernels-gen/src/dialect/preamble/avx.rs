use std::arch::x86_64::*;

type T = $T;
const LANES: usize = $LANES;

/// One real a lane.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct V($VECTOR);

/// One truth value a lane.
#[derive(Clone, Copy)]
struct M($AVX2{$VECTOR}$AVX512{$MASK});

impl V {
    #[inline(always)]
    fn splat(value: T) -> Self {
        unsafe { Self($P_set1_$S(value)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        unsafe { Self($P_loadu_$S(from)) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        unsafe { $P_storeu_$S(to, self.0) }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const T, count: usize) -> Self {
        $AVX2{unsafe {
            let mut lanes = [0.0; LANES];
            for lane in 0..count {
                lanes[lane] = *from.add(lane);
            }
            Self::from_array(lanes)
        }}$AVX512{unsafe { Self($P_maskz_loadu_$S(((1u32 << count) - 1) as $MASK, from)) }}
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut T, count: usize) {
        $AVX2{let lanes = self.to_array();
        for lane in 0..count {
            unsafe { *to.add(lane) = lanes[lane] };
        }}$AVX512{unsafe { $P_mask_storeu_$S(to, ((1u32 << count) - 1) as $MASK, self.0) }}
    }
    #[inline(always)]
    fn from_array(lanes: [T; LANES]) -> Self {
        unsafe { Self::load(lanes.as_ptr()) }
    }
    #[inline(always)]
    fn to_array(self) -> [T; LANES] {
        let mut lanes = [0.0; LANES];
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes
    }
    #[inline(always)]
    unsafe fn gather(source: *const T, map: *const u32, scale: usize, offset: usize) -> Self {
        unsafe {
            let mut lanes = [0.0; LANES];
            for lane in 0..LANES {
                lanes[lane] = *source.add(*map.add(lane) as usize * scale + offset);
            }
            Self::from_array(lanes)
        }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        unsafe { Self($P_add_$S(self.0, b.0)) }
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        unsafe { Self($P_sub_$S(self.0, b.0)) }
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        unsafe { Self($P_mul_$S(self.0, b.0)) }
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        unsafe { Self($P_div_$S(self.0, b.0)) }
    }
    /// self · b + c
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        unsafe { Self($P_fmadd_$S(self.0, b.0, c.0)) }
    }
    /// c − self · b
    #[inline(always)]
    fn fma_neg(self, b: Self, c: Self) -> Self {
        unsafe { Self($P_fnmadd_$S(self.0, b.0, c.0)) }
    }
    #[inline(always)]
    fn neg(self) -> Self {
        unsafe { Self($P_sub_$S($P_set1_$S(-0.0), self.0)) }
    }
$AVX512{    /// 1 / self. The divider works beside the multipliers: cheaper here than an estimate with
    /// Newton steps, which would take their time.
}    #[inline(always)]
    fn reciprocal(self) -> Self {
        Self::splat(1.0).div(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        unsafe { Self($P_sqrt_$S(self.0)) }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        unsafe { Self($P_andnot_$S($P_set1_$S(-0.0), self.0)) }
    }
    #[inline(always)]
    fn lt(self, b: Self) -> M {
        unsafe { M($P_cmp_$S$AVX512{_mask}::<_CMP_LT_OQ>(self.0, b.0)) }
    }
    #[inline(always)]
    fn le(self, b: Self) -> M {
        unsafe { M($P_cmp_$S$AVX512{_mask}::<_CMP_LE_OQ>(self.0, b.0)) }
    }
    #[inline(always)]
    fn eq(self, b: Self) -> M {
        unsafe { M($P_cmp_$S$AVX512{_mask}::<_CMP_EQ_OQ>(self.0, b.0)) }
    }
}

impl M {
    #[inline(always)]
    fn splat(value: bool) -> Self {
        $AVX2{let zero = V::splat(0.0);
        if value { zero.eq(zero) } else { M(zero.0) }}$AVX512{Self(if value { !0 } else { 0 })}
    }
    #[inline(always)]
    fn and(self, b: Self) -> Self {
        $AVX2{unsafe { Self($P_and_$S(self.0, b.0)) }}$AVX512{Self(self.0 & b.0)}
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        $AVX2{unsafe { Self($P_or_$S(self.0, b.0)) }}$AVX512{Self(self.0 | b.0)}
    }
    #[inline(always)]
    fn not(self) -> Self {
        $AVX2{unsafe { Self($P_xor_$S(self.0, Self::splat(true).0)) }}$AVX512{Self(!self.0)}
    }
    /// a where it is true, else b.
    #[inline(always)]
    fn select(self, a: V, b: V) -> V {
        $AVX2{unsafe { V($P_blendv_$S(b.0, a.0, self.0)) }}$AVX512{unsafe { V($P_mask_blend_$S(self.0, b.0, a.0)) }}
    }
}

/// Asks for a cache line, into the second level.
#[inline(always)]
unsafe fn prefetch<const LEVEL: usize>(from: *const i8) {
    unsafe {
        if LEVEL == 0 { _mm_prefetch::<_MM_HINT_T0>(from) } else { _mm_prefetch::<_MM_HINT_T1>(from) }
    }
}
