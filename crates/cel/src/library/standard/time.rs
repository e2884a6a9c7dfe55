//! The fields of timestamps and the lengths of durations.

use crate::overload::{Library, Overload, Ty};
use crate::run::Run;
use crate::val::{Arena, EvalError, Res, Timestamp, Val};
use scantling_notation::timestamp::{self, CivilTime};

/// The overloads that return a field of a timestamp, in UTC and in a time zone.
macro_rules! fields {
    ($(($function:literal, $id:literal, $zoned:literal, $field:expr)),* ; $(($length:literal, $length_id:literal, $unit:literal)),*) => {
        &[$(
            Overload::member($id, $function, &[Ty::Timestamp], Ty::Int, Run::Unary({
                fn field<'a>(_: &'a Arena, time: Val<'a>) -> Res<'a> {
                    at(time, Val::Str("UTC"), $field)
                }
                field
            })),
            Overload::member($zoned, $function, &[Ty::Timestamp, Ty::String], Ty::Int, Run::Binary({
                fn field<'a>(_: &'a Arena, time: Val<'a>, zone: Val<'a>) -> Res<'a> {
                    at(time, zone, $field)
                }
                field
            })),
        )*
        $(
            Overload::member($length_id, $length, &[Ty::Duration], Ty::Int, Run::Unary({
                fn length<'a>(_: &'a Arena, duration: Val<'a>) -> Res<'a> {
                    match duration {
                        Val::Duration(d) => Ok(Val::Int(d.nanos / $unit)),
                        _ => Err(EvalError::NoSuchOverload),
                    }
                }
                length
            })),
        )*]
    };
}

pub(super) static TIME: Library = Library {
    name: "time",
    overloads: fields![
        ("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", |f, _| f.year),
        ("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", |f, _| f.month),
        (
            "getDayOfYear",
            "timestamp_to_day_of_year",
            "timestamp_to_day_of_year_with_tz",
            |f, _| f.day_of_year
        ),
        (
            "getDayOfMonth",
            "timestamp_to_day_of_month",
            "timestamp_to_day_of_month_with_tz",
            // `getDayOfMonth` counts from 0 and `getDate` from 1.
            |f, _| f.day - 1
        ),
        (
            "getDate",
            "timestamp_to_day_of_month_1_based",
            "timestamp_to_day_of_month_1_based_with_tz",
            |f, _| f.day
        ),
        (
            "getDayOfWeek",
            "timestamp_to_day_of_week",
            "timestamp_to_day_of_week_with_tz",
            |f, _| f.day_of_week
        ),
        ("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", |f, _| f.hour),
        (
            "getMinutes",
            "timestamp_to_minutes",
            "timestamp_to_minutes_with_tz",
            |f, _| f.minute
        ),
        ("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", |f, _| f.second),
        (
            "getMilliseconds",
            "timestamp_to_milliseconds",
            "timestamp_to_milliseconds_with_tz",
            |_, t| i64::from(t.nanos / 1_000_000)
        );
        ("getHours", "duration_to_hours", 3_600_000_000_000),
        ("getMinutes", "duration_to_minutes", 60_000_000_000),
        ("getSeconds", "duration_to_seconds", 1_000_000_000),
        ("getMilliseconds", "duration_to_milliseconds", 1_000_000)
    ],
    types: &[],
};

fn at<'a>(time: Val<'a>, zone: Val<'a>, field: fn(CivilTime, Timestamp) -> i64) -> Res<'a> {
    let Val::Timestamp(time) = time else {
        return Err(EvalError::NoSuchOverload);
    };
    // The offset of the value itself does not matter: without a zone, fields are those in UTC.
    let offset = timestamp::offset_in(zone.str()?, time.seconds).map_err(EvalError::message)?;
    Ok(Val::Int(field(CivilTime::at(time.seconds, offset), time)))
}
