//! Resources, as discovery lists them.

use super::Attributes;

/// A resource of a group and version.
#[derive(Debug)]
pub struct ApiResource {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The plural name, as in paths.
    pub name: &'static str,
    /// Subresources, by name.
    pub subresources: Vec<ApiSubresource>,
    /// All attributes.
    pub attributes: Attributes,
}

/// A subresource.
#[derive(Debug)]
pub struct ApiSubresource {
    /// The last segment of its path.
    pub name: &'static str,
    /// All attributes.
    pub attributes: Attributes,
}

/// The scope of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects belong to a namespace.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
}

impl ApiResource {
    /// The kind.
    pub fn kind(&self) -> &'static str {
        self.attributes.value("kind").unwrap_or_default()
    }

    /// The singular name.
    pub fn singular(&self) -> &'static str {
        self.attributes.value("singular").unwrap_or_default()
    }

    /// Short names.
    pub fn short_names(&self) -> Vec<&'static str> {
        self.attributes.values("short")
    }

    /// Categories, such as `all`.
    pub fn categories(&self) -> Vec<&'static str> {
        self.attributes.values("categories")
    }

    /// The supported verbs.
    pub fn verbs(&self) -> Vec<&'static str> {
        self.attributes.values("verbs")
    }

    /// The scope.
    pub fn scope(&self) -> Scope {
        if self.attributes.has("namespaced") {
            Scope::Namespaced
        } else {
            Scope::Cluster
        }
    }

    /// The hash of the storage version.
    pub fn storage_version_hash(&self) -> Option<&'static str> {
        self.attributes.value("hash")
    }
}

impl ApiSubresource {
    /// The group, version and kind; group and version are `None` if they are those of the resource.
    pub fn kind(&self) -> (Option<&'static str>, Option<&'static str>, &'static str) {
        let kind = self.attributes.value("kind").unwrap_or_default();
        let mut parts = kind.rsplitn(3, '/');
        let kind = parts.next().unwrap_or_default();
        let version = parts.next();
        let group = version.map(|_| parts.next().unwrap_or_default());
        (group, version, kind)
    }

    /// The supported verbs.
    pub fn verbs(&self) -> Vec<&'static str> {
        self.attributes.values("verbs")
    }
}
