/// Adds the lanes `0..active` of `value` to `target[map[lane] * scale + offset]`, one after another.
#[inline(always)]
unsafe fn scatter(value: V, target: *mut T, map: *const u32, scale: usize, offset: usize, active: usize) {
    unsafe {
        let lanes = value.to_array();
        if active == LANES {
            for lane in 0..LANES {
                *target.add(*map.add(lane) as usize * scale + offset) += lanes[lane];
            }
        } else {
            for lane in 0..active {
                *target.add(*map.add(lane) as usize * scale + offset) += lanes[lane];
            }
        }
    }
}

/// The same; the index `u32::MAX` writes nothing.
#[inline(always)]
unsafe fn scatter_masked(value: V, target: *mut T, map: *const u32, scale: usize, offset: usize, active: usize) {
    unsafe {
        let lanes = value.to_array();
        for lane in 0..active {
            let index = *map.add(lane);
            if index != u32::MAX {
                *target.add(index as usize * scale + offset) += lanes[lane];
            }
        }
    }
}

/// `source[map[lane] * scale + offset]`; the index `u32::MAX` reads 0.
#[inline(always)]
unsafe fn gather_masked(source: *const T, map: *const u32, scale: usize, offset: usize) -> V {
    unsafe {
        let mut lanes = [0.0; LANES];
        for lane in 0..LANES {
            let index = *map.add(lane);
            if index != u32::MAX {
                lanes[lane] = *source.add(index as usize * scale + offset);
            }
        }
        V::from_array(lanes)
    }
}

/// Reads, for each lane, `length` consecutive elements from `starts[lane]` on, to the entries of
/// `local` that `positions` lists.
#[inline(never)]
$ENABLE
unsafe fn gather_run(source: *const T, starts: *const u32, local: *mut V, positions: *const u32, length: usize) {
    unsafe {
        if length <= 2 {
            for j in 0..length {
                *local.add(*positions.add(j) as usize) = V::gather(source, starts, 1, j);
            }
            return;
        }
        let mut from = [source; LANES];
        for lane in 0..LANES {
            from[lane] = source.add(*starts.add(lane) as usize);
        }
        let mut done = 0;
        while done + LANES <= length {
            let mut rows = [V::splat(0.0); LANES];
            for lane in 0..LANES {
                rows[lane] = V::load(from[lane].add(done));
            }
            let columns = transpose(rows);
            for j in 0..LANES {
                *local.add(*positions.add(done + j) as usize) = columns[j];
            }
            done += LANES;
        }
        let rest = length - done;
        if rest > 0 {
            let mut rows = [V::splat(0.0); LANES];
            for lane in 0..LANES {
                rows[lane] = V::load_part(from[lane].add(done), rest);
            }
            let columns = transpose(rows);
            for j in 0..LANES {
                if j < rest {
                    *local.add(*positions.add(done + j) as usize) = columns[j];
                }
            }
        }
    }
}

/// The reverse of `gather_run`: adds, lane after lane, or stores where `ADD` is false.
#[inline(never)]
$ENABLE
unsafe fn scatter_run<const ADD: bool>(target: *mut T, starts: *const u32, active: usize, local: *const V, positions: *const u32, length: usize) {
    unsafe {
        if length <= 2 {
            for j in 0..length {
                let lanes = (*local.add(*positions.add(j) as usize)).to_array();
                for lane in 0..active {
                    let to = target.add(*starts.add(lane) as usize + j);
                    *to = if ADD { *to + lanes[lane] } else { lanes[lane] };
                }
            }
            return;
        }
        let mut to = [target; LANES];
        for lane in 0..LANES {
            to[lane] = target.add(*starts.add(lane) as usize);
        }
        let mut done = 0;
        while done + LANES <= length {
            let mut columns = [V::splat(0.0); LANES];
            for j in 0..LANES {
                columns[j] = *local.add(*positions.add(done + j) as usize);
            }
            let rows = transpose(columns);
            for lane in 0..LANES {
                if lane < active {
                    let place = to[lane].add(done);
                    let sum = if ADD { V::load(place).add(rows[lane]) } else { rows[lane] };
                    sum.store(place);
                }
            }
            done += LANES;
        }
        let rest = length - done;
        if rest > 0 {
            let mut columns = [V::splat(0.0); LANES];
            for j in 0..LANES {
                columns[j] = *local.add(*positions.add(done + if j < rest { j } else { 0 }) as usize);
            }
            let rows = transpose(columns);
            for lane in 0..LANES {
                if lane < active {
                    let place = to[lane].add(done);
                    let sum = if ADD { V::load_part(place, rest).add(rows[lane]) } else { rows[lane] };
                    sum.store_part(place, rest);
                }
            }
        }
    }
}

impl V {
    /// A function of one argument, lane by lane.
    #[inline(always)]
    fn map(self, f: impl Fn(T) -> T) -> Self {
        Self::from_array(self.to_array().map(f))
    }

    /// A function of two arguments, lane by lane.
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        let (a, b) = (self.to_array(), other.to_array());
        let mut lanes = a;
        for lane in 0..LANES {
            lanes[lane] = f(a[lane], b[lane]);
        }
        Self::from_array(lanes)
    }
}
