//! Names of mathematical functions in C, for kernels on vectors and on threads and for headers of other libraries.

use crate::kir::Unary;

/// Returns the name of a function in `math.h` and OpenCL C.
///
/// # Panics
///
/// The negative and the sign are no functions: printers have operators for them.
pub(crate) fn c_function(function: Unary) -> &'static str {
    match function {
        Unary::Neg | Unary::Sign => unreachable!("operators are no functions"),
        Unary::Sqrt => "sqrt",
        Unary::Abs => "fabs",
        Unary::Exp => "exp",
        Unary::Log => "log",
        Unary::Sin => "sin",
        Unary::Cos => "cos",
        Unary::Tan => "tan",
        Unary::Asin => "asin",
        Unary::Acos => "acos",
        Unary::Atan => "atan",
        Unary::Sinh => "sinh",
        Unary::Cosh => "cosh",
        Unary::Tanh => "tanh",
    }
}
