//! Bad input from the user's perspective: each kind causes one message with its location and its remedy, and leaves no
//! file.
//!
//! Each case runs as text and with `--json`; see [`gallery`] for the common checks.

#[cfg(target_os = "linux")]
#[path = "bad_input/compiler.rs"]
mod compiler;
#[path = "bad_input/files.rs"]
mod files;
#[path = "bad_input/gallery.rs"]
mod gallery;
#[path = "bad_input/mesh.rs"]
mod mesh;
#[cfg(target_os = "linux")]
#[path = "bad_input/paths.rs"]
mod paths;
#[path = "bad_input/quadrature.rs"]
mod quadrature;
#[cfg(unix)]
#[path = "bad_input/room.rs"]
mod room;
#[path = "bad_input/text.rs"]
mod text;
#[path = "bad_input/unfixed.rs"]
mod unfixed;
#[path = "bad_input/usage.rs"]
mod usage;
