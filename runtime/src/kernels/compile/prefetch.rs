//! Kernels of a run, compiled on other threads before they are needed ([`Prefetch`]).
//!
//! Modules go into the cache of the just-in-time compiler, where [`compile`](super::compile) finds them. It waits for
//! a module that is being compiled, and compiles one that has not begun. A request for other kernels than those of the
//! run costs time only, and errors occur again where the kernels are used. Devices compile each kernel separately; plans
//! that replace spilling ones are not known in advance.

use super::{Execution, Target, plan_for_device, planned_source};
use crate::device::Device;
use crate::device::jit::{Jit, JitOptions};
use fem_dsl::point::PointForm;
use kernels_gen::choose::MeshFacts;
use kernels_gen::dialect::{GeneratedSource, SourceFile};
use kernels_gen::generate::generate_for_threads;
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
    /// Those of them that are deferred on the host.
    pub(crate) deferred: Vec<Task>,
    /// True if the run needs deferred tasks, too.
    pub(crate) needs_deferred: bool,
    /// The target.
    pub(crate) target: Target,
    /// The device, if it has its own memory.
    pub(crate) device: Option<Arc<dyn Device>>,
}

/// A part of a source that a thread compiles.
enum Compilation {
    Host(GeneratedSource, JitOptions),
    Device(Arc<dyn Device>, SourceFile),
}

impl KernelRequest {
    /// Returns whether compiled kernels would be found again.
    fn is_useful(&self, jit: &Jit) -> bool {
        let target = &self.target;
        let is_compiled = || {
            let is_asked = target.execution != Execution::Interpreted && target.linked.is_empty();
            is_asked && jit.compiler().is_ok()
        };
        jit.cache().is_ok() && (self.device.is_some() || is_compiled())
    }

    /// Returns the parts of the sources, as compiled by the run.
    fn compilations(&self) -> Vec<Compilation> {
        let Self { form, elements, facts, tasks, deferred, target, .. } = self;
        if let Some(device) = &self.device {
            let (precision, wishes) = (target.precision, &target.wishes);
            let planned =
                plan_for_device(form, elements, facts, tasks, &**device, precision, wishes);
            let source = planned.and_then(|(plans, _)| {
                generate_for_threads(form, elements, &plans, device.words())
            });
            let parts = source.map(|source| device.parts_to_prepare(&source));
            let part = |part| Compilation::Device(Arc::clone(device), part);
            return parts.unwrap_or_default().into_iter().map(part).collect();
        }
        let planned = planned_source(form, elements, facts, tasks, target);
        let Ok((plans, source)) = planned else { return Vec::new() };
        let sources = match source.separate(|at| deferred.contains(&plans[at].task)) {
            Some([now, later]) if self.needs_deferred => vec![now, later],
            Some([now, _]) => vec![now],
            None => vec![source],
        };
        let parts = sources.iter().flat_map(Jit::parts);
        let part = |part| Compilation::Host(part, JitOptions::new(form.name.as_str()));
        parts.map(part).collect()
    }
}

/// Stack size of a thread: compilers of devices recurse over the expressions of a kernel.
const STACK: usize = 64 << 20;

/// Requests in the order of their use, and the parts of those that have been planned.
#[derive(Default)]
struct Queue {
    requests: VecDeque<KernelRequest>,
    parts: VecDeque<Compilation>,
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
        let requests: VecDeque<_> = requests.into_iter().collect();
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        let count = if requests.is_empty() { 0 } else { jobs };
        let queue = Arc::new(Mutex::new(Queue { requests, ..Queue::default() }));
        let worker = |_| {
            let queue = Arc::clone(&queue);
            let thread = thread::Builder::new().name("kernels".to_owned()).stack_size(STACK);
            thread.spawn(move || work(&queue)).ok()
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

/// Compiles parts until none are left.
fn work(queue: &Mutex<Queue>) {
    let jit = Jit::global();
    loop {
        let part = locked(queue).parts.pop_front();
        match part {
            Some(Compilation::Host(source, options)) => jit.prepare(&source, &options),
            Some(Compilation::Device(device, source)) => device.prepare(&source),
            None => {
                let Some(request) = locked(queue).requests.pop_front() else { return };
                if request.is_useful(jit) {
                    let parts = request.compilations();
                    locked(queue).parts.extend(parts);
                }
            }
        }
    }
}
