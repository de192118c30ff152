//! Hash of a sequence of words, after Fowler, Noll and Vo, word by word.

/// Hash of the words so far.
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    /// Returns the hash of an empty sequence.
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Fingerprint {
    /// Appends a word.
    pub fn take(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x100_0000_01B3).rotate_left(29);
    }

    /// Appends the bytes of a text, each as a word.
    pub fn text(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.take(u64::from(byte)));
    }

    /// Appends nodes and points, in order.
    pub fn mesh(&mut self, nodes: &[u32], points: &[[f64; 3]]) {
        nodes.iter().for_each(|&node| self.take(u64::from(node)));
        points.iter().flatten().for_each(|x| self.take(x.to_bits()));
    }

    /// Returns the hash value.
    pub fn number(&self) -> u64 {
        self.0
    }
}
