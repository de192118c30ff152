//! The kernel that sums stored contributions of cells per degree of freedom: the same bits as sequential summation on
//! the CPU, on every device.

use super::devices;
use devices::devices;
use kernels_gen::abi::Precision;
use kernels_gen::dialect::c::sum::{NAME, UNKNOWNS, sum_of_cells};
use runtime::device::Device;

/// The number of degrees of freedom, with lists of 0 to 11 positions each.
const N: usize = 1000;

fn lists() -> (Vec<u32>, Vec<u32>) {
    let (mut starts, mut places) = (vec![0], Vec::new());
    for i in 0..N.next_multiple_of(UNKNOWNS) {
        let count = if i < N { (i * 7919) % 12 } else { 0 };
        places.extend((0..count).map(|k| ((i * 31 + k * 577) % 4001) as u32));
        starts.push(places.len() as u32);
    }
    (starts, places)
}

fn compare(device: &dyn Device) {
    let (starts, places) = lists();
    let cells: Vec<f64> = (0..4001).map(|i| (i as f64).sin() * 10f64.powi(i % 9)).collect();
    let before: Vec<f64> = (0..N).map(|i| (i as f64).cos()).collect();
    let mut wanted = before.clone();
    for (i, sum) in wanted.iter_mut().enumerate() {
        let list = &places[starts[i] as usize..starts[i + 1] as usize];
        list.iter().for_each(|&place| *sum += cells[place as usize]);
    }
    let source = sum_of_cells(device.words(), Precision::F64);
    let module = device.load(&source).expect("a module");
    let kernel = module.kernel(NAME).expect("the kernel");
    let starts = device.upload(&starts).expect("starts");
    let places = device.upload(&places).expect("places");
    let cells = device.upload(&cells).expect("cells");
    let result = device.upload(&before).expect("the result");
    let arguments = [&starts, &places, &cells, &result];
    device.launch(kernel, 0..N.div_ceil(UNKNOWNS), &arguments).expect("a launch");
    let found = device.download(&result).expect("sums");
    assert_eq!(found, wanted, "{}", device.name());
}

#[test]
fn owners_add_up_in_order() {
    devices().iter().for_each(|device| compare(&**device));
}
