/// Parts of rows go by masks.
const BY_FOURS: bool = false;

/// Rows to columns.
#[inline(always)]
fn transpose(rows: [V; LANES]) -> [V; LANES] {
    unsafe {
        let r = rows.map(|row| row.0);
        // Pairs of rows: low[i] holds columns 0, 2, 4, 6 of rows 2i and 2i + 1, high[i] the others.
        let low = [0, 2, 4, 6].map(|i| _mm512_unpacklo_pd(r[i], r[i + 1]));
        let high = [0, 2, 4, 6].map(|i| _mm512_unpackhi_pd(r[i], r[i + 1]));
        let half = |p: [__m512d; 4]| {
            let a = _mm512_shuffle_f64x2::<0x88>(p[0], p[1]);
            let b = _mm512_shuffle_f64x2::<0xdd>(p[0], p[1]);
            let c = _mm512_shuffle_f64x2::<0x88>(p[2], p[3]);
            let d = _mm512_shuffle_f64x2::<0xdd>(p[2], p[3]);
            [
                _mm512_shuffle_f64x2::<0x88>(a, c),
                _mm512_shuffle_f64x2::<0x88>(b, d),
                _mm512_shuffle_f64x2::<0xdd>(a, c),
                _mm512_shuffle_f64x2::<0xdd>(b, d),
            ]
        };
        let (even, odd) = (half(low), half(high));
        [
            V(even[0]),
            V(odd[0]),
            V(even[1]),
            V(odd[1]),
            V(even[2]),
            V(odd[2]),
            V(even[3]),
            V(odd[3]),
        ]
    }
}

/// Half a vector from each place.
#[inline(always)]
unsafe fn halves_of(low: *const T, high: *const T) -> V {
    unsafe { V(_mm512_insertf64x4::<1>(_mm512_castpd256_pd512(_mm256_loadu_pd(low)), _mm256_loadu_pd(high))) }
}

/// The reverse of `halves_of`.
#[inline(always)]
unsafe fn halves_to(value: V, low: *mut T, high: *mut T) {
    unsafe {
        _mm256_storeu_pd(low, _mm512_castpd512_pd256(value.0));
        _mm256_storeu_pd(high, _mm512_extractf64x4_pd::<1>(value.0));
    }
}

/// The first `count` ≤ 4 elements from each place, as columns; the others mean nothing.
#[inline(always)]
unsafe fn columns_of(from: [*const T; LANES], count: usize) -> [V; 4] {
    unsafe {
        let row = |lane: usize| {
            if count == 4 {
                _mm256_loadu_pd(from[lane])
            } else {
                _mm256_maskz_loadu_pd(((1u32 << count) - 1) as __mmask8, from[lane])
            }
        };
        // Rows i and i + 4 side by side.
        let r = [0, 1, 2, 3].map(|i| {
            _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(row(i)), row(i + 4))
        });
        let low = [_mm512_unpacklo_pd(r[0], r[1]), _mm512_unpacklo_pd(r[2], r[3])];
        let high = [_mm512_unpackhi_pd(r[0], r[1]), _mm512_unpackhi_pd(r[2], r[3])];
        let first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
        let second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
        [
            V(_mm512_permutex2var_pd(low[0], first, low[1])),
            V(_mm512_permutex2var_pd(high[0], first, high[1])),
            V(_mm512_permutex2var_pd(low[0], second, low[1])),
            V(_mm512_permutex2var_pd(high[0], second, high[1])),
        ]
    }
}

/// The reverse of `columns_of` for the lanes `0..active`: adds, or stores where `ADD` is false.
#[inline(always)]
unsafe fn columns_to<const ADD: bool>(columns: [V; 4], to: [*mut T; LANES], count: usize, active: usize) {
    unsafe {
        let c = columns.map(|column| column.0);
        let low = [_mm512_unpacklo_pd(c[0], c[1]), _mm512_unpacklo_pd(c[2], c[3])];
        let high = [_mm512_unpackhi_pd(c[0], c[1]), _mm512_unpackhi_pd(c[2], c[3])];
        let first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
        let second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
        let rows = [
            _mm512_permutex2var_pd(low[0], first, low[1]),
            _mm512_permutex2var_pd(high[0], first, high[1]),
            _mm512_permutex2var_pd(low[0], second, low[1]),
            _mm512_permutex2var_pd(high[0], second, high[1]),
        ];
        let mask = ((1u32 << count) - 1) as __mmask8;
        for lane in 0..LANES {
            if lane < active {
                let pair = rows[lane % 4];
                let row = if lane < 4 { _mm512_castpd512_pd256(pair) } else { _mm512_extractf64x4_pd::<1>(pair) };
                let place = to[lane];
                if count == 4 {
                    let sum = if ADD { _mm256_add_pd(_mm256_loadu_pd(place), row) } else { row };
                    _mm256_storeu_pd(place, sum);
                } else {
                    let sum = if ADD { _mm256_add_pd(_mm256_maskz_loadu_pd(mask, place), row) } else { row };
                    _mm256_mask_storeu_pd(place, mask, sum);
                }
            }
        }
    }
}
