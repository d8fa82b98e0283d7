//! Generates `fila.v1.rs` from the proto files: `fila-codegen <proto folder> <output folder>`.
//!
//! No protoc is needed: the files are read by Rust code.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(proto), Some(output)) = (arguments.next(), arguments.next()) else {
        return Err("usage: fila-codegen <proto folder> <output folder>".into());
    };
    std::fs::create_dir_all(&output)?;
    let descriptors = protox::compile(files(&proto.join("fila/v1"))?, [&proto])?;
    prost_build::Config::new()
        .out_dir(&output)
        // Payloads are handed on without a copy.
        .bytes([".fila.v1"])
        // A later version of the contract has more of them.
        .enum_attribute(".", "#[non_exhaustive]")
        .compile_fds(descriptors)?;
    Ok(())
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "proto"))
        .collect();
    found.sort();
    Ok(found)
}
