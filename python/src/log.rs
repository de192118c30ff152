//! Messages of the library (`tracing`) → Python's `logging`, with the logger `weakform`.
//!
//! Threads of solves put their messages into a list; the thread that called them passes these on when it has the GIL.

use pyo3::prelude::*;
use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, Once, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static MESSAGES: Mutex<Vec<(u8, String)>> = Mutex::new(Vec::new());

/// Subscribes to the messages of the library, unless this process has another subscriber.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The program `wf` has a subscriber of its own.
        let _ = tracing::subscriber::set_global_default(Collector);
    });
}

/// Passes the messages so far on to `logging`.
pub(crate) fn pass_on(py: Python<'_>) -> PyResult<()> {
    let messages = {
        let mut all = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *all)
    };
    if messages.is_empty() {
        return Ok(());
    }
    let logger = py.import("logging")?.call_method1("getLogger", ("weakform",))?;
    for (level, text) in messages {
        logger.call_method1("log", (level, "%s", text))?;
    }
    Ok(())
}

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = MessageText(String::new());
        event.record(&mut text);
        let level = match *event.metadata().level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            _ => 20,
        };
        MESSAGES.lock().unwrap_or_else(PoisonError::into_inner).push((level, text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message of an event.
struct MessageText(String);

impl Visit for MessageText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}
