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

/// Returns the distance of nodes along the first axis of a rotated cell, and the weights in their order.
#[inline(always)]
unsafe fn stride_of<const N: usize, const C: usize, const W: usize>(
    nodes: usize,
    positions: *const u32,
    weights: *const T,
) -> (usize, [[T; N]; W]) {
    unsafe {
        let mut ordered = [[0.0; N]; W];
        let first = *positions as usize;
        for k in 0..W {
            for i in 0..N {
                ordered[k][i] = *weights.add(N * k + if first % N == 0 { i } else { N - 1 - i });
            }
        }
        let mut stride = 1;
        while N * stride < nodes && (*positions.add(C * stride) as usize).abs_diff(first) != 1 {
            stride *= N;
        }
        (stride, ordered)
    }
}

/// Returns how lines of a cell are summed whose entries are `chunk` elements apart: line by line after a transposition, by
/// chunks of consecutive entries before one, with two chunks to a vector if they are halves; else from a copy of the cell.
#[inline(always)]
fn by_line<const N: usize>(length: usize, chunk: usize) -> bool {
    chunk == 1 && N <= LANES && 4 * (length / N).div_ceil(LANES / N) <= 5 * length.div_ceil(LANES)
}
#[inline(always)]
fn by_halves<const N: usize>(length: usize, chunk: usize) -> bool {
    2 * chunk == LANES && length / N / chunk % 2 == 0
}
#[inline(always)]
fn by_chunk<const N: usize, const W: usize>(length: usize, chunk: usize) -> bool {
    let halves = by_halves::<N>(length, chunk);
    let pieces = if halves { length / N / LANES } else { length / N / chunk * chunk.div_ceil(LANES) };
    (halves || chunk >= LANES) && W * pieces <= length.div_ceil(LANES)
}

/// Reads, for each lane, `LENGTH` consecutive elements from `starts[lane] * SCALE` on, a cell of `N` nodes a direction
/// with `C` components, and sums the lines along the first axis of its rotated copy with weights to `locals`.
#[inline(never)]
$ENABLE
unsafe fn gather_lines<const LENGTH: usize, const SCALE: usize, const N: usize, const C: usize, const W: usize>(
    source: *const T,
    starts: *const u32,
    locals: [*mut V; W],
    positions: *const u32,
    weights: *const T,
) {
    unsafe {
        let (stride, weights) = stride_of::<N, C, W>(LENGTH / C, positions, weights);
        let mut from = [source; LANES];
        for lane in 0..LANES {
            from[lane] = source.add(*starts.add(lane) as usize * SCALE);
        }
        if stride == 1 {
            gather_axis::<LENGTH, N, W>(from, C, locals, positions, &weights);
        } else if stride == N {
            gather_axis::<LENGTH, N, W>(from, C * N, locals, positions, &weights);
        } else {
            gather_axis::<LENGTH, N, W>(from, C * N * N, locals, positions, &weights);
        }
    }
}

/// `gather_lines` along an axis whose neighbours are `chunk` elements apart.
#[inline(always)]
unsafe fn gather_axis<const LENGTH: usize, const N: usize, const W: usize>(
    from: [*const T; LANES],
    chunk: usize,
    locals: [*mut V; W],
    positions: *const u32,
    weights: &[[T; N]; W],
) {
    unsafe {
        if by_chunk::<N, W>(LENGTH, chunk) {
            let halves = by_halves::<N>(LENGTH, chunk);
            let step = if halves { 2 * N * chunk } else { N * chunk };
            for block in 0..LENGTH / step {
                let block = block * step;
                let whole = if halves { 1 } else { chunk / LANES };
                for piece in 0..whole {
                    gather_piece::<N, W>(from, (chunk, halves), (block, piece * LANES, LANES), locals, positions, weights);
                }
                let rest = if halves { 0 } else { chunk % LANES };
                if rest > 0 {
                    gather_piece::<N, W>(from, (chunk, false), (block, chunk - rest, rest), locals, positions, weights);
                }
            }
            return;
        }
        if by_line::<N>(LENGTH, chunk) {
            let step = LANES / N * N;
            for block in 0..LENGTH / step {
                let columns = columns_at(from, block * step, step);
                sum_lines::<N, W>(&columns, (block * step, step), locals, positions, weights);
            }
            let rest = LENGTH % step;
            if rest > 0 {
                let columns = columns_at(from, LENGTH - rest, rest);
                sum_lines::<N, W>(&columns, (LENGTH - rest, rest), locals, positions, weights);
            }
            return;
        }
        let mut cell = core::mem::MaybeUninit::<[V; LENGTH]>::uninit();
        let cell = cell.as_mut_ptr().cast::<V>();
        for block in 0..LENGTH / LANES {
            let columns = columns_at(from, block * LANES, LANES);
            for j in 0..LANES {
                *cell.add(block * LANES + j) = columns[j];
            }
        }
        let rest = LENGTH % LANES;
        if rest > 0 {
            let columns = columns_at(from, LENGTH - rest, rest);
            for j in 0..rest {
                *cell.add(LENGTH - rest + j) = columns[j];
            }
        }
        for line in 0..LENGTH / N {
            let entry = line / chunk * N * chunk + line % chunk;
            let at = *positions.add(entry) as usize / N;
            for k in 0..W {
                let mut sum = V::splat(weights[k][0]).mul(*cell.add(entry));
                for i in 1..N {
                    sum = V::splat(weights[k][i]).fma(*cell.add(entry + i * chunk), sum);
                }
                *locals[k].add(at) = sum;
            }
        }
    }
}

/// The elements `at..at + count` of each lane.
#[inline(always)]
unsafe fn columns_at(from: [*const T; LANES], at: usize, count: usize) -> [V; LANES] {
    unsafe {
        transpose(from.map(|place| {
            let place = place.add(at);
            if count == LANES { V::load(place) } else { V::load_part(place, count) }
        }))
    }
}

/// Sums lines whose entries follow one another.
#[inline(always)]
unsafe fn sum_lines<const N: usize, const W: usize>(
    columns: &[V; LANES],
    (at, count): (usize, usize),
    locals: [*mut V; W],
    positions: *const u32,
    weights: &[[T; N]; W],
) {
    unsafe {
        for line in 0..count / N {
            let to = *positions.add(at + line * N) as usize / N;
            for k in 0..W {
                let mut sum = V::splat(weights[k][0]).mul(columns[line * N]);
                for i in 1..N {
                    sum = V::splat(weights[k][i]).fma(columns[line * N + i], sum);
                }
                *locals[k].add(to) = sum;
            }
        }
    }
}

/// Sums `count` lines side by side.
#[inline(always)]
unsafe fn gather_piece<const N: usize, const W: usize>(
    from: [*const T; LANES],
    (chunk, halves): (usize, bool),
    (block, done, count): (usize, usize, usize),
    locals: [*mut V; W],
    positions: *const u32,
    weights: &[[T; N]; W],
) {
    unsafe {
        let mut rows = [[V::splat(0.0); LANES]; W];
        for lane in 0..LANES {
            for i in 0..N {
                let own = from[lane].add(block + done + i * chunk);
                let values = if halves {
                    halves_of(own, own.add(N * chunk))
                } else if count == LANES {
                    V::load(own)
                } else {
                    V::load_part(own, count)
                };
                for k in 0..W {
                    let (weight, sum) = (V::splat(weights[k][i]), rows[k][lane]);
                    rows[k][lane] = if i == 0 { weight.mul(values) } else { weight.fma(values, sum) };
                }
            }
        }
        for k in 0..W {
            let columns = transpose(rows[k]);
            for j in 0..count {
                let entry = block + j / chunk * N * chunk + (done + j) % chunk;
                *locals[k].add(*positions.add(entry) as usize / N) = columns[j];
            }
        }
    }
}

/// The reverse of `gather_lines`: adds, lane after lane, or stores where `ADD` is false.
#[inline(never)]
$ENABLE
unsafe fn scatter_lines<const LENGTH: usize, const SCALE: usize, const N: usize, const C: usize, const W: usize, const ADD: bool>(
    target: *mut T,
    starts: *const u32,
    active: usize,
    locals: [*const V; W],
    positions: *const u32,
    weights: *const T,
) {
    unsafe {
        let (stride, weights) = stride_of::<N, C, W>(LENGTH / C, positions, weights);
        let mut to = [target; LANES];
        for lane in 0..LANES {
            to[lane] = target.add(*starts.add(lane) as usize * SCALE);
        }
        if stride == 1 {
            scatter_axis::<LENGTH, N, W, ADD>(to, active, C, locals, positions, &weights);
        } else if stride == N {
            scatter_axis::<LENGTH, N, W, ADD>(to, active, C * N, locals, positions, &weights);
        } else {
            scatter_axis::<LENGTH, N, W, ADD>(to, active, C * N * N, locals, positions, &weights);
        }
    }
}

/// `scatter_lines` along an axis whose neighbours are `chunk` elements apart.
#[inline(always)]
unsafe fn scatter_axis<const LENGTH: usize, const N: usize, const W: usize, const ADD: bool>(
    to: [*mut T; LANES],
    active: usize,
    chunk: usize,
    locals: [*const V; W],
    positions: *const u32,
    weights: &[[T; N]; W],
) {
    unsafe {
        if by_chunk::<N, W>(LENGTH, chunk) {
            let halves = by_halves::<N>(LENGTH, chunk);
            let step = if halves { 2 * N * chunk } else { N * chunk };
            for block in 0..LENGTH / step {
                let block = block * step;
                let whole = if halves { 1 } else { chunk / LANES };
                for piece in 0..whole {
                    let at = (block, piece * LANES, LANES);
                    scatter_piece::<N, W, ADD>(to, active, (chunk, halves), at, locals, positions, weights);
                }
                let rest = if halves { 0 } else { chunk % LANES };
                if rest > 0 {
                    let at = (block, chunk - rest, rest);
                    scatter_piece::<N, W, ADD>(to, active, (chunk, false), at, locals, positions, weights);
                }
            }
            return;
        }
        if by_line::<N>(LENGTH, chunk) {
            let step = LANES / N * N;
            for block in 0..LENGTH / step {
                let columns = spread_lines::<N, W>((block * step, step), locals, positions, weights);
                columns_onto::<ADD>(columns, to, active, block * step, step);
            }
            let rest = LENGTH % step;
            if rest > 0 {
                let columns = spread_lines::<N, W>((LENGTH - rest, rest), locals, positions, weights);
                columns_onto::<ADD>(columns, to, active, LENGTH - rest, rest);
            }
            return;
        }
        let mut cell = core::mem::MaybeUninit::<[V; LENGTH]>::uninit();
        let cell = cell.as_mut_ptr().cast::<V>();
        for line in 0..LENGTH / N {
            let entry = line / chunk * N * chunk + line % chunk;
            let at = *positions.add(entry) as usize / N;
            for i in 0..N {
                let mut sum = V::splat(weights[0][i]).mul(*locals[0].add(at));
                for k in 1..W {
                    sum = V::splat(weights[k][i]).fma(*locals[k].add(at), sum);
                }
                *cell.add(entry + i * chunk) = sum;
            }
        }
        for block in 0..LENGTH / LANES {
            let mut columns = [V::splat(0.0); LANES];
            for j in 0..LANES {
                columns[j] = *cell.add(block * LANES + j);
            }
            columns_onto::<ADD>(columns, to, active, block * LANES, LANES);
        }
        let rest = LENGTH % LANES;
        if rest > 0 {
            let mut columns = [V::splat(0.0); LANES];
            for j in 0..rest {
                columns[j] = *cell.add(LENGTH - rest + j);
            }
            columns_onto::<ADD>(columns, to, active, LENGTH - rest, rest);
        }
    }
}

/// The reverse of `columns_at`.
#[inline(always)]
unsafe fn columns_onto<const ADD: bool>(
    columns: [V; LANES],
    to: [*mut T; LANES],
    active: usize,
    at: usize,
    count: usize,
) {
    unsafe {
        let rows = transpose(columns);
        for lane in 0..LANES {
            if lane >= active {
                break;
            }
            let place = to[lane].add(at);
            if count == LANES {
                let sum = if ADD { V::load(place).add(rows[lane]) } else { rows[lane] };
                sum.store(place);
            } else {
                let sum = if ADD { V::load_part(place, count).add(rows[lane]) } else { rows[lane] };
                sum.store_part(place, count);
            }
        }
    }
}

/// The reverse of `sum_lines`.
#[inline(always)]
unsafe fn spread_lines<const N: usize, const W: usize>(
    (at, count): (usize, usize),
    locals: [*const V; W],
    positions: *const u32,
    weights: &[[T; N]; W],
) -> [V; LANES] {
    unsafe {
        let mut columns = [V::splat(0.0); LANES];
        for line in 0..count / N {
            let from = *positions.add(at + line * N) as usize / N;
            for i in 0..N {
                let mut sum = V::splat(weights[0][i]).mul(*locals[0].add(from));
                for k in 1..W {
                    sum = V::splat(weights[k][i]).fma(*locals[k].add(from), sum);
                }
                columns[line * N + i] = sum;
            }
        }
        columns
    }
}

/// The reverse of `gather_piece`.
#[inline(always)]
unsafe fn scatter_piece<const N: usize, const W: usize, const ADD: bool>(
    to: [*mut T; LANES],
    active: usize,
    (chunk, halves): (usize, bool),
    (block, done, count): (usize, usize, usize),
    locals: [*const V; W],
    positions: *const u32,
    weights: &[[T; N]; W],
) {
    unsafe {
        let mut rows = [[V::splat(0.0); LANES]; W];
        for k in 0..W {
            let mut columns = [V::splat(0.0); LANES];
            for j in 0..count {
                let entry = block + j / chunk * N * chunk + (done + j) % chunk;
                columns[j] = *locals[k].add(*positions.add(entry) as usize / N);
            }
            rows[k] = transpose(columns);
        }
        for lane in 0..LANES {
            if lane >= active {
                break;
            }
            for i in 0..N {
                let own = to[lane].add(block + done + i * chunk);
                let mut sum = if !ADD {
                    V::splat(0.0)
                } else if halves {
                    halves_of(own, own.add(N * chunk))
                } else if count == LANES {
                    V::load(own)
                } else {
                    V::load_part(own, count)
                };
                for k in 0..W {
                    sum = V::splat(weights[k][i]).fma(rows[k][lane], sum);
                }
                if halves {
                    halves_to(sum, own, own.add(N * chunk));
                } else if count == LANES {
                    sum.store(own);
                } else {
                    sum.store_part(own, count);
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
