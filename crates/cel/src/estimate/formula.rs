//! Estimates of calls whose cost depends on their operands. kube-apiserver accepts or refuses CRDs by these numbers, so
//! the formulas reproduce its quirks.

use super::{Bounds, CallEstimate, LIST_COST, Operand, REGEX_FACTOR, TEXT_FACTOR};
use crate::ast::Literal;
use crate::types::CelType;

/// Returns an operand; the checker guarantees that it exists.
fn operand<'a>(operands: &[Operand<'a>], n: usize) -> Operand<'a> {
    const NOTHING: Operand<'static> = Operand {
        ty: &CelType::Dyn,
        size: None,
        element_size: None,
        literal: None,
    };
    // An operand of unknown size makes the estimate unbounded, so the fallback cannot let an expensive rule pass.
    operands.get(n).copied().unwrap_or(NOTHING)
}

/// `==`. Types of the Kubernetes libraries have a cost of their own; everything else costs what `!=` costs.
pub fn equal(operands: &[Operand<'_>]) -> CallEstimate {
    let (left, right) = (operand(operands, 0), operand(operands, 1));
    // kube-apiserver decides by the static type, so dynamic operands fall through to the general formula.
    let name = |t: &CelType| match t {
        CelType::Opaque(name, _) | CelType::Message(name) => Some(name.clone()),
        _ => None,
    };
    let (Some(name), Some(other)) = (name(left.ty), name(right.ty)) else {
        return compare(operands);
    };
    if name != other {
        return compare(operands);
    }
    match name.as_ref() {
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => {
            CallEstimate::cost(Bounds::exactly(1))
        }
        // A format's name has at most 64 characters.
        "kubernetes.NamedFormat" => CallEstimate::cost(Bounds::new(1, 64).scaled(TEXT_FACTOR)),
        "kubernetes.URL" => {
            // A URL without a known size counts as 1, although every other operand without one counts as unbounded.
            let most = right.size.map_or(1, |size| size.max);
            CallEstimate::cost(Bounds::new(1, most).scaled(TEXT_FACTOR))
        }
        _ => compare(operands),
    }
}

/// `!=`, and the order of strings and bytes: a pass over the shorter operand.
pub fn compare(operands: &[Operand<'_>]) -> CallEstimate {
    let most = operand(operands, 0)
        .size()
        .max
        .min(operand(operands, 1).size().max);
    CallEstimate::cost(
        Bounds {
            // At least 1 unless the size is certainly 0. Objects and numbers of a schema have size 0, so comparing them
            // is free.
            min: most.min(1),
            max: most,
        }
        .scaled(TEXT_FACTOR),
    )
}

/// `x in list`
pub fn in_list(operands: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::cost(operand(operands, 1).size().scaled(1.0))
}

/// `string.contains(string)`
pub fn contains(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand(operands, 0).size().scaled(TEXT_FACTOR);
    let part = operand(operands, 1).size().scaled(TEXT_FACTOR);
    CallEstimate::cost(text.times(part))
}

fn regex_cost(operands: &[Operand<'_>]) -> Bounds {
    // Even an empty text has a cost.
    let text = operand(operands, 0)
        .size()
        .plus(Bounds::exactly(1))
        .scaled(TEXT_FACTOR);
    text.times(operand(operands, 1).size().scaled(REGEX_FACTOR))
}

/// `string.matches(regex)`, `matches(string, regex)`
pub fn matches(operands: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::cost(regex_cost(operands))
}

/// `string.find(regex)`, `string.findAll(regex)`
pub fn find(operands: &[Operand<'_>]) -> CallEstimate {
    let most = operand(operands, 0).size().max;
    CallEstimate::sized(regex_cost(operands), Bounds::up_to(most))
}

/// `bytes(string)`: a character is at most four bytes.
pub fn string_to_bytes(operands: &[Operand<'_>]) -> CallEstimate {
    let size = operand(operands, 0).size();
    CallEstimate::sized(
        size.scaled(TEXT_FACTOR),
        Bounds {
            min: size.min,
            // UPSTREAM: wraps around for huge sizes instead of saturating.
            max: size.max.wrapping_mul(4),
        },
    )
}

/// `string(bytes)`
pub fn bytes_to_string(operands: &[Operand<'_>]) -> CallEstimate {
    let size = operand(operands, 0).size();
    CallEstimate::sized(size.scaled(TEXT_FACTOR), Bounds::new(size.min / 4, size.max))
}

/// `strings.quote(string)`: at most every character is escaped.
pub fn quote(operands: &[Operand<'_>]) -> CallEstimate {
    let size = operand(operands, 0).size();
    CallEstimate::sized(
        size.scaled(TEXT_FACTOR),
        Bounds {
            // UPSTREAM: wraps around, so quoting a text of unknown size seems to give an empty one.
            min: size.min.wrapping_add(2),
            max: size.max.wrapping_mul(2).wrapping_add(2),
        },
    )
}

/// `isSorted`, `sum`, `min`, `max` of a list; `indexOf`, `lastIndexOf` of a list or a string.
pub fn search(operands: &[Operand<'_>]) -> CallEstimate {
    let target = operand(operands, 0);
    // A string, or a dynamic operand, which kube-apiserver estimates like a string.
    if target.ty.first_param().is_none() {
        return CallEstimate::cost(target.size().scaled(TEXT_FACTOR));
    }
    search_elements(&target)
}

/// `list.includes(value)`, even if the list type is only known at run time.
pub fn includes(operands: &[Operand<'_>]) -> CallEstimate {
    search_elements(&operand(operands, 0))
}

fn search_elements(target: &Operand<'_>) -> CallEstimate {
    let mut each = Bounds::exactly(1);
    if matches!(target.ty.first_param(), Some(CelType::String | CelType::Bytes)) {
        // An unknown element size makes the estimate unbounded; kube-apiserver then refuses the rule.
        each = each.plus(target.element_size().scaled(TEXT_FACTOR));
    }
    CallEstimate::cost(target.size().times(each))
}

/// `string.replace(old, new)`, `string.replace(old, new, limit)`
pub fn replace(operands: &[Operand<'_>]) -> CallEstimate {
    let (text, old, new) = (
        operand(operands, 0).size(),
        operand(operands, 1).size(),
        operand(operands, 2).size(),
    );
    // The longest result: an empty `old` surrounds every character; otherwise the shortest `old` becomes the longest
    // `new` as often as it fits, if that makes the text longer.
    let (most_times, most_kept) = if old.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if new.max <= old.min {
        (0, text.max)
    } else {
        (ratio(text.max, old.min), 0)
    };
    // The shortest result, likewise.
    let (least_times, least_kept) = if old.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if old.max <= new.min {
        (0, text.min)
    } else {
        (ratio(text.min, old.max), 0)
    };
    let times = Bounds::new(least_times, most_times);
    let kept = Bounds::new(least_kept, most_kept);
    CallEstimate::sized(text.scaled(2.0 * TEXT_FACTOR), times.times(new).plus(kept))
}

/// The quotient, rounded up, computed with floats.
fn ratio(a: u64, b: u64) -> u64 {
    // kube-apiserver divides floats here, which rounds sizes beyond 53 bits. `b` is never 0: the caller handles it.
    (a as f64 / b as f64).ceil() as u64
}

/// `string.split(separator)`, `string.split(separator, limit)`
pub fn split(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand(operands, 0).size();
    // A negative limit wraps around and means no limit.
    let most = match operand(operands, 2).literal {
        // The limit counts as the size of the result even if the text is shorter.
        Some(Literal::Int(limit)) => limit.cast_unsigned(),
        _ => text.max,
    };
    CallEstimate::sized(text.scaled(2.0 * TEXT_FACTOR), Bounds::up_to(most))
}

/// `list.join()`, `list.join(separator)`
pub fn join(operands: &[Operand<'_>]) -> CallEstimate {
    let list = operand(operands, 0);
    let mut size = Bounds::exactly(0);
    if list.ty.first_param().is_some() {
        // A dynamic operand has no element type, so its elements count as empty, as on kube-apiserver.
        size = list.size().times(list.element_size());
    }
    if let Some(separator) = operands.get(1) {
        let gaps = Bounds::new(
            list.size().min.saturating_sub(1),
            list.size().max.saturating_sub(1),
        );
        size = size.plus(separator.size().times(gaps));
    }
    CallEstimate::sized(size.scaled(TEXT_FACTOR), size)
}

/// The size of an address in bytes.
const ADDRESS: Bounds = Bounds::new(4, 16);

/// `cidr.containsIP(ip)`
pub fn contains_ip(_: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::cost(ADDRESS.plus(ADDRESS).scaled(TEXT_FACTOR))
}

/// `cidr.containsIP(string)`
pub fn contains_ip_text(operands: &[Operand<'_>]) -> CallEstimate {
    with_parsing(contains_ip(operands), &operand(operands, 1))
}

/// `cidr.containsCIDR(cidr)`
pub fn contains_cidr(operands: &[Operand<'_>]) -> CallEstimate {
    let compare = contains_ip(operands).cost;
    CallEstimate::cost(compare.plus(ADDRESS.scaled(TEXT_FACTOR)).plus(Bounds::exactly(1)))
}

/// `cidr.containsCIDR(string)`
pub fn contains_cidr_text(operands: &[Operand<'_>]) -> CallEstimate {
    with_parsing(contains_cidr(operands), &operand(operands, 1))
}

fn with_parsing(base: CallEstimate, text: &Operand<'_>) -> CallEstimate {
    CallEstimate::cost(base.cost.plus(text.size().scaled(TEXT_FACTOR)))
}

/// `format.validate(string)`: as if every format were a regular expression of 128 characters.
pub fn validate_format(operands: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::cost(
        operand(operands, 1)
            .size()
            .scaled(TEXT_FACTOR)
            .scaled(128.0 * REGEX_FACTOR),
    )
}

/// A call that builds a list of the given size, at `factor` per element.
fn list_call(factor: f64, size: Bounds) -> CallEstimate {
    CallEstimate::sized(size.scaled(factor).plus(Bounds::exactly(1 + LIST_COST)), size)
}

/// `list.slice(start, end)`
pub fn slice(operands: &[Operand<'_>]) -> CallEstimate {
    let start = operand(operands, 1).constant_index().unwrap_or(0);
    let end = operand(operands, 2)
        .constant_index()
        .unwrap_or(operand(operands, 0).size().max);
    // UPSTREAM: a start after the end wraps around to a huge size, so kube-apiserver refuses the rule.
    list_call(1.0, Bounds::exactly(end.wrapping_sub(start)))
}

/// `lists.range(n)`
pub fn range(operands: &[Operand<'_>]) -> CallEstimate {
    list_call(
        1.0,
        Bounds::exactly(operand(operands, 0).constant_index().unwrap_or(u64::MAX)),
    )
}

/// `list.reverse()`
pub fn reverse(operands: &[Operand<'_>]) -> CallEstimate {
    list_call(1.0, operand(operands, 0).size())
}

/// `list.flatten()`, `list.flatten(depth)`
pub fn flatten(operands: &[Operand<'_>]) -> CallEstimate {
    let depth = operands
        .get(1)
        .map_or(1, |depth| depth.constant_index().unwrap_or(u64::MAX));
    // The size of the result is that of the outer list, although flattening makes lists longer.
    list_call(depth as f64, operand(operands, 0).size())
}

/// `list.distinct()`, and `list.sort()` of anything but strings and bytes: quadratic.
pub fn pairwise(operands: &[Operand<'_>]) -> CallEstimate {
    let size = operand(operands, 0).size();
    // UPSTREAM: the square is also the size of the result, so chained calls soon exceed every limit.
    list_call(2.0, size.times(size))
}

/// `list.sort()` of strings or bytes.
pub fn pairwise_text(operands: &[Operand<'_>]) -> CallEstimate {
    let size = operand(operands, 0).size();
    list_call(2.0 + TEXT_FACTOR, size.times(size))
}

/// `list.sortBy(…)` by keys that are neither strings nor bytes; the keys are operand 1.
pub fn pairwise_keys(operands: &[Operand<'_>]) -> CallEstimate {
    // Without keys no operand is left, which makes the estimate unbounded.
    pairwise(operands.get(1..).unwrap_or_default())
}

/// `list.sortBy(…)` by keys that are strings or bytes.
pub fn pairwise_text_keys(operands: &[Operand<'_>]) -> CallEstimate {
    pairwise_text(operands.get(1..).unwrap_or_default())
}

fn sets(operands: &[Operand<'_>], factor: f64) -> CallEstimate {
    let pairs = operand(operands, 0).size().times(operand(operands, 1).size());
    CallEstimate::cost(pairs.scaled(factor).plus(Bounds::exactly(1)))
}

/// `sets.contains(list, list)`, `sets.intersects(list, list)`
pub fn sets_one_way(operands: &[Operand<'_>]) -> CallEstimate {
    sets(operands, 1.0)
}

/// `sets.equivalent(list, list)`
pub fn sets_both_ways(operands: &[Operand<'_>]) -> CallEstimate {
    sets(operands, 2.0)
}
