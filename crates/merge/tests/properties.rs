//! Properties that hold for all inputs.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use jiff::Timestamp;
use proptest::prelude::*;
use scantling_merge::apply::{FieldManager, Force, Versions};
use scantling_merge::fields::{Element, FieldPath, Set};
use scantling_merge::json_patch::JsonPatch;
use scantling_merge::typed::{Duplicates, ObjectType};
use scantling_merge::{merge_patch, strategic};
use scantling_schema::document::Schema;
use scantling_schema::structural::{Interner, Structural};
use scantling_value::deadline::testing::at_every_step;
use scantling_value::{Limits, Map, Value, yaml};
use std::sync::{Arc, LazyLock};

static SCHEMA: LazyLock<Arc<Structural>> = LazyLock::new(|| {
    let schema = br"
type: object
properties:
  spec:
    type: object
    properties:
      a: {type: string}
      b: {type: integer}
      set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      keyed:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [k]
        items: {type: object, properties: {k: {type: string}, v: {type: integer}}}
      atomic: {type: array, items: {type: string}}
      map: {type: object, additionalProperties: {type: string}}
      whole: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true}
";
    let schema = yaml::decode(schema, Limits::SAFE).unwrap();
    Schema::new(&schema).structural(&mut Interner::new()).unwrap()
});

struct OneVersion(ObjectType);

impl Versions for OneVersion {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        (api_version == "g/v1").then_some(&self.0)
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}

static VERSIONS: LazyLock<OneVersion> = LazyLock::new(|| OneVersion(ObjectType::new(SCHEMA.clone())));

fn manager() -> FieldManager<'static> {
    FieldManager::new(&*VERSIONS, "g/v1", "Thing")
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3i64..3).prop_map(Value::Int),
        "[a-c~/$]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            any_members(inner).prop_map(Value::Object),
        ]
    })
}

fn any_members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map> {
    let name = prop_oneof![
        "[a-d]",
        Just("$patch".to_owned()),
        Just("$retainKeys".to_owned()),
        Just("$setElementOrder/a".to_owned()),
        Just("name".to_owned())
    ];
    prop::collection::vec((name, value), 0..4).prop_map(Map::from_iter)
}

/// Generates valid objects from small, overlapping sets of values.
fn any_object() -> impl Strategy<Value = Value> {
    let text = || prop::sample::select(vec!["1", "2", "3"]);
    let opt = |s: BoxedStrategy<Value>| prop::option::weighted(0.5, s);
    let texts = || prop::sample::subsequence(vec!["p", "q", "r"], 0..=3).prop_shuffle();
    let list = move || {
        texts()
            .prop_map(|l| Value::from(l.into_iter().map(String::from).collect::<Vec<_>>()))
            .boxed()
    };
    let map = move || {
        prop::collection::btree_map("[i-k]", text(), 0..3)
            .prop_map(|m| Value::Object(m.into_iter().map(|(k, v)| (k, Value::from(v))).collect()))
            .boxed()
    };
    let keyed = texts().prop_flat_map(|keys| {
        let values = prop::collection::vec(prop::option::of(0i64..3), keys.len());
        values.prop_map(move |values| {
            let item = |(k, v): (&&str, Option<i64>)| {
                let mut item = Map::from_iter([("k", Value::from(*k))]);
                if let Some(v) = v {
                    item.insert("v", Value::Int(v));
                }
                Value::Object(item)
            };
            Value::Array(keys.iter().zip(values).map(item).collect())
        })
    });
    let fields = (
        opt(text().prop_map(Value::from).boxed()),
        opt((0i64..3).prop_map(Value::Int).boxed()),
        opt(list()),
        opt(keyed.boxed()),
        opt(list()),
        opt(map()),
        opt(map()),
        opt(any_members(any_value()).prop_map(Value::Object).boxed()),
    );
    fields.prop_map(|(a, b, set, keyed, atomic, map, whole, free)| {
        let named = [
            ("a", a),
            ("b", b),
            ("set", set),
            ("keyed", keyed),
            ("atomic", atomic),
            ("map", map),
            ("whole", whole),
            ("free", free),
        ];
        let spec = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
        Value::Object(Map::from_iter([
            ("apiVersion", Value::from("g/v1")),
            ("kind", "Thing".into()),
            (
                "metadata",
                Value::Object(Map::from_iter([("name", Value::from("x"))])),
            ),
            ("spec", Value::Object(Map::from_iter(spec))),
        ]))
    })
}

fn any_set() -> impl Strategy<Value = Set> {
    let element = prop_oneof![
        "[a-c]".prop_map(|n| Element::field(&n)),
        prop_oneof![
            Just(Value::Int(1)),
            Just(Value::from("x")),
            Just(Value::Bool(true))
        ]
        .prop_map(Element::Value),
        (0i64..2).prop_map(Element::Index),
        "[xy]".prop_map(|n| Element::Key(Box::new([("k".into(), Value::from(n))]))),
    ];
    let path = prop::collection::vec(element, 1..4).prop_map(FieldPath);
    prop::collection::vec(path, 0..8).prop_map(Set::from_iter)
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn owners(object: &Value) -> Option<&Value> {
    object.at(["metadata", "managedFields"])
}

fn without_owners(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object.as_object_mut().unwrap().get_mut("metadata").unwrap();
    metadata.as_object_mut().unwrap().remove("managedFields");
    object
}

proptest! {
    #[test]
    fn field_sets_obey_set_laws(a in any_set(), b in any_set(), c in any_set()) {
        let union = |a: &Set, b: &Set| {
            let mut all = a.clone();
            all.unite(b.clone());
            all
        };
        let common = |a: &Set, b: &Set| a.intersection(b);
        let without = |a: &Set, b: &Set| {
            let mut rest = a.clone();
            rest.subtract(b);
            rest
        };
        prop_assert_eq!(union(&a, &b), union(&b, &a));
        prop_assert_eq!(union(&union(&a, &b), &c), union(&a, &union(&b, &c)));
        prop_assert_eq!(common(&a, &b), common(&b, &a));
        prop_assert_eq!(union(&a, &a), a.clone());
        prop_assert_eq!(common(&a, &a), a.clone());
        prop_assert!(without(&a, &a).is_empty());
        prop_assert_eq!(union(&without(&a, &b), &common(&a, &b)), a.clone());
        prop_assert_eq!(common(&a, &union(&b, &c)), union(&common(&a, &b), &common(&a, &c)));
        prop_assert_eq!(without(&without(&a, &b), &c), without(&a, &union(&b, &c)));
        prop_assert_eq!(union(&a, &b).len() + common(&a, &b).len(), a.len() + b.len());
        prop_assert_eq!(a.intersects(&b), !common(&a, &b).is_empty());
        prop_assert_eq!(a.is_subset(&b), common(&a, &b) == a);
        prop_assert!(a.is_subset(&union(&a, &b)));
        let mut rest = a.clone();
        rest.subtract_below(&b);
        prop_assert_eq!(without(&rest, &a), Set::new());
        for path in a.paths() {
            prop_assert!(a.contains(&path.0));
            let above = (1..=path.0.len()).any(|n| b.contains(path.0.get(..n).unwrap()));
            prop_assert_eq!(rest.contains(&path.0), !above);
        }
        prop_assert_eq!(a.paths().into_iter().collect::<Set>(), a);
    }

    #[test]
    fn field_sets_round_trip(a in any_set()) {
        prop_assert_eq!(Set::from_fields(a.clone().into_fields()).unwrap(), a);
    }

    #[test]
    fn arbitrary_fields_v1_never_panics(v in any_value()) {
        if let Ok(set) = Set::from_fields(v) {
            prop_assert_eq!(Set::from_fields(set.clone().into_fields()), Ok(set));
        }
    }

    #[test]
    fn merge_agrees_with_compare(old in any_object(), new in any_object()) {
        // A value that changes its kind loses its contents; only untyped fields can do that.
        let typed = |mut object: Value| {
            let spec = object.as_object_mut().unwrap().get_mut("spec").unwrap();
            spec.as_object_mut().unwrap().remove("free");
            object
        };
        let (old, new) = (typed(old), typed(new));
        let ty = ObjectType::new(SCHEMA.clone());
        prop_assert!(ty.validate(&old, Duplicates::Refused).is_ok());
        let compare = |old: &Value, new: &Value| ty.compare(old, new).unwrap();
        prop_assert!(compare(&old, &old).is_same());
        prop_assert_eq!(ty.merge(old.clone(), &old), old.clone());
        let merged = ty.merge(old.clone(), &new);
        // Merging removes nothing and is idempotent.
        prop_assert!(compare(&old, &merged).removed.is_empty());
        prop_assert_eq!(ty.merge(merged.clone(), &new), merged.clone());
        let back = compare(&new, &old);
        let forth = compare(&old, &new);
        prop_assert_eq!(&forth.added, &back.removed);
        prop_assert_eq!(&forth.modified, &back.modified);
    }

    #[test]
    fn comparing_finds_what_does_not_fit(valid in any_object(), other in any_object(), a in any_value(), b in any_value()) {
        let ty = ObjectType::new(SCHEMA.clone());
        let mut object = valid.clone();
        let root = object.as_object_mut().unwrap();
        root.insert("spec", other.get("spec").unwrap().clone());
        let spec = root.get_mut("spec").unwrap().as_object_mut().unwrap();
        spec.insert("map", a);
        spec.insert("keyed", b);
        let compared = ty.compare(&valid, &object);
        prop_assert_eq!(compared.err(), ty.validate(&object, Duplicates::Allowed).err());
    }

    #[test]
    fn apply_is_idempotent(live in any_object(), config in any_object()) {
        let fields = manager();
        let live = fields.update(None, live, "creator", time(1)).object;
        let once = fields.apply(Some(&live), &config, "one", Force::Yes, time(2)).unwrap();
        let twice = fields.apply(Some(&once), &config, "one", Force::Yes, time(3)).unwrap();
        prop_assert_eq!(&twice, &once);
        let unforced = fields.apply(Some(&once), &config, "one", Force::No, time(4)).unwrap();
        prop_assert_eq!(&unforced, &once);
    }

    #[test]
    fn applying_the_current_object_changes_only_owners(live in any_object()) {
        let fields = manager();
        let config = live.clone();
        let live = fields.update(None, live, "creator", time(1)).object;
        let applied = fields.apply(Some(&live), &config, "one", Force::No, time(2)).unwrap();
        prop_assert_eq!(without_owners(&applied), without_owners(&live));
    }

    #[test]
    fn a_no_op_update_changes_no_owners(a in any_object(), b in any_object()) {
        let fields = manager();
        let live = fields.update(None, a, "creator", time(1)).object;
        let live = fields.apply(Some(&live), &b, "one", Force::Yes, time(2)).unwrap();
        let again = fields.update(Some(&live), live.clone(), "editor", time(3)).object;
        prop_assert_eq!(owners(&again), owners(&live));
    }

    #[test]
    fn writes_never_panic(objects in prop::collection::vec((any_object(), any_value(), 0..4u8), 1..6)) {
        let fields = manager();
        let mut live: Option<Value> = None;
        for (i, (mut object, odd, how)) in objects.into_iter().enumerate() {
            let manager = if i % 2 == 0 { "one" } else { "two" };
            let spec = object.as_object_mut().unwrap().get_mut("spec").unwrap();
            let result = match how {
                0 => Ok(fields.update(live.as_ref(), object, manager, time(1)).object),
                1 => fields.apply(live.as_ref(), &object, manager, Force::No, time(1)),
                2 => fields.apply(live.as_ref(), &object, manager, Force::Yes, time(1)),
                _ => {
                    *spec = odd;
                    fields.apply(live.as_ref(), &object, manager, Force::Yes, time(1))
                }
            };
            if let Ok(object) = result {
                live = Some(object);
            }
        }
    }

    #[test]
    fn a_diff_as_merge_patch_yields_the_target(
        from in any_members(any_value()),
        to in any_members(any_value()),
    ) {
        // Merge patches cannot produce nulls.
        let clean = |m| merge_patch::apply(Value::Object(Map::new()), Value::Object(m)).unwrap();
        let (Value::Object(from), Value::Object(to)) = (clean(from), clean(to)) else {
            return Ok(());
        };
        let patch = merge_patch::diff(&from, &to);
        let made = merge_patch::apply(Value::Object(from), Value::Object(patch)).unwrap();
        prop_assert_eq!(made, Value::Object(to));
    }

    #[test]
    fn patches_never_panic(document in any_members(any_value()), patch in any_value(), schema in any_members(any_value())) {
        let document = Value::Object(document);
        let _ = merge_patch::apply(document.clone(), patch.clone());
        let _ = strategic::apply(document.clone(), patch.clone(), &SCHEMA);
        let _ = strategic::apply(document.clone(), Value::Object(schema), &SCHEMA);
        let _ = JsonPatch::decode(patch.to_json().as_bytes(), Limits::SAFE).and_then(|p| p.apply(document));
    }

    #[test]
    fn json_patch_operations_never_panic(
        document in any_members(any_value()),
        operations in prop::collection::vec(
            (prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]), "(/[a-d0-2-]){0,3}", "(/[a-d0-2-]){0,3}", any_value()),
            0..6,
        ),
    ) {
        let operation = |(op, path, from, value): (&str, String, String, Value)| {
            Value::Object(Map::from_iter([
                ("op", Value::from(op)),
                ("path", path.into()),
                ("from", from.into()),
                ("value", value),
            ]))
        };
        let patch = Value::Array(operations.into_iter().map(operation).collect());
        let patch = JsonPatch::decode(patch.to_json().as_bytes(), Limits::SAFE).unwrap();
        let _ = patch.apply(Value::Object(document));
    }

    #[test]
    fn merges_and_patches_observe_the_deadline(
        live in any_object(),
        config in any_object(),
        document in any_members(any_value()),
        patch in any_value(),
    ) {
        let fields = manager();
        let live = fields.update(None, live, "creator", time(1)).object;
        at_every_step(|| fields.update(Some(&live), config.clone(), "editor", time(2)).object);
        at_every_step(|| fields.apply(Some(&live), &config, "one", Force::Yes, time(2)).map_err(|e| e.to_string()));
        let document = Value::Object(document);
        at_every_step(|| merge_patch::apply(document.clone(), patch.clone()));
        at_every_step(|| strategic::apply(document.clone(), patch.clone(), &SCHEMA));
    }
}
