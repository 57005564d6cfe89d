//! The Python client's own tests, against the program: with the standard library alone, so all they need is a python3.

use anyhow::{Result, ensure};

use crate::program::Program;
use crate::shell::{Shell, program};

pub(crate) fn test(shell: &Shell, laneway: &Program) -> Result<()> {
    let version = shell.output({
        let mut python = program("python3");
        python.args(["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]);
        python
    });
    ensure!(
        version.is_ok_and(|output| output.status.success()),
        "python3 is missing, or older than 3.9: install Debian's package python3, or your system's"
    );
    let mut tests = program("python3");
    tests.args([
        "-W",
        "ignore::ResourceWarning",
        "-m",
        "unittest",
        "discover",
        "-t",
        "sdk/python",
        "-s",
        "sdk/python/tests",
    ]);
    tests.env("LANEWAY_BIN", laneway.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    shell.run(tests)
}
