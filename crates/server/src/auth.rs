//! Who asks: bearer tokens and client certificates. There are no anonymous requests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Who made a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// The name.
    pub(crate) name: String,
    /// What tells it from others of that name, if anything does.
    pub(crate) uid: String,
    /// The groups.
    pub(crate) groups: Vec<String>,
}

/// The group whose members may do everything, whatever the mode, and are never told to come back later.
pub(crate) const MASTERS: &str = "system:masters";

impl User {
    /// Whether it may do everything.
    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|g| g == MASTERS)
    }
}

/// The tokens that are known. They are kept as digests: a token never stands in memory dumps or logs.
#[derive(Default)]
pub(crate) struct Tokens {
    users: BTreeMap<[u8; 32], Arc<User>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.users.len())
    }
}

impl Tokens {
    /// Adds one token.
    pub(crate) fn add(&mut self, token: &str, user: User) {
        self.users.insert(digest(token), Arc::new(user));
    }

    /// Reads a file of `token,user,uid,"group1,group2"` lines, as `--token-auth-file` of kube-apiserver.
    pub(crate) fn add_file(&mut self, text: &str) -> Result<(), String> {
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fields = csv(line);
            let [token, name, uid, groups @ ..] = fields.as_slice() else {
                return Err(format!(
                    "line {}: needs at least token, user name and user id",
                    i + 1
                ));
            };
            if token.is_empty() {
                return Err(format!("line {}: the token is empty", i + 1));
            }
            let groups = groups.first().map(String::as_str).unwrap_or_default();
            let groups = groups
                .split(',')
                .map(str::trim)
                .filter(|g| !g.is_empty())
                .map(str::to_owned)
                .collect();
            self.add(
                token,
                User {
                    name: name.clone(),
                    uid: uid.clone(),
                    groups,
                },
            );
        }
        Ok(())
    }

    /// The user of an `Authorization` header.
    pub(crate) fn user(&self, authorization: Option<&str>) -> Option<&Arc<User>> {
        let mut words = authorization?.trim().split(' ');
        let (scheme, token) = (words.next()?, words.next()?);
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        self.holder(token)
    }

    /// The user of a token.
    pub(crate) fn holder(&self, token: &str) -> Option<&Arc<User>> {
        // A look-up by digest tells nothing about tokens by the time it takes.
        self.users.get(&digest(token))
    }
}

/// What is said of an `Authorization` header with too much space before its token.
pub(crate) const PADDED: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// Whether an `Authorization` header has too much space before its token, so that it names none.
pub(crate) fn is_padded(authorization: &str) -> bool {
    let mut words = authorization.trim().split(' ');
    let scheme = words.next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("bearer") && words.next() == Some("") && words.next().is_some()
}

fn digest(token: &str) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(token.as_bytes()).into()
}

/// One line of comma-separated fields, double quotes around those with commas.
fn csv(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut in_quotes = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if in_quotes && chars.peek() == Some(&'"') => {
                chars.next();
                out.last_mut().unwrap_or(&mut String::new()).push('"');
            }
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => out.push(String::new()),
            c => out.last_mut().unwrap_or(&mut String::new()).push(c),
        }
    }
    out
}

/// The user that a client certificate names: its common name, its organisations as groups.
pub(crate) fn certificate_user(der: &[u8]) -> Option<User> {
    let (_, cert) = x509_parser::parse_x509_certificate(der).ok()?;
    let subject = cert.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject
        .iter_organization()
        .filter_map(|o| o.as_str().ok())
        .map(str::to_owned)
        .collect();
    Some(User {
        name,
        uid: String::new(),
        groups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_files() {
        let mut t = Tokens::default();
        t.add_file("# comment\ntok,alice,1,\"system:masters,dev\"\nother,bob,2\n")
            .unwrap();
        assert_eq!(
            t.user(Some("Bearer tok")).map(|u| u.groups.join("|")),
            Some("system:masters|dev".to_owned())
        );
        assert_eq!(t.user(Some("bearer other")).map(|u| u.name.as_str()), Some("bob"));
        for bad in [
            None,
            Some("Bearer nope"),
            Some("Basic tok"),
            Some("tok"),
            Some("Bearer "),
        ] {
            assert_eq!(t.user(bad), None, "{bad:?}");
        }
        assert_eq!(
            t.add_file("a,b").unwrap_err(),
            "line 1: needs at least token, user name and user id"
        );
        assert!(!format!("{t:?}").contains("tok,"));
    }
}
