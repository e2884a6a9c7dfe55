//! A page for each piece of advice.

/// The codes with their pages, in order.
pub(super) const PAGES: [(&str, &str); 11] = [
    (
        "SCT0101",
        "a rule is near its cost limit\n\nA cluster refuses a definition with a rule whose estimated cost, times how often it may run, is above\n10 000 000. This rule is above half of that: a small change to it, or to the schema it stands in, may\nmake the definition unacceptable.\n\nWhat to do: add maxItems, maxProperties and maxLength where the rule looks. `scantling cost` shows\nevery rule's cost and the bounds that would help.\n",
    ),
    (
        "SCT0102",
        "the rules of a schema are near their common cost limit\n\nThe estimated costs of all rules of a version's schema may add up to 100 000 000. They are above half of\nthat.\n\nWhat to do: `scantling cost` shows which rules cost most.\n",
    ),
    (
        "SCT0103",
        "a value that rules see has no bound\n\nWhere a list has no maxItems, a map no maxProperties or a string no maxLength, a cluster assumes the\nlargest one that fits into a request, and estimates rules accordingly.\n\nWhat to do: add the bound, as large as anyone may ever need. Adding it later is a breaking change.\n",
    ),
    (
        "SCT0104",
        "a rule has no message\n\nWithout message or messageExpression, users are shown `failed rule:` and the expression.\n\nWhat to do: add a message that says what must hold.\n",
    ),
    (
        "SCT0201",
        "a list has no list type\n\nA list without x-kubernetes-list-type is atomic: whoever applies it owns all of it, its elements have no\nidentity, and rules below it cannot use oldSelf.\n\nWhat to do: say `map` with x-kubernetes-list-map-keys for lists of named things, `set` for scalars that\nmay stand once, or `atomic` if that is what you mean.\n",
    ),
    (
        "SCT0301",
        "a boolean field\n\nKubernetes' API conventions advise against booleans: what has two states today has three tomorrow, and\na boolean cannot grow.\n\nWhat to do: use a string with an enum of named values.\n",
    ),
    (
        "SCT0302",
        "a map of objects\n\nKubernetes' API conventions prefer lists of objects with a name over maps from names to objects: they\nare easier to read, to patch and to extend.\n\nWhat to do: use a list with x-kubernetes-list-type: map.\n",
    ),
    (
        "SCT0401",
        "unknown fields are kept\n\nUnder x-kubernetes-preserve-unknown-fields, misspelt fields are stored without a word.\n\nWhat to do: describe the fields, or keep the extension to the smallest part that needs it.\n",
    ),
    (
        "SCT0402",
        "a status without its subresource\n\nWithout `subresources: {status: {}}`, status is written by every write of the object, and every change of\nit counts as a change of the specification (metadata.generation).\n\nWhat to do: switch on the subresource.\n",
    ),
    (
        "SCT0501",
        "a part of a default is dropped\n\nFields that the schema does not describe, and nulls where it does not allow them, go when a default is\nfilled in, as they do in objects. A cluster refuses unknown fields in the defaults of new definitions.\n\nWhat to do: describe the fields, or take them out of the default.\n",
    ),
    (
        "SCT0502",
        "a default that never applies\n\nDefaults fill in absent fields. Elements of lists and values of maps are never absent: a default right\nunder `items` or `additionalProperties` does nothing.\n\nWhat to do: put defaults on the fields inside, or on the list or map as a whole.\n",
    ),
];

#[cfg(test)]
mod tests {
    use super::PAGES;

    #[test]
    fn codes_ascend() {
        assert!(PAGES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn every_code_has_a_page() {
        for code in include_str!("advice.rs")
            .split('"')
            .filter(|part| part.starts_with("SCT"))
        {
            assert!(PAGES.iter().any(|(c, _)| *c == code), "{code} has no page");
        }
    }
}
