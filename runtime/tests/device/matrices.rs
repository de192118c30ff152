//! Jacobians as element matrices and as sparse matrices, on devices.

use super::*;
use runtime::assembly::Assembly;

impl Setting {
    /// J(u) w of a device that applies the Jacobian in another way, twice.
    fn represented(&self, device: &Arc<dyn Device>, how: Representation) -> [Vec<f64>; 2] {
        let wishes = Wishes { matrix: Some(how.scatter()), ..Wishes::default() };
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
        found
    }
}

/// Element matrices stored, made anew, and assembled, against the action on the processor. Where no entry has additions in
/// any order, two assemblies give the same bits.
#[test]
fn element_matrices_give_the_action() {
    let (double, single) = (Precision::F64, Precision::F32);
    let quads = |cells| boxed("quad", 2.0, cells, 0.1);
    let assembled = Representation::Assembled;
    let cases: [(Case, Representation); 12] = [
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
        // Alone its cells would sum first, batch by batch.
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
            let [found, again] = setting.represented(device, how);
            let what = format!("{device:?}, {how:?}");
            setting.compare_one(Task::Action, &found, &wanted[1], &what);
            let in_order = [Assembly::Owner, Assembly::Coloured].map(assembled).contains(&how);
            assert!(!in_order || found == again, "{}, {how:?} on {device:?}", setting.name);
        }
    }
}
