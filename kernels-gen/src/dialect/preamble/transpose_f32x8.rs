/// Rows to columns.
#[inline(always)]
fn transpose(rows: [V; LANES]) -> [V; LANES] {
    unsafe {
        let r = rows.map(|row| row.0);
        let p = fours([r[0], r[1], r[2], r[3]]);
        let q = fours([r[4], r[5], r[6], r[7]]);
        [
            V(_mm256_permute2f128_ps::<0x20>(p[0], q[0])),
            V(_mm256_permute2f128_ps::<0x20>(p[1], q[1])),
            V(_mm256_permute2f128_ps::<0x20>(p[2], q[2])),
            V(_mm256_permute2f128_ps::<0x20>(p[3], q[3])),
            V(_mm256_permute2f128_ps::<0x31>(p[0], q[0])),
            V(_mm256_permute2f128_ps::<0x31>(p[1], q[1])),
            V(_mm256_permute2f128_ps::<0x31>(p[2], q[2])),
            V(_mm256_permute2f128_ps::<0x31>(p[3], q[3])),
        ]
    }
}

/// The first `count` ≤ 4 elements; the others mean nothing.
#[inline(always)]
unsafe fn row_of(from: *const T, count: usize) -> __m128 {
    unsafe {
        match count {
            4 => _mm_loadu_ps(from),
            1 => _mm_load_ss(from),
            _ => {
                let two = _mm_castpd_ps(_mm_load_sd(from.cast()));
                if count == 2 { two } else { _mm_insert_ps::<0x20>(two, _mm_load_ss(from.add(2))) }
            }
        }
    }
}

/// The reverse of `row_of`.
#[inline(always)]
unsafe fn row_to(row: __m128, to: *mut T, count: usize) {
    unsafe {
        match count {
            4 => _mm_storeu_ps(to, row),
            1 => _mm_store_ss(to, row),
            _ => {
                _mm_store_sd(to.cast(), _mm_castps_pd(row));
                if count == 3 {
                    _mm_store_ss(to.add(2), _mm_movehl_ps(row, row));
                }
            }
        }
    }
}

/// The first `count` ≤ 4 elements from each place, as columns; the others mean nothing.
#[inline(always)]
unsafe fn columns_of(from: [*const T; LANES], count: usize) -> [V; 4] {
    unsafe {
        // Rows i and i + 4 side by side.
        let row = |lane: usize| row_of(from[lane], count);
        let r = [0, 1, 2, 3].map(|i| _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(row(i)), row(i + 4)));
        fours(r).map(V)
    }
}

/// The reverse of `columns_of` for the lanes `0..active`: adds, or stores where `ADD` is false.
#[inline(always)]
unsafe fn columns_to<const ADD: bool>(columns: [V; 4], to: [*mut T; LANES], count: usize, active: usize) {
    unsafe {
        let rows = fours(columns.map(|column| column.0));
        for lane in 0..LANES {
            if lane < active {
                let pair = rows[lane % 4];
                let row = if lane < 4 { _mm256_castps256_ps128(pair) } else { _mm256_extractf128_ps::<1>(pair) };
                let place = to[lane];
                row_to(if ADD { _mm_add_ps(row_of(place, count), row) } else { row }, place, count);
            }
        }
    }
}
