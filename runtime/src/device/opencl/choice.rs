//! Selection of an OpenCL device.

use std::env;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::api::{self, ClResult, DeviceId};
use super::error::{OpenClError, driver};
use super::functions as ffi;

/// The environment variable that selects a platform or a device by name.
pub const VARIABLE: &str = "WF_OPENCL";

/// Properties of a device.
#[derive(Clone, Debug)]
pub struct DeviceProperties {
    /// The name of the platform.
    pub platform: String,
    /// The name of the device.
    pub name: String,
    /// The versions of the platform and the driver.
    pub driver: String,
    /// True for devices other than CPUs.
    pub accelerator: bool,
    /// True if the device supports double precision and 64-bit atomics.
    pub doubles: bool,
    /// Bytes of memory.
    pub memory: u64,
    /// The largest size of an array in bytes.
    pub largest: u64,
    /// Bytes of local memory per thread group.
    pub shared: u64,
    /// The largest number of threads per group.
    pub threads: usize,
    /// True if the compiler supports a register limit per thread.
    pub bounds_registers: bool,
    pub(super) id: DeviceId,
}

impl DeviceProperties {
    /// Returns whether the platform has its own kernel cache.
    pub fn keeps_kernels(&self) -> bool {
        self.platform.contains("Portable Computing Language")
    }
}

impl fmt::Display for DeviceProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.platform, self.name)
    }
}

/// Returns all devices of all platforms, in driver order.
///
/// # Errors
///
/// [`OpenClError::NoLibrary`], [`OpenClError::NoPlatform`], or a driver error.
pub fn devices() -> Result<Vec<DeviceProperties>, OpenClError> {
    // While a driver initialises, PoCL reports no devices to other threads.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let platforms = api::platforms().map_err(driver("list the platforms"))?;
    let platforms = platforms.ok_or(OpenClError::NoLibrary)?;
    let list = || {
        let mut all = Vec::new();
        for platform in &platforms {
            let (name, version) = platform.words()?;
            for id in platform.devices()? {
                all.push(facts(id, &name, &version)?);
            }
        }
        Ok(all)
    };
    let all = list().map_err(driver("list the devices"))?;
    if platforms.is_empty() { Err(OpenClError::NoPlatform) } else { Ok(all) }
}

fn facts(id: DeviceId, platform: &str, version: &str) -> ClResult<DeviceProperties> {
    let extensions = id.text(ffi::DEVICE_EXTENSIONS)?;
    let has = |wanted: &str| extensions.split_whitespace().any(|found| found == wanted);
    Ok(DeviceProperties {
        platform: platform.to_owned(),
        name: id.text(ffi::DEVICE_NAME)?,
        driver: format!("{version}, {}", id.text(ffi::DRIVER_VERSION)?),
        accelerator: id.number(ffi::DEVICE_TYPE)? & ffi::DEVICE_TYPE_CPU == 0,
        bounds_registers: has("cl_nv_compiler_options"),
        doubles: has("cl_khr_fp64") && has("cl_khr_int64_base_atomics"),
        memory: id.number(ffi::DEVICE_GLOBAL_MEM_SIZE)?,
        largest: id.number(ffi::DEVICE_MAX_MEM_ALLOC_SIZE)?,
        shared: id.number(ffi::DEVICE_LOCAL_MEM_SIZE)?,
        threads: id.number(ffi::DEVICE_MAX_WORK_GROUP_SIZE)? as usize,
        id,
    })
}

/// Returns the name in the environment; an empty variable counts as unset.
pub(super) fn wanted() -> Option<String> {
    env::var(VARIABLE).ok().filter(|name| !name.is_empty())
}

/// Returns the first accelerator with double precision, else the first device with double precision; a name restricts
/// the choice to devices and platforms whose name contains it.
pub(super) fn choose(
    all: Vec<DeviceProperties>,
    wanted: Option<&str>,
) -> Result<DeviceProperties, OpenClError> {
    let names = |all: &[DeviceProperties]| match all {
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
