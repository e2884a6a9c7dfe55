//! Allocation of cluster IPs and node ports.
//!
//! [`allocate`] runs on every write of a service, between the mutating admission phase and
//! [`prepare`](crate::BuiltinKind::prepare). It fills in what clients may omit and takes addresses and ports out of
//! [`Pools`]. It stores nothing: the caller must make sure that two services do not get the same address or port.

use super::cluster_ips::{self, FAMILIES, family_of};
use super::pool::{AddressRange, pick_port};
use super::{HEADLESS, ServiceView, node_port};
use crate::checks::ip::{self, Cidr};
use crate::prepare::object_in;
use scantling_value::{ErrorList, FieldError, Map, Path, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// The addresses and ports that services get.
#[derive(Debug)]
pub struct Pools<'a> {
    /// The ranges of cluster IPs in CIDR notation, at most one per IP family. The first one is the default.
    pub ranges: &'a [&'a str],
    /// The range of node ports.
    pub node_ports: RangeInclusive<u16>,
    /// The cluster IPs of all services.
    pub used_addresses: &'a BTreeSet<IpAddr>,
    /// The node ports of all services, health-check ports included.
    pub used_ports: &'a BTreeSet<u16>,
    /// Any number; picks one of the free addresses and ports.
    pub seed: u64,
    /// True if nothing is stored. A dry run gets placeholders and no errors about address conflicts.
    pub dry_run: bool,
}

/// The reason why a service gets no address or port.
#[derive(Debug)]
pub enum AllocationError {
    /// Field errors, to be reported as those of validation.
    Invalid(ErrorList),
    /// A failure, to be reported as an internal error.
    Internal(String),
    /// A failure, to be reported with this message only.
    Failed(String),
}

impl From<FieldError> for AllocationError {
    fn from(error: FieldError) -> Self {
        AllocationError::Invalid(error.into())
    }
}

/// The addresses and ports that a service took.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// New cluster IPs.
    pub addresses: Vec<IpAddr>,
    /// New node ports.
    pub ports: BTreeSet<u16>,
}

/// Fills in the cluster IPs, IP families and node ports of a service. `old` is the stored service on an update.
pub fn allocate(
    service: &mut Map,
    old: Option<&Value>,
    pools: &Pools<'_>,
) -> Result<Allocation, AllocationError> {
    if let Some(old) = old {
        keep_allocated(service, old);
    }
    relate_cluster_ips(service, old);
    let mut allocator = Allocator {
        pools,
        allocation: Allocation::default(),
        planned: BTreeSet::new(),
    };
    // In this order, because addresses depend on the families. Each step ends the request with its first error.
    allocator.choose_families(service, old)?;
    allocator.take_addresses(service, old)?;
    allocator.take_ports(service, old)?;
    Ok(allocator.allocation)
}

/// Returns whether a service and its predecessor prefer two stacks and have the same addresses and families. Such services stay
/// as they are when the cluster gets another stack.
fn stays_preferred(new: ServiceView<'_>, old: Option<ServiceView<'_>>) -> bool {
    let Some(old) = old else { return false };
    let is_preferred = |v: ServiceView<'_>| matches!(v.text("ipFamilyPolicy"), "PreferDualStack");
    is_preferred(new)
        && (is_preferred(old) || old.get("ipFamilyPolicy").is_none())
        && new.service_type() == old.service_type()
        && matches!(new.service_type(), "ClusterIP" | "NodePort" | "LoadBalancer")
        && new.list("clusterIPs") == old.list("clusterIPs")
        && new.list("ipFamilies") == old.list("ipFamilies")
}

/// An update that omits what was allocated keeps it.
fn keep_allocated(service: &mut Map, old: &Value) {
    let (new, stored) = (ServiceView::new(service), ServiceView::of_value(old));
    let mut kept: Vec<(&str, Value)> = Vec::new();
    if !new.is_external_name() && !stored.is_external_name() {
        let is_omitted = [
            ("clusterIP", new.text("clusterIP").is_empty()),
            ("clusterIPs", new.list("clusterIPs").is_empty()),
        ];
        let omitted = is_omitted.into_iter().filter(|(_, is_omitted)| *is_omitted);
        kept.extend(omitted.filter_map(|(field, _)| Some((field, stored.get(field)?.clone()))));
    }
    let has_health_check = new.needs_health_check() && stored.needs_health_check();
    if has_health_check && new.get("healthCheckNodePort").is_none_or(|p| *p == Value::Int(0)) {
        kept.extend(
            stored
                .get("healthCheckNodePort")
                .map(|p| ("healthCheckNodePort", p.clone())),
        );
    }
    let ports = kept_node_ports(new, stored);
    let Some(spec) = object_in(service, "spec") else {
        return;
    };
    for (field, value) in kept {
        spec.insert(field, value);
    }
    if let Some(ports) = ports {
        spec.insert("ports", Value::Array(ports));
    }
}

/// The ports of a service, with stored node ports in place of omitted ones. Ports are matched by name.
fn kept_node_ports(new: ServiceView<'_>, stored: ServiceView<'_>) -> Option<Vec<Value>> {
    let has_node_ports = |v: ServiceView<'_>| match v.service_type() {
        "NodePort" => true,
        "LoadBalancer" => v.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    };
    if !has_node_ports(new) || !has_node_ports(stored) {
        return None;
    }
    let (given, before) = (new.node_ports(), stored.node_ports());
    let stored_port = |name: &str| {
        let named = stored
            .list("ports")
            .iter()
            // kube-apiserver collects the stored ports by name in a map, where the last one stays.
            .rev()
            .find(|p| p.get_str("name") == name);
        let number = named.map_or(0, node_port);
        // A port that both versions name stays where the client put it.
        let is_free = !(given.contains(&number) && before.contains(&number));
        (number != 0 && is_free).then_some(number)
    };
    let mut ports = new.list("ports").to_vec();
    for port in ports.iter_mut().filter(|p| node_port(p) == 0) {
        if let (Some(number), Some(port)) = (stored_port(port.get_str("name")), port.as_object_mut()) {
            port.insert("nodePort", Value::Int(number));
        }
    }
    Some(ports)
}

/// Derives `clusterIPs` from `clusterIP` where a client knows only the latter.
pub(super) fn relate_cluster_ips(service: &mut Map, old: Option<&Value>) {
    let new = ServiceView::new(service);
    let (one, all) = (new.text("clusterIP"), new.list("clusterIPs"));
    let old = old.map(ServiceView::of_value);
    let (old_one, old_all) = old.map_or(("", &[][..]), |o| (o.text("clusterIP"), o.list("clusterIPs")));
    let derived = match old {
        None if !one.is_empty() && all.is_empty() => Some(vec![one.into()]),
        None => None,
        // A client that does not know `clusterIPs` sent the rest back unchanged.
        Some(_) if one == old_one && all.is_empty() => Some(old_all.to_vec()),
        // Such a client changed `clusterIP`: the list that it sent is that of the stored service.
        Some(_) if one != old_one && all == old_all => match one {
            "" => Some(Vec::new()),
            one => Some(vec![one.into()]),
        },
        Some(_) => None,
    };
    if let (Some(derived), Some(spec)) = (derived, object_in(service, "spec")) {
        match derived.is_empty() {
            true => spec.remove("clusterIPs"),
            false => spec.insert("clusterIPs", Value::Array(derived)),
        };
    }
}

/// A path in the spec.
fn with_path<T>(field: &str, f: impl FnOnce(&Path<'_>) -> T) -> T {
    let spec = Path::ROOT.field("spec");
    f(&spec.field(field))
}

/// The reason why a requested port is refused.
const TAKEN: &str = "provided port is already allocated";

struct Allocator<'p> {
    pools: &'p Pools<'p>,
    allocation: Allocation,
    /// The ports of a dry run, which takes none.
    planned: BTreeSet<i64>,
}

impl Allocator<'_> {
    /// The IP families of the cluster; the first one is the default.
    fn families(&self) -> Vec<&'static str> {
        let ranges = self.pools.ranges.iter().filter_map(|r| Cidr::parse_sloppy(r));
        ranges.map(|r| family_of(&ip::canonical(&r.address))).collect()
    }

    /// Sets `ipFamilyPolicy` and `ipFamilies`, and checks that the cluster has these families.
    fn choose_families(&self, service: &mut Map, old: Option<&Value>) -> Result<(), AllocationError> {
        let old_view = old.map(ServiceView::of_value);
        let view = ServiceView::new(service);
        if view.is_external_name() || stays_preferred(view, old_view) {
            return Ok(());
        }
        let needs_no_address = view.text("clusterIP") == HEADLESS && !view.has_selector();
        if view.get("ipFamilyPolicy").is_none() {
            let stored = old_view.and_then(|o| o.get("ipFamilyPolicy"));
            let policy = match stored {
                Some(policy) => policy.clone(),
                // The server cannot know the families of the endpoints, so it assumes both.
                None if needs_no_address => "RequireDualStack".into(),
                None => "SingleStack".into(),
            };
            set(service, "ipFamilyPolicy", policy);
        }
        let mut errors = ErrorList::new();
        cluster_ips::check(&Value::Object(service.clone()), old, &mut errors);
        fail_with(errors)?;
        let errors = self.relate_policy(service, old_view);
        fail_with(errors)?;
        if needs_no_address {
            return self.choose_families_without_address(service);
        }
        self.check_configured(service)?;
        let mut families = texts(service, "ipFamilies");
        let configured = self.families();
        if families.is_empty() {
            families.extend(configured.first().map(|f| (*f).to_owned()));
        }
        let is_single = ServiceView::new(service).text("ipFamilyPolicy") == "SingleStack";
        if !is_single && configured.len() == 2 {
            add_other_family(&mut families);
        }
        set(service, "ipFamilies", families.into());
        Ok(())
    }

    /// Relates the policy to the addresses and families that the client gave, and derives families from addresses.
    fn relate_policy(&self, service: &mut Map, old: Option<ServiceView<'_>>) -> ErrorList {
        let mut errors = ErrorList::new();
        let policy: Value = ServiceView::new(service).text("ipFamilyPolicy").into();
        let is_single = policy.as_str() == Some("SingleStack");
        let mut refuse = |why: &str| {
            with_path("ipFamilyPolicy", |at| {
                errors.push(FieldError::invalid(at, policy.clone(), why));
            });
        };
        if let Some(old) = old {
            let fields = [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")];
            for (field, name) in fields {
                let (new, stored) = (ServiceView::new(service).list(field), old.list(field));
                if is_single && new == stored && new.len() > 1 {
                    let first = new.iter().take(1).cloned().collect();
                    set(service, field, Value::Array(first));
                } else if !is_single && !new.is_empty() && new.len() < stored.len() {
                    refuse(&format!("must be 'SingleStack' to release the secondary {name}"));
                }
            }
        }
        if is_single {
            for (field, name) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
                if ServiceView::new(service).list(field).len() == 2 {
                    refuse(&format!(
                        "must be 'RequireDualStack' or 'PreferDualStack' when multiple {name} are specified"
                    ));
                }
            }
        }
        let addresses = texts(service, "clusterIPs");
        let mut families = texts(service, "ipFamilies");
        for (i, address) in addresses.iter().enumerate().take_while(|(_, a)| *a != HEADLESS) {
            if i < families.len() {
                continue;
            }
            let family = family_of(address);
            if self.families().contains(&family) {
                families.push(family.to_owned());
            } else {
                with_path("clusterIPs", |at| {
                    let why = format!("{family} is not configured on this cluster");
                    errors.push(FieldError::invalid(&at.index(i), addresses.clone(), why));
                });
            }
        }
        if !families.is_empty() {
            set(service, "ipFamilies", families.into());
        }
        errors
    }

    /// A headless service without selector may have families that the cluster does not have.
    fn choose_families_without_address(&self, service: &mut Map) -> Result<(), AllocationError> {
        let mut families = texts(service, "ipFamilies");
        if families.is_empty() {
            families.extend(self.families().first().map(|f| (*f).to_owned()));
        }
        if ServiceView::new(service).text("ipFamilyPolicy") != "SingleStack" {
            add_other_family(&mut families);
        }
        set(service, "ipFamilies", families.into());
        Ok(())
    }

    fn check_configured(&self, service: &Map) -> Result<(), AllocationError> {
        let mut errors = ErrorList::new();
        let configured = self.families();
        let policy = ServiceView::new(service).text("ipFamilyPolicy");
        if policy == "RequireDualStack" && configured.len() < 2 {
            let why = "this cluster is not configured for dual-stack services";
            with_path("ipFamilyPolicy", |at| {
                errors.push(FieldError::invalid(at, policy, why));
            });
        }
        for (i, family) in texts(service, "ipFamilies").into_iter().enumerate() {
            if !configured.contains(&family.as_str()) {
                let why = "not configured on this cluster";
                with_path("ipFamilies", |at| {
                    errors.push(FieldError::invalid(&at.index(i), family, why));
                });
            }
        }
        fail_with(errors)
    }

    /// Takes the addresses that the service lacks.
    fn take_addresses(&mut self, service: &mut Map, old: Option<&Value>) -> Result<(), AllocationError> {
        let view = ServiceView::new(service);
        let old_view = old.map(ServiceView::of_value);
        let is_headless = |v: ServiceView<'_>| v.texts("clusterIPs").first() == Some(&HEADLESS);
        if view.is_external_name() || is_headless(view) || stays_preferred(view, old_view) {
            return Ok(());
        }
        let families = texts(service, "ipFamilies");
        let mut addresses = texts(service, "clusterIPs");
        let is_new = match old_view {
            None => true,
            Some(old) if old.is_external_name() => true,
            Some(old) if is_headless(old) => return Ok(()),
            // Only a second address can be added.
            Some(old) if old.list("ipFamilies").len() == 1 && families.len() == 2 => false,
            Some(_) => return Ok(()),
        };
        addresses.resize(addresses.len().max(families.len()), String::new());
        let given = addresses.clone();
        for (i, family) in families.iter().enumerate().skip(usize::from(!is_new)) {
            if let Some(address) = addresses.get_mut(i) {
                *address = self.take_address(service, family, address, &given)?;
            }
        }
        if let Some(first) = addresses.first() {
            set(service, "clusterIP", first.as_str().into());
        }
        set(service, "clusterIPs", addresses.into());
        Ok(())
    }

    /// Allocates an address: the requested one, or any.
    fn take_address(
        &mut self,
        service: &Map,
        family: &str,
        asked: &str,
        given: &[String],
    ) -> Result<String, AllocationError> {
        let ranges = self.pools.ranges.iter().filter_map(|r| Cidr::parse_sloppy(r));
        let range = ranges.map(AddressRange::new).find(|r| r.family() == family);
        let Some(range) = range else {
            return Err(AllocationError::Internal(format!(
                "there is no range of {family} addresses"
            )));
        };
        if asked.is_empty() {
            let free = match self.pools.dry_run {
                // A dry run takes no address. It shows that of the network.
                true => Some(range.cidr.network().address),
                false => range.pick(self.pools.seed, |a| self.pools.used_addresses.contains(a)),
            };
            let Some(address) = free else {
                let metadata = service.get("metadata");
                let name = scantling_value::go::quote(metadata.map_or("", |m| m.get_str("name")));
                let why = format!("failed to allocate a serviceIP for Service {name}: range is full");
                return Err(AllocationError::Internal(why));
            };
            self.allocation.addresses.push(address);
            return Ok(ip::canonical(&address));
        }
        let Some(address) = ip::parse_sloppy(asked).map(|a| a.to_canonical()) else {
            return Err(AllocationError::Internal(format!(
                "failed to parse service IP \"{asked}\""
            )));
        };
        // kube-apiserver's dry runs only test whether services may have the address.
        let why = if !range.has(address) {
            Some(match self.pools.dry_run {
                true => format!(
                    "the provided IP ({address}) is not in the valid range. The range of valid IPs is {}",
                    range.cidr.network()
                ),
                false => "the provided network does not match the current range".to_owned(),
            })
        } else if !self.pools.dry_run && self.pools.used_addresses.contains(&address) {
            Some("provided IP is already allocated".to_owned())
        } else {
            None
        };
        if let Some(why) = why {
            let why = format!("failed to allocate IP {asked}: {why}");
            let given: Value = given.to_vec().into();
            return Err(with_path("clusterIPs", |at| FieldError::invalid(at, given, why)).into());
        }
        self.allocation.addresses.push(address);
        Ok(asked.to_owned())
    }

    /// Takes node ports, and the port of health checks.
    fn take_ports(&mut self, service: &mut Map, old: Option<&Value>) -> Result<(), AllocationError> {
        let old_view = old.map(ServiceView::of_value);
        if matches!(
            ServiceView::new(service).service_type(),
            "NodePort" | "LoadBalancer"
        ) {
            let allocates = ServiceView::new(service).service_type() == "NodePort"
                || ServiceView::new(service).get("allocateLoadBalancerNodePorts")
                    != Some(&Value::Bool(false));
            let mut ports = ServiceView::new(service).list("ports").to_vec();
            match old_view {
                None => self.take_new_ports(&mut ports, allocates)?,
                Some(old) => self.take_more_ports(&mut ports, &old.node_ports(), allocates)?,
            }
            if !ports.is_empty() {
                set(service, "ports", Value::Array(ports));
            }
        }
        let needs_health_check = ServiceView::new(service).needs_health_check();
        if needs_health_check && !old_view.is_some_and(ServiceView::needs_health_check) {
            let asked = ServiceView::new(service)
                .get("healthCheckNodePort")
                .and_then(Value::as_int);
            let port = match asked.filter(|p| *p != 0) {
                Some(asked) => self.take_port(asked).map(|()| asked).map_err(|why| {
                    format!("failed to allocate requested HealthCheck NodePort {asked}: {why}")
                }),
                None => self
                    .take_any_port()
                    .map_err(|why| format!("failed to allocate a HealthCheck NodePort 0: {why}")),
            };
            let port = port.map_err(AllocationError::Internal)?;
            set(service, "healthCheckNodePort", Value::Int(port));
        }
        Ok(())
    }

    /// Takes the node ports of a new service. Ports with the same number share a node port.
    fn take_new_ports(&mut self, ports: &mut [Value], allocates: bool) -> Result<(), AllocationError> {
        let number = |port: &Value| port.get("port").and_then(Value::as_int).unwrap_or(0);
        // Of ports with the same number, the first one that asks for a node port decides.
        let mut asked: BTreeMap<i64, i64> = BTreeMap::new();
        for port in ports.iter().filter(|port| node_port(port) != 0) {
            asked.entry(number(port)).or_insert_with(|| node_port(port));
        }
        let mut taken: BTreeMap<i64, i64> = BTreeMap::new();
        for (i, port) in ports.iter_mut().enumerate() {
            let (own, given) = (number(port), node_port(port));
            // Without allocation, only the ports that the client names are taken.
            if given == 0 && !allocates {
                continue;
            }
            let node_port = match (taken.get(&own).copied(), asked.get(&own)) {
                (Some(shared), _) if given == 0 || given == shared => shared,
                (Some(_), _) => {
                    self.take_asked_port(i, given)?;
                    given
                }
                (None, Some(wanted)) => {
                    self.take_asked_port(i, *wanted)?;
                    taken.insert(own, *wanted);
                    *wanted
                }
                (None, None) => {
                    let any = self.take_any_node_port()?;
                    taken.insert(own, any);
                    any
                }
            };
            set_node_port(port, node_port);
        }
        Ok(())
    }

    /// Takes the node ports that an update adds.
    fn take_more_ports(
        &mut self,
        ports: &mut [Value],
        stored: &[i64],
        allocates: bool,
    ) -> Result<(), AllocationError> {
        let stored: BTreeSet<i64> = stored.iter().copied().collect();
        let mut taken = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (i, port) in ports.iter_mut().enumerate() {
            let given = node_port(port);
            // Without allocation, only the ports that the client names are taken.
            if given == 0 && !allocates {
                continue;
            }
            let number = match given {
                0 => self.take_any_node_port()?,
                given => {
                    // The service may hold the port already, or have just taken it for another protocol.
                    if !stored.contains(&given) && !taken.contains(&given) {
                        self.take_asked_port(i, given)?;
                        taken.insert(given);
                    }
                    given
                }
            };
            set_node_port(port, number);
            let protocol = port.get_str("protocol").to_owned();
            if seen.contains(&(protocol.clone(), number)) {
                let why = format!("duplicate nodePort: {{{protocol} {number}}}");
                return Err(AllocationError::Failed(why));
            }
            seen.insert((protocol, number));
        }
        Ok(())
    }

    fn take_asked_port(&mut self, index: usize, port: i64) -> Result<(), AllocationError> {
        self.take_port(port).map_err(|why| {
            with_path("ports", |at| {
                FieldError::invalid(&at.index(index).field("nodePort"), port, why)
            })
            .into()
        })
    }

    fn take_any_node_port(&mut self) -> Result<i64, AllocationError> {
        let internal = |why| AllocationError::Internal(format!("failed to allocate a nodePort: {why}"));
        self.take_any_port().map_err(internal)
    }

    fn is_used(&self, port: u16) -> bool {
        self.pools.used_ports.contains(&port) || self.allocation.ports.contains(&port)
    }

    fn take_port(&mut self, port: i64) -> Result<(), String> {
        let range = &self.pools.node_ports;
        let in_range = u16::try_from(port).ok().filter(|p| range.contains(p));
        match in_range {
            // A dry run does not look at the range.
            _ if self.pools.dry_run => {
                let is_stored = u16::try_from(port).is_ok_and(|p| self.pools.used_ports.contains(&p));
                if is_stored || self.planned.contains(&port) {
                    return Err(TAKEN.to_owned());
                }
                self.planned.insert(port);
                Ok(())
            }
            None => Err(format!(
                "provided port is not in the valid range. The range of valid ports is {}-{}",
                range.start(),
                range.end()
            )),
            Some(port) if self.is_used(port) => Err(TAKEN.to_owned()),
            Some(port) => {
                self.allocation.ports.insert(port);
                Ok(())
            }
        }
    }

    fn take_any_port(&mut self) -> Result<i64, String> {
        if self.pools.dry_run {
            return Ok(self.placeholder());
        }
        let port = pick_port(&self.pools.node_ports, self.pools.seed, |p| self.is_used(p));
        let port = port.ok_or("range is full")?;
        self.allocation.ports.insert(port);
        Ok(i64::from(port))
    }

    /// The node port that a dry run shows: the number after the largest planned one, as a 32-bit integer.
    fn placeholder(&mut self) -> i64 {
        /// The number before the first placeholder if no port is planned.
        const NONE_PLANNED: i64 = 32768;
        let last = self.planned.last().map(|last| (*last).max(0));
        let port = last.unwrap_or(NONE_PLANNED).saturating_add(1);
        self.planned.insert(port);
        match i32::try_from(port) {
            Ok(port) => i64::from(port),
            Err(_) => i64::from(i32::MIN),
        }
    }
}

fn fail_with(errors: ErrorList) -> Result<(), AllocationError> {
    match errors.is_empty() {
        true => Ok(()),
        false => Err(AllocationError::Invalid(errors)),
    }
}

fn set(service: &mut Map, field: &str, value: Value) {
    if let Some(spec) = object_in(service, "spec") {
        spec.insert(field, value);
    }
}

fn set_node_port(port: &mut Value, number: i64) {
    if let Some(port) = port.as_object_mut() {
        port.insert("nodePort", Value::Int(number));
    }
}

fn texts(service: &Map, field: &str) -> Vec<String> {
    let texts = ServiceView::new(service).texts(field).into_iter();
    texts.map(str::to_owned).collect()
}

fn add_other_family(families: &mut Vec<String>) {
    if let [only] = families.as_slice() {
        let other = FAMILIES.iter().find(|f| *f != only);
        families.extend(other.map(|f| (*f).to_owned()));
    }
}
