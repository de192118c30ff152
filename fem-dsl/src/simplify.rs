//! `simplify`: [`Form`] → [`Form`], the same values with fewer tensor operations.
//!
//! Unused expressions are removed, all others pass through the folding builder again, and rules that depend on the
//! number of uses are applied:
//!
//! ```text
//! s a ± s b = s (a ± b)      s a ± t a = (s ± t) a      a/s ± b/s = (a ± b)/s
//! ```
//!
//! if the products are used nowhere else. Reassociation changes results by rounding only; the set on which a formula is
//! finite never changes.

use crate::form::{BuildError, Expr, ExprId, Exprs, Form, Integral, Row, expect_form};
use crate::verify::Phase;
use std::collections::BTreeMap;

/// Simplifies a form.
pub fn simplify(form: &Form) -> Form {
    let roots = form.roots();
    let order = form.exprs.reachable_in_order(&roots);
    let mut uses: BTreeMap<ExprId, usize> = BTreeMap::new();
    let operands = order.iter().flat_map(|&id| form.exprs.expr(id).operands());
    for id in operands.chain(roots) {
        *uses.entry(id).or_insert(0) += 1;
    }
    let mut rebuild = Rebuild { old: &form.exprs, new: Exprs::new(), moved: BTreeMap::new(), uses };
    for id in order {
        let new = rebuild
            .expression(id)
            .expect("an expression that was built should be built again from equal operands");
        rebuild.moved.insert(id, new);
    }
    let Rebuild { new, moved, .. } = rebuild;
    let value = |old: Option<ExprId>| old.map(|old| moved[&old]).filter(|&id| !new.is_zero(id));
    let rows = |rows: &[Row]| -> Vec<Row> {
        rows.iter().map(|row| row.map(value)).filter(|row| !row.is_empty()).collect()
    };
    let integrals = form.integrals.iter().map(|integral| Integral {
        region: integral.region.clone(),
        rows: rows(&integral.rows),
        action: rows(&integral.action),
        energy: integral.energy.map(|energy| moved[&energy]),
    });
    let integrals = integrals.collect();
    let plain = |id: &ExprId| {
        matches!(
            new.expr(*id),
            Expr::Constant(_) | Expr::Zero(_) | Expr::Identity(_) | Expr::Terminal(_)
        )
    };
    let names = form.names.iter().filter_map(|(id, name)| Some((*moved.get(id)?, name.clone())));
    let names = names.filter(|(id, _)| !plain(id)).collect();
    let defaults = form.defaults.iter().map(|default| moved[default]).collect();
    let simplified = Form {
        name: form.name.clone(),
        doc: form.doc.clone(),
        source: form.source.clone(),
        dim: form.dim,
        fields: form.fields.clone(),
        aux: form.aux.clone(),
        params: form.params.clone(),
        rates: form.rates.clone(),
        defaults,
        exprs: new,
        names,
        integrals,
    };
    expect_form(&simplified, Phase::Differentiated);
    simplified
}

struct Rebuild<'a> {
    old: &'a Exprs,
    new: Exprs,
    moved: BTreeMap<ExprId, ExprId>,
    uses: BTreeMap<ExprId, usize>,
}

impl Rebuild<'_> {
    fn expression(&mut self, id: ExprId) -> Result<ExprId, BuildError> {
        match *self.old.expr(id) {
            Expr::Add(a, b) => self.sum(a, b, Exprs::add),
            Expr::Sub(a, b) => self.sum(a, b, Exprs::sub),
            _ => self.new.copy_from(self.old, id, |a| self.moved[&a]),
        }
    }

    /// Returns a ± b, with a common factor or denominator factored out if that saves an operation.
    fn sum(
        &mut self,
        a: ExprId,
        b: ExprId,
        combine: impl Fn(&mut Exprs, ExprId, ExprId) -> Result<ExprId, BuildError>,
    ) -> Result<ExprId, BuildError> {
        let (x, y) = (self.moved[&a], self.moved[&b]);
        if self.uses[&a] == 1 && self.uses[&b] == 1 {
            match (self.new.expr(x), self.new.expr(y)) {
                (&Expr::Mul(s, left), &Expr::Mul(t, right)) if s == t => {
                    let inside = combine(&mut self.new, left, right)?;
                    return self.new.mul(s, inside);
                }
                (&Expr::Mul(s, left), &Expr::Mul(t, right)) if left == right => {
                    let factor = combine(&mut self.new, s, t)?;
                    return self.new.mul(factor, left);
                }
                (&Expr::Div(left, s), &Expr::Div(right, t)) if s == t => {
                    let inside = combine(&mut self.new, left, right)?;
                    return self.new.div(inside, s);
                }
                _ => {}
            }
        }
        combine(&mut self.new, x, y)
    }
}
