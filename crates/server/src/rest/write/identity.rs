//! Who writes, when, and what makes a new object itself.

use scantling_admit::NewObjectMeta;

/// The manager that a client is that names none: its program's name.
pub(super) fn agent_name(user_agent: &str) -> String {
    let name = user_agent.split_once('/').map_or(user_agent, |(name, _)| name);
    let printable: String = name
        .chars()
        .filter(|c| scantling_value::go::is_print(*c))
        .take(128)
        .collect();
    if printable.is_empty() {
        "unknown".to_owned()
    } else {
        printable
    }
}

/// The time now, in the form of metadata.
pub(crate) fn timestamp() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What makes a new object itself.
pub(crate) fn identity() -> NewObjectMeta {
    // The letters of Kubernetes' generated names: no vowels, so that no words come about.
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let uid = uuid::Uuid::new_v4();
    let random = uuid::Uuid::new_v4().into_bytes();
    let letter = |b: &u8| {
        LETTERS
            .get(usize::from(*b) % LETTERS.len())
            .copied()
            .map_or('x', char::from)
    };
    NewObjectMeta {
        uid: uid.to_string().into(),
        created: timestamp().into(),
        suffix: random.iter().take(5).map(letter).collect::<String>().into(),
    }
}
