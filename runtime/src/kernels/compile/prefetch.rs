//! Kernels of a run, compiled on other threads before they are needed ([`Prefetch`]).
//!
//! Modules go into the cache of the just-in-time compiler, where [`compile`](super::compile) finds them. It waits for
//! a module that is being compiled, and compiles one that has not begun. A request for other kernels than those of the
//! run costs time only, and errors occur again where the kernels are used.

use super::{Execution, Target, planned_source};
use crate::device::jit::{Jit, JitOptions};
use fem_dsl::point::PointForm;
use kernels_gen::choose::MeshFacts;
use kernels_gen::dialect::GeneratedSource;
use kernels_gen::plan::{Elements, Task};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Kernels that a run will need, with the arguments of [`compile`](super::compile).
pub(crate) struct KernelRequest {
    /// The form.
    pub(crate) form: PointForm,
    /// Its elements.
    pub(crate) elements: Elements,
    /// The mesh.
    pub(crate) facts: MeshFacts,
    /// All tasks.
    pub(crate) tasks: Vec<Task>,
    /// Those of them that are deferred.
    pub(crate) deferred: Vec<Task>,
    /// True if the run needs deferred tasks, too.
    pub(crate) needs_deferred: bool,
    /// The target.
    pub(crate) target: Target,
}

impl KernelRequest {
    /// Returns the sources of the modules, as compiled by the run.
    fn sources(&self) -> Vec<(GeneratedSource, JitOptions)> {
        let Self { form, elements, facts, tasks, deferred, .. } = self;
        let planned = planned_source(form, elements, facts, tasks, &self.target);
        let Ok((plans, source)) = planned else { return Vec::new() };
        let sources = match source.separate(|at| deferred.contains(&plans[at].task)) {
            Some([now, later]) if self.needs_deferred => vec![now, later],
            Some([now, _]) => vec![now],
            None => vec![source],
        };
        let parts = sources.iter().flat_map(Jit::parts);
        parts.map(|part| (part, JitOptions::new(form.name.as_str()))).collect()
    }
}

/// Requests in the order of their use, and the modules of those that have been planned.
#[derive(Default)]
struct Queue {
    requests: VecDeque<KernelRequest>,
    modules: VecDeque<(GeneratedSource, JitOptions)>,
}

/// Threads that compile the kernels of a run. When this value is dropped, they end after their current modules, and are
/// waited for: an interrupted compiler would leave its work folder.
pub(crate) struct Prefetch {
    queue: Arc<Mutex<Queue>>,
    workers: Vec<JoinHandle<()>>,
}

fn locked(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Prefetch {
    /// Starts compiling, with as many threads as processors.
    pub(crate) fn begin(requests: impl IntoIterator<Item = KernelRequest>) -> Self {
        let compiled = |request: &KernelRequest| {
            request.target.execution != Execution::Interpreted && request.target.linked.is_empty()
        };
        let requests: VecDeque<_> = requests.into_iter().filter(compiled).collect();
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        let count = if requests.is_empty() { 0 } else { jobs };
        let queue = Arc::new(Mutex::new(Queue { requests, ..Queue::default() }));
        let worker = |_| {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name("kernels".to_owned()).spawn(move || work(&queue)).ok()
        };
        let workers = (0..count).filter_map(worker).collect();
        Self { queue, workers }
    }

    /// Waits until all is compiled.
    #[cfg(test)]
    pub(crate) fn finish(mut self) {
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        *locked(&self.queue) = Queue::default();
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
    }
}

/// Compiles modules until none are left.
fn work(queue: &Mutex<Queue>) {
    let jit = Jit::global();
    // Without a cache, modules would be lost.
    if jit.cache().is_err() || jit.compiler().is_err() {
        return;
    }
    loop {
        let module = locked(queue).modules.pop_front();
        if let Some((source, options)) = module {
            jit.prepare(&source, &options);
            continue;
        }
        let Some(request) = locked(queue).requests.pop_front() else { return };
        let modules = request.sources();
        locked(queue).modules.extend(modules);
    }
}
