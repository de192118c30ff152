/// Parts of rows go by fours.
const BY_FOURS: bool = true;

/// Four rows to four columns, in each 128 bits.
#[inline(always)]
fn fours(r: [$VECTOR; 4]) -> [$VECTOR; 4] {
    unsafe {
        let low = [$P_unpacklo_ps(r[0], r[1]), $P_unpacklo_ps(r[2], r[3])];
        let high = [$P_unpackhi_ps(r[0], r[1]), $P_unpackhi_ps(r[2], r[3])];
        [
            $P_shuffle_ps::<0x44>(low[0], low[1]),
            $P_shuffle_ps::<0xee>(low[0], low[1]),
            $P_shuffle_ps::<0x44>(high[0], high[1]),
            $P_shuffle_ps::<0xee>(high[0], high[1]),
        ]
    }
}
