//! The path of a resource request.

/// `/apis/GROUP/VERSION/[namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]`, in parts.
#[derive(Clone, Copy, Debug)]
pub struct ResourcePath<'p> {
    /// The API group.
    pub group: &'p str,
    /// The API version.
    pub version: &'p str,
    /// The plural name of the resource.
    pub plural: &'p str,
    /// The namespace, if the path has one.
    pub namespace: Option<&'p str>,
    /// The object's name, if the path has one.
    pub name: Option<&'p str>,
    /// The subresource, if the path has one.
    pub subresource: Option<&'p str>,
}

impl<'p> ResourcePath<'p> {
    /// Parses a path without its query. Returns `None` for paths outside of `/apis/`.
    pub fn parse(path: &'p str) -> Option<Self> {
        let mut parts = path.strip_prefix("/apis/")?.trim_end_matches('/').split('/');
        let (group, version, mut plural) = (parts.next()?, parts.next()?, parts.next()?);
        let mut namespace = None;
        if plural == "namespaces" {
            namespace = Some(parts.next()?);
            plural = parts.next()?;
        }
        Some(ResourcePath {
            group,
            version,
            plural,
            namespace,
            name: parts.next(),
            subresource: parts.next(),
        })
    }

    /// Returns `GROUP/VERSION`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Returns the name of the CRD that defines the resource: `PLURAL.GROUP`.
    pub fn definition_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Returns whether the path is one of CustomResourceDefinitions.
    pub fn is_definition(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.plural == "customresourcedefinitions"
    }

    /// Returns the key of an object of this resource, independent of the version.
    pub fn object_key(&self, name: &str) -> String {
        format!(
            "{}/{}/{}/{name}",
            self.group,
            self.plural,
            self.namespace.unwrap_or_default()
        )
    }
}
