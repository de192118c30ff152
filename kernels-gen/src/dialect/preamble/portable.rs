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
    fn each(f: impl Fn(usize) -> T) -> Self {
        let mut lanes = [0.0; LANES];
        for lane in 0..LANES {
            lanes[lane] = f(lane);
        }
        Self(lanes)
    }
    #[inline(always)]
    fn holds(f: impl Fn(usize) -> bool) -> M {
        let mut lanes = [false; LANES];
        for lane in 0..LANES {
            lanes[lane] = f(lane);
        }
        M(lanes)
    }
    #[inline(always)]
    fn splat(value: T) -> Self {
        Self([value; LANES])
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        Self::each(|lane| unsafe { *from.add(lane) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        for lane in 0..LANES {
            unsafe { *to.add(lane) = self.0[lane] };
        }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const T, count: usize) -> Self {
        Self::each(|lane| if lane < count { unsafe { *from.add(lane) } } else { 0.0 })
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
        Self::each(|lane| unsafe { *source.add(*map.add(lane) as usize * scale + offset) })
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self::each(|lane| self.0[lane] + b.0[lane])
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Self::each(|lane| self.0[lane] - b.0[lane])
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Self::each(|lane| self.0[lane] * b.0[lane])
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        Self::each(|lane| self.0[lane] / b.0[lane])
    }
    /// self · b + c, rounded once where the machine can at no cost.
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
            Self::each(|lane| self.0[lane].mul_add(b.0[lane], c.0[lane]))
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
        Self::each(|lane| -self.0[lane])
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        Self::splat(1.0).div(self)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self::each(|lane| self.0[lane].sqrt())
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self::each(|lane| self.0[lane].abs())
    }
    #[inline(always)]
    fn lt(self, b: Self) -> M {
        Self::holds(|lane| self.0[lane] < b.0[lane])
    }
    #[inline(always)]
    fn le(self, b: Self) -> M {
        Self::holds(|lane| self.0[lane] <= b.0[lane])
    }
    #[inline(always)]
    fn eq(self, b: Self) -> M {
        Self::holds(|lane| self.0[lane] == b.0[lane])
    }
}

impl M {
    #[inline(always)]
    fn splat(value: bool) -> Self {
        Self([value; LANES])
    }
    #[inline(always)]
    fn and(self, b: Self) -> Self {
        V::holds(|lane| self.0[lane] & b.0[lane])
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        V::holds(|lane| self.0[lane] | b.0[lane])
    }
    #[inline(always)]
    fn not(self) -> Self {
        V::holds(|lane| !self.0[lane])
    }
    /// a where it holds, else b.
    #[inline(always)]
    fn select(self, a: V, b: V) -> V {
        V::each(|lane| if self.0[lane] { a.0[lane] } else { b.0[lane] })
    }
}

/// Asks for a cache line; nothing on machines without a stable way to say so.
#[inline(always)]
unsafe fn prefetch<const LEVEL: usize>(_from: *const i8) {}
