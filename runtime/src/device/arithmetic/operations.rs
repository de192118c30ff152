//! Table of the vector operations ([`vector_operations`]), from which the loops of the host and the kernels of devices
//! are generated. An entry has the form
//!
//! ```text
//! {
//!     /// Documentation of the method of vectors.
//!     name: [access self operand] by scalars;
//!     write [operands] update [operands] read [operands]
//!     { statements on entries }
//!     sum (operands: product)
//! }
//! ```
//!
//! A written operand is overwritten, an updated one is also read. Statements are `operand = expression;` or
//! `let name = expression;`, in a subset of Rust that is also C: arithmetic, comparisons, and the functions `number`,
//! `choose`, `negative`, `absolute` and `reciprocal`. They compute in the precision of the vectors. Sums are products of operands in
//! double precision, after the statements; a reduction has one or two of them.

/// Calls a macro with the table: `operations [{…} …] reductions [{…} …]`.
macro_rules! vector_operations {
    ($generate:ident) => {
        $generate! {
            operations [
                {
                    /// Sets self = a in every entry; on a device also in padding.
                    assign: [write self y] by a;
                    write [] update [] read []
                    { y = a; }
                }
                {
                    /// Sets self = x.
                    copy_from: [write self y] by;
                    write [] update [] read [x]
                    { y = x; }
                }
                {
                    /// Sets self = a·self.
                    scale: [update self y] by a;
                    write [] update [] read []
                    { y = y * a; }
                }
                {
                    /// Sets self = self + a·x.
                    axpy: [update self y] by a;
                    write [] update [] read [x]
                    { y = y + a * x; }
                }
                {
                    /// Sets self = a·x + b·self.
                    combine: [update self y] by (a, b);
                    write [] update [] read [x]
                    { y = a * x + b * y; }
                }
                {
                    /// Sets self_i = x_i·w_i.
                    product_of: [write self y] by;
                    write [] update [] read [x, w]
                    { y = x * w; }
                }
                {
                    /// Sets self_i = self_i·x_i.
                    multiply: [update self y] by;
                    write [] update [] read [x]
                    { y = y * x; }
                }
                {
                    /// Sets self_i = 0 wherever x_i is 0.
                    mask_by: [update self y] by;
                    write [] update [] read [x]
                    { y = choose(x == number(0.0), number(0.0), y); }
                }
                {
                    /// Sets self_i = 0 where |self_i| ≤ `bound`·max(|a_i|, |b_i|), otherwise 1, also for NaN.
                    mark_beyond: [update self y] by bound;
                    write [] update [] read [a, b]
                    {
                        let size = choose(absolute(a) > absolute(b), absolute(a), absolute(b));
                        y = choose(absolute(y) <= bound * size, number(0.0), number(1.0));
                    }
                }
                {
                    /// Sets self_i = 1/self_i, or 0 if self_i is 0.
                    invert: [update self y] by;
                    write [] update [] read []
                    { y = choose(y == number(0.0), number(0.0), reciprocal(y)); }
                }
                {
                    /// Sets self_i = |self_i|.
                    make_absolute: [update self y] by;
                    write [] update [] read []
                    { y = absolute(y); }
                }
                {
                    /// Sets self_i = |self_i|, or 1 if self_i is 0.
                    make_positive: [update self y] by;
                    write [] update [] read []
                    { y = choose(y == number(0.0), number(1.0), absolute(y)); }
                }
                {
                    /// Computes the conjugate gradient direction self = r + β·self.
                    advance_plain: [update self p] by beta;
                    write [] update [] read [r]
                    { p = r + beta * p; }
                }
                {
                    /// Computes the conjugate gradient direction self = D⁻¹r + β·self.
                    advance_scaled: [update self p] by beta;
                    write [] update [] read [r, d]
                    { p = d * r + beta * p; }
                }
                {
                    /// Takes a Chebyshev step: r = r − q, d = `keep`·d + `add`·D⁻¹r, self = self + d.
                    chebyshev: [update self x] by (keep, add);
                    write [] update [d, r] read [q, inverse]
                    {
                        r = r - q;
                        d = choose(keep == number(0.0), number(0.0), keep * d) + add * inverse * r;
                        x = x + d;
                    }
                }
                {
                    /// Takes a Chebyshev step from another residual: r = `from` − q, d = `keep`·d + `add`·D⁻¹r,
                    /// self = self + d.
                    chebyshev_from: [update self x] by (keep, add);
                    write [r] update [d] read [from, q, inverse]
                    {
                        r = from - q;
                        d = choose(keep == number(0.0), number(0.0), keep * d) + add * inverse * r;
                        x = x + d;
                    }
                }
                {
                    /// Takes the first Chebyshev step from zero: d = `add`·D⁻¹r, self = d.
                    chebyshev_first: [write self x] by add;
                    write [d] update [] read [r, inverse]
                    {
                        d = add * inverse * r;
                        x = d;
                    }
                }
                {
                    /// Takes a leapfrog step from velocity and acceleration: v = v + c·a, self = u + `length`·v.
                    drift: [write self next] by (length, c);
                    write [] update [v] read [u, a]
                    {
                        v = v + c * a;
                        next = u + length * v;
                    }
                }
                {
                    /// Takes a leapfrog step from a residual and the inverse of a mass: v = v − c·D⁻¹r,
                    /// self = u + `length`·v.
                    leap: [write self next] by (length, c);
                    write [] update [v] read [u, r, inverse]
                    {
                        v = v - c * (inverse * r);
                        next = u + length * v;
                    }
                }
                {
                    /// Completes a leapfrog step: a = −D⁻¹r, self = self + c·a.
                    kick: [update self v] by c;
                    write [a] update [] read [r, inverse]
                    {
                        a = negative(inverse * r);
                        v = v + c * a;
                    }
                }
            ]
            reductions [
                {
                    /// Returns self·x for another vector.
                    inner_product: [read self y] by;
                    write [] update [] read [x]
                    {}
                    sum (y, x: y * x)
                }
                {
                    /// Returns self·self.
                    square: [read self y] by;
                    write [] update [] read []
                    {}
                    sum (y: y * y)
                }
                {
                    /// Returns self·D⁻¹self.
                    weighted_square: [read self r] by;
                    write [] update [] read [inverse]
                    {}
                    sum (r, inverse: r * r * inverse)
                }
                {
                    /// Sets self = self + a·x, and returns the new self·self.
                    axpy_dot: [update self y] by a;
                    write [] update [] read [x]
                    { y = y + a * x; }
                    sum (y: y * y)
                }
                {
                    /// Sets self = self + α·p, r = r − α·q; returns the new r·r.
                    step_plain: [update self x] by alpha;
                    write [] update [r] read [p, q]
                    {
                        x = x + alpha * p;
                        r = r - alpha * q;
                    }
                    sum (r: r * r)
                }
                {
                    /// Sets self = self + α·p, r = r − α·q; returns the new r·r and r·D⁻¹r.
                    step_scaled: [update self x] by alpha;
                    write [] update [r] read [p, q, d]
                    {
                        x = x + alpha * p;
                        r = r - alpha * q;
                    }
                    sum (r: r * r)
                    sum (r, d: r * r * d)
                }
            ]
        }
    };
}
pub(crate) use vector_operations;

/// Access of an operation to an operand, in the order of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    Write,
    Update,
    Read,
}

/// A vector operation in the dialects of C; names with a final underscore are those of arguments.
pub(super) struct VectorOperation {
    /// The name.
    pub(super) name: &'static str,
    /// Operands: the first one, then the others by access.
    listed: &'static [(Access, &'static str)],
    scalars: &'static [&'static str],
    statements: &'static str,
    /// The factors of each sum.
    sums: &'static [&'static str],
}

macro_rules! access {
    (write) => {
        Access::Write
    };
    (update) => {
        Access::Update
    };
    (read) => {
        Access::Read
    };
}

macro_rules! describe {
    (operations [$($operation:tt)*] reductions [$($reduction:tt)*]) => {
        /// The operations of the table.
        pub(super) static OPERATIONS: &[VectorOperation] =
            &[$(describe!(@one $operation),)* $(describe!(@one $reduction),)*];
    };
    (@one {
        $(#[$doc:meta])*
        $name:ident: [$access:ident $me:ident $first:ident] by $($one:ident)? $(($($many:ident),+))?;
        write [$($written:ident),*] update [$($updated:ident),*] read [$($read:ident),*]
        { $($statement:tt)* }
        $(sum ($($operand:ident),+: $($product:tt)+))*
    }) => {
        VectorOperation {
            name: stringify!($name),
            listed: &[
                (access!($access), stringify!($first)),
                $((Access::Write, stringify!($written)),)*
                $((Access::Update, stringify!($updated)),)*
                $((Access::Read, stringify!($read)),)*
            ],
            scalars: &[$(stringify!($one))? $($(stringify!($many)),+)?],
            statements: stringify!($($statement)*),
            sums: &[$(stringify!($($product)+)),*],
        }
    };
}
vector_operations!(describe);

/// Names of the two sums in kernels: of a thread, and of its group.
pub(super) const SUMS: [(&str, &str); 2] = [("sum", "sums"), ("other", "others")];

impl VectorOperation {
    /// Returns an operation by name.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        OPERATIONS.iter().find(|known| known.name == name)
    }

    /// Returns the operands in the order of arguments: written, updated and read ones.
    fn operands(&self) -> Vec<(Access, &'static str)> {
        let mut operands = self.listed.to_vec();
        operands.sort_by_key(|(access, _)| *access);
        operands
    }

    /// Returns the numbers of written and read vectors, of scalars and of sums.
    pub(super) fn arity(&self) -> [usize; 4] {
        let read = self.listed.iter().filter(|(access, _)| *access == Access::Read).count();
        [self.listed.len() - read, read, self.scalars.len(), self.sums.len()]
    }

    /// Returns for each sum the positions of its factors among the operands.
    pub(super) fn factors(&self) -> impl Iterator<Item = Vec<usize>> {
        let operands = self.operands();
        let place = move |name: &str| operands.iter().position(|(_, own)| *own == name);
        self.sums
            .iter()
            .map(move |sum| sum.split('*').filter_map(|own| place(own.trim())).collect())
    }

    /// Returns the statements for entry i, in C.
    pub(super) fn entry(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.scalars.iter().map(|own| format!("const T {own} = (T){own}_;")));
        let operands = self.operands();
        lines.extend(operands.iter().map(|(access, own)| match access {
            Access::Write => format!("T {own};"),
            Access::Update => format!("T {own} = {own}_[i];"),
            Access::Read => format!("const T {own} = {own}_[i];"),
        }));
        lines.push(self.statements.replace("let ", "const T "));
        let written = operands.iter().filter(|(access, _)| *access != Access::Read);
        lines.extend(written.map(|(_, own)| format!("{own}_[i] = {own};")));
        for (product, (sum, _)) in self.sums.iter().zip(SUMS) {
            let factors: Vec<String> =
                product.split('*').map(|own| format!("(double){}", own.trim())).collect();
            lines.push(format!("{sum} += {};", factors.join(" * ")));
        }
        lines.iter().map(|line| format!("        {line}\n")).collect()
    }

    /// Returns the kernel, in C.
    pub(super) fn kernel(&self, prefix: &str) -> String {
        let mut arguments = vec!["const $SIZE n".to_owned(), "const $SIZE stride".to_owned()];
        arguments.extend(self.operands().iter().map(|(access, own)| match access {
            Access::Read => format!("$GLOBAL const T* $RESTRICT {own}_"),
            Access::Write | Access::Update => format!("$GLOBAL T* $RESTRICT {own}_"),
        }));
        let sums = &SUMS[..self.sums.len()];
        if !sums.is_empty() {
            arguments.push("$GLOBAL double* $RESTRICT partials".to_owned());
        }
        arguments.extend(self.scalars.iter().map(|own| format!("const double {own}_")));
        let (name, arguments, entry) = (self.name, arguments.join(", "), self.entry());
        let mut text = format!("\n$KERNEL {prefix}{name}({arguments})\n{{\n");
        sums.iter().for_each(|(_, all)| text += &format!("    $SHARED double {all}[$THREADS];\n"));
        if !sums.is_empty() {
            text += "    const int thread = $THREAD;\n";
        }
        sums.iter().for_each(|(own, _)| text += &format!("    double {own} = 0;\n"));
        text += &format!("    EACH(i) {{\n{entry}    }}\n");
        sums.iter().for_each(|(own, all)| text += &format!("    {all}[thread] = {own};\n"));
        text += match sums.len() {
            0 => "",
            1 => "    SUM_UP(sums, thread);\n    if (thread == 0) partials[$GROUP] = sums[0];\n",
            _ => {
                "    SUM_UP_BOTH(sums, others, thread);\n    if (thread == 0) {\n        \
                 partials[$GROUP] = sums[0];\n        \
                 partials[stride / $THREADS + $GROUP] = others[0];\n    }\n"
            }
        };
        text + "}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_becomes_a_kernel() {
        let drift = VectorOperation::of("drift").expect("an operation of the table");
        assert_eq!(drift.arity(), [2, 2, 2, 0]);
        let lines: Vec<String> = drift.entry().lines().map(|line| line.trim().to_owned()).collect();
        let wanted = [
            "const T length = (T)length_;",
            "const T c = (T)c_;",
            "T next;",
            "T v = v_[i];",
            "const T u = u_[i];",
            "const T a = a_[i];",
            "v = v + c * a; next = u + length * v;",
            "next_[i] = next;",
            "v_[i] = v;",
        ];
        assert_eq!(lines, wanted);
        let kick = VectorOperation::of("kick").expect("an operation of the table");
        assert!(
            kick.kernel("").contains("T* $RESTRICT a_, $GLOBAL T* $RESTRICT v_, $GLOBAL const")
        );
        let step = VectorOperation::of("step_scaled").expect("an operation of the table");
        assert!(step.entry().contains("other += (double)r * (double)r * (double)d;"));
        assert_eq!(step.factors().collect::<Vec<_>>(), [vec![1, 1], vec![1, 1, 4]]);
    }
}
