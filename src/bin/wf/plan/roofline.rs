//! Roofline of a machine with the candidates: flops per second over flops per byte, on logarithmic axes.

use std::path::Path;

use weakform::picture::{Axis, Chart, Scale, Series, write_charts};

use crate::report::Failure;

use super::ProblemCandidates;

/// Draws the roofs, and each candidate at its predicted and at its measured position.
pub(super) fn draw(path: &Path, planned: &ProblemCandidates<'_>) -> Result<(), Failure> {
    let machine = &planned.on.machine;
    let balance = |flops: f64, bytes: f64| flops / bytes;
    let all = &planned.candidates.all;
    let own = all.iter().map(|one| balance(one.cost.flops(), one.cost.bytes.total()));
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    let ridge = 2.0 * machine.fma_rate / machine.bandwidth;
    for x in own.chain([ridge]) {
        (least, most) = (least.min(x), most.max(x));
    }
    let (from, to) = (least / 3.0, most * 3.0);
    let roof = |x: f64| (x * machine.bandwidth).min(2.0 * machine.fma_rate) / 1e9;
    let points = [from, ridge, to].map(|x| (x, roof(x))).to_vec();
    let mut series = vec![Series { name: "roof".to_owned(), points, ..Series::default() }];
    for (number, one) in all.iter().enumerate() {
        let flops = one.cost.flops() * planned.cells();
        let x = balance(one.cost.flops(), one.cost.bytes.total());
        let rate = |seconds: f64| flops / seconds / 1e9;
        let taken = if number == planned.candidates.chosen { ", taken" } else { "" };
        let name = format!("{}, {}{taken}", one.plan.strategy, one.geometry());
        let predicted = rate(planned.seconds(one));
        let mut points = vec![(x, predicted)];
        if let Some(Ok(seconds)) = &planned.measured[number] {
            points.push((x, rate(*seconds)));
        }
        series.push(Series { name, points, ..Series::default() });
    }
    let axis = |name: &str| Axis { name: name.to_owned(), scale: Scale::Logarithmic };
    let chart =
        Chart { x: axis("flops a byte"), y: axis("GFLOP/s"), series, dashed: String::new() };
    let measured = if planned.measured.iter().any(Option::is_some) { " and measured" } else { "" };
    let title = format!("{}, {}: predicted{measured}", planned.name, planned.task.word());
    Ok(write_charts(path, &title, &[chart])?)
}
