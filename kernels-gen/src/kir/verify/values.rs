//! Invariants 2 to 4 and 10: properties of a value that do not depend on its position.

use super::{CheckedKernel, Phase, Verifier, precedes, require};
use crate::kir::{Op, Value, ValueId};

impl Verifier<'_> {
    /// Checks the invariants of one value.
    pub(super) fn value(&self, id: ValueId, value: &Value) -> CheckedKernel {
        let label = |id| self.kernel.label(id);
        for operand in value.op.operands() {
            require(precedes(operand, id), || {
                format!("{} precedes its operand {}", label(id), label(operand))
            })?;
        }
        self.types(id, &value.op)?;
        if let Op::Constant(number) = value.op {
            require(number.is_finite(), || format!("a constant is {number}"))?;
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
        let label = |id| self.kernel.label(id);
        let varying =
            value.op.is_of_lane() || value.op.operands().any(|operand| self.is_varying(operand));
        require(varying == value.varying, || {
            format!("{} says that varying is {}, and it is {varying}", label(id), value.varying)
        })?;
        if let Op::Broadcast(operand) = value.op {
            return require(!self.is_varying(operand), || {
                format!("{} broadcasts a varying value", label(id))
            });
        }
        if self.phase == Phase::Legal && varying {
            for operand in value.op.operands() {
                require(self.is_varying(operand), || {
                    format!("the varying {} has the uniform operand {}", label(id), label(operand))
                })?;
            }
        }
        Ok(())
    }

    fn types(&self, id: ValueId, op: &Op) -> CheckedKernel {
        let truth = |operand: ValueId, wanted: bool| {
            let found = self.is_truth(operand);
            let kind = if wanted { "a truth value" } else { "a real" };
            let label = |id| self.kernel.label(id);
            require(found == wanted, || {
                format!("{} takes {kind}, and {} is none", label(id), label(operand))
            })
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
