//! Jacobians as element matrices and as sparse matrices, on devices.

use super::*;
use runtime::device::BoundedDevice;
use runtime::kernels::representation::Assembly;
use runtime::operator::BuildError;
use runtime::support::memory::InsufficientMemory;

impl Setting {
    /// Computes J(u) w twice in another representation on a device, and by its matrix, if it has one.
    fn represented(
        &self,
        device: &Arc<dyn Device>,
        how: Representation,
    ) -> ([Vec<f64>; 2], Option<Vec<f64>>) {
        let wishes = PlanOverrides { matrix: Some(how.scatter()), ..PlanOverrides::default() };
        // The rows of walls are scaled by the diagonal.
        let oblique = self.on.fields.iter().any(|field| !field.constraints.oblique().is_empty());
        let diagonal = oblique.then_some(Task::Diagonal);
        let tasks: Vec<Task> = how.tasks().iter().copied().chain(diagonal).collect();
        let mut operator = self.operator(self.compiled_for(&tasks, device, &wishes));
        operator.represent(how).expect("kernels for that");
        let [state, direction] = self.vectors(&operator);
        let mut action = state.like();
        let found = [(); 2].map(|()| {
            action.make_positive();
            operator.linearise(&state).expect("J");
            operator.jacobian().apply(&direction, &mut action).expect("J w");
            action.to_vec()
        });
        operator.finish().expect("no failure");
        let matrix = operator.assembled().expect("numbers");
        let product = matrix.map(|matrix| {
            let (x, mut y) = (direction.to_vec(), vec![0.0; matrix.size()]);
            matrix.apply(&x, &mut y);
            y
        });
        (found, product)
    }
}

/// Stored, recomputed and assembled element matrices against the action on the CPU. Without unordered additions, two
/// assemblies give the same bits.
#[test]
fn element_matrices_give_the_action() {
    let (double, single) = (Precision::F64, Precision::F32);
    let quads = |cells| boxed("quad", 2.0, cells, 0.1);
    let assembled = Representation::Assembled;
    let cases: [(Case, Representation); 13] = [
        (
            ("tetrahedra, two fields", boxed("tet", 3.0, 3.0, 0.0), MIXED, 1, double),
            Representation::Stored,
        ),
        (
            ("quadrilaterals that hang", adapted(quads(5.0), 1), BOUNDARY, 2, double),
            Representation::Stored,
        ),
        (("quadrilaterals", quads(9.0), SCALAR, 2, single), Representation::Recomputed),
        (("quadrilaterals, boundary", quads(9.0), BOUNDARY, 1, double), Representation::Recomputed),
        (("hexahedra", boxed("hex", 3.0, 5.0, 0.1), SCALAR, 1, double), assembled(Assembly::Owner)),
        (
            ("quadrilaterals that hang", adapted(quads(5.0), 1), BOUNDARY, 1, double),
            assembled(Assembly::Owner),
        ),
        (("quadrilaterals, regions", quads(9.0), REGIONS, 1, double), assembled(Assembly::Pattern)),
        (
            ("triangles, slip", slipping("tri", 2.0, 8.0), VECTOR, 2, single),
            assembled(Assembly::Pattern),
        ),
        (("triangles", boxed("tri", 2.0, 8.0, 0.0), SCALAR, 1, double), assembled(Assembly::Acoo)),
        // Without it, cells would sum first, batch by batch.
        (
            ("triangles", boxed("tri", 2.0, 8.0, 0.0), SCALAR, 2, double),
            assembled(Assembly::Coloured),
        ),
        (
            ("quadrilaterals that hang, two fields", adapted(quads(4.0), 1), MIXED, 1, double),
            assembled(Assembly::Acoo),
        ),
        (
            ("quadrilaterals, two fields", quads(9.0), JUMPS, 1, double),
            assembled(Assembly::Coloured),
        ),
        // Rows of 8 · 216 elements, with tables beyond shared memory.
        (
            ("hexahedra, long rows", boxed("hex", 3.0, 2.0, 0.0), SCALAR, 5, double),
            assembled(Assembly::Acoo),
        ),
    ];
    let devices = devices();
    if devices.is_empty() {
        return;
    }
    let Some(part) = part("matrices::element_matrices_give_the_action", &devices) else { return };
    for (case, how) in own(part, cases) {
        let setting = Setting::new(case);
        let wanted = setting.on_the_processor();
        for device in &devices {
            let ([found, again], product) = setting.represented(device, how);
            let what = format!("{device:?}, {how:?}");
            setting.compare_one(Task::Action, &found, &wanted[1], &what);
            assert_eq!(product.is_some(), matches!(how, Representation::Assembled(_)), "{what}");
            if let Some(product) = product {
                // Rows of conditions are those of the identity, including walls.
                setting.compare_one(Task::Action, &product, &wanted[1], &format!("{what}, matrix"));
            }
            let in_order = [Assembly::Owner, Assembly::Coloured].map(assembled).contains(&how);
            assert!(!in_order || found == again, "{}, {how:?} on {device:?}", setting.name);
        }
    }
}

/// Insufficient memory is reported before allocation; otherwise the predicted memory is not exceeded. The number of
/// rows in `acoo` is known only during assembly, which checks the memory of the rows before their allocation.
#[test]
fn too_little_memory_is_told_before_any_is_taken() {
    let devices = devices();
    let Some(device) = devices.first() else { return };
    let setting =
        Setting::new(("hexahedra", boxed("hex", 3.0, 6.0, 0.1), SCALAR, 2, Precision::F64));
    let assemblies = Assembly::ALL.map(Representation::Assembled);
    for how in assemblies.into_iter().chain([Representation::Stored]) {
        let wishes = PlanOverrides { matrix: Some(how.scatter()), ..PlanOverrides::default() };
        // Bytes before and at the peak of an assembly.
        let try_with = |bound: usize| {
            let bounded = Arc::new(BoundedDevice::new(Arc::clone(device), bound));
            let own: Arc<dyn Device> = Arc::clone(&bounded) as Arc<dyn Device>;
            let mut operator = setting.operator(setting.compiled_for(how.tasks(), &own, &wishes));
            let [state, _] = setting.vectors(&operator);
            let (before, most) = (bounded.bytes(), bounded.most_bytes());
            let done = operator.represent(how);
            let there = done.is_ok();
            let done = done.and_then(|()| {
                operator.linearise(&state)?;
                Ok(operator.finish()?)
            });
            if !there {
                assert_eq!((bounded.bytes(), bounded.most_bytes()), (before, most), "{how:?}");
            }
            (before, bounded.most_bytes(), done)
        };
        let (before, peak, done) = try_with(usize::MAX);
        done.unwrap_or_else(|error| panic!("{error}, {how:?}"));
        let (taken, third) = (peak - before, before + (peak - before) / 3);
        let (again, _, refused) = try_with(third);
        assert_eq!(again, before, "{how:?}");
        let error = refused.expect_err("a third of the memory");
        let text = error.to_string();
        let BuildError::Memory(InsufficientMemory { bytes, room, .. }) = error else {
            panic!("{text}, {how:?}")
        };
        assert_eq!(room.bytes, (third - before) as f64, "{how:?}");
        let parts = bytes / taken as f64;
        let least = if how == Representation::Assembled(Assembly::Acoo) { 0.4 } else { 0.97 };
        // Lists omit elements of constrained degrees of freedom, which are many here.
        assert!((least..1.1).contains(&parts), "{text} of {taken} bytes, {how:?}");
        assert!(text.contains("what the device has"), "{text}");
        let (_, _, done) = try_with(before + (1.06 * bytes.max(taken as f64)) as usize);
        done.unwrap_or_else(|error| panic!("{error}, {how:?}"));
        if how == Representation::Assembled(Assembly::Acoo) {
            // The predicted part fits, but the rows do not.
            let (_, _, done) = try_with(before + (1.02 * bytes) as usize);
            let error = done.expect_err("no room for rows").to_string();
            assert!(error.contains("of memory are wanted"), "{error}");
        }
    }
}
