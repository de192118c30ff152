//! Work that is recorded once and then started with one call: stream capture → a CUDA graph.
//!
//! What is recorded goes to a stream of its own, on which nothing is ever executed, so that the stream of all other
//! work neither notices nor has to wait. Only the thread that records is sent there: others may use the device
//! meanwhile. A graph keeps the memory and the modules that its nodes name, because the driver does not.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use cudarc::driver::{CudaContext, CudaGraph, CudaStream, DriverError, result, sys};

use super::error::{CudaError, driver};
use crate::device::Record;
use crate::device::interface::Own;

/// Our stream depends on no other and no legacy stream, so that nothing that this thread or another asks of the driver
/// meanwhile can be unsafe: loading a module late, say.
const MODE: sys::CUstreamCaptureMode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

/// What a thread has recorded so far.
struct Open {
    thread: ThreadId,
    kept: Vec<Own>,
}

/// Where work is recorded.
pub(super) struct Recorder {
    side: Arc<CudaStream>,
    open: Mutex<Option<Open>>,
}

impl Recorder {
    /// A recorder with a stream of its own.
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        Ok(Self { side: context.new_stream()?, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where this thread's work is to go, if it is recording: then what `needs` it is kept with the recording.
    pub(super) fn stream(&self, needs: impl Iterator<Item = Own>) -> Option<&Arc<CudaStream>> {
        let mut open = self.open();
        let open = open.as_mut().filter(|open| open.thread == thread::current().id())?;
        open.kept.extend(needs);
        Some(&self.side)
    }

    /// Refuses what cannot be recorded while this thread is recording.
    pub(super) fn refuse(&self, what: &str) -> Result<(), CudaError> {
        match self.stream(std::iter::empty()) {
            None => Ok(()),
            Some(_) => Err(CudaError::Driver {
                what: what.to_owned(),
                error: "work is being recorded".to_owned(),
            }),
        }
    }

    /// Records what `work` asks for; why there is no recording otherwise.
    pub(super) fn record(&self, work: Record<'_>) -> Result<Graph, String> {
        let session = Session::begin(self)?;
        let done = work();
        let recorded = session.end();
        done.map_err(|error| error.to_string())?;
        recorded
    }
}

/// A recording that is going on; it ends in any case.
struct Session<'a> {
    recorder: &'a Recorder,
    ended: bool,
}

impl<'a> Session<'a> {
    fn begin(recorder: &'a Recorder) -> Result<Self, String> {
        let mut open = recorder.open();
        if open.is_some() {
            return Err("somebody else is recording".to_owned());
        }
        let begun = recorder.side.begin_capture(MODE);
        begun.map_err(|error| driver("begin to record")(error).to_string())?;
        *open = Some(Open { thread: thread::current().id(), kept: Vec::new() });
        drop(open);
        Ok(Self { recorder, ended: false })
    }

    fn end(mut self) -> Result<Graph, String> {
        self.ended = true;
        let Self { recorder, .. } = &self;
        let graph = recorder.side.end_capture(sys::CUgraphInstantiate_flags(0));
        // Whoever comes next finds the stream free.
        let open = recorder.open().take();
        let graph = graph.map_err(|error| driver("record")(error).to_string())?;
        let graph = graph.ok_or("what was recorded is lost")?;
        let kept = open.map(|open| open.kept).unwrap_or_default();
        let context = Arc::clone(recorder.side.context());
        Ok(Graph { graph: Mutex::new(Handle(graph)), context, _kept: kept })
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.recorder.side.end_capture(sys::CUgraphInstantiate_flags(0));
            self.recorder.open().take();
        }
    }
}

/// A graph's handles.
struct Handle(CudaGraph);

// SAFETY: the driver takes a graph's handles from any thread, one at a time; here a mutex lets in one at a time.
unsafe impl Send for Handle {}

/// Recorded work.
pub(super) struct Graph {
    /// Goes before what its nodes name; the driver itself waits for the last launch.
    graph: Mutex<Handle>,
    context: Arc<CudaContext>,
    _kept: Vec<Own>,
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a CUDA graph")
    }
}

impl Graph {
    /// Whether it belongs to a context.
    pub(super) fn is_of(&self, context: &Arc<CudaContext>) -> bool {
        Arc::ptr_eq(&self.context, context)
    }

    /// Starts the work in the order of a stream.
    pub(super) fn launch(&self, stream: &CudaStream) -> Result<(), DriverError> {
        self.context.bind_to_thread()?;
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both handles are alive. The nodes are kernels whose arguments their callers answered for, and fills;
        // all memory and modules that they name are kept here.
        unsafe { result::graph::launch(graph.0.cu_graph_exec(), stream.cu_stream()) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // Graphs are destroyed in the thread's context, whichever thread that is.
        let _ = self.context.bind_to_thread();
    }
}
