//! The members of CRDs: how each type is read from its document, and written as one.

use super::{
    ApiVersion, Condition, Conversion, CrdVersion, Names, PrinterColumn, ScaleSubresource, Service, Spec,
    Status, Subresources, Validation, WebhookClient,
};
use scantling_value::{Map, Str, Value};
use std::sync::Arc;

/// A part of a CRD.
pub(super) trait MemberValue: Sized {
    /// Reads the part. Typed decoding has run before: a value either has its type or is absent.
    fn read(value: Option<Value>, api: ApiVersion) -> Self;

    /// Writes the part, even if it is empty; the table of API types omits empty values for the wire.
    fn write(self, api: ApiVersion) -> Value;
}

macro_rules! scalars {
    ($($ty:ty: $read:expr;)*) => {$(
        impl MemberValue for $ty {
            fn read(value: Option<Value>, _: ApiVersion) -> Self {
                value.and_then($read).unwrap_or_default()
            }

            fn write(self, _: ApiVersion) -> Value {
                self.into()
            }
        }
    )*};
}

scalars! {
    bool: |value| value.as_bool();
    i64: |value| value.as_int();
    Map: Value::into_object;
    Str: |value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
}

impl MemberValue for Arc<Value> {
    fn read(value: Option<Value>, _: ApiVersion) -> Self {
        Arc::new(value.unwrap_or_default())
    }

    fn write(self, _: ApiVersion) -> Value {
        Arc::unwrap_or_clone(self)
    }
}

impl<T: MemberValue> MemberValue for Option<T> {
    fn read(value: Option<Value>, api: ApiVersion) -> Self {
        value.map(|value| T::read(Some(value), api))
    }

    fn write(self, api: ApiVersion) -> Value {
        self.map_or(Value::Null, |part| part.write(api))
    }
}

impl<T: MemberValue> MemberValue for Vec<T> {
    fn read(value: Option<Value>, api: ApiVersion) -> Self {
        let Some(Value::Array(items)) = value else {
            return Vec::new();
        };
        items.into_iter().map(|item| T::read(Some(item), api)).collect()
    }

    fn write(self, api: ApiVersion) -> Value {
        Value::Array(self.into_iter().map(|item| item.write(api)).collect())
    }
}

/// The members of types: `field: "name"`. A second name is that of `v1beta1`; `via` names a form of its own.
macro_rules! records {
    (@name $api:ident $name:literal) => { $name };
    (@name $api:ident $name:literal $beta:literal) => {
        match $api {
            ApiVersion::V1 => $name,
            ApiVersion::V1Beta1 => $beta,
        }
    };
    (@form) => { Plain };
    (@form $form:ident) => { $form };
    ($($ty:ident { $($field:ident: $name:literal $(| $beta:literal)? $(via $form:ident)?),* })*) => {$(
        impl Record for $ty {
            fn from_members(members: &mut Map, api: ApiVersion) -> Self {
                $ty {
                    $($field: <records!(@form $($form)?)>::read(
                        members.remove(records!(@name api $name $($beta)?)),
                        api,
                    )),*
                }
            }

            fn into_members(self, api: ApiVersion) -> Map {
                Map::from_iter([$((
                    records!(@name api $name $($beta)?),
                    <records!(@form $($form)?)>::write(self.$field, api),
                )),*])
            }
        }
    )*};
}

/// A part that is an object.
pub(super) trait Record: Sized {
    fn from_members(members: &mut Map, api: ApiVersion) -> Self;
    fn into_members(self, api: ApiVersion) -> Map;
}

impl<T: Record> MemberValue for T {
    fn read(value: Option<Value>, api: ApiVersion) -> Self {
        let mut members = value.and_then(Value::into_object).unwrap_or_default();
        T::from_members(&mut members, api)
    }

    fn write(self, api: ApiVersion) -> Value {
        self.into_members(api).into()
    }
}

records! {
    Spec {
        group: "group", version: "version", names: "names", scope: "scope", validation: "validation",
        subresources: "subresources", versions: "versions", columns: "additionalPrinterColumns",
        selectable_fields: "selectableFields" via SelectableFields, conversion: "conversion",
        preserve_unknown_fields: "preserveUnknownFields"
    }
    Names {
        plural: "plural", singular: "singular", short_names: "shortNames", kind: "kind",
        list_kind: "listKind", categories: "categories"
    }
    CrdVersion {
        name: "name", served: "served", storage: "storage", deprecated: "deprecated",
        deprecation_warning: "deprecationWarning", validation: "schema", subresources: "subresources",
        columns: "additionalPrinterColumns", selectable_fields: "selectableFields" via SelectableFields
    }
    Validation { schema: "openAPIV3Schema" }
    Subresources { status: "status" via Presence, scale: "scale" }
    ScaleSubresource {
        spec_replicas_path: "specReplicasPath", status_replicas_path: "statusReplicasPath",
        label_selector_path: "labelSelectorPath"
    }
    PrinterColumn {
        name: "name", ty: "type", format: "format", description: "description", priority: "priority",
        json_path: "jsonPath" | "JSONPath"
    }
    WebhookClient { url: "url", service: "service", ca_bundle: "caBundle" }
    Service { namespace: "namespace", name: "name", path: "path", port: "port" }
    Status {
        conditions: "conditions", accepted_names: "acceptedNames",
        stored_versions: "storedVersions" via NonEmpty, observed_generation: "observedGeneration"
    }
    Condition {
        ty: "type", status: "status", last_transition_time: "lastTransitionTime" via NonEmpty,
        reason: "reason", message: "message", observed_generation: "observedGeneration"
    }
    SelectableField { json_path: "jsonPath" }
}

impl Record for Conversion {
    fn from_members(members: &mut Map, api: ApiVersion) -> Self {
        let strategy = MemberValue::read(members.remove("strategy"), api);
        let mut webhook = Map::read(members.remove("webhook"), api);
        let (webhook, client) = match api {
            ApiVersion::V1 => (&mut webhook, "clientConfig"),
            ApiVersion::V1Beta1 => (members, "webhookClientConfig"),
        };
        Conversion {
            strategy,
            client: MemberValue::read(webhook.remove(client), api),
            review_versions: MemberValue::read(webhook.remove("conversionReviewVersions"), api),
        }
    }

    fn into_members(self, api: ApiVersion) -> Map {
        // `v1` has both inside `webhook`, which stays absent without them.
        let has_webhook = self.client.is_some() || self.review_versions.is_some();
        let client = self.client.write(api);
        let reviews = ("conversionReviewVersions", self.review_versions.write(api));
        let strategy = ("strategy", self.strategy.into());
        match api {
            ApiVersion::V1Beta1 => Map::from_iter([strategy, ("webhookClientConfig", client), reviews]),
            ApiVersion::V1 => {
                let webhook = has_webhook.then(|| Map::from_iter([("clientConfig", client), reviews]));
                Map::from_iter([strategy, ("webhook", webhook.write(api))])
            }
        }
    }
}

/// The form of most members.
struct Plain;

impl Plain {
    fn read<T: MemberValue>(value: Option<Value>, api: ApiVersion) -> T {
        T::read(value, api)
    }

    fn write<T: MemberValue>(part: T, api: ApiVersion) -> Value {
        part.write(api)
    }
}

/// The form of a member that is null if it is empty.
struct NonEmpty;

impl NonEmpty {
    fn read<T: MemberValue>(value: Option<Value>, api: ApiVersion) -> T {
        T::read(value, api)
    }

    fn write<T: MemberValue + Default + PartialEq>(part: T, api: ApiVersion) -> Value {
        Some(part).filter(|part| *part != T::default()).write(api)
    }
}

/// The form of a subresource without settings: its presence enables it.
struct Presence;

impl Presence {
    fn read(value: Option<Value>, api: ApiVersion) -> bool {
        Option::<Map>::read(value, api).is_some()
    }

    fn write(part: bool, api: ApiVersion) -> Value {
        part.then(Map::new).write(api)
    }
}

/// The form of selectable fields: a list of objects.
struct SelectableFields;

struct SelectableField {
    json_path: Str,
}

impl SelectableFields {
    fn read(value: Option<Value>, api: ApiVersion) -> Option<Vec<Str>> {
        let fields = Option::<Vec<SelectableField>>::read(value, api)?;
        Some(fields.into_iter().map(|field| field.json_path).collect())
    }

    fn write(part: Option<Vec<Str>>, api: ApiVersion) -> Value {
        let field = |json_path| SelectableField { json_path };
        let fields: Option<Vec<_>> = part.map(|paths| paths.into_iter().map(field).collect());
        fields.write(api)
    }
}
