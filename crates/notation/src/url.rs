//! URLs as the OpenAPI format `uri` and CEL's URL functions parse them: absolute URLs or absolute paths.

use crate::ip;
use scantling_value::go::quote;

/// A parsed URL. Parts are unescaped, apart from the query and opaque data.
#[derive(Clone, Debug, Default)]
pub struct Url {
    scheme: String,
    opaque: String,
    user: Option<Userinfo>,
    host: String,
    path: Vec<u8>,
    /// The escaped path of the input, if it differs from the default escaping.
    raw_path: String,
    query: String,
    force_query: bool,
    omit_host: bool,
    fragment: Vec<u8>,
    raw_fragment: String,
}

#[derive(Clone, Debug)]
struct Userinfo {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

/// The part of a URL, which determines the characters that need no escape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlPart {
    Path,
    UserPassword,
    Host,
    Zone,
    Query,
    Fragment,
}

fn needs_escape(b: u8, part: UrlPart) -> bool {
    match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            // Go does not split a path into segments, so it need not escape their separators.
            UrlPart::Path => b == b'?',
            UrlPart::UserPassword => matches!(b, b'@' | b'/' | b'?' | b':'),
            UrlPart::Host | UrlPart::Zone => matches!(b, b'/' | b'?' | b'@'),
            UrlPart::Query => true,
            UrlPart::Fragment => false,
        },
        b'!' | b'(' | b')' | b'*' => !matches!(part, UrlPart::Host | UrlPart::Zone | UrlPart::Fragment),
        b'\'' => !matches!(part, UrlPart::Host | UrlPart::Zone),
        // Go leaves these in a host, because the escape of an ASCII character is not allowed there.
        b'[' | b']' | b'<' | b'>' | b'"' => !matches!(part, UrlPart::Host | UrlPart::Zone),
        _ => true,
    }
}

fn hex_digit(b: u8) -> Option<u8> {
    char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

/// The byte of the percent-escape at the start of `s`.
fn escaped_byte(s: &[u8]) -> Option<u8> {
    match s {
        [b'%', high, low, ..] => Some(hex_digit(*high)? << 4 | hex_digit(*low)?),
        _ => None,
    }
}

fn bad_escape(s: &[u8]) -> String {
    let escaped_or_raw = s.get(..3).unwrap_or(s);
    let mut text = String::new();
    for chunk in escaped_or_raw.utf8_chunks() {
        text.push_str(quote(chunk.valid()).trim_matches('"'));
        // The slice may split a character.
        text.extend(chunk.invalid().iter().map(|b| format!("\\x{b:02x}")));
    }
    format!("invalid URL escape \"{text}\"")
}

fn unescape(s: &str, part: UrlPart) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(s.len());
    let mut rest = s.as_bytes();
    while let Some((&b, after)) = rest.split_first() {
        match b {
            b'%' => {
                let Some(byte) = escaped_byte(rest) else {
                    return Err(bad_escape(rest));
                };
                // In a host, only non-ASCII bytes and the percent sign that starts a zone may be escaped.
                let allowed = match part {
                    UrlPart::Host => byte >= 0x80 || byte == b'%',
                    // Windows has zone names with spaces.
                    UrlPart::Zone => byte == b'%' || byte == b' ' || !needs_escape(byte, UrlPart::Host),
                    UrlPart::Path | UrlPart::UserPassword | UrlPart::Query | UrlPart::Fragment => true,
                };
                if !allowed {
                    return Err(bad_escape(rest));
                }
                out.push(byte);
                rest = after.get(2..).unwrap_or_default();
                continue;
            }
            b'+' if part == UrlPart::Query => out.push(b' '),
            _ if matches!(part, UrlPart::Host | UrlPart::Zone) && b.is_ascii() && needs_escape(b, part) => {
                return Err(format!(
                    "invalid character {} in host name",
                    quote(char::from(b).encode_utf8(&mut [0; 4]))
                ));
            }
            _ => out.push(b),
        }
        rest = after;
    }
    Ok(out)
}

fn escape(s: &[u8], part: UrlPart) -> String {
    let mut out = String::with_capacity(s.len());
    for &b in s {
        if needs_escape(b, part) {
            out.push_str(&format!("%{b:02X}"));
        } else {
            out.push(char::from(b));
        }
    }
    out
}

/// Returns whether the escaping of the input can be kept.
fn is_validly_escaped(s: &str, part: UrlPart) -> bool {
    s.bytes()
        .all(|b| b"!$&'()*+,;=:@[]%".contains(&b) || !needs_escape(b, part))
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// The kind of input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlInput {
    /// An absolute URL or an absolute path, without a fragment.
    Request,
    /// Any URL, without its fragment.
    Reference,
}

impl Url {
    /// Parses an absolute URL or an absolute path; the error is the message.
    pub fn parse(text: &str) -> Result<Self, String> {
        // kube-apiserver parses twice: `url.ParseRequestURI` rejects relative references, but takes a fragment for
        // a part of the path or query, which `url.Parse` does not.
        Self::check(text)?;
        Self::parse_reference(text)
    }

    /// Parses any URL, absolute or not; the error is the message.
    pub fn parse_reference(text: &str) -> Result<Self, String> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        // Go's errors about the part before the fragment quote only that part.
        let mut url = parse(before, UrlInput::Reference).map_err(|why| failure(before, &why))?;
        url.fragment = unescape(fragment, UrlPart::Fragment).map_err(|why| failure(text, &why))?;
        if escape(&url.fragment, UrlPart::Fragment) != fragment {
            url.raw_fragment = fragment.to_owned();
        }
        Ok(url)
    }

    /// Checks that a text is an absolute URL or an absolute path (the format `uri`); the error is the
    /// message.
    pub fn check(text: &str) -> Result<(), String> {
        parse(text, UrlInput::Request)
            .map(drop)
            .map_err(|why| failure(text, &why))
    }

    /// The escaped user, with the password.
    pub fn userinfo(&self) -> Option<String> {
        let user = self.user.as_ref()?;
        let mut out = escape(&user.name, UrlPart::UserPassword);
        if let Some(password) = &user.password {
            out.push(':');
            out.push_str(&escape(password, UrlPart::UserPassword));
        }
        Some(out)
    }

    /// The escaped query.
    pub fn raw_query(&self) -> &str {
        &self.query
    }

    /// The fragment.
    pub fn fragment(&self) -> String {
        lossy(self.fragment.clone())
    }

    /// The scheme in lower case; may be empty.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// The host with its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host without port and brackets.
    pub fn hostname(&self) -> &str {
        let host = self.split_port().0;
        host.strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'))
            .unwrap_or(host)
    }

    /// The port; may be empty.
    pub fn port(&self) -> &str {
        self.split_port().1
    }

    fn split_port(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
            _ => (&self.host, ""),
        }
    }

    /// The escaped path, as in the input if that is validly escaped.
    pub fn escaped_path(&self) -> String {
        escaped_or_raw(&self.path, &self.raw_path, UrlPart::Path)
    }

    /// The query parameters in order of first appearance, each with its values. Malformed parameters are
    /// skipped.
    pub fn query(&self) -> Vec<(String, Vec<String>)> {
        const MAX_PARAMETERS: usize = 10_000;
        let mut parameters: Vec<(String, Vec<String>)> = Vec::new();
        let mut index = std::collections::BTreeMap::new();
        // Go stops at this number of parameters with an error, which `URL.Query` ignores.
        if self.query.split('&').count() > MAX_PARAMETERS {
            return parameters;
        }
        // Go rejects semicolons, which were separators once, and `URL.Query` skips such pairs.
        for pair in self
            .query
            .split('&')
            .filter(|p| !p.is_empty() && !p.contains(';'))
        {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Ok(name), Ok(value)) = (unescape(name, UrlPart::Query), unescape(value, UrlPart::Query))
            else {
                continue;
            };
            let (name, value) = (lossy(name), lossy(value));
            let at = *index.entry(name.clone()).or_insert_with(|| {
                parameters.push((name, Vec::new()));
                parameters.len() - 1
            });
            if let Some((_, values)) = parameters.get_mut(at) {
                values.push(value);
            }
        }
        parameters
    }
}

fn failure(text: &str, why: &str) -> String {
    format!("parse {}: {why}", quote(text))
}

/// Returns the escaped text of the input if it is valid, and escapes the plain text otherwise.
fn escaped_or_raw(plain: &[u8], raw: &str, part: UrlPart) -> String {
    if !raw.is_empty() && is_validly_escaped(raw, part) {
        return raw.to_owned();
    }
    if plain == b"*" {
        return "*".to_owned();
    }
    escape(plain, part)
}

fn parse(text: &str, source: UrlInput) -> Result<Url, String> {
    if text.bytes().any(|b| b.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && source == UrlInput::Request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, mut rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    match rest.split_once('?') {
        // Go writes a lone `?` at the end back, so that `/a?` and `/a` stay different.
        Some((before, "")) => {
            url.force_query = true;
            rest = before;
        }
        Some((before, query)) => {
            query.clone_into(&mut url.query);
            rest = before;
        }
        None => {}
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if source == UrlInput::Request {
            return Err("invalid URI for request".to_owned());
        }
        if rest
            .split('/')
            .next()
            .is_some_and(|segment| segment.contains(':'))
        {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    // As in Go, the path of a request may begin with two slashes.
    let may_have_authority =
        !url.scheme.is_empty() || (source == UrlInput::Reference && !rest.starts_with("///"));
    match rest.strip_prefix("//").filter(|_| may_have_authority) {
        Some(authority) => {
            let end = authority.find('/').unwrap_or(authority.len());
            let (authority, path) = authority.split_at_checked(end).unwrap_or((authority, ""));
            (url.user, url.host) = parse_authority(&url.scheme, authority)?;
            rest = path;
        }
        None => url.omit_host = !url.scheme.is_empty() && rest.starts_with('/'),
    }
    url.path = unescape(rest, UrlPart::Path)?;
    if escape(&url.path, UrlPart::Path) != rest {
        rest.clone_into(&mut url.raw_path);
    }
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok(text.split_once(':').unwrap_or(("", text))),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(scheme: &str, authority: &str) -> Result<(Option<Userinfo>, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, parse_host(scheme, authority)?));
    };
    let host = parse_host(scheme, host)?;
    if !user
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b))
    {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(password)),
        None => (user, None),
    };
    let name = unescape(name, UrlPart::UserPassword)?;
    let password = password.map(|p| unescape(p, UrlPart::UserPassword)).transpose()?;
    Ok((Some(Userinfo { name, password }), host))
}

fn check_port(colon_port: &str) -> Result<(), String> {
    let valid = match colon_port.strip_prefix(':') {
        Some(port) => port.bytes().all(|b| b.is_ascii_digit()),
        None => colon_port.is_empty(),
    };
    if valid {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", quote(colon_port)))
    }
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return parse_bracketed(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // `http` and `https` URLs have at most one colon; for other schemes the last one counts.
    let colon = if matches!(scheme, "http" | "https") {
        host.find(':')
    } else {
        host.rfind(':')
    };
    if let Some(colon_port) = colon.and_then(|at| host.get(at..)) {
        check_port(colon_port)?;
    }
    unescape(host, UrlPart::Host).map(lossy)
}

/// Parses an IPv6 address in brackets, with its port.
fn parse_bracketed(host: &str) -> Result<String, String> {
    let Some((inner, port)) = host.strip_prefix('[').and_then(|h| h.rsplit_once(']')) else {
        return Err("missing ']' in host".to_owned());
    };
    check_port(port)?;
    let address = match inner.split_once("%25") {
        Some((address, zone)) => {
            let mut bytes = unescape(address, UrlPart::Host)?;
            bytes.push(b'%');
            bytes.extend(unescape(zone, UrlPart::Zone)?);
            bytes
        }
        None => unescape(inner, UrlPart::Host)?,
    };
    let address = lossy(address);
    ip::check_literal(&address)?;
    Ok(format!("[{address}]{port}"))
}

/// Formats the URL. URLs with equal text are equal.
impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            out.push_str(&self.scheme);
            out.push(':');
        }
        if self.opaque.is_empty() {
            let has_authority = !self.host.is_empty() || self.user.is_some();
            let may_have_authority = has_authority || (!self.scheme.is_empty() && !self.omit_host);
            if may_have_authority && (has_authority || !self.path.is_empty()) {
                out.push_str("//");
            }
            if let Some(user) = self.userinfo() {
                out.push_str(&user);
                out.push('@');
            }
            out.push_str(&escape(self.host.as_bytes(), UrlPart::Host));
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                out.push('/');
            }
            // In the first segment, everything before the colon would be read as a scheme.
            if out.is_empty()
                && path
                    .split('/')
                    .next()
                    .is_some_and(|segment| segment.contains(':'))
            {
                out.push_str("./");
            }
            out.push_str(&path);
        } else {
            out.push_str(&self.opaque);
        }
        if self.force_query || !self.query.is_empty() {
            out.push('?');
            out.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push('#');
            out.push_str(&escaped_or_raw(
                &self.fragment,
                &self.raw_fragment,
                UrlPart::Fragment,
            ));
        }
        f.write_str(&out)
    }
}

impl PartialEq for Url {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}
impl Eq for Url {}
