//! Recording of device work for repeated launches: stream capture → a CUDA graph.
//!
//! Recorded work goes to a stream of its own, on which nothing ever executes, so it does not delay other streams. Only
//! the recording thread uses this stream; other threads may use the device in the meantime. A graph keeps the memory
//! and the modules of its nodes alive, because the driver does not.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use cudarc::driver::{CudaContext, CudaGraph, CudaStream, DriverError, result, sys};

use super::error::{CudaError, driver};
use crate::device::RecordedWork;
use crate::device::array::BackendData;

/// The capturing stream depends on no other stream and on no legacy stream. Driver calls of any thread during the
/// capture, such as loading a module, are therefore safe.
const MODE: sys::CUstreamCaptureMode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

/// An unfinished recording of a thread.
struct OpenRecording {
    thread: ThreadId,
    kept: Vec<BackendData>,
}

/// Recording of work on a stream of its own.
pub(super) struct Recorder {
    side: Arc<CudaStream>,
    open: Mutex<Option<OpenRecording>>,
}

impl Recorder {
    /// Creates a recorder with a stream of its own.
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        Ok(Self { side: context.new_stream()?, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Option<OpenRecording>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the capturing stream if this thread is recording, and keeps `needs` alive with the recording.
    pub(super) fn stream(
        &self,
        needs: impl Iterator<Item = BackendData>,
    ) -> Option<&Arc<CudaStream>> {
        let mut open = self.open();
        let open = open.as_mut().filter(|open| open.thread == thread::current().id())?;
        open.kept.extend(needs);
        Some(&self.side)
    }

    /// Returns an error if this thread is recording, for operations that cannot be recorded.
    pub(super) fn refuse(&self, what: &str) -> Result<(), CudaError> {
        match self.stream(std::iter::empty()) {
            None => Ok(()),
            Some(_) => Err(CudaError::Driver {
                what: what.to_owned(),
                error: "work is being recorded".to_owned(),
            }),
        }
    }

    /// Records the calls of `work`. Returns the reason if they cannot be recorded.
    pub(super) fn record(&self, work: RecordedWork<'_>) -> Result<RecordedGraph, String> {
        let session = CaptureSession::begin(self)?;
        let done = work();
        let recorded = session.end();
        done.map_err(|error| error.to_string())?;
        recorded
    }
}

/// An unfinished capture, which ends when dropped.
struct CaptureSession<'a> {
    recorder: &'a Recorder,
    ended: bool,
}

impl<'a> CaptureSession<'a> {
    fn begin(recorder: &'a Recorder) -> Result<Self, String> {
        let mut open = recorder.open();
        if open.is_some() {
            return Err("somebody else is recording".to_owned());
        }
        let begun = recorder.side.begin_capture(MODE);
        begun.map_err(|error| driver("begin to record")(error).to_string())?;
        *open = Some(OpenRecording { thread: thread::current().id(), kept: Vec::new() });
        drop(open);
        Ok(Self { recorder, ended: false })
    }

    fn end(mut self) -> Result<RecordedGraph, String> {
        self.ended = true;
        let Self { recorder, .. } = &self;
        let graph = recorder.side.end_capture(sys::CUgraphInstantiate_flags(0));
        // The stream is free for the next recording.
        let open = recorder.open().take();
        let graph = graph.map_err(|error| driver("record")(error).to_string())?;
        let graph = graph.ok_or("what was recorded is lost")?;
        let kept = open.map(|open| open.kept).unwrap_or_default();
        let context = Arc::clone(recorder.side.context());
        Ok(RecordedGraph { graph: Mutex::new(GraphHandle(graph)), context, _kept: kept })
    }
}

impl Drop for CaptureSession<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.recorder.side.end_capture(sys::CUgraphInstantiate_flags(0));
            self.recorder.open().take();
        }
    }
}

/// Driver handles of a graph.
struct GraphHandle(CudaGraph);

// SAFETY: the driver accepts a graph's handles from any thread, one at a time; the mutex ensures this.
unsafe impl Send for GraphHandle {}

/// Recorded work.
pub(super) struct RecordedGraph {
    /// Dropped before the memory and modules of its nodes; the driver itself waits for the last launch.
    graph: Mutex<GraphHandle>,
    context: Arc<CudaContext>,
    _kept: Vec<BackendData>,
}

impl fmt::Debug for RecordedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a CUDA graph")
    }
}

impl RecordedGraph {
    /// Returns whether the graph belongs to the context.
    pub(super) fn is_of(&self, context: &Arc<CudaContext>) -> bool {
        Arc::ptr_eq(&self.context, context)
    }

    /// Launches the work on a stream.
    pub(super) fn launch(&self, stream: &CudaStream) -> Result<(), DriverError> {
        self.context.bind_to_thread()?;
        let graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both handles are alive. The nodes are fills and kernels whose launch arguments the callers vouched
        // for; the graph keeps all their memory and modules.
        unsafe { result::graph::launch(graph.0.cu_graph_exec(), stream.cu_stream()) }
    }
}

impl Drop for RecordedGraph {
    fn drop(&mut self) {
        // The thread's context must be the graph's when it is destroyed, on any thread.
        let _ = self.context.bind_to_thread();
    }
}
