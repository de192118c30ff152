//! Colours: numbers from 0 to 1 → viridis; lines → colours distinguishable with colour-vision deficiency.

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

/// Missing values.
pub(crate) const NONE: Rgb = [0xB4, 0xB4, 0xB4];
/// Text and axes.
pub(crate) const BLACK: Rgb = [0x1A, 0x1A, 0x1A];
/// Secondary text.
pub(crate) const GREY: Rgb = [0x70, 0x70, 0x70];
/// Lines of a grid.
pub(crate) const LIGHT: Rgb = [0xDC, 0xDC, 0xDC];

/// Viridis at the multiples of 1/32: perceptually uniform, and readable without red or green and in print without
/// colours (N. Smith and S. van der Walt, "A better default colormap for Matplotlib", SciPy 2015; the table is in the
/// public domain, CC0). Linear interpolation between these is within 2/255 of all its 256 colours.
const VIRIDIS: [u32; 33] = [
    0x440154, 0x470D60, 0x48186A, 0x482374, 0x472D7B, 0x453781, 0x424086, 0x3E4989, 0x3B528B,
    0x375B8D, 0x33638D, 0x2F6B8E, 0x2C728E, 0x297A8E, 0x26828E, 0x23898E, 0x21918C, 0x1F978B,
    0x1F9F88, 0x21A685, 0x27AD81, 0x31B57B, 0x3DBC74, 0x4CC26C, 0x5CC863, 0x6ECE58, 0x81D34D,
    0x95D840, 0xAADC32, 0xC0DF25, 0xD5E21A, 0xEAE51A, 0xFDE725,
];

/// Returns the colour of a number from 0 to 1; grey for NaN.
pub(crate) fn viridis(t: f64) -> Rgb {
    if t.is_nan() {
        return NONE;
    }
    let last = VIRIDIS.len() - 1;
    let at = t.clamp(0.0, 1.0) * last as f64;
    let below = (at as usize).min(last - 1);
    let (a, b, share) = (rgb(VIRIDIS[below]), rgb(VIRIDIS[below + 1]), at - below as f64);
    [0, 1, 2].map(|c| (f64::from(a[c]) + share * (f64::from(b[c]) - f64::from(a[c]))).round() as u8)
}

/// Colours of lines: M. Okabe and K. Ito's, "Color Universal Design" (2008), which are distinguishable with
/// colour-vision deficiency; without yellow, which is invisible on white paper.
const LINES: [u32; 7] = [0x0072B2, 0xD55E00, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x000000];

/// Returns the colour of a line by its index.
pub(crate) fn of_line(number: usize) -> Rgb {
    rgb(LINES[number % LINES.len()])
}

fn rgb(hex: u32) -> Rgb {
    let [_, red, green, blue] = hex.to_be_bytes();
    [red, green, blue]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viridis_runs_from_violet_to_yellow_and_becomes_brighter() {
        assert_eq!(viridis(0.0), [0x44, 0x01, 0x54]);
        assert_eq!(viridis(1.0), [0xFD, 0xE7, 0x25]);
        assert_eq!((viridis(-1.0), viridis(2.0)), (viridis(0.0), viridis(1.0)));
        assert_eq!(viridis(f64::NAN), NONE);
        // Luminance weights of Rec. 709.
        let bright =
            |[r, g, b]: Rgb| 0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b);
        let all: Vec<f64> = (0..=32).map(|i| bright(viridis(f64::from(i) / 32.0))).collect();
        assert!(all.is_sorted());
    }
}
