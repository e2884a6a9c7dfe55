//! The corpus of real CRDs and objects with the verdicts of Kubernetes' own code.
//!
//! The data belongs to its projects and is not part of the repository. It is read from `../shared` beside the
//! repository.

use flate2::read::GzDecoder;
use scantling_value::{Limits, Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

/// Returns the path of the corpus, or prints that it is absent.
pub fn path() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/corpus/open.jsonl.gz");
    if path.exists() {
        return Some(path);
    }
    println!("SKIPPED: the corpus is not at {}", path.display());
    None
}

/// Returns the lines of the corpus, each the JSON of one case, or `None` if the corpus is absent.
pub fn lines() -> Option<impl Iterator<Item = Vec<u8>>> {
    let file = std::fs::File::open(path()?).expect("the corpus is readable");
    let lines = BufReader::new(GzDecoder::new(file)).split(b'\n');
    Some(
        lines
            .map(|line| line.expect("the corpus is readable"))
            .filter(|line| !line.is_empty()),
    )
}

/// Returns the cases of the corpus, or `None` if it is absent.
pub fn cases() -> Option<impl Iterator<Item = Value>> {
    Some(lines()?.map(|line| json::decode(&line, Limits::SERVER).expect("the corpus is JSON")))
}
