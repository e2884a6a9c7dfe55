//! IP addresses and CIDR networks.

use super::ordered::reading;
use crate::estimate::{TEXT_FACTOR, formula, text_cost};
use crate::overload::{Estimate, Library, Overload, ResultSize, Ty};
use crate::run::{Actual, Run, size};
use crate::val::{Arena, EvalError, Opaque, Res, Val};
use scantling_notation::ip::{Cidr, Ip};
use std::sync::Arc;

/// The name of the type of addresses.
pub const IP_TYPE: &str = "net.IP";
/// The name of the type of networks.
pub const CIDR_TYPE: &str = "net.CIDR";
const IP: Ty = Ty::Opaque(IP_TYPE);
const CIDR: Ty = Ty::Opaque(CIDR_TYPE);
const S: Ty = Ty::String;

/// Functions on addresses.
pub static IPS: Library = Library {
    name: "kubernetes.net.ip",
    overloads: &[
        reading(Overload::global("string_to_ip", "ip", &[S], IP, Run::Unary(ip))),
        Overload::member("ip_family", "family", &[IP], Ty::Int, Run::Unary(family)),
        Overload::global(
            "ip_is_canonical",
            "ip.isCanonical",
            &[S],
            Ty::Bool,
            Run::Unary(is_canonical),
        )
        .costing(
            Estimate::Pass {
                operand: 0,
                factor: 2.0 * TEXT_FACTOR,
                result: ResultSize::Unknown,
            },
            Actual::NamedFormula(|args, _| super::strings::two_passes(size(args.first().copied().flatten()))),
        ),
        Overload::member(
            "ip_is_unspecified",
            "isUnspecified",
            &[IP],
            Ty::Bool,
            Run::Unary(is_unspecified),
        ),
        Overload::member(
            "ip_is_loopback",
            "isLoopback",
            &[IP],
            Ty::Bool,
            Run::Unary(is_loopback),
        ),
        Overload::member(
            "ip_is_link_local_multicast",
            "isLinkLocalMulticast",
            &[IP],
            Ty::Bool,
            Run::Unary(is_link_local_multicast),
        ),
        Overload::member(
            "ip_is_link_local_unicast",
            "isLinkLocalUnicast",
            &[IP],
            Ty::Bool,
            Run::Unary(is_link_local_unicast),
        ),
        Overload::member(
            "ip_is_global_unicast",
            "isGlobalUnicast",
            &[IP],
            Ty::Bool,
            Run::Unary(is_global_unicast),
        ),
        reading(Overload::global(
            "is_ip",
            "isIP",
            &[S],
            Ty::Bool,
            Run::Unary(is_ip),
        )),
        Overload::global("ip_to_string", "string", &[IP], S, Run::Unary(ip_to_string)),
    ],
    types: &[(IP_TYPE, IP)],
};

/// Functions on networks.
pub static CIDRS: Library = Library {
    name: "kubernetes.net.cidr",
    overloads: &[
        reading(Overload::global(
            "string_to_cidr",
            "cidr",
            &[S],
            CIDR,
            Run::Unary(cidr),
        )),
        Overload::member(
            "cidr_contains_ip_string",
            "containsIP",
            &[CIDR, S],
            Ty::Bool,
            Run::Binary(contains_ip),
        )
        .costing(
            Estimate::Formula(formula::contains_ip_text),
            Actual::EitherFormula {
                overload: |args, _| contains_ip_cost(args) + reading_cost(args),
                function: |args, _| contains_ip_cost(args),
            },
        ),
        Overload::member(
            "cidr_contains_ip_ip",
            "containsIP",
            &[CIDR, IP],
            Ty::Bool,
            Run::Binary(contains_ip),
        )
        .costing(
            Estimate::Formula(formula::contains_ip),
            Actual::NamedFormula(|args, _| contains_ip_cost(args)),
        ),
        Overload::member(
            "cidr_contains_cidr_string",
            "containsCIDR",
            &[CIDR, S],
            Ty::Bool,
            Run::Binary(contains_cidr),
        )
        .costing(
            Estimate::Formula(formula::contains_cidr_text),
            Actual::EitherFormula {
                overload: |args, _| contains_cidr_cost(args) + reading_cost(args),
                function: |args, _| contains_cidr_cost(args),
            },
        ),
        Overload::member(
            "cidr_contains_cidr",
            "containsCIDR",
            &[CIDR, CIDR],
            Ty::Bool,
            Run::Binary(contains_cidr),
        )
        .costing(
            Estimate::Formula(formula::contains_cidr),
            Actual::NamedFormula(|args, _| contains_cidr_cost(args)),
        ),
        Overload::member("cidr_ip", "ip", &[CIDR], IP, Run::Unary(cidr_ip)),
        Overload::member(
            "cidr_prefix_length",
            "prefixLength",
            &[CIDR],
            Ty::Int,
            Run::Unary(prefix_length),
        ),
        Overload::member("cidr_masked", "masked", &[CIDR], CIDR, Run::Unary(masked)),
        reading(Overload::global(
            "is_cidr",
            "isCIDR",
            &[S],
            Ty::Bool,
            Run::Unary(is_cidr),
        )),
        Overload::global("cidr_to_string", "string", &[CIDR], S, Run::Unary(cidr_to_string)),
    ],
    types: &[(CIDR_TYPE, CIDR)],
};

/// The addition of the network extension to the functions of Kubernetes.
pub static IS_MASK: Library = Library {
    name: "net isMask",
    overloads: &[Overload::member(
        "cidr_is_mask",
        "isMask",
        &[CIDR],
        Ty::Bool,
        Run::Unary(is_mask),
    )],
    types: &[],
};

impl Opaque for Ip {
    fn type_name(&self) -> &'static str {
        IP_TYPE
    }

    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
        other.opaque::<Ip>().map(|other| self == other)
    }

    fn size(&self) -> Option<u64> {
        Some(self.n_bytes())
    }

    fn share(&self) -> Arc<dyn Opaque> {
        Arc::new(*self)
    }
}

impl Opaque for Cidr {
    fn type_name(&self) -> &'static str {
        CIDR_TYPE
    }

    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
        other.opaque::<Cidr>().map(|other| self == other)
    }

    fn size(&self) -> Option<u64> {
        // The bytes of the prefix, not of the address: kube-apiserver compares only these.
        Some(u64::from(self.prefix_length()).div_ceil(8))
    }

    fn share(&self) -> Arc<dyn Opaque> {
        Arc::new(*self)
    }
}

/// The cost of comparing the bytes of the network's prefix.
fn contains_ip_cost(args: &[Option<Val<'_>>]) -> u64 {
    // Twice the network: kube-apiserver charges both sides of the comparison with the length of the prefix.
    text_cost(size(args.first().copied().flatten()) * 2)
}

/// Like [`contains_ip_cost`], plus masking the network and comparing prefix lengths.
fn contains_cidr_cost(args: &[Option<Val<'_>>]) -> u64 {
    let prefix = size(args.first().copied().flatten());
    contains_ip_cost(args) + text_cost(prefix) + 1
}

/// The cost of parsing the text argument.
fn reading_cost(args: &[Option<Val<'_>>]) -> u64 {
    text_cost(size(args.get(1).copied().flatten()))
}

fn parse_ip(text: &str) -> Result<Ip, EvalError> {
    Ip::parse(text).map_err(EvalError::message)
}

fn parse_cidr(text: &str) -> Result<Cidr, EvalError> {
    Cidr::parse(text).map_err(|e| {
        EvalError::message(format!(
            "network address parse error during conversion from string: {e}"
        ))
    })
}

fn ip<'a>(arena: &'a Arena, text: Val<'a>) -> Res<'a> {
    arena.opaque(parse_ip(text.str()?)?)
}

fn is_ip<'a>(_: &'a Arena, text: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(Ip::parse(text.str()?).is_ok()))
}

fn is_canonical<'a>(_: &'a Arena, text: Val<'a>) -> Res<'a> {
    let text = text.str()?;
    // An invalid address is an error, not merely not canonical.
    Ok(Val::Bool(parse_ip(text)?.to_string() == text))
}

fn ip_to_string<'a>(arena: &'a Arena, ip: Val<'a>) -> Res<'a> {
    arena.str(ip.opaque::<Ip>()?.to_string())
}

fn family<'a>(_: &'a Arena, ip: Val<'a>) -> Res<'a> {
    Ok(Val::Int(ip.opaque::<Ip>()?.family()))
}

fn is_unspecified<'a>(_: &'a Arena, ip: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(ip.opaque::<Ip>()?.is_unspecified()))
}

fn is_loopback<'a>(_: &'a Arena, ip: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(ip.opaque::<Ip>()?.is_loopback()))
}

fn is_link_local_multicast<'a>(_: &'a Arena, ip: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(ip.opaque::<Ip>()?.is_link_local_multicast()))
}

fn is_link_local_unicast<'a>(_: &'a Arena, ip: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(ip.opaque::<Ip>()?.is_link_local_unicast()))
}

fn is_global_unicast<'a>(_: &'a Arena, ip: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(ip.opaque::<Ip>()?.is_global_unicast()))
}

fn cidr<'a>(arena: &'a Arena, text: Val<'a>) -> Res<'a> {
    arena.opaque(parse_cidr(text.str()?)?)
}

fn is_cidr<'a>(_: &'a Arena, text: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(Cidr::parse(text.str()?).is_ok()))
}

fn cidr_to_string<'a>(arena: &'a Arena, cidr: Val<'a>) -> Res<'a> {
    arena.str(cidr.opaque::<Cidr>()?.to_string())
}

fn contains_ip<'a>(_: &'a Arena, cidr: Val<'a>, ip: Val<'a>) -> Res<'a> {
    let cidr = cidr.opaque::<Cidr>()?;
    let ip = match ip {
        // UPSTREAM: an invalid address is reported as a missing overload, although `ip` and `containsCIDR` name the
        // problem.
        Val::Str(text) => parse_ip(text).map_err(|_| EvalError::NoSuchOverload)?,
        _ => *ip.opaque::<Ip>()?,
    };
    Ok(Val::Bool(cidr.contains_ip(ip)))
}

fn contains_cidr<'a>(_: &'a Arena, cidr: Val<'a>, other: Val<'a>) -> Res<'a> {
    let cidr = cidr.opaque::<Cidr>()?;
    let other = match other {
        Val::Str(text) => parse_cidr(text)?,
        _ => *other.opaque::<Cidr>()?,
    };
    Ok(Val::Bool(cidr.contains_cidr(other)))
}

fn cidr_ip<'a>(arena: &'a Arena, cidr: Val<'a>) -> Res<'a> {
    arena.opaque(cidr.opaque::<Cidr>()?.ip())
}

fn prefix_length<'a>(_: &'a Arena, cidr: Val<'a>) -> Res<'a> {
    Ok(Val::Int(i64::from(cidr.opaque::<Cidr>()?.prefix_length())))
}

fn masked<'a>(arena: &'a Arena, cidr: Val<'a>) -> Res<'a> {
    arena.opaque(cidr.opaque::<Cidr>()?.masked())
}

fn is_mask<'a>(_: &'a Arena, cidr: Val<'a>) -> Res<'a> {
    let cidr = cidr.opaque::<Cidr>()?;
    Ok(Val::Bool(cidr.masked() == *cidr))
}
