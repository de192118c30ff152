//! Names of the facade that are none.
fem_macros::weak_form! {
    #![crate = "wf"]
    #![crate(wf)]
    #![crate = deep::wf]
    #![krate = wf]
}

fn main() {}
