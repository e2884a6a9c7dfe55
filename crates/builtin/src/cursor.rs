//! A value together with its field path.

use scantling_value::{Map, Path, Value, deadline};

/// A position in an object: the value there, if any, and its field path.
///
/// Explicit nulls count as absent. Accessors of scalars return the zero value where the field is absent, as Go code that
/// reads the decoded struct does; `is_set` tells the two apart.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'v, 'p> {
    value: Option<&'v Value>,
    path: Path<'p>,
}

impl<'v, 'p> Cursor<'v, 'p> {
    /// The root of an object.
    pub fn root(object: &'v Value) -> Self {
        Cursor::at(Some(object), Path::ROOT)
    }

    /// A value at a path.
    pub fn at(value: Option<&'v Value>, path: Path<'p>) -> Self {
        let value = value.filter(|v| !v.is_null());
        Cursor { value, path }
    }

    /// The value, unless it is absent.
    pub fn value(&self) -> Option<&'v Value> {
        self.value
    }

    /// The path.
    pub fn path(&self) -> &Path<'p> {
        &self.path
    }

    /// Returns whether a value is present.
    pub fn is_set(&self) -> bool {
        self.value.is_some()
    }

    /// A member.
    pub fn field<'s>(&'s self, name: &'s str) -> Cursor<'v, 's> {
        Cursor::at(self.value.and_then(|v| v.get(name)), self.path.field(name))
    }

    /// The same value at another path.
    pub fn with_path<'q>(&self, path: Path<'q>) -> Cursor<'v, 'q> {
        Cursor::at(self.value, path)
    }

    /// The string; empty where absent.
    pub fn str(&self) -> &'v str {
        self.value.and_then(Value::as_str).unwrap_or("")
    }

    /// The integer; 0 where absent.
    pub fn int(&self) -> i64 {
        self.as_int().unwrap_or(0)
    }

    /// The integer, if there is one.
    pub fn as_int(&self) -> Option<i64> {
        self.value.and_then(Value::as_int)
    }

    /// The boolean; false where absent.
    pub fn bool(&self) -> bool {
        self.value.and_then(Value::as_bool).unwrap_or(false)
    }

    /// The elements of a list; none where absent.
    pub fn list(&self) -> &'v [Value] {
        self.value.and_then(Value::as_array).unwrap_or(&[])
    }

    /// The elements of a list with their paths.
    pub fn items<'s>(&'s self) -> impl Iterator<Item = Cursor<'v, 's>> {
        // Rules read lists and maps through `items` and `entries`, so that the deadline covers objects of any size.
        deadline::tick_for(self.list().len());
        let elements = self.list().iter().enumerate();
        elements.map(|(i, element)| Cursor::at(Some(element), self.path.index(i)))
    }

    /// The members of an object or map, if it is one.
    pub fn map(&self) -> Option<&'v Map> {
        self.value.and_then(Value::as_object)
    }

    /// The entries of a map with their paths (`[key]`).
    pub fn entries<'s>(&'s self) -> impl Iterator<Item = (&'v str, Cursor<'v, 's>)>
    where
        'v: 's,
    {
        let entries = self.map().map_or(&[][..], Map::entries).iter();
        deadline::tick_for(entries.len());
        entries.map(|(key, value)| (key.as_str(), Cursor::at(Some(value), self.path.key(key))))
    }
}
