//! Names of fields, data, parameters and values in a form may be keywords of Rust, C, OpenCL and CUDA, macros of their
//! headers, or names used in kernels. Sources compile in every dialect.
//!
//! CUDA requires NVRTC, and OpenCL a device; otherwise these dialects are skipped.

#[path = "opencl/device.rs"]
mod here;

use fem_dsl::point::PointForm;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use kernels_gen::abi::Precision;
use kernels_gen::choose::{MeshFacts, PlanOverrides, choose};
use kernels_gen::dialect::GeneratedSource;
use kernels_gen::dialect::Language;
use kernels_gen::dialect::rust::Isa;
use kernels_gen::element::Cell;
use kernels_gen::generate::{elements, generate};
use kernels_gen::plan::Task;
use runtime::device::jit::{Environment, Jit};

const WORDS: &str = "
    as async await break const continue crate dyn else enum extern false fn for gen impl in loop match mod move mut
    pub ref return self Self static struct super trait true type unsafe use where while union auto safe raw
    abstract become box do final macro override priv try typeof unsized virtual yield
    Some None Ok Err Option Result Box Vec String Clone Copy Drop drop Default From Into Iterator Send Sync ToString
    u8 u32 u64 i32 i64 f32 f64 usize bool str core std run entry arguments stage_0 stage_1 active active_lanes batch begin
    end first last V M T LANES POINTS WEIGHTS VALUES POSITIONS LINE1_VALUES LINE1_SLOPES points weights result results geometry
    metric stored coordinates coordinates_nodes params nodes edges tables scatter scatter_masked scatter_run scatter_lanes
    gather gather_masked gather_run gather_long gather_lanes prefetch prefetch_indexed transpose columns_of columns_to splat
    load store layer layer_back half sums u u_nodes u_q u_x u_y u_nodal u_row u_result u_1 v v0 v1 v2 v3 v10 v1_0 i0 i1 i2 i3 q1
    j0 j1 k0 k1 a1 n1 cell cell1 cell_1 lane thread own writes batch_0 t_1 x_1 y_1 number to from of slot mine turn asked_for

    case char default double extern float goto if inline int long register restrict short signed sizeof switch typedef
    unsigned void volatile asm complex imaginary alignas alignof and and_eq bitand bitor catch char16_t class compl
    constexpr const_cast decltype delete explicit export friend namespace new noexcept not not_eq nullptr operator or or_eq
    private protected public static_assert template this thread_local throw typeid typename using wchar_t xor
    kernel global local constant generic pipe uniform read_only write_only read_write quad size_t ptrdiff_t intptr_t event_t
    sampler_t image2d_t barrier get_local_id get_group_id vec_step cl_khr_fp64 threadIdx blockIdx blockDim gridDim warpSize
    uchar ushort uint ulong float4 double2 int8 uint4 longlong2 half16 uint32 uint32_t
    sqrt fabs exp log sin cos tan pow atan2 fma fmax select mad clamp mix step sign dot cross length distance normalize
    radians degrees all any isnan isequal atomic_add atomicAdd atomic_add_real add_edge edge_of Edge edge again
    thread_again pair fence reciprocal atom_cmpxchg atomic_cmpxchg U INLINE listed number_at group_of REGISTERS
    linux unix i386 vector pixel near far at old sum seen bits real

    M_PI M_PI_2 M_PI_4 M_1_PI M_E M_E_F FLT_MAX FLT_DIG DBL_MAX DBL_EPSILON HALF_MAX INT_MAX UINT_MAX LONG_MIN CHAR_BIT
    CHAR_MAX SHRT_MAX SCHAR_MAX MAXFLOAT HUGE_VAL HUGE_VALF INFINITY NAN NULL EOF CLK_LOCAL_MEM_FENCE CLK_GLOBAL_MEM_FENCE
    CL_DEVICE_MAX FP_FAST_FMA FP_ILOGB0 FP_ILOGBNAN WEAKFORM_PREAMBLE CUDART_VERSION CUDA_VERSION E K PI A_1";

/// Names per form.
const TOGETHER: usize = 24;

fn form(name: &str, items: &str) -> Option<PointForm> {
    let text = format!("form {name} {{ {items} }}");
    let (program, found) = compile(&Source::new("form.wf", text));
    let wrong = found.iter().any(fem_dsl::diagnostic::Diagnostic::is_error);
    program.filter(|_| !wrong).and_then(|program| program.point_form(name, 2).ok())
}

/// Forms in which every valid word is a field, data on cells and at nodes, a parameter and a value.
fn forms() -> Vec<PointForm> {
    let field = |word: &str| form("one", &format!("field {word}: scalar; f0[{word}] = {word};"));
    let mut words: Vec<&str> =
        WORDS.split_whitespace().filter(|word| field(word).is_some()).collect();
    words.sort_unstable();
    words.dedup();
    assert!(words.len() > 250, "{} words", words.len());
    let mut forms = Vec::new();
    for (number, words) in words.chunks(TOGETHER).enumerate() {
        let each =
            |item: &dyn Fn(&str) -> String| words.iter().map(|word| item(word)).collect::<String>();
        let sum = words.join(" + ");
        let own = |item: &dyn Fn(&str) -> String| {
            let items = each(item);
            format!(
                "field unknown: scalar; {items} f0[unknown] = unknown^2 * ({sum}) - h * sin({sum});"
            )
        };
        let fields = each(&|word| format!("field {word}: scalar; f0[{word}] = {word}^3 - 1;"));
        let kinds = [
            ("fields", fields),
            ("cells", own(&|word| format!("aux {word}: scalar on cells;"))),
            ("nodes", own(&|word| format!("aux {word}: scalar on nodes;"))),
            ("params", own(&|word| format!("param {word} = 2;"))),
            ("values", own(&|word| format!("let {word} = 2 * unknown;"))),
        ];
        for (kind, items) in kinds {
            let name = format!("{kind}_{number}");
            forms.push(form(&name, &items).unwrap_or_else(|| panic!("{name}: {items}")));
        }
    }
    forms
}

#[test]
fn whatever_names_a_form_takes_its_rust_compiles() {
    let mut source = GeneratedSource::empty(Language::Rust);
    let isas = if cfg!(target_arch = "x86_64") { &Isa::ALL[1..] } else { &[Isa::Portable] };
    for (form, &isa) in forms().iter().zip(isas.iter().cycle()) {
        let elements = elements(form, Cell::Quadrilateral, 1, 1, None).expect("elements");
        let facts = MeshFacts::default();
        let plans = choose(
            form,
            &elements,
            &facts,
            &[Task::Residual],
            isa,
            Precision::F64,
            &PlanOverrides::default(),
        );
        let kernels = generate(form, &elements, &plans.expect("plans"), isa).expect("a source");
        source.append(kernels.in_module(&form.name));
    }
    let jit = Jit::new(Environment { cache_dir: None, ..Environment::from_process() });
    let Ok(compiler) = jit.compiler() else { return };
    // Only acceptance by the compiler is tested.
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("kernels.rs"), &source.text).expect("a source");
    let mut rustc = std::process::Command::new(compiler.path());
    rustc.args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--cap-lints=allow"]);
    let output = rustc.arg("kernels.rs").current_dir(folder.path()).output().expect("a compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn for_threads<'a>(
    forms: impl IntoIterator<Item = &'a PointForm>,
    words: &kernels_gen::dialect::c::Vocabulary,
) -> Vec<GeneratedSource> {
    use kernels_gen::choose::choose_for_threads;
    use kernels_gen::generate::generate_for_threads;
    let mut sources: Vec<GeneratedSource> = Vec::new();
    for form in forms {
        let elements = elements(form, Cell::Quadrilateral, 1, 1, None).expect("elements");
        let facts = MeshFacts::default();
        let (tasks, wishes) = ([Task::Residual], PlanOverrides::default());
        let plans = choose_for_threads(form, &elements, &facts, &tasks, Precision::F64, &wishes);
        let source =
            generate_for_threads(form, &elements, &plans.expect("plans"), words).expect("a source");
        match sources.last_mut() {
            Some(last) if last.text.len() < 200_000 => last.append(source),
            _ => sources.push(source),
        }
    }
    sources
}

#[test]
fn whatever_names_a_form_takes_its_opencl_compiles() {
    use kernels_gen::dialect::opencl::OPENCL;
    use runtime::device::Device;
    let Some(device) = here::opencl() else { return };
    let device: &dyn Device = &device;
    for source in for_threads(&forms(), &OPENCL) {
        let wrong = device.load(&source).err().map(|error| error.to_string());
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    }
}

#[test]
fn whatever_names_a_form_takes_its_cuda_compiles() {
    use kernels_gen::dialect::cuda::CUDA;
    use runtime::device::cuda::{compile, find_nvrtc};
    if !find_nvrtc() {
        eprintln!("skipped: there is no NVRTC");
        return;
    }
    // OpenCL has the same words, all of them in all positions.
    let everything = forms();
    let forms = everything.iter().enumerate().filter(|(number, _)| number % 2 == 0);
    for source in for_threads(forms.map(|(_, form)| form), &CUDA) {
        let image = compile(&source.text, "sm_90").unwrap_or_else(|error| panic!("{error}"));
        assert!(image.starts_with(b"\x7fELF"));
    }
}
