//! A solution through its steps: pictures → an animated PNG.
//!
//! All frames have one size. They are kept as PNG files, which are small, until their number is known.

use std::path::{Path, PathBuf};

use fem_dsl::point::PointForm;
use runtime::files::output::write_bytes;
use runtime::space::discretisation::Discretisation;

use super::{PictureContents, PictureError, PictureOptions, page};

/// Width and height of a frame without a chosen size, in pixels.
const SIZE: (u32, u32) = (800, 600);
/// Frames per second.
const RATE: u16 = 10;
/// Largest number of frames.
const MOST: usize = 10_000;

/// The frames of an animation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Animation {
    frames: Vec<Vec<u8>>,
}

impl Animation {
    /// Checks that a file name is that of an animation.
    ///
    /// # Errors
    ///
    /// Another extension than `.png`.
    pub fn check(path: &Path) -> Result<(), PictureError> {
        let fits = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("png"));
        if fits { Ok(()) } else { Err(PictureError::Animated(PathBuf::from(path))) }
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Adds a picture of fields on a mesh, as [`write`](super::write) draws it.
    ///
    /// # Errors
    ///
    /// Those of a picture, and too many frames.
    pub fn add(
        &mut self,
        name: &str,
        form: &PointForm,
        on: &Discretisation,
        u: &[f64],
        options: &PictureOptions,
    ) -> Result<PictureContents, PictureError> {
        if self.len() == MOST {
            let text = format!("an animation has at most {MOST} frames");
            return Err(PictureError::Drawing(text));
        }
        let options = PictureOptions { size: options.size.or(Some(SIZE)), ..options.clone() };
        let (page, scale, range) = page(name, form, on, u, &options)?;
        self.frames.push(page.pixels(scale)?);
        Ok(PictureContents { range })
    }

    /// Writes the file: an animated PNG, whose first frame is the picture of programs that show no animations.
    ///
    /// # Errors
    ///
    /// No frame, another extension, or a file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), PictureError> {
        Self::check(path)?;
        let bytes = page::animated(&self.frames, RATE)
            .map_err(|error| PictureError::Drawing(error.to_string()))?;
        Ok(write_bytes(path, &bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_animation_is_a_png() {
        assert!(Animation::check(Path::new("flow.PNG")).is_ok());
        assert!(Animation::check(Path::new("flow.gif")).is_err());
    }
}
