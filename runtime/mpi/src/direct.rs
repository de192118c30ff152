//! Messages between addresses, such as those of devices if MPI is CUDA-aware ([`DirectMessages`]).

use super::{take, takes_device_pointers, version};
use mpi::ffi::{self, MPI_Datatype, MPI_Request};
use runtime::device::{AddressMessages, ElementKind};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The largest number of entries of a message: MPI counts them by an `int`.
const MOST: usize = 1 << 30;

/// Messages of MPI between addresses.
pub(super) struct DirectMessages {
    /// Held by the thread that calls MPI.
    turn: Arc<Mutex<()>>,
}

/// Checks a return code. By default MPI aborts all processes on errors.
fn said(code: c_int) -> Result<(), String> {
    match code {
        0 => Ok(()),
        code => Err(format!("MPI returns the error {code}")),
    }
}

fn datatype(kind: ElementKind) -> MPI_Datatype {
    // SAFETY: constants that MPI sets before the program starts.
    unsafe {
        match kind {
            ElementKind::F64 => ffi::RSMPI_DOUBLE,
            ElementKind::F32 => ffi::RSMPI_FLOAT,
            ElementKind::U32 => ffi::RSMPI_UINT32_T,
        }
    }
}

/// Splits a range into messages.
fn pieces(range: Range<usize>) -> impl Iterator<Item = (usize, c_int)> {
    let Range { start, end } = range;
    (start..end).step_by(MOST).map(move |at| (at, (end - at).min(MOST) as c_int))
}

impl DirectMessages {
    /// Returns the messages of all processes, for threads that take turns.
    pub(super) fn new(turn: Arc<Mutex<()>>) -> Self {
        Self { turn }
    }
}

impl AddressMessages for DirectMessages {
    fn name(&self) -> String {
        version()
    }

    fn take_device_pointers(&self) -> bool {
        takes_device_pointers() == Some(true)
    }

    unsafe fn sum(
        &self,
        from: *const c_void,
        to: *mut c_void,
        n: usize,
        kind: ElementKind,
    ) -> Result<(), String> {
        let _turn = take(&self.turn);
        for (at, count) in pieces(0..n) {
            let (offset, of) = (at * kind.width(), datatype(kind));
            let (from, to) = (from.wrapping_byte_add(offset), to.wrapping_byte_add(offset));
            // SAFETY: the caller guarantees the memory; the other arguments are constants of MPI, which is initialised.
            said(unsafe {
                ffi::MPI_Allreduce(from, to, count, of, ffi::RSMPI_SUM, ffi::RSMPI_COMM_WORLD)
            })?;
        }
        Ok(())
    }

    unsafe fn exchange(
        &self,
        neighbours: &[(usize, Range<usize>)],
        [sent, received]: [*mut c_void; 2],
        kind: ElementKind,
    ) -> Result<(), String> {
        let _turn = take(&self.turn);
        let of = datatype(kind);
        let mut open: Vec<MPI_Request> = Vec::with_capacity(2 * neighbours.len());
        let mut done = Ok(());
        // Receives are posted first, so that no message needs a buffer.
        for (rank, range) in neighbours {
            for (at, count) in pieces(range.clone()) {
                let to = received.wrapping_byte_add(at * kind.width());
                // SAFETY: as above; requests are completed below.
                unsafe {
                    let (mut request, comm) = (ffi::RSMPI_REQUEST_NULL, ffi::RSMPI_COMM_WORLD);
                    let rank = *rank as c_int;
                    let code = ffi::MPI_Irecv(to, count, of, rank, 0, comm, &raw mut request);
                    done = done.and(said(code));
                    open.push(request);
                }
            }
        }
        for (rank, range) in neighbours {
            for (at, count) in pieces(range.clone()) {
                let from = sent.wrapping_byte_add(at * kind.width());
                // SAFETY: as above.
                unsafe {
                    let (mut request, comm) = (ffi::RSMPI_REQUEST_NULL, ffi::RSMPI_COMM_WORLD);
                    let rank = *rank as c_int;
                    let code = ffi::MPI_Isend(from, count, of, rank, 0, comm, &raw mut request);
                    done = done.and(said(code));
                    open.push(request);
                }
            }
        }
        // SAFETY: the number of requests is right; each is active or null.
        let waited = unsafe {
            let ignored = ffi::RSMPI_STATUSES_IGNORE;
            ffi::MPI_Waitall(open.len() as c_int, open.as_mut_ptr(), ignored)
        };
        done.and(said(waited))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{launched, open};
    use super::*;
    use runtime::device::AddressChannel;
    use runtime::processes::threads::each;
    use runtime::processes::{Parcel, Reduction, SingleProcess};
    use std::process::Command;

    const PROCESSES: usize = 3;

    #[test]
    fn long_messages_come_in_pieces() {
        let found: Vec<_> = pieces(5..2 * MOST + 6).collect();
        assert_eq!(found, [(5, MOST as c_int), (MOST + 5, MOST as c_int), (2 * MOST + 5, 1)]);
        assert_eq!(pieces(7..7).count(), 0);
    }

    #[test]
    fn threads_are_no_processes_of_mpi() {
        assert!(
            each(2, |group| AddressChannel::of(&*group).is_none()).into_iter().all(|none| none)
        );
    }

    /// Without a launcher the test restarts itself by `mpirun`; host addresses are valid addresses for MPI.
    #[test]
    fn addresses_carry_what_groups_carry() {
        if launched() {
            return as_a_process();
        }
        let required = std::env::var("WF_REQUIRE").unwrap_or_default();
        let required = required.split([' ', ',']).any(|word| word == "mpi");
        let own = std::env::current_exe().expect("this program");
        let (_, name) = module_path!().split_once("::").expect("a crate");
        let mut command = Command::new("mpirun");
        for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
            command.env(variable, "1");
        }
        command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
        command.env("OMPI_MCA_mpi_yield_when_idle", "1");
        command.args(["-n", &PROCESSES.to_string()]).arg(own);
        let test = format!("{name}::addresses_carry_what_groups_carry");
        let output = match command.args(["--exact", &test, "--nocapture"]).output() {
            Ok(output) => output,
            Err(error) => {
                assert!(!required, "MPI is required: {error}");
                return eprintln!("there is no MPI: nothing is compared");
            }
        };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text.matches("the same numbers came").count(), PROCESSES, "{text}");
    }

    fn as_a_process() {
        let launched = open().expect("MPI");
        let group = launched.group();
        let (own, size) = (group.rank(), group.size());
        assert_eq!(size, PROCESSES);
        assert!(takes_device_pointers().is_some(), "an MPI that has started knows");
        let direct = AddressChannel::of(&*group).expect("the group that MPI has started").0;
        assert!(AddressChannel::of(&SingleProcess).is_none());

        // Sums that depend on their order, in both precisions.
        let number = |at: usize| 0.1 * (own * own + 1) as f64 / (at + 1) as f64;
        let (from, mut to) = ((0..1000).map(number).collect::<Vec<f64>>(), vec![0.0; 1000]);
        // SAFETY: both have a thousand entries.
        let done = unsafe {
            direct.sum(from.as_ptr().cast(), to.as_mut_ptr().cast(), from.len(), ElementKind::F64)
        };
        done.expect("summed");
        let mut known = from;
        group.reduce(Reduction::Sum, &mut known);
        assert_eq!(to, known);
        let alike = |bytes: Vec<u8>| {
            let all = group.gather(&bytes);
            assert!(all.iter().all(|other| *other == all[0]), "the same bits at all");
        };
        alike(to.iter().flat_map(|x| x.to_ne_bytes()).collect());
        let (from, mut to) = ([0.1_f32 * own as f32, 1.0], [0.0_f32; 2]);
        // SAFETY: both have two entries.
        let done = unsafe {
            direct.sum(from.as_ptr().cast(), to.as_mut_ptr().cast(), 2, ElementKind::F32)
        };
        done.expect("summed");
        assert!((to[0] - 0.3).abs() < 1e-6 && to[1] == size as f32, "{to:?}");
        alike(to.iter().flat_map(|x| x.to_ne_bytes()).collect());

        // Between all pairs, with different lengths, including 0.
        let others = (0..size).filter(|&other| other != own);
        let (mut neighbours, mut end) = (Vec::new(), 0);
        for other in others {
            let length = 1000 * (own + other - 1);
            neighbours.push((other, end..end + length));
            end += length;
        }
        let mut sent: Vec<f64> = (0..end).map(|at| (own * 10_000 + at) as f64 + 0.5).collect();
        let mut received = vec![f64::NAN; end];
        let addresses = [sent.as_mut_ptr().cast(), received.as_mut_ptr().cast()];
        // SAFETY: both buffers have the entries of the ranges.
        unsafe { direct.exchange(&neighbours, addresses, ElementKind::F64) }.expect("exchanged");
        let parcel = |(with, range): &(usize, Range<usize>)| Parcel {
            with: *with,
            sent: sent[range.clone()].to_vec(),
            received: vec![0.0; range.len()],
        };
        let mut parcels: Vec<Parcel> = neighbours.iter().map(parcel).collect();
        group.exchange(&mut parcels, &mut || ());
        let known: Vec<f64> = parcels.into_iter().flat_map(|own| own.received).collect();
        assert!(received == known && end > 0, "process {own}");
        println!("the same numbers came");
    }
}
