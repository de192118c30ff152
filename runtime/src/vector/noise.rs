//! Entries without any order, for products that should meet every row of an operator.

/// Numbers between −1 and 1 without any order, the same at each call.
pub(crate) fn noise(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_centred_and_repeats() {
        let found = noise(10_000, 3);
        assert_eq!(found, noise(10_000, 3));
        assert!(found.iter().all(|x| (-1.0..=1.0).contains(x)));
        assert!(found.iter().sum::<f64>().abs() < 300.0);
        assert!(found.iter().any(|&x| x > 0.99) && found.iter().any(|&x| x < -0.99));
    }
}
