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
