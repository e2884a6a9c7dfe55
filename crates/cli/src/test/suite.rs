//! Test files: cases with their expectations.

use scantling_value::{Map, Path, PathBuf, Value};

/// A test file.
#[derive(Debug)]
pub(crate) struct Suite {
    /// The name of the suite; may be empty.
    pub(crate) name: String,
    /// The CRDs under test, as paths relative to the file.
    pub(crate) crds: Vec<String>,
    pub(crate) cases: Vec<TestCase>,
}

/// A case.
#[derive(Debug)]
pub(crate) struct TestCase {
    pub(crate) name: String,
    /// The path of the case in its file.
    pub(crate) at: PathBuf,
    /// A JSON patch of the CRD under which the object before the update was stored.
    pub(crate) initial_crd_patch: Option<Value>,
    pub(crate) write: CaseWrite,
    pub(crate) expect: Expectation,
}

/// The write that a case makes.
#[derive(Debug)]
pub(crate) enum CaseWrite {
    /// A create of this object.
    Create(Value),
    /// An update of the first object.
    Update(Value, NewState),
}

/// The requested state of an update.
#[derive(Debug)]
pub(crate) enum NewState {
    /// This object. Its status is written afterwards, if it has one and the CRD has the subresource.
    Object(Value),
    /// This status.
    Status(Value),
    /// This number of replicas, through the scale subresource.
    Scale(i64),
    /// The old object with a merge patch.
    MergePatch(Value),
    /// The old object with a JSON patch.
    JsonPatch(Value),
}

/// The expectation of a case.
#[derive(Debug, Default)]
pub(crate) struct Expectation {
    pub(crate) verdict: Verdict,
    /// The warnings; `None` accepts any.
    pub(crate) warnings: Option<Vec<String>>,
    /// The object as it is stored. Of its metadata, only the given fields are compared.
    pub(crate) stored: Option<Value>,
    /// The maximum cost of all rules together.
    pub(crate) max_cost: Option<u64>,
}

/// The expected verdict of a case.
#[derive(Debug, Default)]
pub(crate) enum Verdict {
    /// The write succeeds.
    #[default]
    Accepted,
    /// The write fails with exactly these errors, in any order; with any errors if none are given.
    Rejected(Vec<ErrorPattern>),
    /// The write fails, and the message of the `Status` contains this text.
    RejectedWith(String),
    /// The write succeeds, and the following status write fails with this text.
    StatusRejectedWith(String),
}

/// A pattern of an error.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ErrorPattern {
    pub(crate) field: Option<String>,
    pub(crate) reason: Option<String>,
    /// The whole message.
    pub(crate) message: Option<String>,
    /// A part of `field: message`.
    pub(crate) contains: Option<String>,
}

/// An error in a test file.
#[derive(Debug)]
pub(crate) struct SuiteError {
    pub(crate) at: PathBuf,
    pub(crate) message: String,
}

/// The result of reading a part of a test file.
type Read<T> = Result<T, Box<SuiteError>>;

impl Suite {
    /// Reads a test file. Unknown fields are errors: a misspelt expectation must not pass.
    pub(crate) fn read(document: &Value) -> Read<Suite> {
        let at = Path::ROOT;
        let members = object(document, &at)?;
        known(members, &at, &["name", "crds", "cases"])?;
        let mut crds = Vec::new();
        for (i, path) in list(members, "crds", &at)?.iter().enumerate() {
            let list_at = at.field("crds");
            crds.push(string(path, &list_at.index(i))?);
        }
        let cases_at = at.field("cases");
        let mut cases = Vec::new();
        for (i, case) in list(members, "cases", &at)?.iter().enumerate() {
            cases.push(read_case(case, &cases_at.index(i))?);
        }
        if cases.is_empty() {
            return Err(error(&at, "the file has no `cases`"));
        }
        Ok(Suite {
            name: members
                .get("name")
                .map_or(Ok(String::new()), |n| string(n, &at.field("name")))?,
            crds,
            cases,
        })
    }
}

/// The members of a case that describe the write to an old object.
const CHANGES: [&str; 5] = ["update", "status", "scale", "mergePatch", "jsonPatch"];

fn read_case(case: &Value, at: &Path<'_>) -> Read<TestCase> {
    let members = object(case, at)?;
    let mut fields = vec!["name", "create", "old", "initialCrdPatch", "expect"];
    fields.extend(CHANGES);
    known(members, at, &fields)?;
    let name = match members.get("name") {
        Some(name) => string(name, &at.field("name"))?,
        None => return Err(error(at, "the case has no `name`")),
    };
    let write = match (members.get("create"), members.get("old")) {
        (Some(object), None) => CaseWrite::Create(object.clone()),
        (None, Some(old)) => CaseWrite::Update(old.clone(), read_change(members, at)?),
        (Some(_), Some(_)) => return Err(error(at, "a case has either `create` or `old`")),
        (None, None) => return Err(error(at, "the case has neither `create` nor `old`")),
    };
    let expect = match members.get("expect") {
        Some(expect) => read_expectation(expect, &at.field("expect"))?,
        None => Expectation::default(),
    };
    Ok(TestCase {
        name,
        at: at.into(),
        initial_crd_patch: members.get("initialCrdPatch").cloned(),
        write,
        expect,
    })
}

fn read_change(members: &Map, at: &Path<'_>) -> Read<NewState> {
    let changes: Vec<&str> = CHANGES
        .into_iter()
        .filter(|name| members.contains_key(name))
        .collect();
    let [name] = changes.as_slice() else {
        let names = CHANGES.join("`, `");
        return Err(error(
            at,
            format!("a case with `old` has exactly one of `{names}`"),
        ));
    };
    let value = members.get(name).cloned().unwrap_or_default();
    let value_at = at.field(name);
    Ok(match *name {
        "update" => NewState::Object(value),
        "status" => NewState::Status(value),
        "mergePatch" => NewState::MergePatch(value),
        "jsonPatch" => NewState::JsonPatch(value),
        _ => {
            let replicas = object(&value, &value_at)?.get("replicas").and_then(Value::as_int);
            let replicas = replicas.ok_or_else(|| error(&value_at, "`scale` is written as {replicas: 3}"))?;
            NewState::Scale(replicas)
        }
    })
}

fn read_expectation(expect: &Value, at: &Path<'_>) -> Read<Expectation> {
    match expect.as_str() {
        Some("accepted") => return Ok(Expectation::default()),
        Some("rejected") => {
            return Ok(Expectation {
                verdict: Verdict::Rejected(Vec::new()),
                ..Expectation::default()
            });
        }
        // Any other word would be read as an expectation that is always met.
        Some(_) => return Err(error(at, "`expect` is `accepted`, `rejected` or a mapping")),
        None => {}
    }
    let members = object(expect, at)?;
    known(members, at, &["errors", "warnings", "stored", "cost"])?;
    let verdict = match members.get("errors") {
        None => Verdict::Accepted,
        Some(_) => {
            let list_at = at.field("errors");
            let errors = list(members, "errors", at)?.iter().enumerate();
            let errors = errors.map(|(i, pattern)| read_pattern(pattern, &list_at.index(i)));
            Verdict::Rejected(errors.collect::<Result<_, _>>()?)
        }
    };
    let warnings = match members.get("warnings") {
        None => None,
        Some(_) => {
            let list_at = at.field("warnings");
            let texts = list(members, "warnings", at)?.iter().enumerate();
            Some(
                texts
                    .map(|(i, text)| string(text, &list_at.index(i)))
                    .collect::<Result<_, _>>()?,
            )
        }
    };
    let max_cost = match members.get("cost") {
        None => None,
        Some(cost) => {
            let cost_at = at.field("cost");
            let members = object(cost, &cost_at)?;
            known(members, &cost_at, &["max"])?;
            let max = members
                .get("max")
                .and_then(Value::as_int)
                .and_then(|max| u64::try_from(max).ok());
            Some(max.ok_or_else(|| error(&cost_at, "`cost` is written as {max: 1000}"))?)
        }
    };
    Ok(Expectation {
        verdict,
        warnings,
        stored: members.get("stored").cloned(),
        max_cost,
    })
}

fn read_pattern(pattern: &Value, at: &Path<'_>) -> Read<ErrorPattern> {
    if let Some(text) = pattern.as_str() {
        return Ok(ErrorPattern {
            contains: Some(text.to_owned()),
            ..ErrorPattern::default()
        });
    }
    let members = object(pattern, at)?;
    known(members, at, &["field", "reason", "message", "contains"])?;
    let text = |name: &str| match members.get(name) {
        Some(value) => string(value, &at.field(name)).map(Some),
        None => Ok(None),
    };
    Ok(ErrorPattern {
        field: text("field")?,
        reason: text("reason")?,
        message: text("message")?,
        contains: text("contains")?,
    })
}

fn error(at: &Path<'_>, message: impl Into<String>) -> Box<SuiteError> {
    Box::new(SuiteError {
        at: at.into(),
        message: message.into(),
    })
}

fn object<'v>(value: &'v Value, at: &Path<'_>) -> Read<&'v Map> {
    value
        .as_object()
        .ok_or_else(|| error(at, "a mapping is expected here"))
}

fn string(value: &Value, at: &Path<'_>) -> Read<String> {
    let text = value
        .as_str()
        .ok_or_else(|| error(at, "a string is expected here"))?;
    Ok(text.to_owned())
}

fn list<'v>(members: &'v Map, name: &str, at: &Path<'_>) -> Read<&'v [Value]> {
    match members.get(name) {
        // A key without a value is null in YAML.
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(error(&at.field(name), "a list is expected here")),
    }
}

fn known(members: &Map, at: &Path<'_>, names: &[&str]) -> Result<(), Box<SuiteError>> {
    match members.keys().find(|key| !names.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let near = names
                .iter()
                .map(|name| (strsim::damerau_levenshtein(name, key), *name))
                .min()
                .filter(|(distance, _)| *distance <= 2);
            let help = near.map_or_else(
                || format!("known fields are {}", names.join(", ")),
                |(_, name)| format!("did you mean `{name}`?"),
            );
            Err(error(&at.field(key), format!("unknown field `{key}`; {help}")))
        }
    }
}
