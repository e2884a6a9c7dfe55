//! Where in a document.

use std::fmt;

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment<'a> {
    /// A named field: `.name`.
    Field(&'a str),
    /// A key of a map: `[key]`.
    Key(&'a str),
    /// An index of a list: `[3]`.
    Index(usize),
}

/// A place in a document: a chain of frames on the stack, written out only when there is an error.
///
/// The root path writes as `<nil>`, as a Kubernetes API server does.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Option<Segment<'a>>,
}

impl<'a> Path<'a> {
    /// The document itself.
    pub const ROOT: Path<'static> = Path {
        parent: None,
        segment: None,
    };

    /// A field of what this path points to.
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        self.push(Segment::Field(name))
    }

    /// An entry of the map that this path points to.
    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        self.push(Segment::Key(key))
    }

    /// An element of the list that this path points to.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        self.push(Segment::Index(index))
    }

    /// One step further.
    pub fn push(&'a self, segment: Segment<'a>) -> Path<'a> {
        Path {
            parent: Some(self),
            segment: Some(segment),
        }
    }

    /// Whether this is the document itself.
    pub fn is_root(&self) -> bool {
        self.segment.is_none()
    }

    /// The frame before the last step.
    pub fn parent(&self) -> Option<&'a Path<'a>> {
        self.parent
    }

    /// The last step.
    pub fn segment(&self) -> Option<Segment<'a>> {
        self.segment
    }

    /// The path in the notation of lists of unknown fields, in which a name may be empty: `spec..a`.
    pub fn listed(&self) -> String {
        FindingPath(self.segments()).to_string()
    }

    /// The steps from the root.
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

/// How a field without a name is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmptyName {
    /// Like a key, as in errors, which tell fields from keys by whether there is a name.
    Key,
    /// After a dot, as in lists of unknown fields.
    Field,
}

/// Writes steps in the notation of API errors: `spec.list[0].map[key]`; no steps write as `<nil>`.
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

/// Steps in the notation of lists of unknown fields.
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

/// A path that owns its steps; `Display` is the notation of API errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathBuf {
    segments: Vec<OwnedSegment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OwnedSegment {
    Field(Box<str>),
    Key(Box<str>),
    Index(usize),
}

impl PathBuf {
    /// The steps from the root.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        self.segments.iter().map(|s| match s {
            OwnedSegment::Field(n) => Segment::Field(n),
            OwnedSegment::Key(k) => Segment::Key(k),
            OwnedSegment::Index(i) => Segment::Index(*i),
        })
    }
}

impl PathBuf {
    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let text = |s: Segment<'_>| match s {
            Segment::Field(text) | Segment::Key(text) => text.len(),
            Segment::Index(_) => 0,
        };
        self.segments().map(|s| size_of::<usize>() + text(s)).sum()
    }

    /// The path in the notation of lists of unknown fields, see [`Path::listed`].
    pub fn listed(&self) -> String {
        FindingPath(self.segments().collect()).to_string()
    }
}

impl From<&Path<'_>> for PathBuf {
    fn from(p: &Path<'_>) -> Self {
        let own = |s: Segment<'_>| match s {
            Segment::Field(n) => OwnedSegment::Field(n.into()),
            Segment::Key(k) => OwnedSegment::Key(k.into()),
            Segment::Index(i) => OwnedSegment::Index(i),
        };
        PathBuf {
            segments: p.segments().into_iter().map(own).collect(),
        }
    }
}

impl fmt::Display for PathBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_segments(f, self.segments(), EmptyName::Key)
    }
}
