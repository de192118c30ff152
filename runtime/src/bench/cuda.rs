//! The bake-off problems on a GPU, timed by its own clock.

use super::{BenchError, Case, Row, elements_of, form, mesh};
use crate::device::cuda::{Array, Cuda, CudaError};
use crate::discretisation::Discretisation;
use crate::operator::cuda::{CudaBuildError, CudaOperator};
use kernels_gen::abi::KernelAbi;
use kernels_gen::abi::Precision;
use kernels_gen::cost::count;
use kernels_gen::dialect::{Language, SourceFile};
use kernels_gen::element::{Cell, Lagrange};
use kernels_gen::plan::choose::Wishes;
use kernels_gen::strategy::lower;

/// What a GPU can do, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuRates {
    /// Bytes a second that a copy reads and writes.
    pub copy: f64,
    /// Floating-point operations a second of multiply-adds.
    pub flops: f64,
}

/// A case that runs on a GPU.
pub struct Prepared {
    /// The operator.
    pub operator: CudaOperator,
    x: Array,
    y: Array,
    dofs: usize,
    flops: f64,
    bytes: f64,
    row: Row,
}

/// Timed calls, after some warm-ups.
const REPEATS: usize = 11;

/// Sets a case up with at least `dofs` unknowns.
pub fn prepare(
    device: Cuda,
    case: &Case,
    degree: usize,
    dofs: usize,
    precision: Precision,
    wishes: &Wishes,
) -> Result<Prepared, BenchError> {
    let mesh = mesh(case, degree, dofs)?;
    let form = form(case)?;
    let elements = elements_of(case, &form, degree)?;
    let element = Lagrange::continuous(Cell::Hexahedron, degree)?;
    let on = Discretisation::new(mesh, &[(element, case.components)])?;
    let mut params = vec![0.0];
    params.extend(form.params.iter().flat_map(|param| param.value.clone()));
    let operator = CudaOperator::new(device, &on, &form, &elements, &params, precision, wishes)?;
    let (kernel, abi) = lower(&form, &elements, operator.plan())?;
    let cost = count(&kernel, &abi, &elements, case.components);
    let n = on.n_dofs();
    let values = input(n);
    let x = match precision {
        Precision::F64 => operator.device().upload(&values)?,
        Precision::F32 => {
            let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            operator.device().upload_f32(&values)?
        }
    };
    let y = operator.vector()?;
    let cells = on.mesh.n_cells() as f64;
    let bytes = operator.table_bytes() as f64 + (3 * n * precision.bytes()) as f64;
    let flops = cost.flops * cells;
    let row = Row {
        problem: case.name,
        degree,
        quadrature: elements.rule.to_string(),
        components: case.components,
        lanes: operator.plan().lanes,
        geometry: operator.plan().geometry.to_string(),
        threads: 0,
        dofs: n,
        seconds: 0.0,
        bytes_per_dof: bytes / n as f64,
        flops_per_dof: flops / n as f64,
        operations_per_dof: cost.operations * cells / n as f64,
        floor_fraction: 0.0,
        csr_seconds: None,
    };
    Ok(Prepared { operator, x, y, dofs: n, flops, bytes, row })
}

/// A vector that is the same everywhere.
pub fn input(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919) % 1009) as f64 / 1009.0 - 0.5).collect()
}

impl Prepared {
    /// y = A x for [`input`], on the host.
    pub fn result(&mut self) -> Result<Vec<f64>, BenchError> {
        self.operator.apply(&self.x, &mut self.y)?;
        Ok(self.operator.device().download(&self.y)?)
    }

    /// The unknowns.
    pub fn dofs(&self) -> usize {
        self.dofs
    }

    /// The median time, with y cleared in it.
    pub fn measure(&mut self, rates: &GpuRates) -> Result<Row, BenchError> {
        for _ in 0..3 {
            self.operator.apply(&self.x, &mut self.y)?;
        }
        let mut times = Vec::with_capacity(REPEATS);
        for _ in 0..REPEATS {
            let start = self.operator.device().mark()?;
            self.operator.apply(&self.x, &mut self.y)?;
            let end = self.operator.device().mark()?;
            self.operator.device().synchronise()?;
            times.push(start.seconds_to(&end)?);
        }
        times.sort_by(f64::total_cmp);
        let seconds = times[times.len() / 2];
        let floor = (self.bytes / rates.copy).max(self.flops / rates.flops);
        Ok(Row { seconds, floor_fraction: floor / seconds, ..self.row.clone() })
    }
}

const RATES: &str = r#"
extern "C" __global__ void rates_copy(const size_t first, const size_t end, const double* __restrict__ from, double* __restrict__ to)
{
    const size_t i = (first + blockIdx.x) * 256 + threadIdx.x;
    const double4 value = reinterpret_cast<const double4*>(from)[i];
    reinterpret_cast<double4*>(to)[i] = value;
}
extern "C" __global__ void rates_fma(const size_t first, const size_t end, double* __restrict__ to)
{
    double a[8];
    const double x = 1.0 + 1e-9 * threadIdx.x;
    for (int i = 0; i < 8; ++i) a[i] = i;
    for (int k = 0; k < 2048; ++k)
        for (int i = 0; i < 8; ++i) a[i] = fma(a[i], x, 1e-3);
    double sum = 0;
    for (int i = 0; i < 8; ++i) sum += a[i];
    to[(first + blockIdx.x) * 256 + threadIdx.x] = sum;
}
"#;

/// Measures a copy of 1 GiB and a loop of multiply-adds.
pub fn rates(device: &Cuda) -> Result<GpuRates, CudaError> {
    let abi = |name: &str, written: &[bool], each: usize| KernelAbi {
        name: name.to_owned(),
        lanes: 256,
        threads: 256,
        group: 1,
        residency: 1,
        precision: Precision::F64,
        arguments: written
            .iter()
            .map(|&written| kernels_gen::abi::Argument {
                role: kernels_gen::abi::Role::Stored,
                name: "array".to_owned(),
                extent: each,
                written,
            })
            .collect(),
        private_bytes: 0,
        hash: 0,
    };
    let source = SourceFile {
        text: RATES.to_owned(),
        language: Language::Cuda,
        kernels: vec![abi("rates_copy", &[false, true], 1024), abi("rates_fma", &[true], 256)],
    };
    let module = device.load(&source)?;
    let missing = || CudaError::Launch { kernel: "rates".to_owned(), what: "missing".to_owned() };
    let batches = (1_usize << 27) / 1024;
    let from = device.zeros(batches * 1024, Precision::F64)?;
    let to = device.zeros(batches * 1024, Precision::F64)?;
    let median = |name: &str, batches: usize, arrays: &[&Array]| {
        let kernel = module.kernel(name).ok_or_else(missing)?;
        let mut times = Vec::new();
        for _ in 0..8 {
            let start = device.mark()?;
            device.launch(&kernel, 0..batches, arrays)?;
            let end = device.mark()?;
            device.synchronise()?;
            times.push(start.seconds_to(&end)?);
        }
        times.sort_by(f64::total_cmp);
        Ok::<f64, CudaError>(times[times.len() / 2])
    };
    let copy = median("rates_copy", batches, &[&from, &to])?;
    let groups = 132 * 64;
    let fma = median("rates_fma", groups, &[&to])?;
    Ok(GpuRates {
        copy: (2 * batches * 1024 * 8) as f64 / copy,
        flops: (groups * 256 * 2048 * 8 * 2) as f64 / fma,
    })
}

impl From<CudaBuildError> for BenchError {
    fn from(error: CudaBuildError) -> Self {
        Self::Device(error.to_string())
    }
}

impl From<CudaError> for BenchError {
    fn from(error: CudaError) -> Self {
        Self::Device(error.to_string())
    }
}
