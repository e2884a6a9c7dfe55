//! Locations in a document.

use std::fmt;

/// One segment of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment<'a> {
    /// A named field: `.name`.
    Field(&'a str),
    /// A key of a map: `[key]`.
    Key(&'a str),
    /// An index of a list: `[3]`.
    Index(usize),
}

/// A location in a document: a chain of stack frames, formatted only when there is an error.
///
/// The root path is printed as `<nil>`, as kube-apiserver does.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Option<Segment<'a>>,
}

impl<'a> Path<'a> {
    /// The root of the document.
    pub const ROOT: Path<'static> = Path {
        parent: None,
        segment: None,
    };

    /// The path of a field of the object at this path.
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        self.push(Segment::Field(name))
    }

    /// The path of an entry of the map at this path.
    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        self.push(Segment::Key(key))
    }

    /// The path of an element of the list at this path.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        self.push(Segment::Index(index))
    }

    /// The path extended by one segment.
    pub fn push(&'a self, segment: Segment<'a>) -> Path<'a> {
        Path {
            parent: Some(self),
            segment: Some(segment),
        }
    }

    /// Returns whether this is the root.
    pub fn is_root(&self) -> bool {
        self.segment.is_none()
    }

    /// The path without its last segment.
    pub fn parent(&self) -> Option<&'a Path<'a>> {
        self.parent
    }

    /// The last segment.
    pub fn segment(&self) -> Option<Segment<'a>> {
        self.segment
    }

    /// Formats the path as lists of unknown fields do, where a name may be empty: `spec..a`.
    pub fn listed(&self) -> String {
        FindingPath(self.segments()).to_string()
    }

    /// The segments from the root.
    pub fn segments(&self) -> Vec<Segment<'a>> {
        let mut out = Vec::new();
        let mut at = Some(self);
        while let Some(p) = at {
            out.extend(p.segment);
            at = p.parent;
        }
        out.reverse();
        out
    }
}

/// The notation of a field with an empty name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmptyName {
    /// As a key, as in errors: Go's `field.Path` takes a segment without a name for a key.
    Key,
    /// After a dot, as in lists of unknown fields.
    Field,
}

/// Writes segments in the notation of API errors: `spec.list[0].map[key]`. An empty path is `<nil>`.
pub(crate) fn write_segments<'a>(
    f: &mut fmt::Formatter<'_>,
    segments: impl IntoIterator<Item = Segment<'a>>,
    nameless: EmptyName,
) -> fmt::Result {
    let mut first = true;
    for s in segments {
        match s {
            Segment::Field("") if nameless == EmptyName::Key => f.write_str("[]")?,
            Segment::Field(n) if first => f.write_str(n)?,
            Segment::Field(n) => write!(f, ".{n}")?,
            Segment::Key(k) => write!(f, "[{k}]")?,
            Segment::Index(i) => write!(f, "[{i}]")?,
        }
        first = false;
    }
    if first { f.write_str("<nil>") } else { Ok(()) }
}

/// Segments in the notation of lists of unknown fields.
struct FindingPath<'a>(Vec<Segment<'a>>);

impl fmt::Display for FindingPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_segments(f, self.0.iter().copied(), EmptyName::Field)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_segments(f, self.segments(), EmptyName::Key)
    }
}

/// An owned path. `Display` is the notation of API errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathBuf {
    segments: Vec<OwnedSegment>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OwnedSegment {
    Field(Box<str>),
    Key(Box<str>),
    Index(usize),
}

impl PathBuf {
    /// The segments from the root.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        self.segments.iter().map(|s| match s {
            OwnedSegment::Field(n) => Segment::Field(n),
            OwnedSegment::Key(k) => Segment::Key(k),
            OwnedSegment::Index(i) => Segment::Index(*i),
        })
    }
}

impl PathBuf {
    /// Returns whether this path is another one, or leads further from there.
    pub fn starts_with(&self, other: &PathBuf) -> bool {
        self.segments.starts_with(&other.segments)
    }

    /// Appends a step.
    pub(crate) fn push(&mut self, segment: Segment<'_>) {
        self.segments.push(segment.into());
    }

    /// The number of steps.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Removes the steps after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.segments.truncate(len);
    }

    /// The approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let text = |s: Segment<'_>| match s {
            Segment::Field(text) | Segment::Key(text) => text.len(),
            Segment::Index(_) => 0,
        };
        self.segments().map(|s| size_of::<usize>() + text(s)).sum()
    }

    /// Formats the path as lists of unknown fields do; see [`Path::listed`].
    pub fn listed(&self) -> String {
        FindingPath(self.segments().collect()).to_string()
    }
}

impl From<Segment<'_>> for OwnedSegment {
    fn from(segment: Segment<'_>) -> Self {
        match segment {
            Segment::Field(n) => OwnedSegment::Field(n.into()),
            Segment::Key(k) => OwnedSegment::Key(k.into()),
            Segment::Index(i) => OwnedSegment::Index(i),
        }
    }
}

impl<'a> FromIterator<Segment<'a>> for PathBuf {
    fn from_iter<I: IntoIterator<Item = Segment<'a>>>(segments: I) -> Self {
        PathBuf {
            segments: segments.into_iter().map(OwnedSegment::from).collect(),
        }
    }
}

impl From<&Path<'_>> for PathBuf {
    fn from(p: &Path<'_>) -> Self {
        p.segments().into_iter().collect()
    }
}

impl fmt::Display for PathBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_segments(f, self.segments(), EmptyName::Key)
    }
}
