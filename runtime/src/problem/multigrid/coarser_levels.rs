//! Discretisations of the coarser levels, made ahead of their operators.
//!
//! Coarser meshes and spaces depend on each other, not on operators and transfers. Another thread makes them while this one fills
//! the tables of finer levels.

use super::{HierarchyInput, UnlinkedLevel};
use crate::mesh::{CoarsenedMesh, Mesh};
use crate::problem::RunError;
use crate::problem::plan::{LevelSettings, MULTIGRID_STOPS, halved};
use crate::problem::prescribed::FinerLevel;
use crate::processes::any;
use crate::space::discretisation::Discretisation;
use crate::support::timers::in_step;
use kernels_gen::plan::Elements;
use rayon::{Scope, Yield};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

/// Discretisation of the next level, with the coarser mesh if it is on one.
pub(super) struct CoarserLevel {
    pub(super) elements: Elements,
    pub(super) on: Arc<Discretisation>,
    pub(super) coarsened: Option<CoarsenedMesh>,
}

type FoundLevel = Result<Option<CoarserLevel>, RunError>;

/// Source of the coarser levels.
pub(super) enum CoarserLevels<'a> {
    /// Each is made from the level above when it is asked for.
    InTurn(HierarchyInput<'a>),
    /// Another thread makes them.
    Ahead(Receiver<FoundLevel>),
    /// There are none.
    None,
}

impl<'a> CoarserLevels<'a> {
    /// Begins with the levels below the finest one.
    pub(super) fn begin<'s>(
        input: &HierarchyInput<'a>,
        settings: LevelSettings,
        scope: &Scope<'s>,
    ) -> Self
    where
        'a: 's,
    {
        if settings.is_algebraic {
            return Self::None;
        }
        // Processes make levels together, in the order of their messages.
        if input.on.mesh.cut().is_some() || rayon::current_num_threads() == 1 {
            return Self::InTurn(*input);
        }
        let (sender, receiver) = mpsc::channel();
        let input = *input;
        scope.spawn(move |_| input.send_levels(&sender));
        Self::Ahead(receiver)
    }

    /// Returns the level below one.
    pub(super) fn next(&self, above: &UnlinkedLevel) -> FoundLevel {
        in_step("coarser spaces", || match self {
            Self::InTurn(input) => input.below(&above.on, &above.elements),
            Self::Ahead(receiver) => received(receiver),
            Self::None => Ok(None),
        })
    }
}

/// Waits for a level; a thread of the pool takes other work meanwhile.
fn received(receiver: &Receiver<FoundLevel>) -> FoundLevel {
    loop {
        match receiver.try_recv() {
            Ok(found) => return found,
            // The other thread has panicked; the scope passes that on.
            Err(TryRecvError::Disconnected) => return Ok(None),
            Err(TryRecvError::Empty) if rayon::yield_now() == Some(Yield::Executed) => {}
            Err(TryRecvError::Empty) => thread::sleep(PAUSE),
        }
    }
}

/// Time between two looks for a level.
const PAUSE: Duration = Duration::from_micros(50);

impl HierarchyInput<'_> {
    /// Makes all levels below the finest one, until there are none or nobody asks for more.
    fn send_levels(&self, sender: &Sender<FoundLevel>) {
        let (mut on, mut elements) = (Arc::clone(self.on), self.elements.clone());
        loop {
            let found = self.below(&on, &elements);
            let next = found.as_ref().ok().and_then(Option::as_ref);
            let next = next.map(|level| (Arc::clone(&level.on), level.elements.clone()));
            if sender.send(found).is_err() {
                return;
            }
            let Some(next) = next else { return };
            (on, elements) = next;
        }
    }

    /// Discretises the next coarser level: half the degree, rounded up, then coarser meshes while these exist and pay
    /// off.
    pub(super) fn below(
        &self,
        on: &Discretisation,
        elements: &Elements,
    ) -> Result<Option<CoarserLevel>, RunError> {
        let at = |mesh: &Arc<Mesh>, k, coarser| {
            let above = Some(FinerLevel { on, coarser });
            self.prescribed.at(self.form, Arc::clone(mesh), k, self.parameters, above)
        };
        let (degree, k) = (elements.fields[0].degree(), elements.degree);
        if degree > 1 {
            let Some(lower) = k.checked_sub(degree - halved(degree)) else { return Ok(None) };
            let found = at(&on.mesh, lower, None)?;
            // The form may fix the degree, so that it does not decrease.
            let found = found.filter(|(elements, _)| elements.fields[0].degree() < degree);
            return Ok(found.map(|(elements, on)| CoarserLevel {
                elements,
                on: Arc::new(on),
                coarsened: None,
            }));
        }
        if on.dofs_in_all() <= MULTIGRID_STOPS {
            return Ok(None);
        }
        // Refined subdomains are coarsened without communication.
        let coarser = in_step("coarser mesh", || on.mesh.coarsened()).ok();
        let cut = on.mesh.cut();
        if cut.is_some_and(|cut| any(&**cut.group(), coarser.is_none())) {
            return Ok(None);
        }
        let Some(coarser) = coarser else { return Ok(None) };
        // Data may have no value at points of the coarser mesh; this, too, ends the hierarchy.
        let found = at(&coarser.mesh, k, Some(&coarser)).ok().flatten();
        if cut.is_some_and(|cut| any(&**cut.group(), found.is_none())) {
            return Ok(None);
        }
        Ok(found.map(|(elements, on)| CoarserLevel {
            elements,
            on: Arc::new(on),
            coarsened: Some(coarser),
        }))
    }
}
