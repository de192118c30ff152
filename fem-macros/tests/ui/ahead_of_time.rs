extern crate self as weakform;
pub struct Form;

fem_macros::weak_form! {
    #![ahead_of_time(hex(2), hax(1))]
    form a { field u: scalar; f0[u] = u; }
}

mod degree {
    fem_macros::weak_form! {
        #![ahead_of_time(tet(1, 7))]
        form a { field u: scalar; f0[u] = u; }
    }
}

mod name {
    fem_macros::weak_form! {
        #![ahead_of_tme(tet(1))]
        form a { field u: scalar; f0[u] = u; }
    }
}

fn main() {
    let _: [Form; 3] = [a::form(), degree::a::form(), name::a::form()];
}
