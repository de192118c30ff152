
/// The first `count` ≤ 4 elements from each place, as columns; the others mean nothing.
#[inline(always)]
unsafe fn columns_of(from: [*const T; LANES], count: usize) -> [V; 4] {
    unsafe {
        let rows = from.map(|place| V::load_part(place, count));
        let columns = transpose(rows);
        [columns[0], columns[1], columns[2 % LANES], columns[3 % LANES]]
    }
}

/// The reverse of `columns_of` for the lanes `0..active`: adds, or stores where `ADD` is false.
#[inline(always)]
unsafe fn columns_to<const ADD: bool>(columns: [V; 4], to: [*mut T; LANES], count: usize, active: usize) {
    unsafe {
        let mut all = [V::splat(0.0); LANES];
        for j in 0..count {
            all[j] = columns[j];
        }
        let rows = transpose(all);
        for lane in 0..LANES {
            if lane < active {
                let sum = if ADD { V::load_part(to[lane], count).add(rows[lane]) } else { rows[lane] };
                sum.store_part(to[lane], count);
            }
        }
    }
}
