//! The kernel equals the reviewed one.

use weakform::{Cell, Emission, Error, Isa, Task};

#[test]
fn the_action_on_triangles() -> Result<(), Error> {
    let wanted = Emission::new(Cell::Triangle, 1).task(Task::Action).isa(Isa::Avx2);
    insta::assert_snapshot!(kernel_snapshot::diffusion::form().emit(&wanted)?);
    Ok(())
}
