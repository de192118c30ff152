//! Memory budget: planned allocations are compared with the available memory, so that exceeding it gives an error with
//! numbers and a remedy.
//!
//! [`MemoryBudget`] is the minimum of the machine's free memory, the limits of the process (`ulimit -v`, `ulimit -d`)
//! and those of its control groups, on Linux. On other systems nothing is known, and nothing is rejected.
//! [`MemoryEstimate`] is a lower bound of a problem's memory, by part.

use std::fmt;
use std::path::{Path, PathBuf};

/// Available memory, and its limiting factor.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryBudget {
    /// The number of bytes.
    pub bytes: f64,
    /// A description of the limiting factor.
    pub bound: &'static str,
}

impl MemoryBudget {
    /// Returns the memory available to this process; `None` if unknown.
    pub fn now() -> Option<Self> {
        Self::under(Path::new("/"))
    }

    /// Returns the same, with the system's files in a folder.
    fn under(root: &Path) -> Option<Self> {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
        let mut rooms = Vec::new();
        if let Some(text) = read("proc/meminfo") {
            let free = kilobytes(&text, "MemAvailable:")
                .map(|bytes| bytes + kilobytes(&text, "SwapFree:").unwrap_or(0.0));
            rooms.extend(free.map(|bytes| Self { bytes, bound: "what this machine has free" }));
        }
        if let (Some(limits), Some(status)) = (read("proc/self/limits"), read("proc/self/status")) {
            for (limit, used, bound) in [
                ("Max address space", "VmSize:", "what `ulimit -v` leaves"),
                ("Max data size", "VmData:", "what `ulimit -d` leaves"),
            ] {
                let line = limits.lines().find_map(|line| line.strip_prefix(limit));
                let most =
                    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
                let left = most.map(|most| most - kilobytes(&status, used).unwrap_or(0.0));
                rooms.extend(left.map(|left| Self { bytes: usable(left), bound }));
            }
        }
        let groups = read("proc/self/cgroup").unwrap_or_default();
        rooms.extend(groups.lines().flat_map(|line| of_group(root, line)));
        let least = rooms.into_iter().min_by(|a, b| a.bytes.total_cmp(&b.bytes))?;
        Some(Self { bytes: least.bytes.max(0.0), ..least })
    }

    /// Checks that `bytes` bytes are available.
    ///
    /// # Errors
    ///
    /// Insufficient memory.
    pub fn check(what: impl FnOnce() -> String, bytes: f64) -> Result<(), InsufficientMemory> {
        match Self::now() {
            Some(room) if bytes > room.bytes => {
                let remedy = "fewer cells or a lower degree";
                Err(InsufficientMemory { what: what(), bytes, room, remedy })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the usable part of the remaining address space: allocators reserve large pieces, which may remain half
/// empty.
fn usable(left: f64) -> f64 {
    const PIECE: f64 = (64 << 20) as f64;
    (left - PIECE).max(left / 2.0)
}

/// Parses the bytes in a line `NAME: 123 kB`.
fn kilobytes(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024.0 * line.split_whitespace().next()?.parse::<f64>().ok()?)
}

/// Returns the memory left by a control group and its parents, for the process's line `NUMBER:CONTROLLERS:PATH`.
fn of_group(root: &Path, line: &str) -> Vec<MemoryBudget> {
    let mut fields = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
    else {
        return Vec::new();
    };
    // Version 2 has a single hierarchy without names.
    let (folder, most, used, idle) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "),
        named if named.split(',').any(|name| name == "memory") => (
            "sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file ",
        ),
        _ => return Vec::new(),
    };
    let top = root.join(folder);
    let mut groups: Vec<PathBuf> = Vec::new();
    let mut group = top.join(path.trim_start_matches('/'));
    // Within a container the path may be that of the host.
    while group.starts_with(&top) {
        groups.push(group.clone());
        if !group.pop() {
            break;
        }
    }
    let room = |group: PathBuf| {
        let number = |name: &str| -> Option<f64> {
            std::fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
        };
        let most = number(most)?;
        // The page cache is released first.
        let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let idle =
            stat.lines().find_map(|line| line.strip_prefix(idle)?.trim().parse::<f64>().ok());
        let bytes = most - number(used).unwrap_or(0.0) + idle.unwrap_or(0.0);
        Some(MemoryBudget { bytes, bound: "what its control group leaves" })
    };
    groups.into_iter().filter_map(room).collect()
}

/// Error of insufficient memory.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{what} takes {} of memory, and there is {} ({}); take {remedy}, or a machine with more memory",
    Bytes(*.bytes), Bytes(.room.bytes), .room.bound
)]
pub struct InsufficientMemory {
    /// A description of the allocation.
    pub what: String,
    /// A lower bound of its bytes.
    pub bytes: f64,
    /// The available memory.
    pub room: MemoryBudget,
    /// A smaller alternative.
    pub remedy: &'static str,
}

/// A number of bytes, formatted for reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bytes(pub f64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let (mut value, mut unit) = (self.0, 0);
        while value >= 1000.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let digits = if unit > 0 && value < 99.95 { 1 } else { 0 };
        write!(f, "{value:.digits$} {}", UNITS[unit])
    }
}

/// Lower bound of the memory of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryEstimate {
    /// The number of cells.
    pub cells: u64,
    /// The number of degrees of freedom of all fields.
    pub unknowns: f64,
    /// Bytes of each part.
    pub parts: Vec<(&'static str, f64)>,
    /// Bytes of the matrix and its factors, if a direct solver may replace iterations; not in `parts`.
    pub perhaps: f64,
}

impl MemoryEstimate {
    /// Returns the bytes of all parts.
    pub fn bytes(&self) -> f64 {
        self.parts.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the bytes of the parts in device memory.
    pub fn on_device(&self) -> f64 {
        self.there().map(|(_, bytes)| bytes).sum()
    }

    fn there(&self) -> impl Iterator<Item = &(&'static str, f64)> {
        self.parts.iter().filter(|(part, _)| matches!(*part, "tables" | "vectors" | "levels"))
    }

    /// Checks that a device with `free` free bytes can hold its parts.
    ///
    /// # Errors
    ///
    /// Insufficient memory.
    pub fn check_device(&self, free: f64) -> Result<(), InsufficientMemory> {
        let bytes = self.on_device();
        if bytes <= free {
            return Ok(());
        }
        let room = MemoryBudget { bytes: free, bound: "what the device has free" };
        let remedy = "fewer cells or a lower degree";
        Err(InsufficientMemory { what: self.named(self.there()), bytes, room, remedy })
    }

    /// Returns a description of the problem with some of its parts.
    fn named<'a>(&self, parts: impl Iterator<Item = &'a (&'static str, f64)>) -> String {
        let parts: Vec<String> =
            parts.map(|(name, bytes)| format!("{name} {}", Bytes(*bytes))).collect();
        let (cells, unknowns) = (self.cells, self.unknowns);
        format!("a problem of {unknowns} unknowns on {cells} cells ({})", parts.join(", "))
    }

    /// Checks that memory suffices for all parts except those in `there`, which exist.
    ///
    /// # Errors
    ///
    /// Insufficient memory.
    pub fn check(&self, there: &[&str]) -> Result<(), InsufficientMemory> {
        let rest = self.parts.iter().filter(|(name, _)| !there.contains(name));
        let what = || self.named(rest.clone());
        MemoryBudget::check(what, rest.clone().map(|(_, bytes)| bytes).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(files: &[(&str, &str)]) -> Option<MemoryBudget> {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        MemoryBudget::under(root.path())
    }

    #[test]
    fn the_least_bound_holds() {
        assert_eq!(room(&[]), None);
        let free =
            ("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:   5000 kB\nSwapFree: 1000 kB\n");
        let least = room(&[free]).expect("a bound");
        assert_eq!((least.bytes, least.bound), (6000.0 * 1024.0, "what this machine has free"));
        let limits = (
            "proc/self/limits",
            "Limit  Soft Limit Hard Limit Units\n\
             Max data size             unlimited  unlimited bytes\n\
             Max address space         3072000    unlimited bytes\n",
        );
        let status = ("proc/self/status", "VmSize:\t 1000 kB\nVmData:\t 100 kB\n");
        let least = room(&[free, limits, status]).expect("a bound");
        assert_eq!((least.bytes, least.bound), (1_024_000.0, "what `ulimit -v` leaves"));
        // The group itself has no limit, but its parent has.
        let second = [
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "5000\n"),
            ("sys/fs/cgroup/a/memory.current", "4500\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 300\n"),
        ];
        let least = room(&[&second[..], &[free]].concat()).expect("a bound");
        assert_eq!((least.bytes, least.bound), (800.0, "what its control group leaves"));
        // Version 1, with a path of the host.
        let first = [
            ("proc/self/cgroup", "3:cpu:/x\n5:memory,hugetlb:/host/path\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "9000\n"),
        ];
        assert_eq!(room(&first).expect("a bound").bytes, 0.0);
    }

    #[test]
    fn bytes_are_shown_in_units() {
        let shown = [0.0, 999.0, 1e3, 1e5, 1.5e9, 4e11, 1e30].map(|bytes| Bytes(bytes).to_string());
        let expected = ["0 B", "999 B", "1.0 KiB", "97.7 KiB", "1.4 GiB", "373 GiB"];
        assert_eq!(shown[..6], expected);
        assert!(shown[6].ends_with(" EiB"));
    }
}
