//! The Debian package: the program, its service, completions and pages, put together by `dpkg-deb` as `packaging/debian` says;
//! and a trial of it, in a directory of its own. Owns what lies where in the package.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::program::{Program, said, target_dir};
use crate::shell::{Shell, cargo, program};
use crate::stage;

/// Which program is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    Release,
    /// The one of the tests, for a trial: nobody waits for another build.
    Tests,
}

/// Builds the package, and tries it.
pub(crate) fn run(shell: &Shell, build: Build) -> Result<()> {
    let target = target_dir(shell)?;
    let binary = match build {
        Build::Release => {
            shell.run(cargo(&[
                "build",
                "--release",
                "--package",
                "laneway",
                "--bin",
                "laneway",
                "--quiet",
            ]))?;
            target.join("release/laneway")
        }
        Build::Tests => Program::build(shell)?.path().to_owned(),
    };
    let home = target.join("package");
    let package = pack(shell, &binary, &home)?;
    try_out(shell, &package, &home.join("trial"))?;
    stage::note(&format!("{} is good", package.display()));
    Ok(())
}

/// Files of the workspace, and where they are put, with which permissions.
const FILES: [(&str, &str, u32); 7] = [
    ("packaging/laneway.service", "usr/lib/systemd/system/laneway.service", 0o644),
    ("packaging/laneway.toml", "etc/laneway/laneway.toml", 0o644),
    ("packaging/grafana/laneway.json", "usr/share/laneway/grafana.json", 0o644),
    ("docs/operations.md", "usr/share/doc/laneway/operations.md", 0o644),
    ("docs/tutorial.md", "usr/share/doc/laneway/tutorial.md", 0o644),
    ("docs/reference/document.md", "usr/share/doc/laneway/document.md", 0o644),
    ("LICENSE", "usr/share/doc/laneway/copyright", 0o644),
];

/// What the program prints, and where a shell looks for it.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/laneway"),
    ("zsh", "usr/share/zsh/vendor-completions/_laneway"),
    ("fish", "usr/share/fish/vendor_completions.d/laneway.fish"),
];

/// Where `man` looks.
const MANUAL: &str = "usr/share/man/man1";

const SCRIPTS: [(&str, u32); 4] =
    [("conffiles", 0o644), ("postinst", 0o755), ("prerm", 0o755), ("postrm", 0o755)];

fn pack(shell: &Shell, binary: &Path, home: &Path) -> Result<PathBuf> {
    let tree = home.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| tree.display().to_string())?;
    }
    let bytes = fs::read(binary).with_context(|| binary.display().to_string())?;
    put(&tree.join("usr/bin/laneway"), &bytes, 0o755)?;
    for (from, to, mode) in FILES {
        let bytes = fs::read(shell.root().join(from)).with_context(|| from.to_owned())?;
        put(&tree.join(to), &bytes, mode)?;
    }
    for (name, to) in COMPLETIONS {
        let mut print = program(binary);
        print.args(["completions", name]);
        let printed = shell.output(print)?;
        if !printed.status.success() {
            bail!("`laneway completions {name}` ended with {}: {}", printed.status, said(&printed));
        }
        put(&tree.join(to), &printed.stdout, 0o644)?;
    }
    manual(shell, binary, &tree.join(MANUAL))?;
    let debian = shell.root().join("packaging/debian");
    for (name, mode) in SCRIPTS {
        let bytes = fs::read(debian.join(name)).with_context(|| name.to_owned())?;
        put(&tree.join("DEBIAN").join(name), &bytes, mode)?;
    }
    let version = version(shell, binary)?;
    let architecture = architecture(shell)?;
    let control = fs::read_to_string(debian.join("control")).context("packaging/debian/control")?;
    let control = control
        .replace("@VERSION@", &version)
        .replace("@ARCHITECTURE@", &architecture)
        .replace("@SIZE@", &size_of(&tree)?.div_ceil(1024).to_string());
    put(&tree.join("DEBIAN/control"), control.as_bytes(), 0o644)?;
    let package = home.join(format!("laneway_{version}_{architecture}.deb"));
    let mut build = program("dpkg-deb");
    build.args(["--build", "--root-owner-group", "-Zxz", "-z1"]).arg(&tree).arg(&package);
    let built = shell.output(build)?;
    if !built.status.success() {
        bail!("dpkg-deb ended with {}: {}", built.status, said(&built));
    }
    Ok(package)
}

/// A page for each command, packed as Debian asks for.
fn manual(shell: &Shell, binary: &Path, dir: &Path) -> Result<()> {
    let mut write = program(binary);
    write.arg("man").arg(dir);
    let mut pack = program("gzip");
    pack.args(["--best", "--no-name", "--recursive"]).arg(dir);
    for command in [write, pack] {
        let done = shell.output(command)?;
        if !done.status.success() {
            bail!("the manual pages cannot be made: {}", said(&done));
        }
    }
    Ok(())
}

fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let write = || -> std::io::Result<()> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(path, bytes)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    write().with_context(|| path.display().to_string())
}

fn version(shell: &Shell, binary: &Path) -> Result<String> {
    let mut ask = program(binary);
    ask.arg("--version");
    let told = shell.output(ask)?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    told.split_whitespace().nth(1).map(str::to_owned).context("`laneway --version` tells none")
}

fn architecture(shell: &Shell) -> Result<String> {
    let mut ask = program("dpkg");
    ask.arg("--print-architecture");
    let told = shell.output(ask).context("is this a Debian? `dpkg` is needed")?;
    Ok(String::from_utf8_lossy(&told.stdout).trim().to_owned())
}

fn size_of(dir: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let found = entry.metadata()?;
        size += if found.is_dir() { size_of(&entry.path())? } else { found.len() };
    }
    Ok(size)
}

/// Unpacks it as `dpkg` would, and runs a workflow with the program that came out; looks at the scripts and at the service.
fn try_out(shell: &Shell, package: &Path, root: &Path) -> Result<()> {
    if root.exists() {
        fs::remove_dir_all(root).with_context(|| root.display().to_string())?;
    }
    fs::create_dir_all(root).with_context(|| root.display().to_string())?;
    let must = |command: std::process::Command, what: &str| -> Result<String> {
        let output = shell.output(command)?;
        if !output.status.success() {
            bail!("{what} ended with {}: {}", output.status, said(&output));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let mut unpack = program("dpkg-deb");
    unpack.arg("-x").arg(package).arg(root);
    must(unpack, "dpkg-deb -x")?;
    let mut scripts = program("dpkg-deb");
    scripts.arg("-e").arg(package).arg(root.join("DEBIAN"));
    must(scripts, "dpkg-deb -e")?;
    for (script, _) in SCRIPTS.iter().filter(|(_, mode)| *mode == 0o755) {
        let mut check = program("sh");
        check.arg("-n").arg(root.join("DEBIAN").join(script));
        must(check, script)?;
    }
    for (shell_name, to) in COMPLETIONS {
        let script = fs::read_to_string(root.join(to)).with_context(|| to.to_owned())?;
        if !script.contains("laneway") || !script.contains("watch") {
            bail!("the completions for {shell_name} do not know the commands");
        }
    }
    for page in ["laneway", "laneway-run", "laneway-top", "laneway-token-create"] {
        let packed = root.join(MANUAL).join(format!("{page}.1.gz"));
        let mut unpack = program("gzip");
        unpack.args(["--decompress", "--stdout"]).arg(&packed);
        let text = must(unpack, page)?;
        if !text.contains(".SH NAME") || !text.contains("Example") {
            bail!("the manual page of {page} does not say what it is, or has no example");
        }
    }
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/laneway.service"))?;
    let start =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/")).context("it starts nothing")?;
    let binary = root.join(start.split_whitespace().next().unwrap_or_default());
    let workflow = root.join("hello.yaml");
    fs::write(&workflow, "steps:\n  hello: {run: echo it works}\n")?;
    let mut run = program(&binary);
    run.arg("--store").arg(root.join("var/laneway.db")).arg("run").arg(&workflow);
    must(run, "`laneway run` of the package")?;
    let mut logs = program(&binary);
    logs.arg("--store").arg(root.join("var/laneway.db")).args(["logs", "last", "hello"]);
    let printed = must(logs, "`laneway logs` of the package")?;
    if printed != "it works\n" {
        bail!("the program of the package prints {printed:?}");
    }
    verify_unit(shell, root, &unit, &binary)
}

/// As far as this host can tell.
fn verify_unit(shell: &Shell, root: &Path, unit: &str, binary: &Path) -> Result<()> {
    let here = root.join("laneway.service");
    fs::write(&here, unit.replace("/usr/bin/laneway", &binary.display().to_string()))?;
    let mut verify = program("systemd-analyze");
    verify.arg("verify").arg(&here);
    let Ok(output) = shell.output(verify) else {
        stage::note("systemd-analyze is not installed; the unit was not looked at");
        return Ok(());
    };
    let told = said(&output);
    let about_us: Vec<&str> = told.lines().filter(|line| line.contains("laneway.service")).collect();
    if !about_us.is_empty() {
        bail!("the unit is not right: {}", about_us.join("; "));
    }
    Ok(())
}
