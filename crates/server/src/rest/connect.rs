//! Requests that kube-apiserver forwards: logs, `exec`, `attach`, `portforward`, and the proxies of Pods, Services and
//! Nodes. No kubelet runs here, so they end with the error that kube-apiserver returns before it connects, or with 501.

use crate::api::ResourceRequest;
use crate::http::reply::Reply;
use crate::request::parse_int;
use crate::rest::read;
use crate::rest::write::metadata_str;
use crate::status::{ApiError, ApiResult, GroupResource};
use scantling_notation::ip::Ip;
use scantling_notation::timestamp;
use scantling_value::{BadValue, ErrorKind, ErrorList, FieldError, Path, Value, go};

/// The options of logs, in errors.
const LOG_OPTIONS: GroupResource<'static> = GroupResource {
    group: "",
    kind: "PodLogOptions",
};

/// GET of `pods/log`. Pods never have logs here.
pub(crate) async fn log(call: &ResourceRequest<'_>, name: &str) -> ApiResult<Reply> {
    let errors = check_log_options(call)?;
    if !errors.is_empty() {
        return Err(ApiError::invalid(LOG_OPTIONS, name, &errors));
    }
    let pod = pod(call, name).await?;
    check_container(&pod, call.query.get_or_empty("container"))?;
    let node = pod.str_at(["spec", "nodeName"]);
    // A Pod that is not scheduled has no logs yet.
    if node.is_empty() {
        return Ok(Reply::bytes(204, "", ""));
    }
    check_node(call, node).await?;
    Err(not_implemented("logs of Pods"))
}

/// The error of a request with the given connecting subresource.
pub(crate) async fn refuse(call: &ResourceRequest<'_>, subresource: &str) -> ApiError {
    if !call.query.get_or_empty("dryRun").is_empty() {
        return ApiError::bad_request("dryRun is not supported");
    }
    let name = call.path.name.as_deref().unwrap_or_default();
    let checked = match (call.kind.kind.as_str(), subresource) {
        ("Pod", "proxy") => check_pod_proxy(call, name).await,
        ("Pod", _) => check_stream(call, name, subresource).await,
        ("Service", _) => check_service_proxy(call, name).await,
        _ => match Address::parse(name) {
            Some(address) => check_node(call, address.name).await,
            None => Err(ApiError::bad_request(format!(
                "invalid node request {}",
                go::quote(name)
            ))),
        },
    };
    checked.err().unwrap_or_else(|| not_implemented(subresource))
}

fn check_log_options(call: &ResourceRequest<'_>) -> ApiResult<ErrorList> {
    const POSITIVE: &str = "must be greater than 0";
    let number = |name: &str| -> ApiResult<Option<i64>> {
        let text = call.query.get(name);
        text.map(parse_int).transpose().map_err(ApiError::bad_request)
    };
    let since_seconds = number("sinceSeconds")?;
    let since_time = call.query.get("sinceTime");
    if let Some(text) = since_time {
        timestamp::parse_rfc3339(text).map_err(ApiError::bad_request)?;
    }
    let (tail_lines, limit_bytes) = (number("tailLines")?, number("limitBytes")?);
    let mut errors = ErrorList::new();
    let mut at_least = |name: &str, value: Option<i64>, least, why| {
        if let Some(value) = value.filter(|value| *value < least) {
            errors.push(FieldError::invalid(&Path::ROOT.field(name), value, why));
        }
    };
    at_least("tailLines", tail_lines, 0, "must be greater than or equal to 0");
    at_least("limitBytes", limit_bytes, 1, POSITIVE);
    if since_time.is_none() {
        at_least("sinceSeconds", since_seconds, 1, POSITIVE);
    } else if since_seconds.is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        // UPSTREAM: the path is an empty name.
        let error = FieldError::with_field(ErrorKind::Forbidden, "[]", BadValue::Omitted, why);
        errors.push(error);
    }
    if call.query.has("stream") {
        let at = Path::ROOT;
        errors.push(FieldError::forbidden(&at.field("stream"), "may not be specified"));
    }
    Ok(errors)
}

/// The Pod of a request.
async fn pod(call: &ResourceRequest<'_>, name: &str) -> ApiResult<Value> {
    let key = call.key(name)?;
    let entry = call.live(&key, name).await?;
    read::stored(&entry)
}

/// `exec` and `attach` name a container; `portforward` does not. The Pod must be scheduled.
async fn check_stream(call: &ResourceRequest<'_>, name: &str, subresource: &str) -> ApiResult<()> {
    let pod = pod(call, name).await?;
    if subresource != "portforward" {
        check_container(&pod, call.query.get_or_empty("container"))?;
    }
    let node = pod.str_at(["spec", "nodeName"]);
    if node.is_empty() {
        let why = format!("pod {name} does not have a host assigned");
        return Err(ApiError::bad_request(why));
    }
    check_node(call, node).await
}

/// Checks that a Pod has the container that a request names. A Pod with several containers needs a name.
fn check_container(pod: &Value, asked: &str) -> ApiResult<()> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let containers = lists.iter().flat_map(|list| pod.list_at(["spec", *list]));
    let names: Vec<&str> = containers.map(|container| container.get_str("name")).collect();
    let name = metadata_str(pod, "name");
    if !asked.is_empty() {
        return match names.contains(&asked) {
            true => Ok(()),
            false => Err(ApiError::bad_request(format!(
                "container {asked} is not valid for pod {name}"
            ))),
        };
    }
    if pod.list_at(["spec", "containers"]).len() == 1 {
        return Ok(());
    }
    let names = names.join(" ");
    Err(ApiError::bad_request(format!(
        "a container name must be specified for pod {name}, choose one of: [{names}]"
    )))
}

/// A Pod has an address once it runs.
async fn check_pod_proxy(call: &ResourceRequest<'_>, id: &str) -> ApiResult<()> {
    let Some(address) = Address::parse(id) else {
        let why = format!("invalid pod request {}", go::quote(id));
        return Err(ApiError::bad_request(why));
    };
    let pod = pod(call, address.name).await?;
    let first = pod.list_at(["status", "podIPs"]).first();
    let is_allowed =
        first.is_some_and(|first| Ip::parse(first.get_str("ip")).is_ok_and(Ip::is_global_unicast));
    match is_allowed {
        true => Ok(()),
        false => Err(ApiError::bad_request("address not allowed")),
    }
}

/// Nothing runs behind a Service here.
async fn check_service_proxy(call: &ResourceRequest<'_>, id: &str) -> ApiResult<()> {
    let Some(address) = Address::parse(id) else {
        let why = format!("invalid service request {}", go::quote(id));
        return Err(ApiError::bad_request(why));
    };
    let name = go::quote(address.name);
    let unavailable = |why| Err(ApiError::new(503, "ServiceUnavailable", why));
    if let Ok(port) = address.port.parse::<i64>() {
        let key = call.key(address.name)?;
        let entry = call.live(&key, address.name).await?;
        let service = read::stored(&entry)?;
        let ports = service.list_at(["spec", "ports"]);
        if !ports
            .iter()
            .any(|p| p.get("port").and_then(Value::as_int) == Some(port))
        {
            return unavailable(format!("no service port {port} found for service {name}"));
        }
    }
    unavailable(format!("no endpoints available for service {name}"))
}

/// `name`, `name:port` or `scheme:name:port`.
struct Address<'a> {
    name: &'a str,
    port: &'a str,
}

impl<'a> Address<'a> {
    fn parse(id: &'a str) -> Option<Address<'a>> {
        let parts: Vec<&str> = id.split(':').collect();
        let (name, port) = match parts.as_slice() {
            [name] => (*name, ""),
            [name, port] => (*name, *port),
            ["http" | "https" | "", name, port] => (*name, *port),
            _ => return None,
        };
        (!name.is_empty()).then_some(Address { name, port })
    }
}

/// A node must exist.
async fn check_node(call: &ResourceRequest<'_>, name: &str) -> ApiResult<()> {
    // UPSTREAM: the error names the resource of the request.
    let not_found = || ApiError::not_found(call.group_resource(), name);
    let key = call
        .api
        .keys
        .object("", "nodes", None, name)
        .map_err(|_| not_found())?;
    call.api.newest(&key).await?.map(|_| ()).ok_or_else(not_found)
}

/// The 501 error of requests that need a kubelet.
fn not_implemented(what: &str) -> ApiError {
    let message = format!("requests for {what} need a kubelet, which this server does not talk to");
    ApiError::new(501, "NotImplemented", message)
}
