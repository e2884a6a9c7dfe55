//! The Common Expression Language: syntax, types, checker, cost, programs and function libraries.
