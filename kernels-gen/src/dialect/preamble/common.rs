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

/// 1 where a lane's mask has a bit, else 0.
#[inline(always)]
unsafe fn flags(masks: *const u32, bit: u32) -> V {
    unsafe { V::from_array(core::array::from_fn(|lane| (*masks.add(lane) >> bit & 1) as T)) }
}

/// Asks for the cache lines of `source[map[lane] * scale]`.
#[inline(always)]
unsafe fn prefetch_indexed(source: *const T, map: *const u32, scale: usize) {
    unsafe {
        for lane in 0..LANES {
            prefetch::<0>(source.wrapping_add(*map.add(lane) as usize * scale).cast());
        }
    }
}

/// Reads, for each lane, `LENGTH` consecutive elements from `starts[lane] * SCALE` on, to the entries of
/// `local` that `positions` lists.
#[inline(always)]
unsafe fn gather_run<const LENGTH: usize, const SCALE: usize>(source: *const T, starts: *const u32, local: *mut V, positions: *const u32) {
    unsafe {
        if LENGTH <= 4 {
            gather_lanes::<LENGTH, SCALE>(source, starts, local, positions);
        } else {
            gather_long::<LENGTH, SCALE>(source, starts, local, positions);
        }
    }
}

/// `gather_run` once for all runs of a length.
#[inline(never)]
$ENABLE
unsafe fn gather_long<const LENGTH: usize, const SCALE: usize>(source: *const T, starts: *const u32, local: *mut V, positions: *const u32) {
    unsafe { gather_lanes::<LENGTH, SCALE>(source, starts, local, positions) }
}

#[inline(always)]
unsafe fn gather_lanes<const LENGTH: usize, const SCALE: usize>(source: *const T, starts: *const u32, local: *mut V, positions: *const u32) {
    unsafe {
        let mut done = 0;
        if LENGTH > 2 {
            let mut from = [source; LANES];
            for lane in 0..LANES {
                from[lane] = source.add(*starts.add(lane) as usize * SCALE);
            }
            while done + 2 < LENGTH {
                let rest = LENGTH - done;
                let count = if rest >= LANES { LANES } else if BY_FOURS && rest > 4 { 4 } else { rest };
                let places = from.map(|place| place.add(done));
                if count < LANES && count <= 4 {
                    // Whole rows of four are there where they begin at multiples of four.
                    let columns = columns_of(places, if SCALE == 4 { 4 } else { count });
                    for j in 0..count {
                        *local.add(*positions.add(done + j) as usize) = columns[j];
                    }
                } else {
                    let rows = places.map(|place| {
                        if count == LANES { V::load(place) } else { V::load_part(place, count) }
                    });
                    let columns = transpose(rows);
                    for j in 0..count {
                        *local.add(*positions.add(done + j) as usize) = columns[j];
                    }
                }
                done += count;
            }
        }
        for j in done..LENGTH {
            *local.add(*positions.add(j) as usize) = V::gather(source, starts, SCALE, j);
        }
    }
}

/// The reverse of `gather_run`: adds, lane after lane, or stores where `ADD` is false.
#[inline(never)]
$ENABLE
unsafe fn scatter_run<const LENGTH: usize, const SCALE: usize, const ADD: bool>(target: *mut T, starts: *const u32, active: usize, local: *const V, positions: *const u32) {
    unsafe {
        if active == LANES {
            scatter_lanes::<LENGTH, SCALE, ADD, true>(target, starts, LANES, local, positions);
        } else {
            scatter_lanes::<LENGTH, SCALE, ADD, false>(target, starts, active, local, positions);
        }
    }
}

/// `scatter_run` with all lanes, or with some.
#[inline(always)]
unsafe fn scatter_lanes<const LENGTH: usize, const SCALE: usize, const ADD: bool, const ALL: bool>(
    target: *mut T,
    starts: *const u32,
    active: usize,
    local: *const V,
    positions: *const u32,
) {
    unsafe {
        let mut done = 0;
        if LENGTH > 2 {
            let mut to = [target; LANES];
            for lane in 0..LANES {
                to[lane] = target.add(*starts.add(lane) as usize * SCALE);
            }
            while done + 2 < LENGTH {
                let rest = LENGTH - done;
                let count = if rest >= LANES { LANES } else if BY_FOURS && rest > 4 { 4 } else { rest };
                if count < LANES && count <= 4 {
                    let mut columns = [V::splat(0.0); 4];
                    for j in 0..count {
                        columns[j] = *local.add(*positions.add(done + j) as usize);
                    }
                    columns_to::<ADD>(columns, to.map(|place| place.add(done)), count, if ALL { LANES } else { active });
                    done += count;
                    continue;
                }
                let mut columns = [V::splat(0.0); LANES];
                for j in 0..count {
                    columns[j] = *local.add(*positions.add(done + j) as usize);
                }
                let rows = transpose(columns);
                for lane in 0..LANES {
                    if ALL || lane < active {
                        let place = to[lane].add(done);
                        if count == LANES {
                            let sum = if ADD { V::load(place).add(rows[lane]) } else { rows[lane] };
                            sum.store(place);
                        } else {
                            let sum = if ADD { V::load_part(place, count).add(rows[lane]) } else { rows[lane] };
                            sum.store_part(place, count);
                        }
                    }
                }
                done += count;
            }
        }
        for j in done..LENGTH {
            let lanes = (*local.add(*positions.add(j) as usize)).to_array();
            for lane in 0..LANES {
                if ALL || lane < active {
                    let to = target.add(*starts.add(lane) as usize * SCALE + j);
                    *to = if ADD { *to + lanes[lane] } else { lanes[lane] };
                }
            }
        }
    }
}

impl V {
    /// A function of one argument, lane by lane.
    $FUNCTION
    fn map(self, f: impl Fn(T) -> T) -> Self {
        Self::from_array(self.to_array().map(f))
    }

    /// A function of two arguments, lane by lane.
    $FUNCTION
    fn zip(self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        let (a, b) = (self.to_array(), other.to_array());
        let mut lanes = a;
        for lane in 0..LANES {
            lanes[lane] = f(a[lane], b[lane]);
        }
        Self::from_array(lanes)
    }
}
