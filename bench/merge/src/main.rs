//! Measures server-side apply, ownership after updates, and strategic merge patches, by the size of the
//! object and the number of managers.
//!
//! `cargo run --release -p bench-merge` prints times, and times per byte, which are constant if the cost is
//! linear.
//! `valgrind --tool=callgrind --toggle-collect='*measured*' bench-merge KIND KILOBYTES MANAGERS WRITE` counts
//! the instructions of one write, for machines with unreliable clocks.

mod objects;

use jiff::Timestamp;
use objects::{Kind, SCHEMA};
use scantling_merge::apply::{FieldManager, Force, Versions};
use scantling_merge::strategic;
use scantling_merge::typed::ObjectType;
use scantling_schema::document::Schema;
use scantling_schema::structural::{Interner, Structural};
use scantling_value::{Limits, Map, Value, yaml};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

struct OneVersion(ObjectType);

impl Versions for OneVersion {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        (api_version == "g/v1").then_some(&self.0)
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}

fn now(second: usize) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second as i64).expect("a time")
}

/// The measured operation.
#[derive(Clone, Copy, PartialEq)]
enum Write {
    /// The last manager applies different values.
    Change,
    /// The last manager applies the same again.
    Same,
    /// The last manager applies half of its previous configuration.
    Drop,
    /// An update sets a label.
    Update,
    /// A strategic merge patch changes everything that the last manager applied.
    Strategic,
}

const WRITES: [(Write, &str); 5] = [
    (Write::Change, "change"),
    (Write::Same, "same"),
    (Write::Drop, "drop"),
    (Write::Update, "update"),
    (Write::Strategic, "strategic"),
];

/// An object to which several managers have applied their parts, and the writes to it.
struct Case {
    live: Value,
    me: String,
    changed: Value,
    same: Value,
    less: Value,
    edited: Value,
}

impl Case {
    /// Creates an object of about `bytes` bytes; each manager owns an equal part.
    fn new(fields: &FieldManager<'_>, kind: Kind, bytes: usize, managers: usize) -> Self {
        let parts = kind.parts(bytes, managers);
        let mut live = None;
        for m in 0..managers {
            let config = kind.config(m, parts, "1");
            let manager = format!("manager-{m}");
            // The parts do not overlap, so nothing has to be forced.
            let applied = fields.apply(live.as_ref(), &config, &manager, Force::No, now(m));
            live = Some(applied.expect("the parts do not overlap"));
        }
        let live = live.unwrap_or_default();
        let mut edited = live.clone();
        let metadata = edited.as_object_mut().and_then(|o| o.get_mut("metadata"));
        if let Some(Value::Object(metadata)) = metadata {
            let labels = Map::from_iter([("edited", Value::from("yes"))]);
            metadata.insert("labels", Value::Object(labels));
        }
        let last = managers - 1;
        Case {
            live,
            me: format!("manager-{last}"),
            changed: kind.config(last, parts, "2"),
            same: kind.config(last, parts, "1"),
            less: kind.config(last, parts / 2, "1"),
            edited,
        }
    }

    fn prepare<'c>(&'c self, write: Write, fields: &'c FieldManager<'c>, schema: &'c Structural) -> Run<'c> {
        let apply = |config: &'c Value| -> Run<'c> {
            Box::new(move || {
                let applied = fields.apply(Some(&self.live), config, &self.me, Force::No, now(200));
                black_box(applied.expect("no conflict"));
            })
        };
        match write {
            Write::Change => apply(&self.changed),
            Write::Same => apply(&self.same),
            Write::Drop => apply(&self.less),
            Write::Update => {
                // Cloned before the measurement, because an update takes its object by value.
                let new = self.edited.clone();
                Box::new(move || {
                    black_box(fields.update(Some(&self.live), new, "editor", now(200)));
                })
            }
            Write::Strategic => {
                let (live, patch) = (self.live.clone(), self.changed.clone());
                Box::new(move || {
                    black_box(strategic::apply(live, patch, schema)).expect("the patch fits");
                })
            }
        }
    }
}

type Run<'c> = Box<dyn FnOnce() + 'c>;

// Not inlined, so that the profiler finds it by its name.
#[inline(never)]
fn measured(run: Run<'_>) {
    run();
}

fn best<'c>(rounds: usize, prepare: impl Fn() -> Run<'c>) -> Duration {
    // The fastest round has the least disturbance from other load.
    let time = |_| {
        let run = prepare();
        let start = Instant::now();
        measured(run);
        start.elapsed()
    };
    (0..rounds).map(time).min().unwrap_or_default()
}

fn schema() -> Arc<Structural> {
    let schema = yaml::decode(SCHEMA.as_bytes(), Limits::SAFE).expect("the schema is YAML");
    Schema::new(&schema)
        .structural(&mut Interner::new())
        .expect("the schema is structural")
}

fn main() {
    let schema = schema();
    let versions = OneVersion(ObjectType::new(schema.clone()));
    let fields = FieldManager::new(&versions, "g/v1", "Thing");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [kind, kilobytes, managers, write] = arguments.as_slice() {
        let kind = Kind::named(kind).expect("a kind of object");
        let number = |text: &String| text.parse::<usize>().expect("a number");
        let (write, _) = WRITES
            .into_iter()
            .find(|(_, name)| name == write)
            .expect("a write");
        let case = Case::new(&fields, kind, number(kilobytes) * 1000, number(managers));
        measured(case.prepare(write, &fields, &schema));
        return;
    }
    for kind in Kind::ALL {
        println!("\n{}: microseconds (nanoseconds per byte)", kind.about());
        print!("{:>8}{:>10}", "bytes", "managers");
        WRITES.iter().for_each(|(_, name)| print!("{name:>20}"));
        println!();
        for bytes in [10_000, 40_000, 160_000, 640_000] {
            for managers in [1, 5, 20] {
                let case = Case::new(&fields, kind, bytes, managers);
                let bytes = case.live.to_json().len();
                print!("{bytes:>8}{managers:>10}");
                // About the same total time for every size.
                let rounds = (10_000_000 / bytes).clamp(5, 1000);
                for (write, _) in WRITES {
                    let time = best(rounds, || case.prepare(write, &fields, &schema));
                    let nanoseconds = time.as_secs_f64() * 1e9;
                    let display = format!("{:.1} ({:.1})", nanoseconds / 1e3, nanoseconds / bytes as f64);
                    print!("{display:>20}");
                }
                println!();
            }
        }
    }
}
