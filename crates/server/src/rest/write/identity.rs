//! The field manager and the time of a request, and the identity of new objects.

use scantling_admit::NewObjectMeta;

/// The default field manager: the program in the user agent.
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

/// The current time, as metadata has it.
pub(crate) fn timestamp() -> String {
    scantling_merge::apply::timestamp(jiff::Timestamp::now())
}

/// Generates the metadata of a new object.
pub(crate) fn identity() -> NewObjectMeta {
    // Kubernetes' generated names have no vowels, to avoid words.
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
