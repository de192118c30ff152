//! A parallel projection: points → positions on paper and depths.

/// Orientation of the camera: three orthonormal directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Camera {
    right: [f64; 3],
    up: [f64; 3],
    /// Towards the camera.
    toward: [f64; 3],
}

/// Azimuth and elevation of the camera before a body, in degrees: x to the right, y into the picture, z up.
const AZIMUTH: f64 = -60.0;
/// See [`AZIMUTH`].
const ELEVATION: f64 = 30.0;

impl Camera {
    /// Returns the camera in front of a body, above it on the right.
    pub(crate) fn before() -> Self {
        let ((sa, ca), (se, ce)) =
            (AZIMUTH.to_radians().sin_cos(), ELEVATION.to_radians().sin_cos());
        Self { right: [-sa, ca, 0.0], up: [-se * ca, -se * sa, ce], toward: [ce * ca, ce * sa, se] }
    }

    /// Returns the camera along an axis, and the indices of the axes that point to the right and up.
    pub(crate) fn along(axis: usize) -> (Self, [usize; 2]) {
        let unit = |axis: usize, sign: f64| {
            let mut unit = [0.0; 3];
            unit[axis] = sign;
            unit
        };
        let ([right, up], sign) = match axis {
            0 => ([1, 2], 1.0),
            1 => ([0, 2], -1.0),
            _ => ([0, 1], 1.0),
        };
        let camera =
            Self { right: unit(right, 1.0), up: unit(up, 1.0), toward: unit(axis.min(2), sign) };
        (camera, [right, up])
    }

    /// Returns the coordinates to the right, up and towards the camera.
    pub(crate) fn project(&self, x: [f64; 3]) -> [f64; 3] {
        [self.right, self.up, self.toward].map(|axis| dot(axis, x))
    }

    /// Returns the brightness of a surface with a unit normal: light from above on the left, and ambient light.
    pub(crate) fn light(&self, normal: [f64; 3]) -> f64 {
        const LEFT: f64 = 0.45;
        const ABOVE: f64 = 0.65;
        let lamp = [0, 1, 2].map(|c| self.toward[c] - LEFT * self.right[c] + ABOVE * self.up[c]);
        let length = dot(lamp, lamp).sqrt();
        // A surface has two sides; the visible one faces the camera.
        let side = if dot(normal, self.toward) < 0.0 { -1.0 } else { 1.0 };
        let cosine = (side * dot(normal, lamp) / length).clamp(0.0, 1.0);
        if dot(normal, normal) == 0.0 { 1.0 } else { DARK + (1.0 - DARK) * cosine }
    }
}

/// Fraction of a colour that remains in the shade, so that it can be identified in the colour bar.
const DARK: f64 = 0.62;

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cameras_do_not_distort() {
        for camera in [Camera::before(), Camera::along(0).0, Camera::along(1).0, Camera::along(2).0]
        {
            let Camera { right, up, toward } = camera;
            let turned = [0, 1, 2].map(|c| {
                let (d, e) = ((c + 1) % 3, (c + 2) % 3);
                right[d] * up[e] - right[e] * up[d]
            });
            for (of, expected) in
                [(dot(right, right), 1.0), (dot(up, up), 1.0), (dot(right, up), 0.0)]
            {
                assert!((of - expected).abs() < 4.0 * f64::EPSILON);
            }
            assert!((0..3).all(|c| (turned[c] - toward[c]).abs() < 4.0 * f64::EPSILON));
            assert!(camera.light(toward) > 0.8 && camera.light(toward.map(|c| -c)) > 0.8);
        }
    }
}
