//! The words `inside`, `outside`, `jump` and `avg`: an expression → the same with the inputs of one side, their difference
//! or their mean.

use crate::ast::SideWord;
use crate::form::{BuildError, Expr, ExprId, Exprs, Form, Terminal};
use crate::point::Side;
use std::collections::BTreeMap;

/// Applies a word to an expression. It goes down to the inputs; where there is one cell, `inside(e)` is e.
///
/// # Errors
///
/// An expression with a side of its own, or the normal.
pub(super) fn apply(
    form: &mut Form,
    word: SideWord,
    a: ExprId,
    interior: bool,
) -> Result<ExprId, BuildError> {
    if !interior {
        return Ok(a);
    }
    if let Expr::Terminal(Terminal::Normal) = form.exprs.expr(a) {
        return Err(BuildError::SideOfNormal { word: word.name() });
    }
    if let Some(terminal) = form.terminals(&[a]).find(|terminal| terminal.side().is_some()) {
        return Err(BuildError::SideOfSide { word: word.name(), terminal });
    }
    match word {
        SideWord::Inside => of_side(form, a, Side::Inside),
        SideWord::Outside => of_side(form, a, Side::Outside),
        SideWord::Jump => {
            let [inside, outside] =
                [Side::Inside, Side::Outside].map(|side| of_side(form, a, side));
            form.exprs.sub(inside?, outside?)
        }
        SideWord::Average => {
            let [inside, outside] =
                [Side::Inside, Side::Outside].map(|side| of_side(form, a, side));
            let (inside, outside) = (inside?, outside?);
            if inside == outside {
                return Ok(inside);
            }
            let sum = form.exprs.add(inside, outside)?;
            let half = form.exprs.constant(0.5);
            form.exprs.mul(half, sum)
        }
    }
}

/// Returns an expression with the inputs of one side.
fn of_side(form: &mut Form, a: ExprId, side: Side) -> Result<ExprId, BuildError> {
    let mut exprs = std::mem::take(&mut form.exprs);
    let made = rebuilt(&mut exprs, form, a, side);
    form.exprs = exprs;
    made
}

fn rebuilt(exprs: &mut Exprs, form: &Form, a: ExprId, side: Side) -> Result<ExprId, BuildError> {
    let mut moved: BTreeMap<ExprId, ExprId> = BTreeMap::new();
    let before = exprs.begin(None);
    for id in exprs.reachable_in_order(&[a]) {
        let expr = exprs.expr(id).clone();
        exprs.begin(exprs.origin(id));
        let new = match expr {
            Expr::Terminal(terminal) if form.has_two_values(terminal) => {
                exprs.terminal(terminal.with_side(Some(side)), exprs.shape(id))
            }
            ref expr if expr.operands().iter().all(|operand| moved[operand] == *operand) => id,
            ref expr => exprs.rebuild(expr, exprs.shape(id), |operand| moved[&operand])?,
        };
        moved.insert(id, new);
    }
    exprs.begin(before);
    Ok(moved[&a])
}
