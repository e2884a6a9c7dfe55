//! References to container images.

/// Returns whether an image is pulled always by default: its tag is `latest`, or it has neither tag nor digest. A malformed
/// reference is not.
pub(super) fn is_latest(image: &str) -> bool {
    parse(image).is_some_and(|reference| match reference {
        ImageReference { tag: Some(tag), .. } => tag == "latest",
        ImageReference { digest, .. } => digest.is_none(),
    })
}

/// The parts of a reference that decide the pull policy.
struct ImageReference<'a> {
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

const MAX_NAME: usize = 255;

/// Reads a reference as container registries do: `[domain/]path[:tag][@digest]`.
fn parse(image: &str) -> Option<ImageReference<'_>> {
    // References are not image IDs: the parser of container registries refuses 64 hexadecimal digits.
    if image.len() == 64 && image.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    let (domain, rest) = split_domain(rest);
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    // References without a domain are completed before their length is checked.
    let name = domain.map_or("docker.io/library".len(), str::len) + 1 + path.len();
    let is_valid = domain.is_none_or(is_domain)
        && path.split('/').all(is_path_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest)
        && name <= MAX_NAME;
    is_valid.then_some(ImageReference { tag, digest })
}

/// Splits off the domain: the first part, where it looks like a host.
fn split_domain(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((host, rest))
            if host.contains(['.', ':'])
                || host == "localhost"
                || host.bytes().any(|b| b.is_ascii_uppercase()) =>
        {
            (Some(host), rest)
        }
        _ => (None, name),
    }
}

fn is_domain(domain: &str) -> bool {
    if let Some(rest) = domain.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else {
            return false;
        };
        let is_address = !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
        return is_address && (port.is_empty() || port.strip_prefix(':').is_some_and(is_number));
    }
    let (host, port) = match domain.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (domain, None),
    };
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        ends.is_some_and(|(a, z)| a.is_ascii_alphanumeric() && z.is_ascii_alphanumeric())
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    };
    host.split('.').all(is_label) && port.is_none_or(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Lower-case words, joined by a dot, one or two underscores, or any number of dashes.
fn is_path_component(component: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let (mut run, mut before) = (0, b'-');
    for b in component.bytes() {
        run = if is_word(b) {
            0
        } else if b == before {
            run + 1
        } else {
            1
        };
        let joins = match b {
            b'-' => run == 1 && is_word(before) || run > 1,
            b'_' => run == 1 && is_word(before) || run == 2,
            b'.' => run == 1 && is_word(before),
            _ => is_word(b),
        };
        if !joins {
            return false;
        }
        before = b;
    }
    is_word(before)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let first = tag.bytes().next().is_some_and(is_word);
    first && tag.len() <= 128 && tag.bytes().all(|b| is_word(b) || matches!(b, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hash)) = digest.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hash.len() == length && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_with_tag_latest() {
        let digest = format!("a@sha256:{}", "0".repeat(64));
        for (image, want) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1", false),
            ("a.b:5000/c/d__e-f", true),
            ("a.b:5000/c:1", false),
            (digest.as_str(), false),
            ("Nginx", false),
            ("a/B", false),
            ("A/b", true),
            ("a--b", true),
            ("a___b", false),
            ("a..b", false),
            ("-a", false),
            ("", false),
            (" a", false),
            ("a@sha256:00", false),
            ("a:", false),
            ("localhost/a", true),
            ("[::1]:80/a", true),
        ] {
            assert_eq!(is_latest(image), want, "{image}");
        }
    }
}
