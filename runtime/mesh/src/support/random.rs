//! Pseudo-random entries and signs for test vectors.

/// Returns `n` pseudo-random numbers in [−1, 1), equal in each call.
pub fn random_entries(n: usize, seed: u64) -> Vec<f64> {
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

/// Returns random signs, the same at every call.
pub fn random_signs() -> impl Iterator<Item = f64> {
    // Knuth's linear congruential generator; its high bits are random.
    let next = |state: &u64| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    let states = std::iter::successors(next(&1), next);
    states.map(|state| if state >> 63 == 0 { 1.0 } else { -1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_centred_and_repeats() {
        let found = random_entries(10_000, 3);
        assert_eq!(found, random_entries(10_000, 3));
        assert!(found.iter().all(|x| (-1.0..=1.0).contains(x)));
        assert!(found.iter().sum::<f64>().abs() < 300.0);
        assert!(found.iter().any(|&x| x > 0.99) && found.iter().any(|&x| x < -0.99));
    }
}
