/// Rows to columns.
#[inline(always)]
fn transpose(rows: [V; LANES]) -> [V; LANES] {
    unsafe {
        let r = rows.map(|row| row.0);
        let p = [
            fours([r[0], r[1], r[2], r[3]]),
            fours([r[4], r[5], r[6], r[7]]),
            fours([r[8], r[9], r[10], r[11]]),
            fours([r[12], r[13], r[14], r[15]]),
        ];
        let mut columns = rows;
        for j in 0..4 {
            let a = _mm512_shuffle_f32x4::<0x88>(p[0][j], p[1][j]);
            let b = _mm512_shuffle_f32x4::<0xdd>(p[0][j], p[1][j]);
            let c = _mm512_shuffle_f32x4::<0x88>(p[2][j], p[3][j]);
            let d = _mm512_shuffle_f32x4::<0xdd>(p[2][j], p[3][j]);
            columns[j] = V(_mm512_shuffle_f32x4::<0x88>(a, c));
            columns[4 + j] = V(_mm512_shuffle_f32x4::<0x88>(b, d));
            columns[8 + j] = V(_mm512_shuffle_f32x4::<0xdd>(a, c));
            columns[12 + j] = V(_mm512_shuffle_f32x4::<0xdd>(b, d));
        }
        columns
    }
}

/// The first `count` ≤ 4 elements from each place, as columns; the others mean nothing.
#[inline(always)]
unsafe fn columns_of(from: [*const T; LANES], count: usize) -> [V; 4] {
    unsafe {
        let row = |lane: usize| {
            if count == 4 {
                _mm_loadu_ps(from[lane])
            } else {
                _mm_maskz_loadu_ps(((1u32 << count) - 1) as __mmask8, from[lane])
            }
        };
        // Rows i, i + 4, i + 8 and i + 12 side by side.
        let r = [0, 1, 2, 3].map(|i| {
            let first = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(row(i)), row(i + 4));
            let last = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(row(i + 8)), row(i + 12));
            _mm512_insertf32x8::<1>(_mm512_castps256_ps512(first), last)
        });
        fours(r).map(V)
    }
}

/// The reverse of `columns_of` for the lanes `0..active`: adds, or stores where `ADD` is false.
#[inline(always)]
unsafe fn columns_to<const ADD: bool>(columns: [V; 4], to: [*mut T; LANES], count: usize, active: usize) {
    unsafe {
        let rows = fours(columns.map(|column| column.0));
        let mask = ((1u32 << count) - 1) as __mmask8;
        for lane in 0..LANES {
            if lane < active {
                let all = rows[lane % 4];
                let row = match lane / 4 {
                    0 => _mm512_castps512_ps128(all),
                    1 => _mm512_extractf32x4_ps::<1>(all),
                    2 => _mm512_extractf32x4_ps::<2>(all),
                    _ => _mm512_extractf32x4_ps::<3>(all),
                };
                let place = to[lane];
                if count == 4 {
                    let sum = if ADD { _mm_add_ps(_mm_loadu_ps(place), row) } else { row };
                    _mm_storeu_ps(place, sum);
                } else {
                    let sum = if ADD { _mm_add_ps(_mm_maskz_loadu_ps(mask, place), row) } else { row };
                    _mm_mask_storeu_ps(place, mask, sum);
                }
            }
        }
    }
}
