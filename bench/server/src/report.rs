//! Prints each figure beside that of a real kube-apiserver and the target.

use crate::load::Outcome;
use std::time::Duration;

/// The direction in which a figure is better.
#[derive(Clone, Copy)]
pub enum Better {
    More,
    Less,
}

/// The reference values of a figure.
#[derive(Clone, Copy)]
pub struct Reference {
    /// kube-apiserver with etcd on a machine with two cores.
    pub real: Option<f64>,
    pub aim: Option<f64>,
    pub better: Better,
}

impl Reference {
    pub const NONE: Reference = Reference {
        real: None,
        aim: None,
        better: Better::Less,
    };

    pub fn less(real: Option<f64>, aim: f64) -> Reference {
        Reference {
            real,
            aim: Some(aim),
            better: Better::Less,
        }
    }

    pub fn more(real: f64, aim: f64) -> Reference {
        Reference {
            real: Some(real),
            aim: Some(aim),
            better: Better::More,
        }
    }
}

pub fn title(text: &str) {
    println!("\n{text}");
    println!(
        "  {:<52} {:>12} {:>12} {:>9} {:>12}",
        "", "here", "real server", "ratio", "aim"
    );
}

/// Prints one line.
pub fn figure(what: &str, value: f64, unit: &str, reference: Reference) {
    let number = |v: f64| {
        if v >= 100.0 {
            format!("{v:.0} {unit}")
        } else {
            format!("{v:.2} {unit}")
        }
    };
    let Reference { real, aim, better } = reference;
    let ratio = real.map(|real| match better {
        Better::More => value / real,
        Better::Less => real / value,
    });
    let met = aim.map(|aim| match better {
        Better::More => value >= aim,
        Better::Less => value <= aim,
    });
    let verdict = match met {
        Some(true) => "met",
        Some(false) => "NOT MET",
        None => "",
    };
    println!(
        "  {what:<52} {:>12} {:>12} {:>9} {:>12} {verdict}",
        number(value),
        real.map(number).unwrap_or_default(),
        ratio.map(|r| format!("{r:.1}x")).unwrap_or_default(),
        aim.map(number).unwrap_or_default(),
    );
}

pub fn millis(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

/// Prints a load at full rate.
pub fn load(what: &str, outcome: &Outcome, rate: Reference) {
    figure(what, outcome.rate(), "/s", rate);
    figure("  median", millis(outcome.quantile(0.5)), "ms", Reference::NONE);
    figure(
        "  99th percentile",
        millis(outcome.quantile(0.99)),
        "ms",
        Reference::NONE,
    );
    figure(
        "  server's processor time, each",
        outcome.cpu_each().as_secs_f64() * 1e6,
        "us",
        Reference::NONE,
    );
}

/// Prints a load at half rate: the median of the rounds without steal time, and all rounds together.
pub fn half(of: &str, rounds: &[Outcome], together: &Outcome) {
    let slowest = |round: &Outcome| millis(round.own_quantile(0.99));
    // A round in which the hypervisor took processors away says nothing about the server.
    let mut alone: Vec<f64> = rounds
        .iter()
        .filter(|r| r.stolen.is_zero())
        .map(slowest)
        .collect();
    alone.sort_unstable_by(f64::total_cmp);
    let what = format!("  at half of {of}: 99th percentile in {} rounds", alone.len());
    match alone[..] {
        [] => println!(
            "    at half of {of}: the host disturbed all {} rounds",
            rounds.len()
        ),
        _ => figure(&what, alone[alone.len() / 2], "ms", Reference::less(None, 5.0)),
    }
    let all = format!("    in all {}, disturbed ones as well", rounds.len());
    let more = [
        (&*all, millis(together.own_quantile(0.99))),
        ("    taken by the host meanwhile", millis(together.stolen)),
        ("    median", millis(together.own_quantile(0.5))),
        (
            "    99th percentile of the client's lateness",
            millis(together.late(0.99)),
        ),
    ];
    for (what, time) in more {
        figure(what, time, "ms", Reference::NONE);
    }
    if let Some(share) = together.share_in_time() {
        let what = "    within 5 ms by the server's own clock";
        figure(what, share * 100.0, "%", Reference::NONE);
    }
}

/// Prints the share of the disk in the latency of writes at half rate.
pub fn beyond_disk(outcome: &Outcome, bare: &bench_disk::Times) {
    let floor = bare.shared(outcome.rate()).quantile(0.99);
    let own = outcome.own_quantile(0.99);
    for (what, time) in [
        ("    of it the disk: median of a bare flush", bare.quantile(0.5)),
        ("      99th percentile of a bare flush", bare.quantile(0.99)),
        ("      99th percentile if such flushes were all", floor),
        ("    99th percentile beyond that", own.saturating_sub(floor)),
    ] {
        figure(what, millis(time), "ms", Reference::NONE);
    }
}
