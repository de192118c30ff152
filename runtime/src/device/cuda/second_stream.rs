//! Concurrent work: a second stream that forks from the main stream, which later joins it.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use cudarc::driver::{CudaContext, CudaStream, DriverError, result};

use super::error::driver;
use crate::device::RecordedWork;

/// A stream for concurrent work, used by one thread at a time.
pub(super) struct SecondStream {
    other: Arc<CudaStream>,
    open: Mutex<Option<ThreadId>>,
}

impl SecondStream {
    /// Creates a stream; `first` gives its work priority over others.
    pub(super) fn new(context: &Arc<CudaContext>, first: bool) -> Result<Self, DriverError> {
        let other = if first {
            context.bind_to_thread()?;
            // Greater priorities have smaller numbers.
            let (_, greatest) = result::stream::get_priority_range()?;
            context.new_stream_with_priority(greatest)?
        } else {
            context.new_stream()?
        };
        Ok(Self { other, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stream for this thread's work, if it is concurrent work.
    pub(super) fn stream(&self) -> Option<&Arc<CudaStream>> {
        (*self.open() == Some(thread::current().id())).then_some(&self.other)
    }

    /// Starts `aside` on the other stream and `own` on `stream`; one after the other if the other stream is in use.
    pub(super) fn start(
        &self,
        stream: &CudaStream,
        aside: RecordedWork<'_>,
        own: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        let free = {
            let mut open = self.open();
            let free = open.is_none();
            open.get_or_insert_with(|| thread::current().id());
            free
        };
        if !free {
            aside()?;
            return own();
        }
        // The stream waits for the other in any case, so that memory in use is not reused.
        let forked = self.other.join(stream).map_err(driver("begin work beside other work"));
        let begun = forked.map_err(Into::into).and_then(|()| aside());
        self.open().take();
        let done = begun.and_then(|()| own());
        stream.join(&self.other).map_err(driver("wait for work beside other work"))?;
        done
    }
}
