//! JSON patch (RFC 6902), with kube-apiserver's deviations from the standard.
//!
//! Existing crates implement the standard, which kube-apiserver does not. There, `replace` of a missing
//! member adds it, and indexes may be negative. `add` cannot replace the whole document, `test` compares
//! texts, and copies are limited in size. Unknown operations fail only when they are reached. The error
//! messages are part of the API. Where kube-apiserver crashes (a `test` on a null in a list), this implementation returns
//! an error.

mod text;
mod tree;

pub use text::patched_text;

use text::TextPatcher;
use tree::{LazyTree, Tree, TreeKind};

use scantling_value::{DecodeError, Limits, Map, Str, Value, deadline, go, json};
use std::fmt;

/// The maximum number of operations in a patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// The error of decoding or applying a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonPatchError {
    /// The document is not a patch (HTTP 400).
    Malformed(String),
    /// The patch has too many operations (HTTP 413).
    TooLarge(String),
    /// An operation fails (HTTP 422).
    Failed(String),
}

impl fmt::Display for JsonPatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonPatchError::Malformed(text)
            | JsonPatchError::TooLarge(text)
            | JsonPatchError::Failed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for JsonPatchError {}

/// The maximum size of text that all `copy` operations of a patch may add.
pub const MAX_COPIED: usize = 3 << 20;

/// A decoded patch.
#[derive(Clone, Debug)]
pub struct JsonPatch {
    operations: Vec<Map>,
    /// The text of the patch, if it contains `test` operations, which compare texts.
    text: Option<String>,
}

impl JsonPatch {
    /// Decodes a patch.
    pub fn decode(text: &[u8], limits: Limits) -> Result<Self, JsonPatchError> {
        let decoded = json::decode(text, limits);
        let decoded = decoded.map_err(|e: DecodeError| JsonPatchError::Malformed(e.to_string()))?;
        JsonPatch::from_value(decoded, text)
    }

    /// Creates a patch from a document and its text.
    pub fn from_value(value: Value, text: &[u8]) -> Result<Self, JsonPatchError> {
        let malformed = |what: &str, ty: &str| {
            let text = format!("json: cannot unmarshal {what} into Go value of type jsonpatch.{ty}");
            Err(JsonPatchError::Malformed(text))
        };
        // Go decodes null as an empty patch, and below as an operation without members.
        let operations = match value {
            Value::Array(operations) => operations,
            Value::Null => Vec::new(),
            other => return malformed(go::json_kind(&other), "Patch"),
        };
        let mut out = Vec::with_capacity(operations.len());
        for operation in operations {
            match operation {
                Value::Object(map) => out.push(map),
                Value::Null => out.push(Map::new()),
                other => return malformed(go::json_kind(&other), "Operation"),
            }
        }
        if out.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooLarge(format!(
                "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
                out.len()
            )));
        }
        // Only `test` needs the text.
        let tests = |operation: &Map| operation.get("op").and_then(Value::as_str) == Some("test");
        Ok(JsonPatch {
            text: (out.iter().any(tests)).then(|| String::from_utf8_lossy(text).into_owned()),
            operations: out,
        })
    }

    /// Applies the operations in order.
    pub fn apply(&self, document: Value) -> Result<Value, JsonPatchError> {
        /// Patches with at most this many operations change the document in place.
        const FEW: usize = 16;
        // A `test` compares texts, so the document is also patched as text, one operation at a time.
        let mut texts = self
            .text
            .as_ref()
            .map(|text| TextPatcher::new(&document.to_json(), text));
        if self.operations.len() <= FEW {
            self.apply_to(document, texts.as_mut())
        } else {
            self.apply_to(LazyTree::from(document), texts.as_mut())
        }
    }

    fn apply_to<T: Tree>(
        &self,
        mut document: T,
        mut texts: Option<&mut TextPatcher>,
    ) -> Result<Value, JsonPatchError> {
        let mut copied = 0;
        for operation in &self.operations {
            deadline::tick();
            // An operation that cannot be executed on the text counts as successful here; `apply` reports its
            // error.
            let test_passed = texts.as_deref_mut().and_then(TextPatcher::step).unwrap_or(true);
            execute(operation, &mut document, test_passed, &mut copied).map_err(JsonPatchError::Failed)?;
        }
        Ok(document.into_value())
    }
}

const MISSING: &str = "missing value";
const TEST_FAILED: &str = "test failed";

/// Executes an operation. `test_passed` is the result of a `test`, which is evaluated before; `copied` accumulates
/// the size of copies.
fn execute<T: Tree>(
    operation: &Map,
    document: &mut T,
    test_passed: bool,
    copied: &mut usize,
) -> Result<(), String> {
    // A null member counts as absent.
    let text = |name: &str| match operation.get(name) {
        None | Some(Value::Null) => Err(MISSING.to_owned()),
        Some(Value::String(s)) => Ok(s.as_str()),
        Some(other) => {
            let kind = go::json_kind(other);
            Err(format!(
                "json: cannot unmarshal {kind} into Go value of type string"
            ))
        }
    };
    match text("op").unwrap_or("unknown") {
        "add" => {
            let path = text("path").map_err(|_| format!("add operation failed to decode path: {MISSING}"))?;
            let (container, key) = find(document, path).ok_or_else(|| {
                format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}")
            })?;
            add(container, &key, value_of(operation).into())
                .map_err(|e| format!("error in add for path: '{path}': {e}"))
        }
        "remove" => {
            let path =
                text("path").map_err(|_| format!("remove operation failed to decode path: {MISSING}"))?;
            let (container, key) = find(document, path).ok_or_else(|| {
                format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}")
            })?;
            let removed = remove(container, &key);
            removed.map_err(|e| format!("error in remove for path: '{path}': {e}"))?;
            Ok(())
        }
        "replace" => replace(operation, document, text("path")),
        "move" => {
            let from =
                text("from").map_err(|e| missing("move operation failed to decode from", "from", &e))?;
            let (container, key) = find(document, from).ok_or_else(|| {
                format!("move operation does not apply: doc is missing from path: {from}: {MISSING}")
            })?;
            // json-patch names only the last segment here, but the whole path for the destination.
            let failed = |e: String| format!("error in move for path: '{key}': {e}");
            get(container, &key).map_err(failed)?;
            let value = remove(container, &key).map_err(failed)?;
            let path =
                text("path").map_err(|e| missing("move operation failed to decode path", "path", &e))?;
            let (container, key) = find(document, path).ok_or_else(|| {
                format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}")
            })?;
            add(container, &key, value).map_err(|e| format!("error in move for path: '{path}': {e}"))
        }
        "copy" => {
            let from =
                text("from").map_err(|e| missing("copy operation failed to decode from", "from", &e))?;
            let (container, key) = find(document, from).ok_or_else(|| {
                format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}")
            })?;
            let found = get(container, &key);
            let value = found.map_err(|e| format!("error in copy for from: '{from}': {e}"))?;
            let value = value.map_or(Value::Null, |value| value.clone().into_value());
            let path =
                text("path").map_err(|_| format!("copy operation failed to decode path: {MISSING}"))?;
            let (container, key) = find(document, path).ok_or_else(|| {
                format!("copy operation does not apply: doc is missing destination path: {path}: {MISSING}")
            })?;
            // json-patch has no node for a null, so copying one adds nothing to the accumulated size.
            if !value.is_null() {
                *copied += value.to_json().len();
            }
            if *copied > MAX_COPIED {
                return Err(format!(
                    "Unable to complete the copy, the accumulated size increase of copy is {copied}, \
                     exceeding the limit {MAX_COPIED}"
                ));
            }
            add(container, &key, value.into())
                .map_err(|e| format!("error while adding value during copy: {e}"))
        }
        "test" => test(document, text("path"), test_passed),
        other => Err(format!("Unexpected kind: {other}")),
    }
}

fn missing(what: &str, field: &str, error: &str) -> String {
    match error {
        MISSING if field == "from" => format!("{what}: operation, missing from field: {MISSING}"),
        MISSING => format!("{what}: operation missing path field: {MISSING}"),
        other => format!("{what}: {other}"),
    }
}

fn value_of(operation: &Map) -> Value {
    operation.get("value").cloned().unwrap_or(Value::Null)
}

fn replace<T: Tree>(operation: &Map, document: &mut T, path: Result<&str, String>) -> Result<(), String> {
    let path = path.map_err(|e| missing("replace operation failed to decode path", "path", &e))?;
    // json-patch formats a nil error here, hence the `%!w(<nil>)`.
    if path.is_empty() {
        return match operation.get("value") {
            Some(value @ (Value::Object(_) | Value::Array(_))) => {
                *document = value.clone().into();
                Ok(())
            }
            _ => Err("replace operation value must be object or array: %!w(<nil>)".into()),
        };
    }
    let (container, key) = find(document, path)
        .ok_or_else(|| format!("replace operation does not apply: doc is missing path: {path}: {MISSING}"))?;
    // Only lists can fail: json-patch adds a missing member of an object.
    if get(container, &key).is_err() {
        return Err(format!(
            "replace operation does not apply: doc is missing key: {path}: {MISSING}"
        ));
    }
    let value = T::from(value_of(operation));
    match container.kind() {
        TreeKind::Object => container.set_member(key, value),
        TreeKind::List(length) => {
            let index = index(&key, length, length)?;
            if let Some(slot) = container.element(index) {
                *slot = value;
            }
        }
        // `find` returns no scalars.
        TreeKind::Scalar => {}
    }
    Ok(())
}

fn test<T: Tree>(document: &mut T, path: Result<&str, String>, test_passed: bool) -> Result<(), String> {
    let path = path.map_err(|e| missing("test operation failed to decode path", "path", &e))?;
    if !path.is_empty() {
        let (container, key) = find(document, path)
            .ok_or_else(|| format!("test operation does not apply: is missing path: {path}: {MISSING}"))?;
        get(container, &key).map_err(|e| format!("error in test for path: '{path}': {e}"))?;
    }
    if test_passed {
        Ok(())
    } else {
        Err(format!("testing value {path} failed: {TEST_FAILED}"))
    }
}

/// Finds the container of the value at a path, and the last segment.
fn find<'d, T: Tree>(document: &'d mut T, path: &str) -> Option<(&'d mut T, Str)> {
    let (parents, last) = path.rsplit_once('/')?;
    let mut container = document;
    // The part before the leading slash names nothing.
    for part in parents.split('/').skip(1) {
        let key = unescape(part);
        container = match container.kind() {
            TreeKind::Object => container.member(&key)?,
            TreeKind::List(length) => container.element(index(&key, length, length).ok()?)?,
            TreeKind::Scalar => return None,
        };
    }
    (!matches!(container.kind(), TreeKind::Scalar)).then(|| (container, unescape(last)))
}

fn unescape(part: &str) -> Str {
    if part.contains('~') {
        part.replace("~1", "/").replace("~0", "~").into()
    } else {
        part.into()
    }
}

/// Parses an index; a negative one counts from the end.
fn index(key: &str, length: usize, limit: usize) -> Result<usize, String> {
    let number: i64 = go::parse_integer("Atoi", key)?;
    let invalid = || format!("Unable to access invalid index: {number}: invalid index referenced");
    let position = if number < 0 {
        let back = usize::try_from(number.unsigned_abs()).map_err(|_| invalid())?;
        length.checked_sub(back).ok_or_else(invalid)?
    } else {
        usize::try_from(number).map_err(|_| invalid())?
    };
    if position < limit {
        Ok(position)
    } else {
        Err(invalid())
    }
}

fn get<'d, T: Tree>(container: &'d mut T, key: &str) -> Result<Option<&'d mut T>, String> {
    match container.kind() {
        TreeKind::Object => Ok(container.member(key)),
        TreeKind::List(length) => index(key, length, length).map(|i| container.element(i)),
        TreeKind::Scalar => Ok(None),
    }
}

fn add<T: Tree>(container: &mut T, key: &str, value: T) -> Result<(), String> {
    match container.kind() {
        TreeKind::Object => container.set_member(key.into(), value),
        TreeKind::List(length) if key == "-" => container.insert_element(length, value),
        TreeKind::List(length) => {
            let after = length + 1;
            // json-patch adds a prefix to parse errors only.
            let position = index(key, after, after).map_err(|e| match e.strip_prefix("strconv") {
                Some(_) => format!("value was not a proper array index: '{key}': {e}"),
                None => e,
            })?;
            container.insert_element(position, value);
        }
        TreeKind::Scalar => {}
    }
    Ok(())
}

fn remove<T: Tree>(container: &mut T, key: &str) -> Result<T, String> {
    match container.kind() {
        TreeKind::Object => container
            .remove_member(key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: {MISSING}")),
        TreeKind::List(length) => {
            let position = index(key, length, length)?;
            container
                .remove_element(position)
                .ok_or_else(|| format!("Unable to access invalid index: {key}: {MISSING}"))
        }
        TreeKind::Scalar => Ok(T::default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            (-3i64..3).prop_map(Value::Int),
            "[a-c]".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let members = prop::collection::vec(("[a-d]", inner.clone()), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::Array),
                members.prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    prop_compose! {
        fn any_operation()(
            op in prop::sample::select(vec!["add", "add", "remove", "replace", "move", "copy", "test"]),
            path in "(/[a-d0-2-]){1,3}",
            from in "(/[a-d0-2-]){1,3}",
            value in any_value(),
        ) -> Value {
            let members = [
                ("op", Value::from(op)),
                ("path", path.into()),
                ("from", from.into()),
                ("value", value),
            ];
            Value::Object(members.into_iter().collect())
        }
    }

    fn patch(operations: Vec<Value>) -> JsonPatch {
        let text = Value::Array(operations).to_json();
        JsonPatch::decode(text.as_bytes(), Limits::SAFE).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// Failing operations are removed, so that more than a prefix is compared.
        #[test]
        fn lazy_and_eager_patching_agree(
            document in prop::collection::vec(any_value(), 0..6),
            operations in prop::collection::vec(any_operation(), 0..40),
        ) {
            let (mut plain, mut opened) = (Value::Array(document.clone()), LazyTree::from(Value::Array(document)));
            let (mut copied, mut copied_too) = (0, 0);
            for operation in patch(operations).operations {
                let (mut tried, mut tried_too) = (plain.clone(), opened.clone());
                let done = execute(&operation, &mut tried, true, &mut copied);
                prop_assert_eq!(&done, &execute(&operation, &mut tried_too, true, &mut copied_too));
                if done.is_ok() {
                    (plain, opened) = (tried, tried_too);
                }
            }
            prop_assert_eq!(copied, copied_too);
            prop_assert_eq!(plain, opened.into_value());
        }

        #[test]
        fn patches_observe_the_deadline(
            document in any_value(),
            operations in prop::collection::vec(any_operation(), 0..30),
        ) {
            let patch = patch(operations);
            deadline::testing::at_every_step(|| patch.apply(document.clone()));
        }
    }

    #[test]
    fn list_operations_are_not_quadratic() {
        const LENGTH: usize = 200_000;
        let list = Value::Array(vec![Value::Int(0); LENGTH]);
        let document = Value::Object(Map::from_iter([("l", list)]));
        let operation = |i: usize| {
            let (op, at) = if i % 5 == 4 {
                ("remove", 3)
            } else {
                ("add", i * 37 % LENGTH)
            };
            let members = [
                ("op", Value::from(op)),
                ("path", format!("/l/{at}").into()),
                ("value", Value::Int(1)),
            ];
            Value::Object(members.into_iter().collect())
        };
        let patch = patch((0..MAX_OPERATIONS).map(operation).collect());
        let patched = patch.apply(document).unwrap();
        let list = patched.get("l").and_then(Value::as_array).unwrap();
        assert_eq!(list.len(), LENGTH + MAX_OPERATIONS * 3 / 5);
    }
}
