//! Invariants 2 to 4 and 10: properties of a value that do not depend on its position.

use super::{CheckedKernel, Phase, Verifier, precedes, require};
use crate::kir::{Op, Value, ValueId};

impl Verifier<'_> {
    /// Checks the invariants of one value.
    pub(super) fn value(&self, id: ValueId, value: &Value) -> CheckedKernel {
        for operand in value.op.operands() {
            require(precedes(operand, id), || format!("{id} precedes its operand {operand}"))?;
        }
        self.types(id, &value.op)?;
        if let Op::Constant(number) = value.op {
            require(number.is_finite(), || format!("the constant {id} is {number}"))?;
        }
        self.uniformity(id, value)
    }

    /// Returns whether a value is a truth value; a broadcast has the type of its operand.
    pub(super) fn is_truth(&self, id: ValueId) -> bool {
        match self.kernel.values[id].op {
            Op::Broadcast(operand) => self.kernel.values[operand].op.is_truth(),
            ref op => op.is_truth(),
        }
    }

    fn is_varying(&self, id: ValueId) -> bool {
        self.kernel.values[id].varying
    }

    fn uniformity(&self, id: ValueId, value: &Value) -> CheckedKernel {
        let varying =
            value.op.is_of_lane() || value.op.operands().any(|operand| self.is_varying(operand));
        require(varying == value.varying, || {
            format!("{id} says that varying is {}, and it is {varying}", value.varying)
        })?;
        if let Op::Broadcast(operand) = value.op {
            return require(!self.is_varying(operand), || {
                format!("{id} broadcasts a varying value")
            });
        }
        if self.phase == Phase::Legal && varying {
            for operand in value.op.operands() {
                let wide = self.is_varying(operand);
                require(wide, || format!("the varying {id} has the uniform operand {operand}"))?;
            }
        }
        Ok(())
    }

    fn types(&self, id: ValueId, op: &Op) -> CheckedKernel {
        let truth = |operand: ValueId, wanted: bool| {
            let found = self.is_truth(operand);
            let what = if wanted { "a truth value" } else { "a real" };
            require(found == wanted, || format!("{id} takes {what}, and {operand} is none"))
        };
        match *op {
            Op::And(a, b) | Op::Or(a, b) => truth(a, true).and(truth(b, true)),
            Op::Not(a) => truth(a, true),
            Op::Select(condition, a, b) => {
                truth(condition, true).and(truth(a, false)).and(truth(b, false))
            }
            Op::Broadcast(_) => Ok(()),
            _ => op.operands().try_for_each(|operand| truth(operand, false)),
        }
    }
}
