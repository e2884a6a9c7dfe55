//! Authentication: client certificates, bearer tokens, or `system:anonymous`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The user of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// The name.
    pub(crate) name: String,
    /// The unique id, if there is one.
    pub(crate) uid: String,
    /// The groups.
    pub(crate) groups: Vec<String>,
    /// Further attributes, by key.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

/// The group whose members may do everything, and to whom limits do not apply.
pub(crate) const MASTERS: &str = "system:masters";

/// The group of all users with a credential.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// The group of all users without one.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// The user of requests without a credential.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

impl User {
    /// A user whose credential was accepted.
    pub(crate) fn authenticated(name: String, uid: String, groups: Vec<String>) -> User {
        let mut user = User {
            name,
            uid,
            groups,
            extra: BTreeMap::new(),
        };
        // As kube-apiserver's group adder: a token file may name these users and groups itself.
        if user.name != ANONYMOUS && !user.is_in(AUTHENTICATED) && !user.is_in(UNAUTHENTICATED) {
            user.groups.push(AUTHENTICATED.to_owned());
        }
        user
    }

    /// The user of requests without a credential.
    pub(crate) fn anonymous() -> User {
        User {
            name: ANONYMOUS.to_owned(),
            uid: String::new(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            extra: BTreeMap::new(),
        }
    }

    /// Returns whether the user is in a group.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Returns whether the user may do everything.
    pub(crate) fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }
}

/// The result of checking a credential.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Credential {
    /// The request has none.
    Absent,
    /// The credential of this user.
    Accepted(Arc<User>),
    /// A credential of no known user.
    Rejected,
}

impl Credential {
    /// This credential if it is accepted, otherwise the next one. A rejected one counts unless another is
    /// accepted.
    pub(crate) fn or(self, next: impl FnOnce() -> Credential) -> Credential {
        match self {
            Credential::Accepted(user) => Credential::Accepted(user),
            Credential::Absent => next(),
            Credential::Rejected => match next() {
                Credential::Accepted(user) => Credential::Accepted(user),
                Credential::Absent | Credential::Rejected => Credential::Rejected,
            },
        }
    }
}

/// The known tokens. They are kept as digests, so that memory dumps and logs never contain a token.
#[derive(Default)]
pub(crate) struct KnownTokens {
    users: BTreeMap<[u8; 32], Arc<User>>,
}

impl fmt::Debug for KnownTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.users.len())
    }
}

impl KnownTokens {
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
            // All groups are in one field, and further fields are ignored, as by kube-apiserver.
            let groups = groups.first().map_or("", String::as_str);
            let groups = groups
                .split(',')
                .map(str::trim)
                .filter(|g| !g.is_empty())
                .map(str::to_owned)
                .collect();
            self.add(token, User::authenticated(name.clone(), uid.clone(), groups));
        }
        Ok(())
    }

    /// The credential in an `Authorization` header. Other schemes and empty tokens are not credentials.
    pub(crate) fn authorization(&self, header: Option<&str>) -> Credential {
        match header.and_then(bearer) {
            Some(token) => self.holder(token),
            None => Credential::Absent,
        }
    }

    /// The user of a token.
    pub(crate) fn holder(&self, token: &str) -> Credential {
        // A lookup by digest has no timing side channel.
        match self.users.get(&digest(token)) {
            Some(user) => Credential::Accepted(Arc::clone(user)),
            None => Credential::Rejected,
        }
    }
}

/// The bearer token in an `Authorization` header.
pub(crate) fn bearer(header: &str) -> Option<&str> {
    // Go splits at single spaces, too: with two of them, the token is empty and the header names none.
    let mut words = header.trim().split(' ');
    let scheme = words.next()?;
    let token = words.next().filter(|token| !token.is_empty())?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// The warning about an `Authorization` header with too much space before its token.
pub(crate) const PADDED: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// Returns whether an `Authorization` header has too much space before its token, so that it names none.
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

/// The user named by a client certificate: its common name, with its organisations as groups. A certificate
/// with an unreadable name or organisation has no user.
pub(crate) fn certificate_user(der: &[u8]) -> Option<User> {
    // TLS has verified the chain already; only the subject is read here.
    let (_, cert) = x509_parser::parse_x509_certificate(der).ok()?;
    let subject = cert.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject
        .iter_organization()
        .map(|o| o.as_str().map(str::to_owned))
        .collect::<Result<_, _>>()
        .ok()?;
    Some(User::authenticated(name, String::new(), groups))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_files() {
        let mut t = KnownTokens::default();
        t.add_file("# comment\ntok,alice,1,\"system:masters,dev\"\nother,bob,2\n")
            .unwrap();
        let accepted = |header: &str| match t.authorization(Some(header)) {
            Credential::Accepted(user) => format!("{}: {}", user.name, user.groups.join("|")),
            other => format!("{other:?}"),
        };
        for (header, want) in [
            ("Bearer tok", "alice: system:masters|dev|system:authenticated"),
            ("bearer other", "bob: system:authenticated"),
            ("  Bearer other more", "bob: system:authenticated"),
            ("Bearer nope", "Rejected"),
            ("", "Absent"),
            ("Bearer", "Absent"),
            ("Bearer ", "Absent"),
            ("Bearer  tok", "Absent"),
            ("Basic tok", "Absent"),
            ("tok", "Absent"),
        ] {
            assert_eq!(accepted(header), want, "{header:?}");
        }
        assert_eq!(t.authorization(None), Credential::Absent);
        assert_eq!(
            t.add_file("a,b").unwrap_err(),
            "line 1: needs at least token, user name and user id"
        );
        assert!(!format!("{t:?}").contains("tok,"));
    }
}
