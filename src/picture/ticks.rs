//! Ticks of an axis: its ends → round numbers between them with their labels.
//!
//! Steps are 1, 2 or 5 times a power of ten (P. Heckbert, "Nice numbers for graph labels", Graphics Gems, 1990).

/// Round numbers on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticks {
    /// Their values.
    pub(crate) at: Vec<f64>,
    /// The power of ten omitted from all labels.
    exponent: i32,
    /// Digits after the decimal point.
    decimals: usize,
}

impl Ticks {
    /// Returns at most `most` round numbers from `low` to `high`.
    pub(crate) fn linear(low: f64, high: f64, most: usize) -> Self {
        let range = (high - low).max(f64::MIN_POSITIVE);
        let step = nice(range / most.max(1) as f64);
        let (first, last) = ((low / step - 1e-6).ceil(), (high / step + 1e-6).floor());
        let count = (last - first).clamp(-1.0, 100.0) as i64;
        // Avoids −0.
        let at: Vec<f64> = (0..=count).map(|k| (first + k as f64) * step + 0.0).collect();
        let largest = power(low.abs().max(high.abs()));
        let exponent = if (-3..5).contains(&largest) { 0 } else { largest };
        let decimals = usize::try_from(exponent - power(step)).unwrap_or(0).min(12);
        Self { at, exponent, decimals }
    }

    /// Returns the label of a tick.
    pub(crate) fn label(&self, value: f64) -> String {
        self.written(value, self.decimals)
    }

    /// Returns a separate number, without trailing zeros.
    pub(crate) fn alone(&self, value: f64) -> String {
        let text = self.exact(value, value.abs());
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    }

    /// Returns a number that need not be round, to three digits of the axis range.
    pub(crate) fn exact(&self, value: f64, range: f64) -> String {
        let digits = usize::try_from(self.exponent - power(range) + 2).unwrap_or(0).min(12);
        let mut text = self.written(value, digits.max(self.decimals));
        for _ in self.decimals..digits {
            if text.ends_with('0') && text.contains('.') {
                text.pop();
            }
        }
        text.strip_suffix('.').map(str::to_owned).unwrap_or(text)
    }

    /// Returns the power of ten omitted from labels, `×10⁶`.
    pub(crate) fn factor(&self) -> Option<String> {
        (self.exponent != 0).then(|| format!("×10{}", raised(self.exponent)))
    }

    fn written(&self, value: f64, decimals: usize) -> String {
        let scaled = value / 10f64.powi(self.exponent);
        let text = format!("{scaled:.decimals$}");
        let zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
        match text.strip_prefix('-') {
            Some(digits) if zero => digits.to_owned(),
            Some(digits) => format!("−{digits}"),
            None => text,
        }
    }
}

/// Returns the smallest 1, 2 or 5 times a power of ten that is at least `least`.
fn nice(least: f64) -> f64 {
    let unit = 10f64.powi(power(least));
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * unit);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * unit)
}

/// Returns ⌊log₁₀ x⌋, within the range of double precision.
fn power(x: f64) -> i32 {
    if x > 0.0 && x.is_finite() {
        (x.log10() + 1e-9).floor().clamp(-300.0, 300.0) as i32
    } else {
        0
    }
}

/// Ticks of a logarithmic axis: values with labels, and values without.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LogTicks {
    /// Labelled ticks.
    pub(crate) labelled: Vec<(f64, String)>,
    /// Ticks between them.
    pub(crate) between: Vec<f64>,
}

impl LogTicks {
    /// Returns ticks from `low` to `high`, both positive, with about `most` labels at most. They are powers of ten: if
    /// these are few, also 2 and 5 or all of their multiples; if they are many, only some of them.
    pub(crate) fn new(low: f64, high: f64, most: usize) -> Self {
        let (first, last) = (power(low), power(high));
        let within = |value: &f64| low * (1.0 - 1e-9) <= *value && *value <= high * (1.0 + 1e-9);
        let of = |digits: &[i32]| -> Vec<(i32, i32)> {
            let decades = (first..=last).flat_map(|e| digits.iter().map(move |&digit| (digit, e)));
            decades.filter(|&(digit, e)| within(&number(digit, e))).collect()
        };
        let all = of(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // Nine and ten are close to one another on an axis of a decade.
        let dense = if high < DENSE * low { all.clone() } else { of(&[1, 2, 5]) };
        let powers = of(&[1]);
        let stride = 1 + powers.len() / most.max(1);
        let choices = [dense, of(&[1, 2, 5]), of(&[1, 3]), powers.clone()];
        let fits = choices.into_iter().find(|ticks| ticks.len() <= most);
        let mut labelled = fits.unwrap_or_else(|| {
            powers.into_iter().filter(|(_, e)| e.rem_euclid(stride as i32) == 0).collect()
        });
        if labelled.len() < 2 {
            labelled = all.iter().copied().take(1).chain(all.last().copied()).collect();
            labelled.dedup();
        }
        if labelled.len() < 2 {
            let linear = Ticks::linear(low, high, most.clamp(2, 4));
            let written = |&value: &f64| (value, linear.label(value));
            return Self { labelled: linear.at.iter().map(written).collect(), between: Vec::new() };
        }
        let between = all.iter().filter(|tick| !labelled.contains(tick));
        let between = between.map(|&(digit, e)| number(digit, e)).collect();
        // All labels have the same format.
        let plain = labelled.iter().all(|(_, e)| PLAIN.contains(e));
        let written = |&(digit, e): &(i32, i32)| (number(digit, e), label(digit, e, plain));
        Self { labelled: labelled.iter().map(written).collect(), between }
    }
}

fn number(digit: i32, exponent: i32) -> f64 {
    // 2·10⁻³ is the number nearest to 0.002.
    match exponent < 0 {
        true => f64::from(digit) / 10f64.powi(-exponent),
        false => f64::from(digit) * 10f64.powi(exponent),
    }
}

fn label(digit: i32, exponent: i32, plain: bool) -> String {
    let decimals = usize::try_from(-exponent).unwrap_or(0);
    match (plain, digit) {
        (true, _) => format!("{:.decimals$}", number(digit, exponent)),
        (false, 1) => format!("10{}", raised(exponent)),
        (false, _) => format!("{digit}·10{}", raised(exponent)),
    }
}

/// Ratio of the ends below which all multiples of powers of ten are labelled.
const DENSE: f64 = 4.0;
/// Exponents of numbers that are written without a power of ten.
const PLAIN: std::ops::Range<i32> = -2..4;

/// Formats an integer as an exponent.
fn raised(exponent: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
    };
    exponent.to_string().chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, most: usize) -> String {
        let ticks = Ticks::linear(low, high, most);
        let labels: Vec<String> = ticks.at.iter().map(|&value| ticks.label(value)).collect();
        format!("{}{}", labels.join(" "), ticks.factor().unwrap_or_default())
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(labels(0.0, 1.0, 5), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(labels(0.0, 0.0737, 5), "0.00 0.02 0.04 0.06");
        assert_eq!(labels(-1.3, 1.3, 6), "−1.0 −0.5 0.0 0.5 1.0");
        assert_eq!(labels(0.0, 3.2e7, 4), "0 1 2 3×10⁷");
        assert_eq!(labels(-2e-12, 2e-12, 4), "−2 −1 0 1 2×10⁻¹²");
        assert_eq!(labels(97.0, 103.0, 3), "98 100 102");
    }

    #[test]
    fn ends_have_the_digits_that_they_need() {
        let ticks = Ticks::linear(0.0, 0.0737, 5);
        let exact = [0.0, 0.0737, 0.05].map(|value| ticks.exact(value, 0.0737));
        assert_eq!(exact, ["0.00", "0.0737", "0.05"]);
        let ticks = Ticks::linear(0.0, 3.2e7, 4);
        assert_eq!([0.0, 3.2e7].map(|value| ticks.exact(value, 3.2e7)), ["0", "3.2"]);
    }

    #[test]
    fn ticks_of_hopeless_ends_are_no_endless_list() {
        for (low, high) in
            [(0.0, 0.0), (1.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (1e300, -1e300)]
        {
            assert!(Ticks::linear(low, high, 5).at.len() <= 101);
        }
    }

    #[test]
    fn logarithmic_ticks_are_several_on_any_range() {
        let labels = |low, high, most| {
            let ticks = LogTicks::new(low, high, most);
            let labels: Vec<String> = ticks.labelled.into_iter().map(|(_, label)| label).collect();
            labels.join(" ")
        };
        assert_eq!(labels(1e-8, 0.3, 10), "10⁻⁸ 10⁻⁷ 10⁻⁶ 10⁻⁵ 10⁻⁴ 10⁻³ 10⁻² 10⁻¹");
        assert_eq!(labels(1e-16, 1.0, 6), "10⁻¹⁵ 10⁻¹² 10⁻⁹ 10⁻⁶ 10⁻³ 10⁰");
        assert_eq!(labels(0.045, 0.3, 6), "0.05 0.1 0.2");
        assert_eq!(labels(1e4, 3e7, 10), "10⁴ 3·10⁴ 10⁵ 3·10⁵ 10⁶ 3·10⁶ 10⁷ 3·10⁷");
        assert_eq!(labels(0.31, 0.33, 6), "0.310 0.315 0.320 0.325 0.330");
        assert_eq!(labels(1e3, 3e3, 8), "1000 2000 3000");
        assert_eq!(labels(0.02, 0.4, 10), "0.02 0.05 0.1 0.2");
    }
}
