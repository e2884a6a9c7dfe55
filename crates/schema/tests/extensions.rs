//! The extensions that no other server has: what their definitions may say, and how they are published.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

use expect_test::{Expect, expect};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{Accepted, ApiVersion, Definition, Gates, ValidationContext};
use scantling_schema::document::Schema;
use scantling_schema::immutable;
use scantling_schema::plan::PlanCompiler;
use scantling_schema::publish::{self, OpenApiVersion};
use scantling_schema::rules::Environments;
use scantling_schema::structural::Interner;
use scantling_value::{Limits, Value, json, yaml};

const ON: Gates = Gates {
    ratcheting: true,
    expressions: true,
    field_validation: true,
    immutability: true,
    unions: true,
    rules_on_create: true,
    cbor: false,
};

fn document(schema: &str, api: &str) -> Value {
    let schema = yaml::decode(schema.as_bytes(), Limits::SAFE).unwrap().to_json();
    let text = format!(
        r#"{{"apiVersion": "apiextensions.k8s.io/{api}", "kind": "CustomResourceDefinition",
            "metadata": {{"name": "widgets.example.com"}},
            "spec": {{"group": "example.com", "scope": "Namespaced", "preserveUnknownFields": false,
                "names": {{"plural": "widgets", "kind": "Widget"}},
                "versions": [{{"name": "v1", "served": true, "storage": true,
                    "schema": {{"openAPIV3Schema": {schema}}}}}]}}}}"#
    );
    json::decode(text.as_bytes(), Limits::SAFE).unwrap()
}

fn accept(schema: &str, api: ApiVersion, gates: Gates) -> Result<(Accepted, Vec<String>), String> {
    let environments = Environments::for_version(KubernetesVersion::LATEST);
    let received =
        Definition::decode(document(schema, api.as_str()), api, gates).map_err(|e| e.to_string())?;
    let unknown = received.findings.iter().map(ToString::to_string).collect();
    let setting = ValidationContext {
        api,
        gates,
        environments: &environments,
    };
    let errors = match Accepted::create(received.definition, &setting) {
        Ok(a) => return Ok((a.accepted, unknown)),
        Err(errors) => errors,
    };
    let mut errors: Vec<String> = errors
        .iter()
        .map(|e| e.to_string().replace("spec.validation.openAPIV3Schema.", ""))
        .collect();
    errors.sort();
    Err(errors.join("\n"))
}

#[track_caller]
fn refused(schema: &str, expect: Expect) {
    expect.assert_eq(&accept(schema, ApiVersion::V1, ON).map_or_else(|e| e, |_| "accepted".into()));
}

#[track_caller]
fn accepted(schema: &str) {
    if let Err(e) = accept(schema, ApiVersion::V1, ON) {
        panic!("{e}");
    }
}

/// The schema below `spec`, published.
#[track_caller]
fn published(schema: &str, format: OpenApiVersion, expect: Expect) {
    let (definition, _) = accept(schema, ApiVersion::V1, ON).unwrap();
    let version = definition.spec.versions().first().unwrap();
    let published = publish::object_schema(&definition, version, format);
    expect.assert_eq(&published.at(["properties", "spec"]).unwrap().to_json());
}

/// A root schema with the given properties.
fn root(properties: &str) -> String {
    format!("{{type: object, properties: {properties}}}")
}

#[test]
fn immutable_values_maps_and_lists() {
    accepted(&root(
        "{foo: {type: array, items: {type: string, x-kubernetes-immutable: true}}}",
    ));
    accepted(&root("{foo: {type: object, x-kubernetes-immutable: true}}"));
    accepted(&root(
        "{m: {type: object, additionalProperties: {type: string, x-kubernetes-immutable: true}}}",
    ));
    accepted(&root(
        "{m: {type: object, x-kubernetes-immutable-keys: true, additionalProperties: {type: string}}}",
    ));
    accepted(&root(
        "{l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], \
         items: {type: object, x-kubernetes-immutable: true, required: [name], properties: {name: {type: string}}}}}",
    ));
    accepted(&root(
        "{s: {type: array, x-kubernetes-list-type: set, x-kubernetes-immutable: true, items: {type: string}}}",
    ));
    for keyword in ["x-kubernetes-addition-only", "x-kubernetes-deletion-only"] {
        accepted(&root(&format!(
            "{{m: {{type: object, {keyword}: true, additionalProperties: {{type: string}}}}}}"
        )));
        accepted(&root(&format!(
            "{{s: {{type: array, x-kubernetes-list-type: set, {keyword}: true, items: {{type: string}}}}}}"
        )));
    }
}

#[test]
fn the_root_and_the_metadata_are_not_immutable() {
    refused(
        "{type: object, x-kubernetes-immutable: true}",
        expect!["x-kubernetes-immutable: Forbidden: must not be used at the root"],
    );
    refused(
        &root("{metadata: {type: object, properties: {name: {type: string, x-kubernetes-immutable: true}}}}"),
        expect![
            "properties[metadata].properties[name].x-kubernetes-immutable: Forbidden: must not be used inside of metadata"
        ],
    );
}

#[test]
fn immutable_must_be_true() {
    refused(
        &root("{a: {type: string, x-kubernetes-immutable: false}}"),
        expect!["properties[a].x-kubernetes-immutable: Invalid value: false: must be true or undefined"],
    );
    refused(
        &root("{a: {type: string, x-kubernetes-immutable: yes please}}"),
        expect![
            "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties.x-kubernetes-immutable of type bool"
        ],
    );
}

#[test]
fn extension_keywords_are_mutually_exclusive() {
    refused(
        &root(
            "{m: {type: object, x-kubernetes-immutable: true, x-kubernetes-immutable-keys: true, \
             x-kubernetes-addition-only: true, additionalProperties: {type: string}}}",
        ),
        expect![[r#"
            properties[m].x-kubernetes-addition-only: Forbidden: x-kubernetes-immutable and x-kubernetes-addition-only are mutually exclusive
            properties[m].x-kubernetes-immutable-keys: Forbidden: x-kubernetes-immutable and x-kubernetes-immutable-keys are mutually exclusive"#]],
    );
}

#[test]
fn immutable_keys_need_a_map_or_keyed_list() {
    refused(
        &root(
            "{o: {type: object, x-kubernetes-immutable-keys: true, properties: {a: {type: string}}}, \
             s: {type: string, x-kubernetes-immutable-keys: true}, \
             l: {type: array, x-kubernetes-immutable-keys: true, items: {type: string}}, \
             m: {type: object, x-kubernetes-map-type: atomic, x-kubernetes-immutable-keys: true, \
               additionalProperties: {type: string}}, \
             t: {type: array, x-kubernetes-list-type: set, x-kubernetes-immutable-keys: true, items: {type: string}}, \
             u: {type: array, x-kubernetes-list-type: atomic, x-kubernetes-addition-only: true, items: {type: string}}}",
        ),
        expect![[r#"
            properties[l].x-kubernetes-immutable-keys: Forbidden: must only be used on objects with additionalProperties that are not atomic, and on lists with x-kubernetes-list-type map
            properties[m].x-kubernetes-immutable-keys: Forbidden: must only be used on objects with additionalProperties that are not atomic, and on lists with x-kubernetes-list-type map
            properties[o].x-kubernetes-immutable-keys: Forbidden: must only be used on objects with additionalProperties that are not atomic, and on lists with x-kubernetes-list-type map
            properties[s].x-kubernetes-immutable-keys: Forbidden: must only be used on objects with additionalProperties that are not atomic, and on lists with x-kubernetes-list-type map
            properties[t].x-kubernetes-immutable-keys: Forbidden: must not be used with x-kubernetes-list-type set, whose elements are its keys: use x-kubernetes-immutable
            properties[u].x-kubernetes-addition-only: Forbidden: must only be used on objects with additionalProperties that are not atomic, and on lists with x-kubernetes-list-type map or set"#]],
    );
}

#[test]
fn list_map_keys_are_immutable() {
    let list = |name: &str| {
        root(&format!(
            "{{l: {{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], \
             x-kubernetes-immutable-keys: true, items: {{type: object, required: [name], \
             properties: {{name: {name}, x: {{type: string}}}}}}}}}}"
        ))
    };
    accepted(&list("{type: string, x-kubernetes-immutable: true}"));
    refused(
        &list("{type: string}"),
        expect![
            "properties[l].items.properties[name].x-kubernetes-immutable: Required value: must be true because this property is in x-kubernetes-list-map-keys of a list with x-kubernetes-immutable-keys"
        ],
    );
}

#[test]
fn junctors_must_not_declare_extensions() {
    refused(
        &root(
            "{a: {type: object, properties: {x: {type: string}}, allOf: [{properties: {x: {x-kubernetes-immutable: true}}}, \
             {x-kubernetes-unions: [{fields: {x: ''}}]}]}}",
        ),
        expect![[r#"
            properties[a].allOf[0].properties[x].x-kubernetes-immutable: Forbidden: must be undefined to be structural
            properties[a].allOf[1].type: Required value: must be object if x-kubernetes-unions is specified
            properties[a].allOf[1].x-kubernetes-unions: Forbidden: must be empty to be structural
            properties[a].allOf[1].x-kubernetes-unions[0].fields[x]: Invalid value: "x": must be the name of a property"#]],
    );
}

#[test]
fn v1beta1_has_no_extensions() {
    let schema = root("{a: {type: string, x-kubernetes-immutable: true}}");
    let answer = accept(&schema, ApiVersion::V1Beta1, ON).map(|_| "accepted");
    let answer = answer.unwrap_err();
    assert!(
        answer.contains("Forbidden: immutability is available in apiextensions.k8s.io/v1 only"),
        "{answer}"
    );
}

#[test]
fn extensions_are_unknown_fields_without_their_gates() {
    let schema =
        root("{a: {type: object, x-kubernetes-immutable: true, x-kubernetes-unions: [], properties: {}}}");
    let (definition, unknown) = accept(&schema, ApiVersion::V1, Gates::default()).unwrap();
    expect![[r#"
        [
            "unknown field \"spec.versions[0].schema.openAPIV3Schema.properties.a.x-kubernetes-immutable\"",
            "unknown field \"spec.versions[0].schema.openAPIV3Schema.properties.a.x-kubernetes-unions\"",
        ]
    "#]]
    .assert_debug_eq(&unknown);
    assert!(
        !definition
            .encode(ApiVersion::V1)
            .to_json()
            .contains("x-kubernetes")
    );
}

const VOLUME: &str = "{emptyDir: {type: object}, hostPath: {type: object}, type: {type: string}, \
                      sharedField: {type: string}}";

fn union(union: &str) -> String {
    root(&format!(
        "{{spec: {{type: object, x-kubernetes-unions: [{union}], properties: {VOLUME}}}}}"
    ))
}

#[test]
fn unions_with_and_without_discriminator() {
    accepted(&union(
        "{discriminator: type, fields: {emptyDir: EmptyDir, hostPath: HostPath}}",
    ));
    accepted(&union("{fields: {emptyDir: '', hostPath: ''}}"));
}

#[test]
fn unions_name_declared_fields_once() {
    refused(
        &union(
            "{discriminator: type, fields: {emptyDir: A, hostPath: A, type: T, nope: Nope}}, {fields: {emptyDir: X}}, \
             {discriminator: gone, fields: {sharedField: ''}}, {discriminator: hostPath}",
        ),
        expect![[r#"
            properties[spec].x-kubernetes-unions[0].fields[hostPath]: Duplicate value: "A"
            properties[spec].x-kubernetes-unions[0].fields[nope]: Invalid value: "nope": must be the name of a property
            properties[spec].x-kubernetes-unions[0].fields[type]: Invalid value: "type": must not be the discriminator itself
            properties[spec].x-kubernetes-unions[1].fields[emptyDir]: Invalid value: "X": must be empty because the union has no discriminator
            properties[spec].x-kubernetes-unions[1].fields[emptyDir]: Invalid value: "emptyDir": must not be a member of two unions
            properties[spec].x-kubernetes-unions[2].discriminator: Invalid value: "gone": must be the name of a property
            properties[spec].x-kubernetes-unions[2].fields[sharedField]: Required value: must be the value of the discriminator for this field
            properties[spec].x-kubernetes-unions[3].discriminator: Invalid value: "hostPath": must be the name of a property of type string
            properties[spec].x-kubernetes-unions[3].fields: Required value: must not be empty"#]],
    );
}

#[test]
fn unions_are_published_unfolded() {
    let schema = union("{discriminator: type, fields: {emptyDir: EmptyDir, hostPath: HostPath}}");
    published(
        &schema,
        OpenApiVersion::V3,
        expect![[
            r#"{"oneOf":[{"required":["emptyDir"]},{"required":["hostPath"]}],"properties":{"emptyDir":{"type":"object"},"hostPath":{"type":"object"},"sharedField":{"type":"string"},"type":{"enum":["EmptyDir","HostPath"],"type":"string"}},"type":"object","x-kubernetes-unions":[{"discriminator":"type","fields":{"emptyDir":"EmptyDir","hostPath":"HostPath"}}]}"#
        ]],
    );
    published(
        &schema,
        OpenApiVersion::V2,
        expect![[
            r#"{"properties":{"emptyDir":{"type":"object"},"hostPath":{"type":"object"},"sharedField":{"type":"string"},"type":{"enum":["EmptyDir","HostPath"],"type":"string"}},"type":"object","x-kubernetes-unions":[{"discriminator":"type","fields":{"emptyDir":"EmptyDir","hostPath":"HostPath"}}]}"#
        ]],
    );
    let beside_another = root(
        "{spec: {type: object, oneOf: [{required: [a]}, {required: [b]}], x-kubernetes-unions: [{fields: {a: '', b: ''}}], \
         properties: {a: {type: string}, b: {type: string, x-kubernetes-immutable: true}}}}",
    );
    published(
        &beside_another,
        OpenApiVersion::V3,
        expect![[
            r#"{"allOf":[{"oneOf":[{"required":["a"]},{"required":["b"]}]}],"oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"},"b":{"type":"string","x-kubernetes-immutable":true}},"type":"object","x-kubernetes-unions":[{"fields":{"a":"","b":""}}]}"#
        ]],
    );
}

#[test]
fn rules_may_apply_on_create() {
    accepted(&root(
        "{a: {type: string, maxLength: 10, x-kubernetes-validations: [{rule: 'size(self) >= 5 || (oldSelf != null && \
         size(oldSelf) < size(self))', appliesOnCreate: true}]}}",
    ));
}

/// As on a server, where the validation of a default changes it.
#[test]
fn defaults_lose_unknown_metadata_of_embedded_resources() {
    let embedded =
        "type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true";
    let default = "{apiVersion: v1, kind: A, metadata: {name: a, zz: 1}, free: {metadata: {zz: 1}}}";
    let schema = format!(
        "{{type: object, properties: {{spec: {{type: object, default: {{e: {default}}}, properties: {{
            e: {{{embedded}}},
            own: {{{embedded}, default: {default}}},
            list: {{type: array, default: [{default}], items: {{{embedded}}}}},
            plain: {{type: object, x-kubernetes-preserve-unknown-fields: true, default: {default}}},
            inside: {{{embedded}, properties: {{metadata: {{type: object, default: {{name: b}}}}}}}}
        }}}}}}}}"
    );
    let (accepted, _) = accept(&schema, ApiVersion::V1, Gates::default()).unwrap();
    let document = accepted.into_inner().into_document(ApiVersion::V1);
    let spec = document
        .at(["spec", "versions"])
        .and_then(Value::as_array)
        .unwrap()[0]
        .at(["schema", "openAPIV3Schema", "properties", "spec"])
        .unwrap()
        .clone();
    let kept = r#"{"apiVersion":"v1","free":{"metadata":{"zz":1}},"kind":"A","metadata":{"name":"a"}}"#;
    let json = |path: &[&str]| spec.at(path.iter().copied()).unwrap().to_json();
    assert_eq!(json(&["default", "e"]), kept);
    assert_eq!(json(&["properties", "own", "default"]), kept);
    assert_eq!(json(&["properties", "list", "default"]), format!("[{kept}]"));
    assert!(json(&["properties", "plain", "default"]).contains(r#""metadata":{"name":"a","zz":1}"#));
    assert_eq!(
        json(&["properties", "inside", "properties", "metadata", "default"]),
        r#"{"name":"b"}"#
    );
}

/// Immutability is a property of a plan, whatever the schema comes from: here, the schema of a built-in kind.
#[test]
fn built_in_kinds_use_the_same_plan() {
    let schema = "{type: object, properties: {
        immutable: {type: boolean},
        type: {type: string, x-kubernetes-immutable: true},
        data: {type: object, additionalProperties: {type: string}, x-kubernetes-addition-only: true},
        binaryData: {type: object, additionalProperties: {type: string, x-kubernetes-immutable: true}}}}";
    let schema = yaml::decode(schema.as_bytes(), Limits::SAFE).unwrap();
    let structural = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
    let plan = PlanCompiler::new().compile(&structural);
    let changes = |old: &str, new: &str| {
        let [old, new] = [old, new].map(|text| yaml::decode(text.as_bytes(), Limits::SAFE).unwrap());
        let (old, new) = (old.into_object().unwrap(), new.into_object().unwrap());
        let changes = immutable::changes(plan.root(), &old, &new);
        let forbidden: Vec<String> = changes.forbidden.iter().map(ToString::to_string).collect();
        (changes.any, forbidden)
    };
    let old = "{metadata: {name: a}, type: Opaque, data: {a: x}, binaryData: {b: eA==}}";
    assert_eq!(changes(old, old), (false, Vec::new()));
    assert_eq!(
        changes(old, "{metadata: {name: b}, type: Opaque, data: {a: y, b: z}}"),
        (true, Vec::new())
    );
    assert_eq!(
        changes(
            old,
            "{metadata: {name: a}, type: Other, data: {}, binaryData: {b: eQ==}}"
        ),
        (
            true,
            vec![
                r#"binaryData[b]: Invalid value: "eQ==": field is immutable, was "eA==""#.to_owned(),
                r#"data[a]: Invalid value: null: only additions are allowed, was "x""#.to_owned(),
                r#"type: Invalid value: "Other": field is immutable, was "Opaque""#.to_owned(),
            ]
        )
    );
}
