//! A small disk of a test's own: a file system in memory, in a mount namespace of a child of the test.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::place::until;

/// Names the disk to the child.
const DISK: &str = "LANEWAY_TEST_DISK";

/// Runs `body` with a disk of so many megabytes. `name` is the full name of the test that calls it: the child runs
/// that test again, and nothing else. A user namespace lets everybody mount; the mount ends with the child.
pub(crate) fn with_disk(name: &str, megabytes: u32, body: impl FnOnce(&Path)) {
    if let Some(disk) = std::env::var_os(DISK) {
        return body(&PathBuf::from(disk));
    }
    let place = tempfile::tempdir().expect("a directory");
    let script = format!("mount -t tmpfs -o size={megabytes}m tmpfs \"${DISK}\" && exec \"$0\" \"$@\"");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture"])
        .env(DISK, place.path())
        .output()
        .expect("`unshare` and `mount` of util-linux");
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 passed"), "no such test: {name}");
    print!("{told}");
}

/// Takes every byte that is left, and gives all of them back when it is dropped.
pub(crate) struct Ballast(PathBuf);

impl Ballast {
    pub(crate) fn fill(disk: &Path) -> Self {
        let path = disk.join("ballast");
        let mut file = fs::File::create(&path).expect("a file");
        let chunk = [7_u8; 4096];
        while file.write_all(&chunk).is_ok() {}
        Self(path)
    }

    /// Takes what somebody else has freed meanwhile.
    pub(crate) fn fill_again(&self) {
        let mut file = fs::File::options().append(true).open(&self.0).expect("the file");
        let chunk = [7_u8; 4096];
        while file.write_all(&chunk).is_ok() {}
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Waits for those who still write: a system refuses to take a disk from under them.
pub(crate) fn remount(disk: &Path, mode: &str) {
    until(&format!("it is mounted {mode}"), || {
        let mut command = Command::new("mount");
        command.args(["-o", &format!("remount,{mode}")]).arg(disk).stderr(Stdio::null());
        command.status().expect("`mount`").success()
    });
}
