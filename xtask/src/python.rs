//! The Python client: its types, and its own tests against the program. The client and its tests need a python3 and nothing else; who looks at
//! the types comes from PyPI.

use anyhow::{Result, ensure};

use crate::program::Program;
use crate::shell::{Shell, program};
use crate::venv;

/// Another version finds other things.
const MYPY: &str = "mypy==2.4.1";

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
    let mypy = venv::bring(shell, &laneway.scratch, MYPY)?;
    // What is to be looked at, and how strictly, stands beside the client.
    let mut types = program("env");
    types.args(["-C", "sdk/python"]).arg(mypy).arg("--cache-dir").arg(laneway.scratch.join("mypy"));
    shell.run(types)?;
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
