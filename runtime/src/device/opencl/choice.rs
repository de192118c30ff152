//! Which device: every one of every platform, and the one to use.

use std::env;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use ocl::ffi;

use super::api::{self, DeviceId, Outcome};
use super::error::{OpenClError, driver};

/// The environment variable that names the platform or the device to use.
pub const VARIABLE: &str = "WF_OPENCL";

/// What is known of a device.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The name of its platform.
    pub platform: String,
    /// Its own name.
    pub name: String,
    /// The versions of its platform and of its driver.
    pub driver: String,
    /// Whether it is anything but a CPU.
    pub accelerator: bool,
    /// Whether it computes in double precision and exchanges 64 bits atomically.
    pub doubles: bool,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes that one array may have.
    pub largest: u64,
    /// Bytes of memory that the threads of a group share.
    pub shared: u64,
    /// Threads that a group may have.
    pub threads: usize,
    /// Whether its compiler can be told how many registers a thread may have.
    pub bounds_registers: bool,
    pub(super) id: DeviceId,
}

impl Facts {
    /// Whether its platform has a cache of compiled kernels.
    pub fn keeps_kernels(&self) -> bool {
        self.platform.contains("Portable Computing Language")
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.platform, self.name)
    }
}

/// Every device of every platform, in the order of the drivers.
///
/// # Errors
///
/// [`OpenClError::NoPlatform`], or a driver that does not answer.
pub fn devices() -> Result<Vec<Facts>, OpenClError> {
    // While a driver starts, PoCL tells other threads that it has no devices.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let all = api::platforms().and_then(|platforms| {
        let mut all = Vec::new();
        for platform in &platforms {
            let (name, version) = platform.words()?;
            for id in platform.devices()? {
                all.push(facts(id, &name, &version)?);
            }
        }
        Ok((platforms.len(), all))
    });
    match all.map_err(driver("list the devices"))? {
        (0, _) => Err(OpenClError::NoPlatform),
        (_, all) => Ok(all),
    }
}

fn facts(id: DeviceId, platform: &str, version: &str) -> Outcome<Facts> {
    let extensions = id.text(ffi::CL_DEVICE_EXTENSIONS)?;
    let has = |wanted: &str| extensions.split_whitespace().any(|found| found == wanted);
    Ok(Facts {
        platform: platform.to_owned(),
        name: id.text(ffi::CL_DEVICE_NAME)?,
        driver: format!("{version}, {}", id.text(ffi::CL_DRIVER_VERSION)?),
        accelerator: id.number(ffi::CL_DEVICE_TYPE)? & ffi::CL_DEVICE_TYPE_CPU == 0,
        bounds_registers: has("cl_nv_compiler_options"),
        doubles: has("cl_khr_fp64") && has("cl_khr_int64_base_atomics"),
        memory: id.number(ffi::CL_DEVICE_GLOBAL_MEM_SIZE)?,
        largest: id.number(ffi::CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        shared: id.number(ffi::CL_DEVICE_LOCAL_MEM_SIZE)?,
        threads: id.number(ffi::CL_DEVICE_MAX_WORK_GROUP_SIZE)? as usize,
        id,
    })
}

/// The name that the environment asks for; a variable that is set but empty counts as not set.
pub(super) fn wanted() -> Option<String> {
    env::var(VARIABLE).ok().filter(|name| !name.is_empty())
}

/// The first device with double precision that is no CPU, else the first with double precision; where a name is
/// given, among those whose platform or whose own name has it as a part.
pub(super) fn choose(all: Vec<Facts>, wanted: Option<&str>) -> Result<Facts, OpenClError> {
    let names = |all: &[Facts]| match all {
        [] => "none".to_owned(),
        _ => all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", "),
    };
    let found = names(&all);
    let mut fitting = all;
    if let Some(wanted) = wanted {
        let part = wanted.to_lowercase();
        fitting.retain(|one| one.to_string().to_lowercase().contains(&part));
        if fitting.is_empty() {
            return Err(OpenClError::Unknown { wanted: wanted.to_owned(), found });
        }
    }
    let found = names(&fitting);
    fitting.retain(|one| one.doubles);
    let at = fitting.iter().position(|one| one.accelerator).unwrap_or(0);
    if fitting.is_empty() {
        return Err(OpenClError::NoDoubles { found });
    }
    Ok(fitting.swap_remove(at))
}
