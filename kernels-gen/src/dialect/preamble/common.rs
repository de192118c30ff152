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

/// Reads, for each lane, `LENGTH` consecutive elements from `starts[lane]` on, to the entries of
/// `local` that `positions` lists.
#[inline(always)]
unsafe fn gather_run<const LENGTH: usize>(source: *const T, starts: *const u32, local: *mut V, positions: *const u32) {
    unsafe {
        if LENGTH <= 2 {
            for j in 0..LENGTH {
                *local.add(*positions.add(j) as usize) = V::gather(source, starts, 1, j);
            }
            return;
        }
        let mut from = [source; LANES];
        for lane in 0..LANES {
            from[lane] = source.add(*starts.add(lane) as usize);
        }
        for chunk in 0..LENGTH / LANES {
            let mut rows = [V::splat(0.0); LANES];
            for lane in 0..LANES {
                rows[lane] = V::load(from[lane].add(chunk * LANES));
            }
            let columns = transpose(rows);
            for j in 0..LANES {
                *local.add(*positions.add(chunk * LANES + j) as usize) = columns[j];
            }
        }
        let done = LENGTH / LANES * LANES;
        let rest = LENGTH - done;
        if rest > 0 {
            let mut rows = [V::splat(0.0); LANES];
            for lane in 0..LANES {
                rows[lane] = V::load_part(from[lane].add(done), rest);
            }
            let columns = transpose(rows);
            for j in 0..rest {
                *local.add(*positions.add(done + j) as usize) = columns[j];
            }
        }
    }
}

/// The reverse of `gather_run`: adds, lane after lane, or stores where `ADD` is false.
#[inline(always)]
unsafe fn scatter_run<const LENGTH: usize, const ADD: bool>(target: *mut T, starts: *const u32, active: usize, local: *const V, positions: *const u32) {
    unsafe {
        if active == LANES {
            write_run::<LENGTH, ADD, true>(target, starts, active, local, positions);
        } else {
            write_run::<LENGTH, ADD, false>(target, starts, active, local, positions);
        }
    }
}

#[inline(always)]
unsafe fn write_run<const LENGTH: usize, const ADD: bool, const ALL: bool>(target: *mut T, starts: *const u32, active: usize, local: *const V, positions: *const u32) {
    unsafe {
        if LENGTH <= 2 {
            let mut lanes = [[0.0; LANES]; 2];
            for j in 0..LENGTH {
                lanes[j] = (*local.add(*positions.add(j) as usize)).to_array();
            }
            for lane in 0..LANES {
                if ALL || lane < active {
                    let to = target.add(*starts.add(lane) as usize);
                    for j in 0..LENGTH {
                        *to.add(j) = if ADD { *to.add(j) + lanes[j][lane] } else { lanes[j][lane] };
                    }
                }
            }
            return;
        }
        let mut to = [target; LANES];
        for lane in 0..LANES {
            to[lane] = target.add(*starts.add(lane) as usize);
        }
        for chunk in 0..LENGTH / LANES {
            let mut columns = [V::splat(0.0); LANES];
            for j in 0..LANES {
                columns[j] = *local.add(*positions.add(chunk * LANES + j) as usize);
            }
            let rows = transpose(columns);
            for lane in 0..LANES {
                if ALL || lane < active {
                    let place = to[lane].add(chunk * LANES);
                    let sum = if ADD { V::load(place).add(rows[lane]) } else { rows[lane] };
                    sum.store(place);
                }
            }
        }
        let done = LENGTH / LANES * LANES;
        let rest = LENGTH - done;
        if rest > 0 {
            let mut columns = [V::splat(0.0); LANES];
            for j in 0..rest {
                columns[j] = *local.add(*positions.add(done + j) as usize);
            }
            let rows = transpose(columns);
            for lane in 0..LANES {
                if ALL || lane < active {
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
