//! Connection of GPUs of several processes ([`GpuConnection`]): the first [`Transport`] that works on all of them, or
//! the requested one.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};

use super::Cuda;
use super::error::CudaError;
use super::mpi_group::{MpiGroup, UnsentMessages};
use super::nccl::Nccl;
use super::peers::Peers;
use super::pool::Pool;
use crate::device::{
    Array, DeviceError, DeviceGroup, ElementKind, MESSAGES, RecordedWork, SelectedTransport,
    SharedEntryTables, Transport, TransportError,
};
use crate::processes::ProcessGroup;

/// Connection to the GPUs of other processes.
pub(super) struct GpuConnection {
    by: TransportGroup,
    /// True if all are on one host.
    is_near: bool,
}

/// The transport.
enum TransportGroup {
    Peers(Peers),
    Nccl(Nccl),
    Mpi(MpiGroup),
}

/// Returns the requested transport, which must be equal on all processes; `None` if unset.
fn asked(group: &Arc<dyn ProcessGroup>, own: &[u8]) -> Result<Option<Transport>, TransportError> {
    let all = group.gather(own);
    if let Some(other) = all.iter().position(|word| *word != all[0]) {
        return Err(TransportError::Unlike { other });
    }
    let word = String::from_utf8_lossy(own);
    if word.is_empty() {
        return Ok(None);
    }
    let transport = Transport::ALL.into_iter().find(|transport| transport.word() == word);
    transport.map_or_else(
        || Err(TransportError::Unknown { word: word.into_owned() }),
        |transport| Ok(Some(transport)),
    )
}

/// Returns the requested or the first available transport; all processes agree if each transport is collective.
fn choose<R>(
    asked: Option<Transport>,
    peers: impl FnOnce() -> Result<R, TransportError>,
    nccl: impl FnOnce() -> Result<R, TransportError>,
    mpi: impl FnOnce() -> Result<R, TransportError>,
) -> Result<(R, SelectedTransport), TransportError> {
    let joined = |transport, instead| move |made| (made, SelectedTransport { transport, instead });
    match asked {
        Some(Transport::Host) => Err(TransportError::Asked),
        Some(Transport::Peers) => peers().map(joined(Transport::Peers, None)),
        Some(Transport::Nccl) => nccl().map(joined(Transport::Nccl, Some(TransportError::Asked))),
        Some(Transport::Mpi) => mpi().map(joined(Transport::Mpi, Some(TransportError::Asked))),
        None => {
            match peers() {
                Ok(made) => return Ok(joined(Transport::Peers, None)(made)),
                // With several hosts or unsuitable GPUs there is no remedy.
                Err(why) => tracing::debug!("GPUs do not reach each other's memory: {why}"),
            }
            match nccl() {
                Ok(made) => Ok(joined(Transport::Nccl, None)(made)),
                Err(why) => match mpi() {
                    Ok(made) => Ok(joined(Transport::Mpi, Some(why))(made)),
                    // Threads are not started by MPI, so this error gives no advice.
                    Err(TransportError::NoMpi) => Err(why),
                    Err(also) => Err(TransportError::Neither(Box::new(why), Box::new(also))),
                },
            }
        }
    }
}

/// Checks that each process has its own GPU. Otherwise, or if this is unknown, pools do not keep unused memory.
fn separate(
    stream: &CudaStream,
    pool: &Pool,
    group: &Arc<dyn ProcessGroup>,
) -> Result<(), TransportError> {
    let uuid = stream.context().uuid().ok();
    let own = uuid.map_or_else(Vec::new, |uuid| uuid.bytes.map(|byte| byte as u8).to_vec());
    let all = group.gather(&own);
    let of_another = |second: usize| {
        let before = || all[..second].iter().position(|other| *other == all[second]);
        (!all[second].is_empty()).then(before).flatten()
    };
    let shared = (0..all.len()).find_map(|second| Some((of_another(second)?, second)));
    if shared.is_some() || all.iter().any(Vec::is_empty) {
        pool.share();
    }
    shared.map_or(Ok(()), |(first, second)| Err(TransportError::Shared { first, second }))
}

impl GpuConnection {
    /// Connects the GPUs of all processes of a group. Collective.
    pub(super) fn connect(
        (stream, arch): (&Arc<CudaStream>, &str),
        pool: &Pool,
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<(Self, SelectedTransport), TransportError> {
        let each = separate(stream, pool, group);
        let word = std::env::var_os(MESSAGES).unwrap_or_default();
        let asked = asked(group, word.as_encoded_bytes())?;
        let is_near = group.of_host().0 == group.size();
        let of_each = || each.clone();
        let peers = || {
            of_each().and_then(|()| Peers::connect(stream, arch, group)).map(TransportGroup::Peers)
        };
        let nccl =
            || of_each().and_then(|()| Nccl::connect(stream, group)).map(TransportGroup::Nccl);
        let mpi = || MpiGroup::connect(stream, group).map(TransportGroup::Mpi);
        let (by, joined) = choose(asked, peers, nccl, mpi)?;
        Ok((Self { by, is_near }, joined))
    }

    /// Returns the selected transport.
    pub(super) fn transport(&self) -> Transport {
        match self.by {
            TransportGroup::Peers(_) => Transport::Peers,
            TransportGroup::Nccl(_) => Transport::Nccl,
            TransportGroup::Mpi(_) => Transport::Mpi,
        }
    }
}

fn failed(what: &'static str) -> impl Fn(String) -> DeviceError {
    move |error| CudaError::Driver { what: what.to_owned(), error }.into()
}

/// The send and the receive buffer, and their type.
struct MessageBuffers<'a> {
    memory: [&'a CudaSlice<u8>; 2],
    kind: ElementKind,
}

impl Cuda {
    fn connected(&self) -> Result<&GpuConnection, DeviceError> {
        self.reach.get().ok_or(DeviceError::Foreign)
    }

    /// Checks that both arrays contain the ranges of all neighbours.
    fn messages<'a>(
        &self,
        neighbours: &[(usize, Range<usize>)],
        [sent, received]: [&'a Array; 2],
    ) -> Result<MessageBuffers<'a>, DeviceError> {
        let memory = [sent.memory::<CudaSlice<u8>>(self.owner)?, received.memory(self.owner)?];
        let end = neighbours.iter().map(|(_, range)| range.end).max().unwrap_or(0);
        let ordered = neighbours.iter().all(|(_, range)| range.start <= range.end);
        if sent.kind() != received.kind() || sent.len() < end || received.len() < end || !ordered {
            return Err(DeviceError::Mismatch { operation: "exchange" });
        }
        Ok(MessageBuffers { memory, kind: sent.kind() })
    }

    /// Copies the data for MPI in the order of this thread's work, which must not be recorded.
    fn send<'a>(
        &'a self,
        pointers: &'a MpiGroup,
        neighbours: &'a [(usize, Range<usize>)],
        messages: &MessageBuffers<'a>,
    ) -> Result<UnsentMessages<'a>, DeviceError> {
        self.recorder.refuse("send and receive by MPI")?;
        let stream = self.stream(std::iter::empty());
        let sent = pointers.send(stream, neighbours, messages.memory, messages.kind);
        sent.map_err(failed("send"))
    }
}

impl DeviceGroup for Cuda {
    fn is_near(&self) -> bool {
        self.reach.get().is_some_and(|reach| reach.is_near)
    }

    fn latency(&self) -> Option<f64> {
        match self.reach.get()?.by {
            TransportGroup::Peers(_) => Some(5.6e-6),
            TransportGroup::Nccl(_) => Some(27e-6),
            TransportGroup::Mpi(_) => None,
        }
    }

    fn sum(&self, array: &Array, n: usize) -> Result<(), DeviceError> {
        let kind = array.kind();
        array.holds(0, n.saturating_mul(kind.width()))?;
        let memory = array.memory::<CudaSlice<u8>>(self.owner)?;
        let done = match &self.connected()?.by {
            TransportGroup::Peers(peers) => {
                peers.sum(self.stream(std::iter::once(array.own())), memory, (n, kind))
            }
            TransportGroup::Nccl(nccl) => {
                nccl.sum(self.stream(std::iter::once(array.own())), memory, (n, kind))
            }
            TransportGroup::Mpi(pointers) => {
                self.recorder.refuse("sum by MPI")?;
                pointers.sum(self.stream(std::iter::empty()), memory, (n, kind))
            }
        };
        done.map_err(failed("sum over the GPUs"))
    }

    unsafe fn meet(&self, common: &SharedEntryTables<'_>, y: &Array) -> Result<bool, DeviceError> {
        let TransportGroup::Peers(peers) = &self.connected()?.by else { return Ok(false) };
        let arrays = [common.dofs, common.starts, common.sources];
        let [dofs, starts, sources] = arrays.map(|table| table.memory::<CudaSlice<u8>>(self.owner));
        let (tables, memory) = ([dofs?, starts?, sources?], y.memory(self.owner)?);
        let stream = self.stream(arrays.into_iter().chain([y]).map(Array::own));
        let done = peers.meet(stream, common, tables, (memory, y.kind()));
        done.map_err(failed("send and receive"))
    }

    fn exchange(
        &self,
        neighbours: &[(usize, Range<usize>)],
        sent: &Array,
        received: &Array,
    ) -> Result<(), DeviceError> {
        let messages = self.messages(neighbours, [sent, received])?;
        let done = match &self.connected()?.by {
            TransportGroup::Peers(peers) => {
                let stream = self.stream([sent.own(), received.own()].into_iter());
                peers.exchange(stream, neighbours, messages.memory, messages.kind)
            }
            TransportGroup::Nccl(nccl) => {
                let stream = self.stream([sent.own(), received.own()].into_iter());
                nccl.exchange(stream, neighbours, messages.memory, messages.kind)
            }
            TransportGroup::Mpi(pointers) => self.send(pointers, neighbours, &messages)?.receive(),
        };
        done.map_err(failed("send and receive"))
    }

    fn exchange_beside(
        &self,
        neighbours: &[(usize, Range<usize>)],
        sent: &Array,
        received: &Array,
        meanwhile: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        match &self.connected()?.by {
            // Too short to benefit from another stream.
            TransportGroup::Peers(_) => {
                self.exchange(neighbours, sent, received)?;
                meanwhile()
            }
            // On a separate stream, so that the other work need not wait.
            TransportGroup::Nccl(_) => {
                let aside = &mut || Ok(self.exchange(neighbours, sent, received)?);
                self.start_beside(&self.ahead, aside, meanwhile)
            }
            // The host waits for messages while the GPU has other work.
            TransportGroup::Mpi(pointers) => {
                let messages = self.messages(neighbours, [sent, received])?;
                let sent = self.send(pointers, neighbours, &messages)?;
                let done = meanwhile();
                // Other processes wait for the messages, even if the other work failed.
                sent.receive().map_err(failed("send and receive"))?;
                done
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::threads::each;

    #[test]
    fn all_are_asked_for_one_way() {
        let of = |words: [&'static str; 2]| {
            let mut found = each(2, |group| asked(&group, words[group.rank()].as_bytes()));
            assert_eq!(found[0], found[1], "all find the same");
            found.swap_remove(0)
        };
        assert_eq!(of(["", ""]), Ok(None));
        for transport in Transport::ALL {
            assert_eq!(of([transport.word(); 2]), Ok(Some(transport)));
        }
        assert_eq!(of(["mpi", ""]), Err(TransportError::Unlike { other: 1 }));
        assert_eq!(of(["NCCL", "NCCL"]), Err(TransportError::Unknown { word: "NCCL".to_owned() }));
    }

    #[test]
    fn the_first_way_is_taken_that_there_is() {
        use Transport::{Host, Mpi, Nccl, Peers};
        let shared = || Err(TransportError::Shared { first: 0, second: 1 });
        let none = || Err(TransportError::NoPointers { library: "Some MPI".to_owned() });
        let joined = |transport, instead| SelectedTransport { transport, instead };
        let taken = |asked,
                     peers: Result<u8, TransportError>,
                     nccl: Result<u8, TransportError>,
                     mpi: Result<u8, TransportError>| {
            choose(asked, || peers, || nccl, || mpi)
        };
        let far = || Err(TransportError::Far);
        assert_eq!(taken(None, Ok(0), Ok(1), Ok(2)), Ok((0, joined(Peers, None))));
        // Lack of peer access between hosts is not reported.
        assert_eq!(taken(None, far(), Ok(1), Ok(2)), Ok((1, joined(Nccl, None))));
        assert_eq!(taken(None, far(), shared(), Ok(2)), Ok((2, joined(Mpi, shared().err()))));
        let by_request = |transport| joined(transport, Some(TransportError::Asked));
        assert_eq!(taken(Some(Peers), Ok(0), Ok(1), Ok(2)), Ok((0, joined(Peers, None))));
        assert_eq!(taken(Some(Nccl), Ok(0), Ok(1), Ok(2)), Ok((1, by_request(Nccl))));
        assert_eq!(taken(Some(Mpi), Ok(0), Ok(1), Ok(2)), Ok((2, by_request(Mpi))));
        assert_eq!(taken(Some(Host), Ok(0), Ok(1), Ok(2)), Err(TransportError::Asked));
        assert_eq!(taken(Some(Peers), far(), Ok(1), Ok(2)), Err(TransportError::Far));
        assert_eq!(
            taken(Some(Nccl), Ok(0), shared(), Ok(2)),
            Err(TransportError::Shared { first: 0, second: 1 })
        );
        assert_eq!(taken(Some(Mpi), Ok(0), Ok(1), none()).err(), none().err());
        // Unwanted transports are not tried.
        let never = || -> Result<u8, TransportError> { panic!("it was not asked for") };
        assert!(choose(Some(Mpi), never, never, || Ok(2)).is_ok());
        assert!(choose(Some(Nccl), never, || Ok(1), never).is_ok());
        assert!(choose(Some(Peers), || Ok(0), never, never).is_ok());
        assert!(choose(None, || Ok(0), never, never).is_ok());
        assert!(choose(None, far, || Ok(1), never).is_ok());
        assert!(choose(Some(Host), never, never, never).is_err());
        assert_eq!(taken(None, far(), shared(), Err(TransportError::NoMpi)).err(), shared().err());
        let both = taken(None, far(), shared(), none()).expect_err("neither is there").to_string();
        assert!(both.contains("share one GPU, and Some MPI takes no"), "{both}");
    }
}
