//! What compilers of kernels take: beyond these sizes text is loops, for written out it would compile for minutes.

/// Operations, or statements, up to which loops are written out, in the text or by the compiler itself: NVIDIA's took two
/// minutes for 11,000, and over three for a kernel that linearises a tensor field on five points.
pub(crate) const WRITTEN_OUT: usize = 6000;

/// Numbers that a thread may have in arrays of its own if they are to become registers: more than there are, for not all
/// of them live at once. Beyond, a compiler takes minutes to find that they cannot.
pub(crate) const REGISTERS: usize = 512;

/// Numbers a point that are stored, or read where they were, up to which points are written out one by one: a field of nine
/// components that depend on each other has 348, of which a compiler took more than ten minutes.
pub(crate) const STORED: usize = 256;

/// Points of a line and components of a field from which on both together are a loop over components: written out they
/// compile for up to 1.8 times as long. Measured on an H200, loops are on eight points and more from 2 % slower to 11 %
/// faster, on six and seven from 10 % slower to 3 % faster.
pub(crate) const LOOPED: (usize, usize) = (6, 3);
