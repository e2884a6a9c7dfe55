//! What the system tells of this process, in the names that every exporter of Prometheus has for it.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;
use std::fs;

/// The unit of times in `/proc`, which is the same on every Linux whatever its kernel counts in.
const TICKS_PER_SECOND: f64 = 100.0;

/// Looks at `/proc` when it is asked; where there is none, there is nothing to tell.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(seen) = Seen::now() else {
            return Ok(());
        };
        let seconds = ConstCounter::new(seen.cpu_seconds);
        let described = encoder.encode_descriptor(
            "process_cpu_seconds",
            "Time on processors, in user and system mode.",
            None,
            seconds.metric_type(),
        )?;
        seconds.encode(described)?;
        let gauges = [
            (
                "process_start_time_seconds",
                "When the process started, since 1970.",
                seen.start,
            ),
            (
                "process_resident_memory_bytes",
                "Memory that is in use.",
                seen.resident,
            ),
            (
                "process_virtual_memory_bytes",
                "Address space that is in use.",
                seen.address_space,
            ),
            ("process_open_fds", "Open files and connections.", seen.open_files),
            (
                "process_max_fds",
                "How many files and connections may be open.",
                seen.most_files,
            ),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    cpu_seconds: f64,
    start: Option<f64>,
    resident: Option<f64>,
    address_space: Option<f64>,
    open_files: Option<f64>,
    most_files: Option<f64>,
}

impl Seen {
    fn now() -> Option<Seen> {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let mut seen = Seen::read(
            &fs::read_to_string("/proc/self/stat").ok()?,
            &text("/proc/self/status"),
            &text("/proc/self/limits"),
            &text("/proc/stat"),
        )?;
        let files = fs::read_dir("/proc/self/fd").ok();
        seen.open_files = files
            .and_then(|files| u32::try_from(files.count()).ok())
            .map(f64::from);
        Some(seen)
    }

    fn read(stat: &str, status: &str, limits: &str, system: &str) -> Option<Seen> {
        // The name in parentheses may hold anything; what follows are numbers, of which the first is the third of all.
        let (_, numbers) = stat.rsplit_once(')')?;
        let numbers: Vec<&str> = numbers.split_whitespace().collect();
        let ticks = |field: usize| number(numbers.get(field - 3)?);
        let after = |text: &str, label: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(label))?;
            number(line.split_whitespace().next()?)
        };
        let kibibytes = |label| after(status, label).map(|n| n * 1024.0);
        let booted = after(system, "btime ");
        Some(Seen {
            cpu_seconds: (ticks(14)? + ticks(15)?) / TICKS_PER_SECOND,
            start: booted.and_then(|booted| Some(booted + ticks(22)? / TICKS_PER_SECOND)),
            resident: kibibytes("VmRSS:"),
            address_space: kibibytes("VmSize:"),
            open_files: None,
            most_files: after(limits, "Max open files"),
        })
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_system_writes() {
        let seen = Seen::read(
            "7 (a) b) S 1 7 7 0 -1 4194560 3181 0 0 0 250 50 0 0 20 0 5 0 1234 100 200 18446744073709551615",
            "Name:\ta\nVmSize:\t    1000 kB\nVmRSS:\t      20 kB\n",
            "Limit   Soft Limit   Hard Limit   Units\nMax open files            1024                 4096      files\n",
            "cpu 1 2 3\nbtime 1700000000\n",
        );
        let expected = Seen {
            cpu_seconds: 3.0,
            start: Some(1_700_000_012.34),
            resident: Some(20_480.0),
            address_space: Some(1_024_000.0),
            open_files: None,
            most_files: Some(1024.0),
        };
        assert_eq!(seen, Some(expected));
        assert_eq!(Seen::read("", "", "", ""), None);
    }
}
