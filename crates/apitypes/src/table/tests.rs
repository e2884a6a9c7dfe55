//! Consistency of the table, for every release.

use super::*;
use expect_test::expect;
use std::collections::BTreeSet;

fn releases() -> impl Iterator<Item = Release> {
    (Release::OLDEST.0..=Release::LATEST.0).filter_map(Release::new)
}

#[test]
fn every_release_parses() {
    for release in releases() {
        // Parsing resolves all references.
        let table = TypeTable::parse(&[FILES, EXTENSIONS], release).unwrap();
        assert!(table.definitions.len() > 1000, "{release}");
        for definition in table.definitions() {
            assert_eq!(table.get(definition.id).name, definition.name);
        }
    }
}

#[test]
fn names_and_numbers_are_unique() {
    for release in releases() {
        let table = TypeTable::for_release(release);
        for definition in table.definitions() {
            let Some(s) = definition.as_struct() else { continue };
            let at = format!("{}.{}", table.package(definition).id, definition.name);
            let numbers: Vec<u32> = s.declared.iter().map(|f| f.number).filter(|n| *n > 0).collect();
            let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
            assert_eq!(numbers.len(), distinct.len(), "{at}: {numbers:?}");
            let names: BTreeSet<&str> = s.members.iter().map(|f| f.name).collect();
            assert_eq!(names.len(), s.members.len(), "{at}: {names:?}");
            for field in &s.members {
                assert_eq!(s.field(field.name).map(|f| f.number), Some(field.number), "{at}");
            }
        }
    }
}

#[test]
fn list_map_keys_are_fields_of_the_elements() {
    let table = TypeTable::latest();
    for definition in table.definitions() {
        for field in definition.members() {
            let keys = field.attributes.list().map(|(_, keys)| keys).unwrap_or_default();
            let merged = field.attributes.patch().and_then(|(_, key)| key);
            let GoType::List(element) = table.underlying(&field.ty) else {
                assert!(
                    keys.is_empty() && merged.is_none(),
                    "{}.{}",
                    definition.name,
                    field.name
                );
                continue;
            };
            for key in keys.into_iter().chain(merged) {
                let element = table.struct_of(element);
                let found = element.and_then(|s| s.field(key));
                assert!(found.is_some(), "{}.{}: {key}", definition.name, field.name);
            }
        }
    }
}

#[test]
fn every_resource_has_a_type() {
    for release in releases() {
        let table = TypeTable::for_release(release);
        for resource in table.resources() {
            let (group, version) = (resource.group, resource.version);
            let found = table.kind(group, version, resource.kind());
            assert!(
                found.is_some(),
                "{release}: {group}/{version} {}",
                resource.kind()
            );
            for sub in &resource.subresources {
                let (g, v, kind) = sub.kind();
                let (g, v) = (g.unwrap_or(group), v.unwrap_or(version));
                assert!(table.kind(g, v, kind).is_some(), "{release}: {g}/{v} {kind}");
            }
        }
    }
}

#[test]
fn kinds_of_the_newest_release() {
    let table = TypeTable::latest();
    let stable = |version: &str| !version.contains("alpha") && !version.contains("beta");
    let all = table.resources().len();
    let served = table.resources().iter().filter(|r| stable(r.version)).count();
    let fields: usize = table
        .definitions()
        .iter()
        .map(|d| d.as_struct().map_or(0, |s| s.declared.len()))
        .sum();
    let counts = format!(
        "{} packages, {} types, {fields} fields, {all} resources, {served} of them stable",
        table.packages().len(),
        table.definitions().len(),
    );
    expect!["71 packages, 1602 types, 4873 fields, 100 resources, 72 of them stable"].assert_eq(&counts);
}

#[test]
fn fields_are_added_and_removed_by_release() {
    let has = |minor, kind: &str, field: &str| {
        let table = TypeTable::for_release(Release::new(minor).unwrap());
        table
            .find("core/v1", kind)
            .and_then(TypeDef::as_struct)
            .is_some_and(|s| s.field(field).is_some())
    };
    assert!(!has(33, "PodSpec", "hostnameOverride") && has(34, "PodSpec", "hostnameOverride"));
    assert!(has(33, "PodSpec", "containers"));
}

#[test]
fn types_have_their_go_names() {
    let table = TypeTable::latest();
    let name = |package: &str, ty: &str, field: &str| {
        let s = table.find(package, ty).and_then(TypeDef::as_struct).unwrap();
        table.go_type(&s.field(field).unwrap().ty)
    };
    assert_eq!(name("core/v1", "PodSpec", "containers"), "[]v1.Container");
    assert_eq!(
        name("core/v1", "ResourceRequirements", "limits"),
        "v1.ResourceList"
    );
    assert_eq!(name("core/v1", "Secret", "data"), "map[string][]uint8");
    assert_eq!(name("meta/v1", "ObjectMeta", "uid"), "types.UID");
    assert_eq!(name("meta/v1", "Preconditions", "uid"), "types.UID");
}
