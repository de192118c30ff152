//! `cargo xtask dist`: the archive `wf-VERSION-TARGET.tar.gz` of a release, as `cargo binstall` expects it.

use std::path::Path;
use std::process::Command;

use crate::{capture, cargo, execute, root};

/// Builds `wf` without symbols for a target, the machine's own one by default. Writes the archive and its SHA-256 sum to
/// `target/dist`.
pub(crate) fn run(target: Option<&str>) -> Result<(), String> {
    let rustc = capture(Command::new("rustc").arg("-vV"))?;
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: "));
    let target = target.or(host).ok_or("rustc -vV names no host")?;
    execute(&mut cargo(&["build", "--profile", "dist", "--bin", "wf", "--target", target]))?;

    let name = format!("wf-{}-{target}", env!("CARGO_PKG_VERSION"));
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), Into::into);
    let (dist, program) =
        (built.join("dist"), if target.contains("windows") { "wf.exe" } else { "wf" });
    let folder = dist.join(&name);
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    let mut sources = vec![built.join(target).join("dist").join(program)];
    sources.extend(
        ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]
            .map(|name| root().join(name)),
    );
    for source in sources {
        let goal = folder.join(source.file_name().ok_or("a file has no name")?);
        std::fs::copy(&source, &goal).map_err(|error| failed(&source, error))?;
    }
    let archive = format!("{name}.tar.gz");
    execute(Command::new("tar").args(["-czf", &archive, &name]).current_dir(&dist))?;
    let sum = capture(Command::new("sha256sum").arg(&archive).current_dir(&dist))?;
    let path = dist.join(format!("{archive}.sha256"));
    std::fs::write(&path, &sum).map_err(|error| failed(&path, error))?;
    println!("{}", dist.join(archive).display());
    Ok(())
}
