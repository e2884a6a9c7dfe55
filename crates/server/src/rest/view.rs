//! The views of objects and lists: the object, its metadata, or rows of a table.

use crate::codec::media::{Encoding, MetaVersion, Negotiated, View};
use crate::codec::protobuf;
use crate::codec::text::Text;
use crate::http::reply::{Content, Reply};
use crate::kinds::kind::{Kind, Version};
use crate::request::Query;
use crate::rest::render::{self, ListFrame};
use crate::status::{ApiError, ApiResult};
use crate::tables::{Columns, Room};
use scantling_builtin::columns::Printing;
use scantling_value::{Map, Value, go};

/// The part of an object in the row of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RowObject {
    Metadata,
    Object,
    None,
}

/// Renders the objects of a response.
#[derive(Debug)]
pub(crate) struct ViewRenderer<'a> {
    pub(crate) wanted: Negotiated,
    pub(crate) row_object: RowObject,
    pub(crate) kind: &'a Kind,
    pub(crate) columns: &'a Columns,
    /// Seconds since the epoch, for ages.
    pub(crate) now: i64,
}

/// The metadata of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) resource_version: String,
    pub(crate) continue_token: String,
    pub(crate) remaining: Option<u64>,
    /// True if an empty `continue` is written, as lists of custom resources have it.
    pub(crate) says_end: bool,
}

impl ListMeta {
    pub(crate) fn to_value(&self) -> Value {
        let mut m = Map::new();
        if self.says_end || !self.continue_token.is_empty() {
            m.insert("continue", self.continue_token.as_str().into());
        }
        if let Some(n) = self.remaining {
            m.insert(
                "remainingItemCount",
                Value::Int(i64::try_from(n).unwrap_or(i64::MAX)),
            );
        }
        if !self.resource_version.is_empty() {
            m.insert("resourceVersion", self.resource_version.as_str().into());
        }
        m.into()
    }
}

impl<'a> ViewRenderer<'a> {
    /// Returns the renderer that a request asks for.
    pub(crate) fn new(
        wanted: Negotiated,
        query: &Query,
        kind: &'a Kind,
        version: &'a Version,
        now: i64,
    ) -> ApiResult<ViewRenderer<'a>> {
        let asked = query.get_or_empty("includeObject");
        let row_object = match asked {
            // `includeObject` is an option of tables; elsewhere, any value is ignored.
            _ if !matches!(wanted.view, View::Table(_)) => RowObject::Metadata,
            "" | "Metadata" => RowObject::Metadata,
            "None" => RowObject::None,
            "Object" => RowObject::Object,
            other => {
                return Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                     'Object', 'None', or empty",
                    go::quote(other)
                )));
            }
        };
        Ok(ViewRenderer {
            wanted,
            row_object,
            kind,
            columns: &version.columns,
            now,
        })
    }

    /// Returns whether objects are sent as plain JSON, so that their stored text suffices.
    pub(crate) fn is_plain(&self) -> bool {
        self.wanted.is_plain()
    }

    /// The response with one object as JSON.
    pub(crate) fn text_reply(&self, status: u16, text: &Text) -> Reply {
        let mut out = Vec::with_capacity(text.len() + 1);
        text.write(&mut out);
        out.push(b'\n');
        Reply::bytes(status, Encoding::Json.content_type(), out)
    }

    /// The response with one object.
    pub(crate) fn object(&self, status: u16, object: Value) -> ApiResult<Reply> {
        let shown = match self.wanted.view {
            View::Object => object,
            View::Table(v) => self.table_of_one(object, v, true)?,
            View::Metadata(v) => self.partial(object, v),
            View::MetadataList(_) if self.kind.built_in => {
                return Err(ApiError::not_acceptable(format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list (*{})",
                    self.kind.internal_type()
                )));
            }
            View::MetadataList(_) => return Err(ApiError::internal("content is not a list")),
        };
        Ok(Reply::object(status, &shown, self.wanted.encoding))
    }

    /// The response with a list of objects.
    pub(crate) fn list(
        &self,
        api_version: &str,
        kind: &str,
        mut items: Vec<Value>,
        meta: &ListMeta,
    ) -> ApiResult<Reply> {
        if self.wanted.view == View::Object {
            items.iter_mut().for_each(|item| self.remove_type(item));
        }
        let shown = match self.wanted.view {
            View::Object => list_value(api_version, kind, items.into(), meta),
            View::Table(v) => {
                let meta = &ListMeta {
                    // Tables and metadata have Go's typed `ListMeta`, which omits an empty `continue`.
                    says_end: false,
                    ..meta.clone()
                };
                // Shared by all rows, because it bounds the table as a whole.
                let mut room = Room::default();
                let mut default_class = String::new();
                if let Some(printer) = self.columns.printer() {
                    printer.arrange(&mut items);
                    // The default among several classes depends on the whole list, so it is found before any row.
                    printer.default_class(&items).clone_into(&mut default_class);
                }
                let rows = items
                    .into_iter()
                    .map(|o| self.row(o, v, &default_class, &mut room));
                self.table(rows.collect::<ApiResult<_>>()?, meta, v, true)
            }
            View::MetadataList(v) => {
                let meta = &ListMeta {
                    says_end: false,
                    ..meta.clone()
                };
                let items: Vec<Value> = items.into_iter().map(|o| self.partial(o, v)).collect();
                // kube-apiserver writes this empty list as null.
                let items = if items.is_empty() {
                    Value::Null
                } else {
                    items.into()
                };
                list_value(v.api_version(), "PartialObjectMetadataList", items, meta)
            }
            View::Metadata(_) => return Err(self.no_single_metadata()),
        };
        Ok(Reply::object(200, &shown, self.wanted.encoding))
    }

    /// Removes `apiVersion` and `kind` of an item. Those of built-in kinds do not repeat the kind of the list.
    fn remove_type(&self, item: &mut Value) {
        if let Some(members) = item.as_object_mut().filter(|_| self.kind.built_in) {
            members.remove("kind");
            members.remove("apiVersion");
        }
    }

    /// Renders an object as an item of a list.
    pub(crate) fn list_item(&self, mut object: Value) -> ApiResult<Value> {
        Ok(match self.wanted.view {
            View::Table(v) => self.row(object, v, "", &mut Room::default())?,
            View::Metadata(v) | View::MetadataList(v) => self.partial(object, v),
            View::Object => {
                self.remove_type(&mut object);
                object
            }
        })
    }

    /// The text around the items of a list.
    pub(crate) fn list_frame(&self, api_version: &str, kind: &str, meta: &ListMeta) -> ApiResult<ListFrame> {
        // The mark is unique.
        let mark = format!("mark-{}", uuid::Uuid::new_v4());
        let items = || Value::from(vec![mark.as_str()]);
        let brief = &ListMeta {
            says_end: false,
            ..meta.clone()
        };
        let list = match self.wanted.view {
            View::Object => list_value(api_version, kind, items(), meta),
            View::Table(v) => self.table(vec![mark.as_str().into()], brief, v, true),
            View::MetadataList(v) => list_value(v.api_version(), "PartialObjectMetadataList", items(), brief),
            View::Metadata(_) => return Err(self.no_single_metadata()),
        };
        let reply = Reply::object(200, &list, self.wanted.encoding);
        let Content::Whole(text) = reply.body else {
            return Err(ApiError::internal_error("a list was not written"));
        };
        let found = render::frame(&text, &mark, self.wanted.encoding);
        found.ok_or_else(|| ApiError::internal_error("a list was not written"))
    }

    /// The text around the items of a list in protobuf, which have that many bytes.
    pub(crate) fn message_frame(
        &self,
        api_version: &str,
        kind: &str,
        meta: &ListMeta,
        items: usize,
    ) -> ApiResult<ListFrame> {
        let list = list_value(api_version, kind, Value::Null, meta);
        let (before, after) = protobuf::around_items(&list, items)
            .ok_or_else(|| ApiError::internal_error("a kind lacks its protobuf encoding"))?;
        Ok(ListFrame {
            before,
            after,
            between: b"",
            omitted: 0,
        })
    }

    fn no_single_metadata(&self) -> ApiError {
        let list = match self.kind.built_in {
            true => format!("{}List", self.kind.internal_type()),
            false => "unstructured.UnstructuredList".to_owned(),
        };
        ApiError::not_acceptable(format!(
            "you requested PartialObjectMetadata, but the requested object is a list (*{list})"
        ))
    }

    /// Renders the object of a watch event; `None` for views of lists. Only the first event has the columns of a table.
    pub(crate) fn event(&self, object: Value, first: bool) -> ApiResult<Option<Value>> {
        Ok(match self.wanted.view {
            View::Object => Some(object),
            View::Table(v) => Some(self.table_of_one(object, v, first)?),
            View::Metadata(v) => Some(self.partial(object, v)),
            View::MetadataList(_) => None,
        })
    }

    /// A row: the cells of all columns, and as much of the object as the client asks for.
    fn row(
        &self,
        object: Value,
        version: MetaVersion,
        default_class: &str,
        room: &mut Room,
    ) -> ApiResult<Value> {
        let printing = Printing {
            now: self.now,
            default_class,
        };
        let cells = self.columns.cells(&object, &printing, room)?;
        let conditions = self.columns.row_conditions(&object);
        let object = match self.row_object {
            RowObject::None => Value::Null,
            RowObject::Object => object,
            RowObject::Metadata => self.partial(object, version),
        };
        let mut row = Map::from_iter([("cells", cells), ("object", object)]);
        if !conditions.is_empty() {
            row.insert("conditions", Value::Array(conditions));
        }
        Ok(row.into())
    }

    /// The metadata of an object, alone.
    fn partial(&self, object: Value, version: MetaVersion) -> Value {
        let metadata = match object {
            Value::Object(mut m) => m.remove("metadata"),
            _ => None,
        };
        let mut metadata = metadata.unwrap_or_else(|| Map::new().into());
        if let Some(printer) = self.columns.printer() {
            remove_annotations(&mut metadata, printer.hidden_annotations());
        }
        let entries = [
            ("kind", Value::from("PartialObjectMetadata")),
            ("apiVersion", version.api_version().into()),
            ("metadata", metadata),
        ];
        Value::Object(entries.into_iter().collect())
    }

    fn table_of_one(&self, object: Value, version: MetaVersion, headers: bool) -> ApiResult<Value> {
        let meta = ListMeta {
            resource_version: metadata_str(&object, "resourceVersion").to_owned(),
            ..ListMeta::default()
        };
        let row = self.row(object, version, "", &mut Room::default())?;
        Ok(self.table(vec![row], &meta, version, headers))
    }

    fn table(&self, rows: Vec<Value>, meta: &ListMeta, version: MetaVersion, headers: bool) -> Value {
        // kube-apiserver's default table convertor returns a nil slice for no objects, which Go writes as null.
        let rows = match rows.is_empty() && self.columns.has_null_rows() {
            true => Value::Null,
            false => Value::Array(rows),
        };
        let columns = if headers {
            self.columns.definitions()
        } else {
            Value::Null
        };
        let entries = [
            ("kind", Value::from("Table")),
            ("apiVersion", version.api_version().into()),
            ("metadata", meta.to_value()),
            ("columnDefinitions", columns),
            ("rows", rows),
        ];
        Value::Object(entries.into_iter().collect())
    }
}

fn metadata_str<'a>(object: &'a Value, field: &str) -> &'a str {
    object.str_at(["metadata", field])
}

fn remove_annotations(metadata: &mut Value, names: &[&str]) {
    let Some(metadata) = metadata.as_object_mut().filter(|_| !names.is_empty()) else {
        return;
    };
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        names.iter().for_each(|name| drop(annotations.remove(name)));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

fn list_value(api_version: &str, kind: &str, items: Value, meta: &ListMeta) -> Value {
    let entries = [
        ("kind", Value::from(kind)),
        ("apiVersion", api_version.into()),
        ("metadata", meta.to_value()),
        ("items", items),
    ];
    Value::Object(entries.into_iter().collect())
}
