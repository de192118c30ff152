//! Work on a thread of its own, watched by the calling thread: events for Python callables, Ctrl-C, messages.
//!
//! Python runs signal handlers on its main thread only, and a solve may take hours. So the caller waits without the
//! GIL, looks for signals at intervals, and tells the solve to stop at its next iteration.

use crate::errors::panicked;
use crate::log;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weakform::{Continue, Progress};

/// Interval between two looks for signals.
const INTERVAL: Duration = Duration::from_millis(50);

/// Stack of the thread; kernels run on those of the library.
const STACK: usize = 16 << 20;

/// An event of a solve.
pub(crate) enum SolveEvent {
    Iteration { iteration: usize, residual: f64, target: f64 },
    Time { now: f64, end: f64 },
    Step(serde_json::Value),
}

enum Message<T> {
    Event(SolveEvent),
    Result(T),
}

/// The end of the channel that the work holds.
pub(crate) struct Reporter<T> {
    sender: SyncSender<Message<T>>,
    stop: Arc<AtomicBool>,
    /// Tells that an event was handled; `None` if nobody listens.
    handled: Option<Mutex<Receiver<()>>>,
    residuals: Arc<Mutex<Vec<f64>>>,
}

impl<T> Reporter<T> {
    /// Reports an event, if somebody listens, and returns whether to continue.
    pub(crate) fn report(&self, event: impl FnOnce() -> SolveEvent) -> Continue {
        if let Some(handled) = &self.handled {
            let handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
            let sent = self.sender.send(Message::Event(event())).is_ok();
            if !sent || handled.recv().is_err() {
                // The caller has left after a second Ctrl-C.
                return Continue::No;
            }
        }
        if self.stop.load(Relaxed) { Continue::No } else { Continue::Yes }
    }

    /// Reports an iteration.
    pub(crate) fn iteration(&self, now: Progress) -> Continue {
        let Progress { iteration, residual, target, .. } = now;
        self.residuals.lock().unwrap_or_else(PoisonError::into_inner).push(residual);
        self.report(|| SolveEvent::Iteration { iteration, residual, target })
    }
}

/// Runs work on a thread of its own; `observe` gets its events and ends it by returning `False`. Returns the result with
/// the residual norms of its iterations.
///
/// A first Ctrl-C stops the work at its next iteration, a second one leaves it behind.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    observe: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Reporter<T>) -> T + Send + 'static,
) -> PyResult<(T, Vec<f64>)> {
    log::listen();
    let (sender, mut receiver) = sync_channel(1);
    let (answer, handled) = sync_channel(1);
    let stop = Arc::new(AtomicBool::new(false));
    let residuals: Arc<Mutex<Vec<f64>>> = Arc::default();
    let reporter = Reporter {
        sender,
        stop: Arc::clone(&stop),
        handled: observe.map(|_| Mutex::new(handled)),
        residuals: Arc::clone(&residuals),
    };
    let run = move || {
        let result = work(&reporter);
        let _ = reporter.sender.send(Message::Result(result));
    };
    std::thread::Builder::new().name("weakform".into()).stack_size(STACK).spawn(run)?;
    let mut pending: Option<PyErr> = None;
    loop {
        let (message, back) = py.detach(move || wait(receiver));
        receiver = back;
        log::pass_on(py)?;
        let mut stopping = None;
        match message {
            Ok(Message::Result(result)) => {
                let residuals = residuals.lock().unwrap_or_else(PoisonError::into_inner).clone();
                return pending.map_or(Ok((result, residuals)), Err);
            }
            Ok(Message::Event(event)) => {
                let told = observe.filter(|_| pending.is_none()).map(|call| tell(call, event));
                match told.transpose() {
                    Ok(Some(false)) => stop.store(true, Relaxed),
                    Ok(_) => {}
                    Err(error) => {
                        stop.store(true, Relaxed);
                        stopping = Some(error);
                    }
                }
                let _ = answer.send(());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(pending.unwrap_or_else(panicked)),
        }
        if let Err(error) = py.check_signals() {
            if pending.is_some() {
                return Err(error);
            }
            stopping = Some(error);
        }
        if let Some(error) = stopping {
            stop.store(true, Relaxed);
            pending.get_or_insert(error);
        }
    }
}

fn wait<T>(receiver: Receiver<T>) -> (Result<T, RecvTimeoutError>, Receiver<T>) {
    let message = receiver.recv_timeout(INTERVAL);
    (message, receiver)
}

/// Calls a Python callable with an event, and returns whether to continue.
fn tell(observe: &Bound<'_, PyAny>, event: SolveEvent) -> PyResult<bool> {
    let answer = match event {
        SolveEvent::Iteration { iteration, residual, target } => {
            observe.call1(("iteration", (iteration, residual, target)))
        }
        SolveEvent::Time { now, end } => observe.call1(("time", (now, end))),
        SolveEvent::Step(step) => observe.call1(("step", step.to_string())),
    };
    Ok(!answer?.extract::<bool>().is_ok_and(|answer| !answer))
}

/// Calls a function of the library without the GIL, and passes its messages on.
pub(crate) fn outside<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    log::listen();
    let result = py.detach(work);
    log::pass_on(py)?;
    Ok(result)
}
