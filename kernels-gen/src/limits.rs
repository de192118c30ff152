//! Limits of kernel compilers: beyond these sizes the text has loops, because unrolled text would compile for minutes.

/// Operations, or statements, up to which loops are unrolled, in the text or by the compiler. NVIDIA's took two minutes
/// for 11,000, and over three for a kernel that linearises a tensor field on five points.
pub(crate) const WRITTEN_OUT: usize = 6000;

/// Reals in a thread's private arrays up to which these can become registers; more than there are registers, because
/// not all are live at once. Beyond the limit, a compiler takes minutes to find that they do not fit.
pub(crate) const REGISTERS: usize = 512;

/// Stored or reread values per point up to which points are unrolled. A field of nine coupled components has 348, for
/// which a compiler took more than ten minutes.
pub(crate) const STORED: usize = 256;

/// Points of a line and components of a field from which on both together are a loop over components: unrolled they
/// compile for up to 1.8 times as long. Measured on an H200, loops are on eight points and more from 2 % slower to 11 %
/// faster, on six and seven from 10 % slower to 3 % faster.
pub(crate) const LOOPED: (usize, usize) = (6, 3);
