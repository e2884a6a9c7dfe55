//! Names of groups and versions in operations.

/// A group and version in the names of operations (`S5162ExampleComV1`) and as a tag (`s5162ExampleCom_v1`).
pub(super) struct GroupVersionWords {
    pub(super) word: String,
    pub(super) tag: String,
}

impl GroupVersionWords {
    pub(super) fn new(group: &str, version: Option<&str>) -> GroupVersionWords {
        let group = match group {
            "" => "core",
            // kube-apiserver shortens its own groups only.
            group => group.strip_suffix(".k8s.io").unwrap_or(group),
        };
        let tag = word(group, First::AsItIs);
        GroupVersionWords {
            word: word(group, First::Large) + &word(version.unwrap_or_default(), First::Large),
            tag: match version {
                Some(version) => format!("{tag}_{}", word(version, First::AsItIs)),
                None => tag,
            },
        }
    }
}

/// A name as a word: `s5-162.example.com` is `S5162ExampleCom`, or begins with a small letter.
pub(super) fn word(name: &str, first: First) -> String {
    let mut out = String::new();
    let mut large = first == First::Large;
    for (i, c) in name.chars().enumerate() {
        match c {
            _ if !(c.is_alphabetic() || c == '_' || (i > 0 && c.is_numeric())) => large = true,
            _ if large => {
                out.extend(c.to_uppercase());
                large = false;
            }
            _ => out.push(c),
        }
    }
    out
}

/// The letter that a word begins with.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum First {
    Large,
    AsItIs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_operation_ids() {
        for (name, large, as_it_is) in [
            ("s5-162.example.com", "S5162ExampleCom", "s5162ExampleCom"),
            ("chaos-mesh.org", "ChaosMeshOrg", "chaosMeshOrg"),
            ("1st.example.com", "StExampleCom", "StExampleCom"),
            ("v1beta1", "V1beta1", "v1beta1"),
        ] {
            assert_eq!(word(name, First::Large), large);
            assert_eq!(word(name, First::AsItIs), as_it_is);
        }
    }
}
