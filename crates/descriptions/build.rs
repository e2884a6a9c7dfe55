//! Extracts the descriptions of API types from the sources of `k8s-openapi`: one compressed block per package.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const DEPENDENCY: &str = "k8s-openapi";

/// Descriptions by type and field of a package; the field is empty for the type itself.
type PackageTexts = BTreeMap<(String, String), String>;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let (version, release) = dependency().ok_or("k8s-openapi does not state its version")?;
    let mut packages = BTreeMap::new();
    match sources(&version, &release) {
        Some(folder) => read_folder(&folder, &mut packages)?,
        None => println!(
            "cargo::warning=the sources of {DEPENDENCY} {version} were not found: OpenAPI documents lack descriptions"
        ),
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let mut list = String::from("&[\n");
    for (name, package) in &packages {
        let records: Vec<String> = package
            .iter()
            .map(|((ty, field), text)| format!("{ty}\u{1f}{field}\u{1f}{text}"))
            .collect();
        let block = lz4_flex::compress_prepend_size(records.join("\u{1e}").as_bytes());
        fs::write(out.join(format!("{name}.lz4")), block)?;
        writeln!(
            list,
            "({name:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.lz4\")).as_slice()),"
        )?;
    }
    fs::write(out.join("blocks.in"), list + "]\n")?;
    Ok(())
}

/// The version of `k8s-openapi`, and the folder of the Kubernetes release that it is built for. Cargo passes both in a
/// variable of the form `DEP_K8S_OPENAPI_0_29_0_VERSION=0x00012500`.
fn dependency() -> Option<(String, String)> {
    env::vars().find_map(|(name, value)| {
        let version = name.strip_prefix("DEP_K8S_OPENAPI_")?.strip_suffix("_VERSION")?;
        let minor = value.parse::<u32>().ok()? >> 8 & 0xff;
        Some((version.replace('_', "."), format!("v1_{minor}")))
    })
}

/// The folder of the sources: in Cargo's registry, or where `cargo metadata` says (vendored sources).
fn sources(version: &str, release: &str) -> Option<PathBuf> {
    let inside = |package: &Path| package.join("src").join(release);
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/src"))
        .into_iter()
        .flatten()
        .flatten();
    let mut folders =
        registries.map(|registry| inside(&registry.path().join(format!("{DEPENDENCY}-{version}"))));
    let metadata = || {
        let metadata = Command::new(env::var_os("CARGO")?)
            .args(["metadata", "--format-version", "1", "--offline"])
            .output();
        let text = String::from_utf8(metadata.ok()?.stdout).ok()?;
        let (_, package) =
            text.split_once(&format!("\"name\":\"{DEPENDENCY}\",\"version\":\"{version}\""))?;
        let (_, path) = package.split_once("\"manifest_path\":\"")?;
        let (manifest, _) = path.split_once('"')?;
        Some(inside(Path::new(manifest).parent()?))
    };
    folders
        .find(|folder| folder.is_dir())
        .or_else(|| metadata().filter(|folder| folder.is_dir()))
}

fn read_folder(folder: &Path, packages: &mut BTreeMap<String, PackageTexts>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_folder(&path, packages)?;
        } else {
            read_schema(&fs::read_to_string(&path)?, packages);
        }
    }
    Ok(())
}

/// Reads the descriptions in the JSON schema of a type. The sources are generated, so indentation tells which
/// description belongs to the type and which to a field.
fn read_schema(source: &str, packages: &mut BTreeMap<String, PackageTexts>) {
    const OF_TYPE: usize = 12;
    const FIELD: usize = 16;
    const OF_FIELD: usize = 20;
    let Some((_, schema)) = source.split_once("fn schema_name()") else {
        return;
    };
    let mut lines = schema.lines();
    let model = lines.find_map(literal);
    let Some((package, ty)) = model.as_deref().and_then(|model| model.rsplit_once('.')) else {
        return;
    };
    let package = packages.entry(package.to_owned()).or_default();
    let mut add =
        |field: &str, text: &str| package.insert((ty.to_owned(), field.to_owned()), text.to_owned());
    let mut field = String::new();
    for line in lines {
        let indentation = line.len() - line.trim_start().len();
        let description = line
            .split_once("\"description\"")
            .and_then(|(_, rest)| literal(rest));
        match (indentation, description) {
            (FIELD, _) => field = literal(line).unwrap_or(field),
            // This type has a hand-written schema: the second paragraph is the description of its field.
            (OF_TYPE, Some(text)) if ty == "WatchEvent" => {
                let (ty, object) = text.split_once("\n\n").unwrap_or((&text, ""));
                add("", ty);
                add("object", object.trim_end());
            }
            (OF_TYPE, Some(text)) => drop(add("", &text)),
            (OF_FIELD, Some(text)) => drop(add(&field, &text)),
            _ => {}
        }
    }
}

/// The first string literal of a line.
fn literal(line: &str) -> Option<String> {
    let mut chars = line.split_once('"')?.1.chars();
    let mut out = String::new();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'u' => {
                    let digits: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                    out.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                }
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
}
