//! Connections that send nothing, too little or too much, or do not read; and shutdowns while they do.

use super::reading::many_objects;
use crate::AttackError;
use crate::cluster::{CONFIG_MAPS, JSON, THING, THINGS, create_text, define, open, patch, post, things};
use crate::http::{ATTACKER, Endpoint, HttpRequest, Protocol, RawConnection};
use crate::http2::{
    CONTINUATION, DATA, END_HEADERS, HEADERS, Http2, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
    literal,
};
use crate::launch::ProcessLimits;
use crate::plan::{Attack, Scene};
use rustix::process::Signal;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// The timeout of an attacker where it does not matter.
const SHORT: Duration = Duration::from_secs(2);
/// The time within which the server must end after SIGTERM.
const GRACE: Duration = Duration::from_secs(15);

/// The addresses that attackers connect from in turn: many machines, each within its own limit.
fn source(i: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, u8::try_from(i % 250).unwrap_or(0) + 1)
}

/// Holds what was opened for the duration of the attack, and reports how much the server still has at the
/// end.
fn hold<T>(scene: &Scene<'_>, held: Vec<T>, wanted: usize) -> Result<String, AttackError> {
    scene.sleep(scene.window);
    let server = scene.server()?;
    let text = format!(
        "{} of {wanted} opened, {} descriptors",
        held.len(),
        server.descriptors()
    );
    drop(held);
    Ok(text)
}

/// Holds silent connections until the server has closed them.
fn until_dropped<T>(scene: &Scene<'_>, held: Vec<T>, wanted: usize) -> Result<String, AttackError> {
    let server = scene.server()?;
    let begin = Instant::now();
    scene.sleep(scene.window);
    // Short runs end before the server's timeouts do.
    if scene.size == crate::plan::Size::Short {
        return hold(scene, held, wanted);
    }
    // A quarter of them and the files of the server itself may be open while the rest is being closed.
    let many = held.len() / 4 + 64;
    while server.descriptors() > many {
        if scene.left().is_zero() {
            return Err(format!(
                "{} of {} connections are still open",
                server.descriptors(),
                held.len()
            )
            .into());
        }
        scene.sleep(Duration::from_millis(100));
    }
    Ok(format!(
        "{} of {wanted} opened, dropped after {} s",
        held.len(),
        begin.elapsed().as_secs()
    ))
}

fn silent_tcp(scene: &Scene<'_>, n: usize, from: fn(usize) -> Ipv4Addr) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let held: Vec<_> = (0..n).filter_map(|i| endpoint.tcp(from(i), SHORT).ok()).collect();
    until_dropped(scene, held, n)
}

fn connect_many(endpoint: &Endpoint, n: usize, from: fn(usize) -> Ipv4Addr) -> Vec<RawConnection> {
    (0..n)
        .filter_map(|i| endpoint.connect(from(i), SHORT).ok())
        .collect()
}

fn attacker(_: usize) -> Ipv4Addr {
    ATTACKER
}

/// Connections that send a prefix and then the rest byte by byte.
fn drip(scene: &Scene<'_>, n: usize, begin: &[u8]) -> Result<String, AttackError> {
    let mut held = connect_many(&scene.server()?.endpoint, n, source);
    let opened = held.len();
    for connection in &mut held {
        // The server may have closed the connection already, which is what the attack provokes.
        let _ = connection.send(begin);
    }
    let end = Instant::now() + scene.window;
    while Instant::now() < end {
        for connection in &mut held {
            let _ = connection.send(b"a");
        }
        scene.sleep(Duration::from_millis(100));
    }
    Ok(format!("{opened} of {n} opened"))
}

/// Requests whose bodies stop just before their end.
fn unfinished_bodies(
    scene: &Scene<'_>,
    n: usize,
    from: fn(usize) -> Ipv4Addr,
) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let length = 3_000_000;
    let mut begin = endpoint.head("POST", CONFIG_MAPS).into_bytes();
    begin.extend(format!("Content-Type: {JSON}\r\nContent-Length: {length}\r\n\r\n").bytes());
    // One byte is missing, so the server has to keep the rest.
    begin.extend(vec![b' '; length - 1]);
    let mut held = connect_many(endpoint, n, from);
    for connection in &mut held {
        // A server that stops reading must not block the attacker.
        let _ = connection
            .stream
            .sock
            .set_write_timeout(Some(Duration::from_millis(200)));
        let _ = connection.send(&begin);
    }
    hold(scene, held, n)
}

/// Requests for a long list by clients that do not read the responses.
fn unread(
    scene: &Scene<'_>,
    n: usize,
    requests: usize,
    path: &str,
    from: fn(usize) -> Ipv4Addr,
) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let request = endpoint.bytes(&HttpRequest::get(path)).repeat(requests);
    let mut held = Vec::new();
    for i in 0..n {
        let opened = endpoint
            // A small receive buffer fills at once, so the server cannot leave the response to the kernel.
            .tcp_with_window(from(i), SHORT, Some(4 << 10))
            .and_then(|socket| endpoint.tls(socket, Protocol::Http1));
        if let Ok(mut stream) = opened {
            let _ = stream.sock.set_write_timeout(Some(Duration::from_millis(100)));
            let _ = stream.write_all(&request).and_then(|()| stream.flush());
            held.push(stream);
        }
    }
    hold(scene, held, n)
}

/// Watches by clients that do not read, over plain HTTP or WebSocket, while a large object changes.
fn unread_watches(scene: &Scene<'_>, n: usize, upgrade: &str) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let mut head = endpoint.head("GET", &format!("{THINGS}?watch=true"));
    head.push_str(upgrade);
    head.push_str("\r\n");
    let mut held = Vec::new();
    for i in 0..n {
        let opened = endpoint
            .tcp_with_window(source(i), SHORT, Some(4 << 10))
            .and_then(|socket| endpoint.tls(socket, Protocol::Http1));
        if let Ok(mut stream) = opened {
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.flush());
            held.push(stream);
        }
    }
    change_object(scene)?;
    hold(scene, held, n)
}

const WEBSOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \
                         dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://example.com\r\n";

/// Updates a large object for the duration of the attack.
fn change_object(scene: &Scene<'_>) -> Result<(), AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let mut connection = endpoint.connect(ATTACKER, scene.left())?;
    let end = Instant::now() + scene.window;
    let mut i = 0;
    while Instant::now() < end {
        let body = json!({"spec": {"s": format!("{}{i}", "x".repeat(200_000))}});
        let request = endpoint.bytes(&patch(THING, crate::cluster::MERGE_PATCH, &body));
        // 429 is allowed: the server may defend itself.
        connection.ask(&request, scene.deadline)?.expect(&[200, 429])?;
        i += 1;
    }
    Ok(())
}

/// Sends the same frames repeatedly on an HTTP/2 connection that is never read.
fn flood(
    scene: &Scene<'_>,
    connections: usize,
    frames: impl Fn(&Http2, u32) -> Vec<u8>,
) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let mut held = Vec::new();
    for i in 0..connections {
        let connection = Http2::connect(endpoint, source(i), SHORT, 65_535)?;
        connection
            .stream
            .sock
            .set_write_timeout(Some(Duration::from_millis(100)))?;
        held.push((connection, true));
    }
    let end = Instant::now() + scene.window;
    let (mut turn, mut sent) = (0_u32, 0_usize);
    while Instant::now() < end && held.iter().any(|(_, alive)| *alive) {
        for (connection, alive) in held.iter_mut().filter(|(_, alive)| *alive) {
            let bytes = frames(connection, turn);
            *alive = connection.send(&bytes).is_ok();
            sent += bytes.len();
        }
        turn += 1;
    }
    let alive = held.iter().filter(|(_, alive)| *alive).count();
    Ok(format!(
        "{} kB sent, {alive} of {connections} connections left",
        sent >> 10
    ))
}

/// The stream number of a turn.
fn stream(turn: u32, offset: u32) -> u32 {
    // Stream numbers of clients are odd, increase, and have 31 bits.
    turn.wrapping_mul(200).wrapping_add(offset * 2 + 1) & 0x7fff_ffff
}

/// GETs on HTTP/2 streams whose windows never open.
fn unread_streams(
    scene: &Scene<'_>,
    connections: usize,
    requests: usize,
    path: &str,
    window: u32,
) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let mut held = Vec::new();
    for i in 0..connections {
        let mut connection = Http2::connect(endpoint, source(i), SHORT, window)?;
        connection
            .stream
            .sock
            .set_write_timeout(Some(Duration::from_millis(500)))?;
        for k in 0..u32::try_from(requests).unwrap_or(u32::MAX) {
            let bytes = connection.request(k * 2 + 1, "GET", path, &[], true);
            if connection.send(&bytes).is_err() {
                break;
            }
        }
        held.push(connection);
    }
    hold(scene, held, connections)
}

/// Request bodies on HTTP/2 streams that never end.
fn unfinished_streams(scene: &Scene<'_>, connections: usize) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let mut held = Vec::new();
    for i in 0..connections {
        let mut connection = Http2::connect(endpoint, source(i), SHORT, 65_535)?;
        connection
            .stream
            .sock
            .set_write_timeout(Some(Duration::from_millis(300)))?;
        for k in 0..200_u32 {
            let mut bytes =
                connection.request(k * 2 + 1, "POST", CONFIG_MAPS, &[("content-type", JSON)], false);
            for _ in 0..3 {
                bytes.extend(frame(DATA, 0, k * 2 + 1, &[b' '; 16 << 10]));
            }
            if connection.send(&bytes).is_err() {
                break;
            }
        }
        held.push(connection);
    }
    hold(scene, held, connections)
}

/// Sends bytes on a connection and reads the status of the response, if there is one.
fn raw(scene: &Scene<'_>, bytes: &[u8]) -> Result<u16, AttackError> {
    let mut connection = scene.server()?.endpoint.connect(ATTACKER, SHORT)?;
    connection.send(bytes)?;
    Ok(connection
        .answer(Instant::now() + Duration::from_secs(10))?
        .status)
}

/// Malformed chunked bodies: each must be a client error.
fn broken_chunks(scene: &Scene<'_>) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let head = endpoint.head("POST", CONFIG_MAPS)
        + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let broken = [
        "zz\r\n{}\r\n0\r\n\r\n",
        "ffffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
        "-1\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}xx\r\n0\r\n\r\n",
        "2\r\n{}\r\n0\r\nbad trailer\r\n\r\n",
        "2\r\n{}\r\n0\r\n: x\r\n\r\n",
        "\r\n{}\r\n0\r\n\r\n",
    ];
    for body in broken {
        let status = raw(scene, format!("{head}{body}").as_bytes()).map_err(|e| format!("{body:?}: {e}"))?;
        if status != 400 {
            // Anything but 400 would be parsed differently by proxies, which allows request smuggling.
            return Err(format!("{status} instead of 400 to the chunks {body:?}").into());
        }
    }
    Ok(format!("{} × 400", broken.len()))
}

/// Malformed request heads.
fn broken_heads(scene: &Scene<'_>) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let plain = endpoint.head("GET", "/api");
    let heads = [
        "GARBAGE\r\n\r\n".to_owned(),
        format!("{plain}Content-Length: -1\r\n\r\n"),
        format!("{plain}Content-Length: 99999999999999999999999\r\n\r\n"),
        format!("{plain}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        format!("{plain}bad header\r\n\r\n"),
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(100_000)),
        format!("{plain}X: {}\r\n\r\n", "a".repeat(2_000_000)),
        format!("{plain}{}\r\n", "X: a\r\n".repeat(20_000)),
    ];
    let mut seen = Vec::new();
    for head in &heads {
        match raw(scene, head.as_bytes()) {
            Ok(status) if (400..500).contains(&status) => seen.push(status.to_string()),
            // The server may close a connection whose request it cannot parse.
            Err(_) => seen.push("closed".to_owned()),
            Ok(status) => {
                let beginning: String = head.chars().rev().take(60).collect();
                return Err(format!("{status} to a bad head that ends with {beginning:?} (reversed)").into());
            }
        }
    }
    Ok(seen.join(" "))
}

/// Bytes that are not TLS, on many connections.
fn garbage(scene: &Scene<'_>) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let end = Instant::now() + scene.window;
    let mut n = 0;
    while Instant::now() < end {
        let mut socket = endpoint.tcp(source(n), SHORT)?;
        // The head of a TLS record of type handshake, with a length beyond the maximum.
        let _ = socket.write_all(&[0x16, 3, 1, 0xff, 0xff]);
        let _ = socket.write_all(&vec![0x41; 40_000]);
        n += 1;
    }
    Ok(format!("{n} connections"))
}

/// Repeated TLS handshakes.
fn handshakes(scene: &Scene<'_>) -> Result<String, AttackError> {
    let endpoint = &scene.server()?.endpoint;
    let end = Instant::now() + scene.window;
    let mut n = 0;
    while Instant::now() < end {
        // Dropped as soon as it is established.
        let _ = endpoint.connect(source(n), SHORT);
        n += 1;
    }
    Ok(format!("{n} handshakes"))
}

/// Stops the server during writes in the middle of an attack, and then checks that all acknowledged writes
/// exist.
fn stop_during(
    scene: &Scene<'_>,
    attack: impl FnOnce(&Scene<'_>, &Endpoint) -> Result<Box<dyn std::any::Any>, AttackError>,
) -> Result<String, AttackError> {
    let server = scene.start(&[])?;
    let endpoint = server.endpoint.clone();
    let ask = |request: &HttpRequest| endpoint.ask(request, scene.left())?.expect(&[200, 201]);
    ask(&define(&things(&open())))?;
    ask(&create_text(
        "",
        &format!(r#"{{"l":[{}]}}"#, vec!["0"; scene.size.scale(700_001)].join(",")),
    ))?;
    let attack = attack(scene, &endpoint)?;
    // A writer continues while the server is asked to stop.
    let (writer_endpoint, deadline) = (endpoint.clone(), scene.deadline);
    let writer = std::thread::spawn(move || {
        let mut acknowledged = 0;
        let Ok(mut connection) = writer_endpoint.connect(Ipv4Addr::LOCALHOST, Duration::from_secs(20)) else {
            return acknowledged;
        };
        loop {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{acknowledged}")}});
            let request = writer_endpoint.bytes(&post(CONFIG_MAPS, &object));
            match connection.ask(&request, deadline) {
                Ok(answer) if answer.status == 201 => acknowledged += 1,
                _ => return acknowledged,
            }
        }
    });
    scene.sleep(Duration::from_millis(500));
    let begin = Instant::now();
    server.signal(Signal::TERM);
    let ended = server.wait(GRACE.min(scene.left()));
    let took = begin.elapsed();
    drop(server);
    drop(attack);
    let acknowledged = writer.join().map_err(|_| "the writer failed")?;
    let ended =
        ended.ok_or_else(|| format!("the server did not end within {} s of SIGTERM", took.as_secs()))?;
    if !ended.success() {
        return Err(format!("after SIGTERM, the server ended with {ended}").into());
    }
    // A second server reads what the first one left on the disk.
    let server = scene.start(&[])?;
    let last = format!("{CONFIG_MAPS}/c{}", acknowledged.max(1) - 1);
    let answer = server.endpoint.ask(&HttpRequest::get(last), scene.left())?;
    // The last acknowledged write is the one that a lost flush would lose first.
    if acknowledged > 0 && answer.status != 200 {
        return Err(format!("the last of {acknowledged} acknowledged writes is lost").into());
    }
    Ok(format!(
        "ended after {} ms, {acknowledged} writes kept",
        took.as_millis()
    ))
}

/// Sends expensive patches without waiting for their responses.
fn busy(scene: &Scene<'_>, endpoint: &Endpoint) -> Result<Box<dyn std::any::Any>, AttackError> {
    let operations = vec![json!({"op": "add", "path": "/spec/l/0", "value": 1}); scene.size.scale(10_000)];
    let request = endpoint.bytes(&patch(THING, crate::cluster::JSON_PATCH, &operations.into()));
    let mut held = connect_many(endpoint, 4, attacker);
    for connection in &mut held {
        connection.send(&request)?;
    }
    Ok(Box::new(held))
}

/// Opens watches by clients that do not read, and causes events for them.
fn deaf(scene: &Scene<'_>, endpoint: &Endpoint) -> Result<Box<dyn std::any::Any>, AttackError> {
    let mut held = Vec::new();
    for upgrade in ["", WEBSOCKET].into_iter().cycle().take(20) {
        // Two kinds of watches, because their writers differ.
        let socket = endpoint.tcp_with_window(ATTACKER, SHORT, Some(4 << 10))?;
        let mut stream = endpoint.tls(socket, Protocol::Http1)?;
        let head = endpoint.head("GET", &format!("{THINGS}?watch=true")) + upgrade + "\r\n";
        stream.write_all(head.as_bytes())?;
        held.push(stream);
    }
    for i in 0..scene.size.pick(10, 2) {
        let body = json!({"spec": {"l": [], "s": format!("{}{i}", "x".repeat(300_000))}});
        endpoint.ask(&patch(THING, crate::cluster::MERGE_PATCH, &body), scene.left())?;
    }
    Ok(Box::new(held))
}

/// Opens connections of all kinds that send nothing more.
fn mute(_: &Scene<'_>, endpoint: &Endpoint) -> Result<Box<dyn std::any::Any>, AttackError> {
    let tcp: Vec<_> = (0..50)
        .filter_map(|i| endpoint.tcp(source(i), SHORT).ok())
        .collect();
    let mut heads = connect_many(endpoint, 20, source);
    for connection in &mut heads {
        // Heads without the empty line at their end.
        connection.send(endpoint.head("POST", THINGS).as_bytes())?;
    }
    let mut bodies = connect_many(endpoint, 20, source);
    let begin =
        endpoint.head("POST", THINGS) + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    for connection in &mut bodies {
        connection.send(begin.as_bytes())?;
    }
    let streams: Vec<_> = (0..5)
        .filter_map(|i| Http2::connect(endpoint, source(i), SHORT, 0).ok())
        .collect();
    Ok(Box::new((tcp, heads, bodies, streams)))
}

/// Lists by clients that do not read.
fn unread_lists(_: &Scene<'_>, endpoint: &Endpoint) -> Result<Box<dyn std::any::Any>, AttackError> {
    let mut held = Vec::new();
    for i in 0..10 {
        let socket = endpoint.tcp_with_window(source(i), SHORT, Some(4 << 10))?;
        let mut stream = endpoint.tls(socket, Protocol::Http1)?;
        stream.write_all(&endpoint.bytes(&HttpRequest::get(THINGS)))?;
        held.push(stream);
    }
    Ok(Box::new(held))
}

/// A definition and many objects.
fn with_objects(attack: Attack) -> Attack {
    attack.after_one(|_| define(&things(&open()))).after(many_objects)
}

/// A definition and one object.
fn with_object(attack: Attack) -> Attack {
    attack
        .after_one(|_| define(&things(&open())))
        .after_one(|_| create_text("", "{}"))
}

pub(crate) fn table() -> Vec<Attack> {
    vec![
        Attack::program(
            "idle/tcp-one-peer",
            "1 500 silent connections from one address",
            |scene| silent_tcp(scene, scene.size.scale(1_500), attacker),
        ),
        Attack::program(
            "idle/tcp-many-peers",
            "1 500 silent connections from 250 addresses",
            |scene| silent_tcp(scene, scene.size.scale(1_500), source),
        ),
        Attack::program(
            "idle/descriptors",
            "400 silent connections, 256 descriptors",
            |scene| silent_tcp(scene, 400, source),
        )
        .limits(ProcessLimits {
            files: Some(256),
            file_size: None,
        }),
        Attack::program(
            "idle/tls",
            "300 connections that are silent after the handshake",
            |scene| {
                let n = scene.size.scale(300);
                until_dropped(scene, connect_many(&scene.server()?.endpoint, n, source), n)
            },
        ),
        Attack::program(
            "idle/after-request",
            "300 connections that are silent after a request",
            |scene| {
                let endpoint = &scene.server()?.endpoint;
                let request = endpoint.bytes(&HttpRequest::get("/api"));
                let n = scene.size.scale(300);
                let mut held = connect_many(endpoint, n, source);
                for connection in &mut held {
                    connection.ask(&request, Instant::now() + SHORT)?;
                }
                hold(scene, held, n)
            },
        ),
        Attack::program(
            "slow/hello",
            "300 connections that send half a ClientHello",
            |scene| {
                let endpoint = &scene.server()?.endpoint;
                let n = scene.size.scale(300);
                let mut held: Vec<_> = (0..n)
                    .filter_map(|i| endpoint.tcp(source(i), SHORT).ok())
                    .collect();
                for socket in &mut held {
                    // The first bytes of a ClientHello, whose record claims 512 bytes.
                    let _ = socket.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]);
                }
                until_dropped(scene, held, n)
            },
        ),
        Attack::program("slow/head", "200 heads, byte by byte", |scene| {
            let head = scene.server()?.endpoint.head("GET", "/api") + "X: ";
            drip(scene, scene.size.scale(200), head.as_bytes())
        }),
        Attack::program("slow/body", "200 bodies, byte by byte", |scene| {
            let head = scene.server()?.endpoint.head("POST", CONFIG_MAPS)
                + "Content-Type: application/json\r\nContent-Length: 3000000\r\n\r\n{";
            drip(scene, scene.size.scale(200), head.as_bytes())
        }),
        Attack::program(
            "slow/bodies-one-peer",
            "300 bodies of 3 MB without the last byte, from one address",
            |scene| unfinished_bodies(scene, scene.size.pick(300, 10), attacker),
        ),
        Attack::program(
            "slow/bodies-many-peers",
            "300 bodies of 3 MB without the last byte, from 250 addresses",
            |scene| unfinished_bodies(scene, scene.size.pick(300, 10), source),
        ),
        with_objects(Attack::program(
            "unread/http1",
            "100 lists of 6 MB that nobody reads",
            |scene| unread(scene, scene.size.pick(100, 10), 1, THINGS, source),
        )),
        with_objects(Attack::program(
            "unread/http1-one-peer",
            "100 lists of 6 MB that nobody reads, from one address",
            |scene| unread(scene, scene.size.pick(100, 10), 1, THINGS, attacker),
        )),
        with_objects(Attack::program(
            "unread/http1-pipelined",
            "20 connections with 500 lists each that nobody reads",
            |scene| {
                unread(
                    scene,
                    scene.size.pick(20, 4),
                    scene.size.scale(500),
                    THINGS,
                    source,
                )
            },
        )),
        with_objects(Attack::program(
            "unread/http1-pretty",
            "100 pretty lists that nobody reads",
            |scene| {
                unread(
                    scene,
                    scene.size.pick(100, 10),
                    1,
                    &format!("{THINGS}?pretty=true"),
                    source,
                )
            },
        )),
        with_objects(Attack::program(
            "unread/http1-tables",
            "100 tables that nobody reads",
            |scene| {
                // The path ends the request line, so that the same helper can send another header.
                let path = format!(
                    "{THINGS}?includeObject=Object HTTP/1.1\r\nAccept: {}\r\nX-Rest:",
                    super::reading::TABLE
                );
                unread(scene, scene.size.pick(100, 10), 1, &path, source)
            },
        )),
        with_objects(Attack::program(
            "unread/http2",
            "2 connections with 900 lists, no window",
            |scene| unread_streams(scene, 2, scene.size.scale(900), THINGS, 0),
        )),
        with_objects(Attack::program(
            "unread/http2-window",
            "2 connections with 900 lists, windows never updated",
            |scene| unread_streams(scene, 2, scene.size.scale(900), THINGS, 65_535),
        )),
        with_objects(Attack::program(
            "unread/http2-one-byte",
            "2 connections with 900 lists, windows of a byte",
            |scene| unread_streams(scene, 2, scene.size.scale(900), THINGS, 1),
        )),
        with_objects(Attack::program(
            "unread/http2-large-window",
            "2 connections with 900 lists, windows of 2 GB, never read",
            |scene| unread_streams(scene, 2, scene.size.scale(900), THINGS, 0x7fff_ffff),
        )),
        with_objects(Attack::program(
            "unread/http2-openapi",
            "4 connections with 500 × /openapi/v2, no window",
            |scene| unread_streams(scene, 4, scene.size.scale(500), "/openapi/v2", 0),
        )),
        with_object(Attack::program(
            "unread/watches",
            "300 watches that nobody reads",
            |scene| unread_watches(scene, scene.size.pick(300, 20), ""),
        )),
        with_object(Attack::program(
            "unread/websockets",
            "300 watches over WebSocket that nobody reads",
            |scene| unread_watches(scene, scene.size.pick(300, 20), WEBSOCKET),
        )),
        with_object(Attack::program(
            "unread/http2-watches",
            "2 connections with 200 watches, no window",
            |scene| {
                let endpoint = &scene.server()?.endpoint;
                let mut held = Vec::new();
                for i in 0..2 {
                    let mut connection = Http2::connect(endpoint, source(i), SHORT, 0)?;
                    for k in 0..scene.size.pick(200, 20) {
                        let bytes =
                            connection.request(k * 2 + 1, "GET", &format!("{THINGS}?watch=true"), &[], true);
                        let _ = connection.send(&bytes);
                    }
                    held.push(connection);
                }
                change_object(scene)?;
                hold(scene, held, 2)
            },
        )),
        with_objects(Attack::program(
            "unread/initial-events",
            "100 watches of 5 000 objects that nobody reads",
            |scene| {
                unread(
                    scene,
                    scene.size.pick(100, 10),
                    1,
                    &format!("{THINGS}?watch=true&resourceVersion=0"),
                    source,
                )
            },
        )),
        Attack::program("watch/many", "1 000 watches", |scene| {
            let endpoint = &scene.server()?.endpoint;
            let n = scene.size.scale(1_000);
            let request = endpoint.bytes(&HttpRequest::get(format!("{CONFIG_MAPS}?watch=true")));
            let mut held = connect_many(endpoint, n, source);
            for connection in &mut held {
                let _ = connection.send(&request);
            }
            hold(scene, held, n)
        }),
        Attack::program(
            "websocket/broken-frames",
            "frames that break the protocol",
            |scene| {
                let endpoint = &scene.server()?.endpoint;
                let end = Instant::now() + scene.window;
                let mut n = 0;
                while Instant::now() < end {
                    let mut connection = endpoint.connect(source(n), SHORT)?;
                    let head =
                        endpoint.head("GET", &format!("{CONFIG_MAPS}?watch=true")) + WEBSOCKET + "\r\n";
                    connection.send(head.as_bytes())?;
                    // A frame that claims 2^63 - 1 bytes, and reserved bits.
                    let _ = connection.send(&[
                        0xf2, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4,
                    ]);
                    let _ = connection.stream.read(&mut [0; 100]);
                    n += 1;
                }
                Ok(format!("{n} connections"))
            },
        ),
        Attack::program("http1/pipelined", "GETs in a row that are never read", |scene| {
            unread(
                scene,
                scene.size.pick(10, 2),
                scene.size.scale(20_000),
                "/api",
                source,
            )
        }),
        Attack::program(
            "http1/broken-chunks",
            "malformed chunks and trailers",
            broken_chunks,
        ),
        Attack::program("http1/broken-heads", "malformed request heads", broken_heads),
        Attack::program("tls/garbage", "non-TLS bytes", garbage),
        Attack::program("tls/handshakes", "handshakes over and over", handshakes),
        Attack::program("http2/rapid-reset", "streams that are reset at once", |scene| {
            flood(scene, 2, |connection, turn| {
                (0..100)
                    .flat_map(|i| {
                        let id = stream(turn, i);
                        let mut bytes = connection.request(id, "GET", THINGS, &[], true);
                        // Error code 8 is CANCEL.
                        bytes.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
                        bytes
                    })
                    .collect()
            })
        }),
        with_objects(Attack::program(
            "http2/rapid-reset-lists",
            "lists of 6 MB that are reset at once",
            |scene| {
                flood(scene, 2, |connection, turn| {
                    (0..100)
                        .flat_map(|i| {
                            let id = stream(turn, i);
                            let mut bytes = connection.request(id, "GET", THINGS, &[], true);
                            bytes.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
                            bytes
                        })
                        .collect()
                })
            },
        )),
        Attack::program(
            "http2/made-you-reset",
            "streams that the server has to reset",
            |scene| {
                flood(scene, 2, |connection, turn| {
                    (0..100)
                        .flat_map(|i| {
                            let id = stream(turn, i);
                            let mut bytes = connection.request(id, "GET", "/api", &[], true);
                            // An increment of zero is a stream error.
                            bytes.extend(frame(WINDOW_UPDATE, 0, id, &[0; 4]));
                            bytes
                        })
                        .collect()
                })
            },
        ),
        Attack::program("http2/continuation", "a head that never ends", |scene| {
            flood(scene, 2, |connection, turn| {
                // Without END_HEADERS, the server has to wait for more of the head.
                if turn == 0 {
                    return frame(HEADERS, 0, 1, &connection.block("GET", "/api", &[]));
                }
                let mut block = Vec::new();
                literal(&mut block, &format!("x-{turn}"), &"a".repeat(8_000));
                frame(CONTINUATION, 0, 1, &block)
            })
        }),
        Attack::program(
            "http2/empty-continuations",
            "empty continuations of a head",
            |scene| {
                flood(scene, 2, |connection, turn| {
                    if turn == 0 {
                        return frame(HEADERS, 0, 1, &connection.block("GET", "/api", &[]));
                    }
                    frame(CONTINUATION, 0, 1, &[]).repeat(100)
                })
            },
        ),
        Attack::program("http2/settings", "settings over and over", |scene| {
            flood(scene, 2, |_, _| {
                // Setting 3 is SETTINGS_MAX_CONCURRENT_STREAMS.
                frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]).repeat(200)
            })
        }),
        Attack::program("http2/pings", "pings over and over", |scene| {
            flood(scene, 2, |_, _| frame(PING, 0, 0, &[0; 8]).repeat(200))
        }),
        Attack::program("http2/empty-data", "a body of empty frames", |scene| {
            flood(scene, 2, |connection, turn| {
                if turn == 0 {
                    return connection.request(1, "POST", CONFIG_MAPS, &[("content-type", JSON)], false);
                }
                frame(DATA, 0, 1, &[]).repeat(200)
            })
        }),
        Attack::program("http2/large-head", "heads of 200 kB", |scene| {
            flood(scene, 2, |connection, turn| {
                let value = "a".repeat(15_000);
                // Flag 1 is END_STREAM; END_HEADERS follows in the last continuation.
                let mut bytes = frame(HEADERS, 1, turn * 2 + 1, &connection.block("GET", "/api", &[]));
                for i in 0..13 {
                    let mut block = Vec::new();
                    literal(&mut block, "x", &value);
                    bytes.extend(frame(
                        CONTINUATION,
                        if i == 12 { END_HEADERS } else { 0 },
                        turn * 2 + 1,
                        &block,
                    ));
                }
                bytes
            })
        }),
        Attack::program(
            "http2/unfinished-bodies",
            "20 connections with bodies that never end",
            |scene| unfinished_streams(scene, scene.size.pick(20, 2)),
        ),
        Attack::offline("stop/busy", "SIGTERM while expensive patches run", |scene| {
            stop_during(scene, busy)
        }),
        Attack::offline(
            "stop/unread-watches",
            "SIGTERM with watches that nobody reads",
            |scene| stop_during(scene, deaf),
        ),
        Attack::offline(
            "stop/silent",
            "SIGTERM with silent connections and unfinished requests",
            |scene| stop_during(scene, mute),
        ),
        Attack::offline(
            "stop/unread-lists",
            "SIGTERM with lists that nobody reads",
            |scene| stop_during(scene, unread_lists),
        ),
    ]
}
