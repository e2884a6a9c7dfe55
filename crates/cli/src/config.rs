//! The configuration file `scantling.yaml`: flags by their long names, for all commands or for one, and
//! settings for some paths.
//!
//! Settings become arguments before those of the user, so the user's flags win and every flag can be
//! configured.

use crate::args::{Arguments, Command, FieldValidationFlag, SchemaSource, SeveritySetting};
use crate::files;
use crate::locate::{DocumentLocator, Location};
use crate::policy::PathOverride;
use crate::problem::Problem;
use crate::split;
use clap::{Arg, ArgAction, CommandFactory as _, FromArgMatches as _, ValueEnum as _};
use globset::{GlobBuilder, GlobSetBuilder};
use scantling_value::{Path as FieldPath, PathBuf as FieldPathBuf, Value};
use std::any::TypeId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file, searched for in the current directory and above.
const NAME: &str = "scantling.yaml";
/// The maximum size of a configuration file.
const MAX_BYTES: u64 = 1 << 20;
/// Commands that the file does not configure.
const NOT_CONFIGURED: [&str; 5] = ["serve", "store", "completion", "version", "help"];
/// The key with settings for some paths.
const OVERRIDES: &str = "overrides";
/// The key with inputs that are used if the command line names none.
const PATHS: &str = "paths";

/// Parses the command line together with the configuration file. Errors of the command line end the process, as clap does.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Arguments, Problem> {
    let mut command = Arguments::command();
    // The command decides which settings apply, so it has to be known before clap parses anything.
    let name = words.iter().skip(1).filter_map(|word| word.to_str());
    let name = name
        .clone()
        .find(|word| !word.starts_with('-'))
        .map(str::to_owned);
    let configured = name
        .filter(|name| !NOT_CONFIGURED.contains(&name.as_str()) && command.find_subcommand(name).is_some());
    let file = match &configured {
        Some(_) => find(&words)?,
        None => None,
    };
    let (Some(name), Some(file)) = (configured, file) else {
        let matches = command.clone().get_matches_from(words);
        return from_matches(&mut command, &matches);
    };
    // Flags have their defaults and inherited settings only once the command is built.
    command.build();
    let settings = Settings::read(&file, &command, &name)?;
    let at = words.iter().position(|word| word.to_str() == Some(name.as_str()));
    let (before, after) = words.split_at(at.map_or(words.len(), |at| at + 1));
    let with = |extra: &[OsString]| [before, &settings.words, extra, after].concat();
    let parsed = command.clone().try_get_matches_from(with(&[]));
    let matches = match parsed {
        // Only clap knows whether the arguments name inputs, so the configured paths are a second attempt.
        Err(e)
            if e.kind() == clap::error::ErrorKind::MissingRequiredArgument && !settings.paths.is_empty() =>
        {
            command.clone().get_matches_from(with(&settings.paths))
        }
        Err(e) => e.exit(),
        Ok(matches) => matches,
    };
    let mut arguments = from_matches(&mut command, &matches)?;
    match &mut arguments.command {
        Command::Validate(flags) => flags.overrides = settings.overrides,
        Command::Lint(flags) => flags.control.overrides = settings.overrides,
        Command::Upgrade(flags) => flags.control.overrides = settings.overrides,
        _ => {}
    }
    Ok(arguments)
}

fn from_matches(command: &mut clap::Command, matches: &clap::ArgMatches) -> Result<Arguments, Problem> {
    match Arguments::from_arg_matches(matches) {
        Ok(arguments) => Ok(arguments),
        Err(e) => e.format(command).exit(),
    }
}

/// Returns the configuration file: the one that `--config` names, or the nearest one from the current directory upwards.
fn find(words: &[OsString]) -> Result<Option<PathBuf>, Problem> {
    let mut words = words.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        match word {
            "--no-config" => return Ok(None),
            "--config" => return Ok(words.next().map(PathBuf::from)),
            "--" => break,
            word => {
                if let Some(file) = word.strip_prefix("--config=") {
                    return Ok(Some(PathBuf::from(file)));
                }
            }
        }
    }
    let here = std::env::current_dir().map_err(|e| Problem::new("cannot find the current directory", e))?;
    let found = here
        .ancestors()
        .map(|folder| folder.join(NAME))
        .find(|file| file.is_file());
    // A relative name keeps messages short, and the same on every machine.
    Ok(found.map(|file| match file.strip_prefix(&here) {
        Ok(relative) => relative.to_owned(),
        Err(_) => file,
    }))
}

/// The settings of a file for one command.
struct Settings {
    /// Flags, as words of a command line.
    words: Vec<OsString>,
    /// Flags that name inputs, for a command line that names none.
    paths: Vec<OsString>,
    overrides: Vec<PathOverride>,
}

/// A file being read, for messages with line and column.
struct ConfigReader<'a> {
    locator: DocumentLocator<'a>,
    file: &'a Arc<str>,
    /// The directory of the file, which paths are relative to.
    directory: PathBuf,
    command: &'a clap::Command,
}

impl Settings {
    /// Reads a file, and selects the settings for a command.
    fn read(file: &Path, command: &clap::Command, name: &str) -> Result<Self, Problem> {
        let bytes = files::read(file, MAX_BYTES).map_err(|e| files::unreadable(file.display(), &e))?;
        let title: Arc<str> = file.display().to_string().into();
        let (documents, problems) = split::documents(&title, &bytes);
        if let Some(problem) = problems.into_iter().next() {
            return Err(problem);
        }
        let mut settings = Settings {
            words: Vec::new(),
            paths: Vec::new(),
            overrides: Vec::new(),
        };
        let [document] = documents.as_slice() else {
            return match documents.as_slice() {
                [] => Ok(settings),
                _ => Err(Problem::in_file(
                    &title,
                    None,
                    "the configuration has more than one document",
                )),
            };
        };
        let value = document.value()?;
        let reader = ConfigReader {
            locator: DocumentLocator::new(document),
            file: &title,
            directory: std::path::absolute(file)
                .ok()
                .and_then(|file| file.parent().map(Path::to_owned))
                .unwrap_or_default(),
            command,
        };
        let members = match &value {
            Value::Null => return Ok(settings),
            Value::Object(members) => members,
            _ => return Err(reader.problem(&[], "the configuration is not a mapping")),
        };
        for (key, value) in members.iter() {
            let key: &str = key;
            match value {
                Value::Array(items) if key == OVERRIDES => {
                    for (n, item) in items.iter().enumerate() {
                        settings.overrides.push(reader.path_override(n, item)?);
                    }
                }
                Value::Object(members) if reader.is_command(key) => {
                    for (flag, value) in members.iter() {
                        settings.flag(&reader, &[key, flag], Some(key), name, value)?;
                    }
                }
                _ => settings.flag(&reader, &[key], None, name, value)?,
            }
        }
        Ok(settings)
    }

    /// Adds a flag, if the command has it. Every flag is checked, whichever command it is for.
    fn flag(
        &mut self,
        reader: &ConfigReader<'_>,
        path: &[&str],
        only: Option<&str>,
        command: &str,
        value: &Value,
    ) -> Result<(), Problem> {
        let key = path.last().copied().unwrap_or_default();
        if key == PATHS {
            let flag = if command == "cost" { "crds" } else { "filename" };
            if only.is_none_or(|only| only == command) {
                for file in reader.scalars(path, value)? {
                    self.paths
                        .push(format!("--{flag}={}", reader.relative(&file)).into());
                }
            }
            return Ok(());
        }
        let flag = kebab(key);
        // Any command that has the flag is enough to check the value, so that a typo never stays unnoticed.
        let known = |name: &str| {
            let command = reader.command.find_subcommand(name)?;
            command
                .get_arguments()
                .find(|arg| arg.get_long() == Some(flag.as_str()))
        };
        let commands = || {
            reader
                .commands()
                .filter(|name| only.is_none_or(|only| only == *name))
        };
        let Some(arg) = commands().find_map(known) else {
            return Err(reader.unknown(path, only));
        };
        let words = reader.words(path, &flag, arg, value)?;
        // A setting for all commands applies where the flag takes the same values: `--output` is a format or a directory.
        let takes_same = |own: &Arg| own.get_value_parser().type_id() == arg.get_value_parser().type_id();
        if only.is_none_or(|only| only == command) && known(command).is_some_and(takes_same) {
            self.words.extend(words);
        }
        Ok(())
    }
}

impl ConfigReader<'_> {
    fn problem(&self, path: &[&str], why: impl std::fmt::Display) -> Problem {
        Problem::in_file(self.file, self.location(path), why)
    }

    fn location(&self, path: &[&str]) -> Option<Location> {
        let query = self.locator.path(&[], &field_path(path));
        self.locator.locations(&[query]).into_iter().next().flatten()
    }

    fn commands(&self) -> impl Iterator<Item = &str> {
        let names = self.command.get_subcommands().map(clap::Command::get_name);
        names.filter(|name| !NOT_CONFIGURED.contains(name))
    }

    fn is_command(&self, name: &str) -> bool {
        self.commands().any(|command| command == name)
    }

    /// The error for a key that is not a flag.
    fn unknown(&self, path: &[&str], only: Option<&str>) -> Problem {
        let key = path.last().copied().unwrap_or_default();
        let commands = self
            .commands()
            .filter(|name| only.is_none_or(|only| only == *name));
        let commands = commands.filter_map(|name| self.command.find_subcommand(name));
        let flags = commands
            .flat_map(clap::Command::get_arguments)
            .filter_map(Arg::get_long);
        let own = [PATHS, OVERRIDES].into_iter().map(str::to_owned);
        let known = flags.map(camel).chain(own.filter(|_| only.is_none()));
        let near = known.map(|name| (strsim::osa_distance(&name, key), name)).min();
        let problem = self.problem(path, format_args!("unknown setting `{key}`"));
        match near {
            Some((distance, name)) if distance <= 3 => problem.hint(format!("did you mean `{name}`?")),
            _ => problem.hint("settings are the long names of flags, in camel case"),
        }
    }

    /// The arguments for a flag and its values, which are checked as those of a command line.
    fn words(&self, path: &[&str], flag: &str, arg: &Arg, value: &Value) -> Result<Vec<OsString>, Problem> {
        let is_switch = !arg.get_action().takes_values();
        let values = match value {
            Value::Bool(on) if is_switch => {
                // No flag turns a switch off, so false is the same as leaving it out.
                return Ok(on.then(|| format!("--{flag}").into()).into_iter().collect());
            }
            _ if is_switch => return Err(self.problem(path, "the value is not true or false")),
            value => self.scalars(path, value)?,
        };
        if values.len() > 1
            && matches!(arg.get_action(), ArgAction::Set)
            && arg.get_value_delimiter().is_none()
            && !matches!(value, Value::Object(_))
        {
            return Err(self.problem(path, "the setting takes one value"));
        }
        let parser = arg.get_value_parser();
        let is_path = [TypeId::of::<PathBuf>(), TypeId::of::<SchemaSource>()]
            .iter()
            .any(|ty| parser.type_id() == *ty);
        let values = values
            .into_iter()
            .map(|value| if is_path { self.relative(&value) } else { value });
        // A map is one value if the flag takes one: `Name=true,Name=false`.
        let values: Vec<String> = match value {
            Value::Object(_) if matches!(arg.get_action(), ArgAction::Set) => {
                vec![values.collect::<Vec<_>>().join(",")]
            }
            _ => values.collect(),
        };
        let words: Vec<OsString> = values
            .iter()
            .map(|value| format!("--{flag}={value}").into())
            .collect();
        // clap parses the values on their own, so an error names the place in the file and not the command line.
        let mut probe = Arg::new("value")
            .long("value")
            .action(arg.get_action().clone())
            .value_parser(parser.clone());
        if let Some(delimiter) = arg.get_value_delimiter() {
            probe = probe.value_delimiter(delimiter);
        }
        let probed = clap::Command::new("config").no_binary_name(true).arg(probe);
        if let Err(e) = probed.try_get_matches_from(values.iter().map(|value| format!("--value={value}"))) {
            let text = e.to_string();
            let why = text
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            // The name of the probe must not appear in the message.
            return Err(self.problem(path, why.replace(" for '--value <value>'", "")));
        }
        Ok(words)
    }

    /// The values of a setting: a scalar, a list of them, or a mapping, as `name=value`.
    fn scalars(&self, path: &[&str], value: &Value) -> Result<Vec<String>, Problem> {
        let scalar = |value: &Value| match value {
            Value::String(text) => Ok(text.to_string()),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => Ok(value.to_json()),
            _ => Err(self.problem(path, "the value is not a string, a number or a boolean")),
        };
        match value {
            Value::Array(items) => items.iter().map(scalar).collect(),
            Value::Object(members) => {
                let pair = |(name, value)| Ok(format!("{name}={}", scalar(value)?));
                members.iter().map(pair).collect()
            }
            value => scalar(value).map(|value| vec![value]),
        }
    }

    /// Resolves a path relative to the file.
    fn relative(&self, path: &str) -> String {
        // Standard input, revisions, URLs and absolute paths do not depend on the directory.
        let is_elsewhere =
            path == "-" || path.starts_with("git:") || path.contains("://") || Path::new(path).is_absolute();
        if is_elsewhere {
            return path.to_owned();
        }
        let joined = self.directory.join(path);
        // Without a current directory, the path stays absolute, which works as well.
        let here = std::env::current_dir().unwrap_or_default();
        joined
            .strip_prefix(&here)
            .unwrap_or(&joined)
            .display()
            .to_string()
    }

    fn path_override(&self, n: usize, value: &Value) -> Result<PathOverride, Problem> {
        let index = n.to_string();
        let Value::Object(members) = value else {
            return Err(self.problem(&[OVERRIDES, &index], "an override is not a mapping"));
        };
        let mut found = PathOverride::default();
        if !members.contains_key(PATHS) {
            return Err(self.problem(&[OVERRIDES, &index], "an override has no `paths`"));
        }
        for (key, value) in members.iter() {
            let key: &str = key;
            let path = [OVERRIDES, index.as_str(), key];
            let failed = |why: &dyn std::fmt::Display| self.problem(&path, why);
            match key {
                PATHS => {
                    let mut globs = GlobSetBuilder::new();
                    for pattern in self.scalars(&path, value)? {
                        // Patterns are absolute, because the command may run in any directory below the file.
                        let pattern = self.directory.join(&pattern).display().to_string();
                        // `*` does not cross directories, as in .gitignore; `**` does.
                        let glob = GlobBuilder::new(&pattern).literal_separator(true).build();
                        globs.add(glob.map_err(|e| failed(&e))?);
                    }
                    found.paths = globs.build().map_err(|e| failed(&e))?;
                }
                "severity" => found.severities.extend(self.settings(&path, value, None)?),
                "ignore" => found.severities.extend(self.settings(&path, value, Some("off"))?),
                "deny" => found
                    .severities
                    .extend(self.settings(&path, value, Some("error"))?),
                "skip" => found.skip = self.scalars(&path, value)?,
                "fieldValidation" => {
                    let text = value.as_str().unwrap_or_default();
                    let parsed = FieldValidationFlag::from_str(text, true);
                    found.field_validation =
                        Some(parsed.map_err(|_| failed(&"the value is not strict, warn or ignore"))?);
                }
                "ignoreMissingSchemas" => {
                    let on = value.as_bool();
                    found.ignore_missing_schemas =
                        Some(on.ok_or_else(|| failed(&"the value is not true or false"))?);
                }
                other => {
                    return Err(failed(&format_args!("unknown setting `{other}` of an override")).hint(
                        "an override has paths, severity, ignore, deny, skip, fieldValidation and ignoreMissingSchemas",
                    ));
                }
            }
        }
        Ok(found)
    }

    fn settings(
        &self,
        path: &[&str],
        value: &Value,
        severity: Option<&str>,
    ) -> Result<Vec<SeveritySetting>, Problem> {
        let texts = self.scalars(path, value)?.into_iter();
        let texts = texts.map(|text| match severity {
            Some(severity) => format!("{text}={severity}"),
            None => text,
        });
        let parsed = texts.map(|text| text.parse().map_err(|why: String| self.problem(path, why)));
        parsed.collect()
    }
}

fn field_path(steps: &[&str]) -> FieldPathBuf {
    fn below(path: &FieldPath<'_>, steps: &[&str]) -> FieldPathBuf {
        match steps.split_first() {
            Some((step, rest)) => match step.parse() {
                Ok(index) => below(&path.index(index), rest),
                Err(_) => below(&path.field(step), rest),
            },
            None => FieldPathBuf::from(path),
        }
    }
    below(&FieldPath::ROOT, steps)
}

/// `kubernetesVersion` as `kubernetes-version`.
fn kebab(key: &str) -> String {
    let mut out = String::new();
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// `kubernetes-version` as `kubernetesVersion`.
fn camel(flag: &str) -> String {
    let mut words = flag.split('-');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut chars = word.chars();
        out.extend(chars.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(chars.as_str());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{camel, kebab};

    #[test]
    fn flags_have_names_in_camel_case() {
        for (flag, key) in [
            ("crds", "crds"),
            ("kubernetes-version", "kubernetesVersion"),
            ("fail-on", "failOn"),
        ] {
            assert_eq!((kebab(key).as_str(), camel(flag).as_str()), (flag, key));
        }
    }
}
