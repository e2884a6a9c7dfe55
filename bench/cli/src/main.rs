//! Measures the CLI: validates all objects of the corpus, many times over, against all of its CRDs, including rules; one
//! small object from start to result; Deployments; `lint` of all CRDs. Compares it with kubeconform, installed from the Go
//! module proxy, on the same YAML.
//!
//! `cargo build --release --package scantling && cd bench && cargo run --release --bin bench-cli -- ../target/release/scantling PATH/open.jsonl.gz [TIMES]`

mod peer;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Deserialize)]
struct Entry {
    crd: Box<RawValue>,
    #[serde(default)]
    objects: Option<Vec<Sample>>,
}

#[derive(Deserialize)]
struct Sample {
    object: Box<RawValue>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, corpus, rest @ ..] = arguments.as_slice() else {
        panic!("give the program and the corpus");
    };
    let program = &fs::canonicalize(program).unwrap();
    let times: usize = rest.first().map_or(50, |n| n.parse().unwrap());
    let (mut definitions, mut objects) = (String::new(), Vec::new());
    for line in BufReader::new(GzDecoder::new(fs::File::open(corpus).unwrap())).lines() {
        let entry: Entry = serde_json::from_str(&line.unwrap()).unwrap();
        definitions.push_str(entry.crd.get());
        definitions.push('\n');
        let samples = entry.objects.into_iter().flatten();
        objects.extend(samples.map(|s| s.object.get().to_owned()));
    }
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::write(at.join("definitions.json"), &definitions).unwrap();
    let once = objects.join("\n") + "\n";
    fs::write(at.join("one-file.json"), once.repeat(times)).unwrap();
    fs::create_dir(at.join("files")).unwrap();
    for (n, object) in objects.iter().cycle().take(objects.len() * 5).enumerate() {
        fs::write(at.join(format!("files/{n:06}.json")), object).unwrap();
    }
    let lists = vec![objects.join(",\n"); times].join(",\n");
    let list = format!("{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{lists}\n]}}\n");
    fs::write(at.join("list.json"), list).unwrap();
    fs::write(at.join("list.yaml"), yaml_list(&objects, times)).unwrap();
    fs::write(at.join("nothing.json"), "").unwrap();
    fs::write(at.join("definition.yaml"), DEFINITION).unwrap();
    fs::write(at.join("object.yaml"), OBJECT).unwrap();

    let reference = decoding(&once.repeat(times)).as_secs_f64() / (objects.len() * times) as f64;
    println!(
        "decoding an object with serde_json takes {:.1} us\n",
        reference * 1e6
    );
    println!(
        "{:44} {:>9} {:>9} {:>10} {:>12} {:>9}",
        "", "wall ms", "cpu ms", "objects/s", "2 cores' cpu", "/decoding"
    );
    let show = |what: &str, taken, less, count| show(what, taken, less, count, reference);
    let best = |arguments: &[&str]| {
        best(
            Command::new(program),
            at,
            &[&["validate"][..], arguments].concat(),
        )
    };
    let load = best(&["--crds", "definitions.json", "nothing.json"]);
    show("the definitions alone", load, Taken::NONE, 0);
    for (what, input, count) in [
        (
            "one file of all objects, many times",
            "one-file.json",
            objects.len() * times,
        ),
        ("a directory of small files", "files", objects.len() * 5),
        ("one list in JSON", "list.json", objects.len() * times),
        ("one list in YAML", "list.yaml", objects.len() * times),
    ] {
        for form in ["text", "json"] {
            let taken = best(&["--crds", "definitions.json", input, "-o", form]);
            show(&format!("{what}, -o {form}"), taken, Taken::NONE, count);
            show("  without loading definitions", taken, load, count);
        }
    }
    let small = best(&["--crds", "definition.yaml", "object.yaml"]);
    show("one small object, from start to result", small, Taken::NONE, 1);

    fs::write(at.join("deployments.yaml"), DEPLOYMENT.repeat(DEPLOYMENTS)).unwrap();
    let deployments = best(&["deployments.yaml", "-q"]);
    show("Deployments in one file", deployments, Taken::NONE, DEPLOYMENTS);
    fs::create_dir(at.join("crds")).unwrap();
    for (n, definition) in definitions.lines().enumerate() {
        let value: Value = serde_json::from_str(definition).unwrap();
        let mut text = String::new();
        yaml(&value, 0, &mut text);
        fs::write(at.join(format!("crds/{n:04}.yaml")), text).unwrap();
    }
    let lint = self::best(Command::new(program), at, &["lint", "crds"]);
    show(
        "lint of all definitions",
        lint,
        Taken::NONE,
        definitions.lines().count(),
    );
    peer::compare(program, at, &definitions, &objects, times);
}

const DEPLOYMENTS: usize = 20_000;

/// The objects as `kubectl get -o yaml` prints them.
fn yaml_list(objects: &[String], times: usize) -> String {
    let mut once = String::new();
    for object in objects {
        let value: Value = serde_json::from_str(object).unwrap();
        let mut text = String::new();
        yaml(&value, 2, &mut text);
        // The first field follows the dash.
        once.push_str("- ");
        once.push_str(text.trim_start());
    }
    format!(
        "apiVersion: v1\nitems:\n{}kind: List\nmetadata:\n  resourceVersion: \"\"\n",
        once.repeat(times)
    )
}

fn yaml(value: &Value, indent: usize, out: &mut String) {
    let space = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let plain = ["apiVersion", "kind", "metadata", "spec", "status"].contains(&name.as_str());
                let name = if plain {
                    name.clone()
                } else {
                    Value::from(name.as_str()).to_string()
                };
                entry(&format!("{space}{name}:"), value, indent, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                entry(&format!("{space}-"), item, indent, out);
            }
        }
        other => out.push_str(&format!("{space}{other}\n")),
    }
}

fn entry(begin: &str, value: &Value, indent: usize, out: &mut String) {
    out.push_str(begin);
    match value {
        Value::Object(members) if !members.is_empty() => out.push('\n'),
        Value::Array(items) if !items.is_empty() => out.push('\n'),
        scalar => {
            out.push_str(&format!(" {scalar}\n"));
            return;
        }
    }
    yaml(value, indent + 2, out);
}

/// The wall-clock time and the processor time of a run.
#[derive(Clone, Copy)]
struct Taken {
    wall: Duration,
    cpu: Duration,
}

impl Taken {
    const NONE: Taken = Taken {
        wall: Duration::ZERO,
        cpu: Duration::ZERO,
    };
}

/// Prints a line of the table: objects per second by the clock, objects per second of processor time on two
/// cores, and the processor time relative to decoding the objects with `serde_json`. Other load affects the
/// first figure most and the last one least.
fn show(what: &str, taken: Taken, less: Taken, objects: usize, reference: f64) {
    let wall = taken.wall.saturating_sub(less.wall).as_secs_f64();
    let cpu = taken.cpu.saturating_sub(less.cpu).as_secs_f64();
    print!("{what:44} {:9.1} {:9.0}", wall * 1e3, cpu * 1e3);
    if objects > 1 {
        let each = cpu / objects as f64;
        print!(
            " {:10.0} {:12.0} {:9.2}",
            objects as f64 / wall,
            2.0 / each,
            each / reference
        );
    }
    println!();
}

/// The processor time of decoding the objects with `serde_json` on one core.
fn decoding(text: &str) -> Duration {
    let run = |_| {
        // Fields of this process itself; its children have others.
        let before = ticks([11, 12]);
        let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        assert!(values.map(Result::unwrap).count() > 0);
        ticks([11, 12]) - before
    };
    (0..3).map(run).min().unwrap()
}

/// The best of several runs, because other load only adds.
fn best(mut command: Command, directory: &Path, arguments: &[&str]) -> Taken {
    command.args(arguments).current_dir(directory);
    let run = |_| {
        let (start, before) = (Instant::now(), children());
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        Taken {
            wall: start.elapsed(),
            cpu: children() - before,
        }
    };
    let runs: Vec<Taken> = (0..3).map(run).collect();
    Taken {
        wall: runs.iter().map(|t| t.wall).min().unwrap(),
        cpu: runs.iter().map(|t| t.cpu).min().unwrap(),
    }
}

/// The processor time of all ended child processes.
fn children() -> Duration {
    ticks([13, 14])
}

/// The sum of the given fields of `/proc/self/stat`, in hundredths of a second.
fn ticks(fields: [usize; 2]) -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    let all: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |n: usize| all[n].parse::<u64>().unwrap();
    Duration::from_millis(fields.into_iter().map(ticks).sum::<u64>() * 10)
}

const DEFINITION: &str = include_str!("../../../examples/crontab/definition.yaml");
const OBJECT: &str = include_str!("../../../examples/crontab/object.yaml");
const DEPLOYMENT: &str = include_str!("deployment.yaml");
