//! Agreement of the processes of several GPUs on the result of a test.

use super::error::text;
use crate::processes::ProcessGroup;
use cudarc::driver::{CudaSlice, CudaStream};
use std::sync::Arc;

/// Makes a result collective: the error of any process becomes that of all.
pub(super) fn agreed<T>(
    group: &Arc<dyn ProcessGroup>,
    own: Result<T, String>,
) -> Result<T, String> {
    // An error may have an empty message.
    let said = own.as_ref().err().map_or_else(Vec::new, |error| [b"!", error.as_bytes()].concat());
    match group.gather(&said).into_iter().find(|error| !error.is_empty()) {
        Some(error) => Err(String::from_utf8_lossy(&error[1..]).into_owned()),
        None => own,
    }
}

/// Downloads numbers after earlier work on a stream, to check test messages.
pub(super) fn numbers(
    stream: &Arc<CudaStream>,
    memory: &CudaSlice<u8>,
) -> Result<Vec<f64>, String> {
    let bytes = stream.clone_dtoh(memory).map_err(text)?;
    stream.synchronize().map_err(text)?;
    let numbers = bytes.chunks_exact(8).map(|own| own.try_into().unwrap_or_default());
    Ok(numbers.map(f64::from_ne_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::threads::each;

    #[test]
    fn one_that_fails_keeps_all_from_it() {
        let found = each(3, |group| {
            let own = group.rank();
            let one = agreed(&group, if own == 1 { Err("no".to_owned()) } else { Ok(own) });
            let silent = agreed(&group, if own == 2 { Err(String::new()) } else { Ok(own) });
            (one, silent, agreed(&group, Ok(own)))
        });
        for (own, (one, silent, none)) in found.into_iter().enumerate() {
            assert_eq!(one, Err("no".to_owned()));
            assert_eq!((silent, none), (Err(String::new()), Ok(own)));
        }
    }
}
