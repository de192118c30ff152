/// Parts of rows go by masks.
const BY_FOURS: bool = false;

/// Rows to columns.
#[inline(always)]
fn transpose(rows: [V; LANES]) -> [V; LANES] {
    unsafe {
        let [a, b, c, d] = rows.map(|row| row.0);
        let (p, q) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        let (r, s) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
        [
            V(_mm256_permute2f128_pd::<0x20>(p, r)),
            V(_mm256_permute2f128_pd::<0x20>(q, s)),
            V(_mm256_permute2f128_pd::<0x31>(p, r)),
            V(_mm256_permute2f128_pd::<0x31>(q, s)),
        ]
    }
}
