//! Embeds the web page: every file under `web/`, as it is and, where that is shorter, compressed. `src/page.rs` has the table that
//! this writes. The files are committed, so nothing but Rust is needed here; `cargo xtask web` makes them anew.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=web");
    println!("cargo::rerun-if-changed=build.rs");
    let page = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("web");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut files = Vec::new();
    walk(&page, &mut files)?;
    files.sort();
    if !files.contains(&page.join("index.html")) {
        return Err(format!("{} has no index.html: `cargo xtask web` builds the page", page.display()).into());
    }
    let mut table = String::from("static FILES: &[File] = &[\n");
    for (number, file) in files.iter().enumerate() {
        let name = file.strip_prefix(&page)?.to_str().ok_or("a file of the page has no name in UTF-8")?;
        let bytes = fs::read(file)?;
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(&bytes)?;
        let packed = packer.finish()?;
        let gzip = if packed.len() < bytes.len() {
            let path = out.join(format!("{number}.gz"));
            fs::write(&path, packed)?;
            format!("Some(include_bytes!({path:?}))")
        } else {
            "None".to_owned()
        };
        writeln!(table, "    File {{ name: {name:?}, plain: include_bytes!({file:?}), gzip: {gzip} }},")?;
    }
    table.push_str("];\n");
    fs::write(out.join("files.rs"), table)?;
    Ok(())
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}
