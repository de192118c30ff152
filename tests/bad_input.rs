//! Bad input, as a user meets it: each kind gets one message with its place and its remedy, and leaves no file.
//!
//! Each case is run as text and with `--json`; see [`gallery`] for what must hold for all of them.

#[path = "bad_input/gallery.rs"]
mod gallery;
#[path = "bad_input/mesh.rs"]
mod mesh;
#[cfg(unix)]
#[path = "bad_input/room.rs"]
mod room;
#[path = "bad_input/text.rs"]
mod text;
