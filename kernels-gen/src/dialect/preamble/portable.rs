type T = $T;
const LANES: usize = $LANES;

/// One real a lane.
#[derive(Clone, Copy)]
#[repr(C, align($BYTES))]
struct V([T; LANES]);

/// One truth value a lane.
#[derive(Clone, Copy)]
struct M([bool; LANES]);

impl V {
    #[inline(always)]
    fn splat(value: T) -> Self {
        Self([value; LANES])
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        Self([$EACH{unsafe { *from.add($I) }}])
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        for lane in 0..LANES {
            unsafe { *to.add(lane) = self.0[lane] };
        }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const T, count: usize) -> Self {
        Self([$EACH{if $I < count { unsafe { *from.add($I) } } else { 0.0 }}])
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut T, count: usize) {
        for lane in 0..count {
            unsafe { *to.add(lane) = self.0[lane] };
        }
    }
    #[inline(always)]
    fn from_array(lanes: [T; LANES]) -> Self {
        Self(lanes)
    }
    #[inline(always)]
    fn to_array(self) -> [T; LANES] {
        self.0
    }
    #[inline(always)]
    unsafe fn gather(source: *const T, map: *const u32, scale: usize, offset: usize) -> Self {
        Self([$EACH{unsafe { *source.add(*map.add($I) as usize * scale + offset) }}])
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self([$EACH{self.0[$I] + b.0[$I]}])
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Self([$EACH{self.0[$I] - b.0[$I]}])
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Self([$EACH{self.0[$I] * b.0[$I]}])
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        Self([$EACH{self.0[$I] / b.0[$I]}])
    }
    /// self · b + c, rounded once where the machine can at no cost.
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
            Self([$EACH{self.0[$I].mul_add(b.0[$I], c.0[$I])}])
        } else {
            self.mul(b).add(c)
        }
    }
    /// c − self · b
    #[inline(always)]
    fn fma_neg(self, b: Self, c: Self) -> Self {
        self.neg().fma(b, c)
    }
    #[inline(always)]
    fn neg(self) -> Self {
        Self([$EACH{-self.0[$I]}])
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        Self::splat(1.0).div(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self([$EACH{self.0[$I].sqrt()}])
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self([$EACH{self.0[$I].abs()}])
    }
    #[inline(always)]
    fn lt(self, b: Self) -> M {
        M([$EACH{self.0[$I] < b.0[$I]}])
    }
    #[inline(always)]
    fn le(self, b: Self) -> M {
        M([$EACH{self.0[$I] <= b.0[$I]}])
    }
    #[inline(always)]
    fn eq(self, b: Self) -> M {
        M([$EACH{self.0[$I] == b.0[$I]}])
    }
}

impl M {
    #[inline(always)]
    fn splat(value: bool) -> Self {
        Self([value; LANES])
    }
    #[inline(always)]
    fn and(self, b: Self) -> Self {
        M([$EACH{self.0[$I] & b.0[$I]}])
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        M([$EACH{self.0[$I] | b.0[$I]}])
    }
    #[inline(always)]
    fn not(self) -> Self {
        M([$EACH{!self.0[$I]}])
    }
    /// a where it is true, else b.
    #[inline(always)]
    fn select(self, a: V, b: V) -> V {
        V([$EACH{if self.0[$I] { a.0[$I] } else { b.0[$I] }}])
    }
}

/// Asks for a cache line; nothing on machines without a stable way to say so.
#[inline(always)]
unsafe fn prefetch<const LEVEL: usize>(_from: *const i8) {}
